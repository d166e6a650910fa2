"""The cheapest threshold.

A wrong answer costs 50, asking a person 1.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
found = hs.policies.threshold_for_cost(t, error=50, deferral=1)
print(f"accept from {found.threshold:.3f} on: {found.coverage:.1%}")
