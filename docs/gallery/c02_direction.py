"""Which way is it wrong?.

Positive: overconfident.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
print(f"signed {hs.signed_calibration_error(t):+.4f}")
print(f"over {hs.over_confidence(t):.4f}, under {hs.under_confidence(t):.4f}")
