"""A threshold with a guarantee.

True risk at most 2 % with probability 95 %; smaller than what the curve promises.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
t = hs.tally(val.confidence, correct=val.correct)
found = hs.policies.guaranteed_threshold(t, risk=0.02, delta=0.05)
print(f"promised {found.coverage:.1%}, read off the curve {hs.coverage_at_risk(t, 0.02):.1%}")
