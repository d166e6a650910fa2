"""A threshold for an accuracy.

The most coverage at this accuracy of the accepted, on these data.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
found = hs.policies.threshold_for_accuracy(t, 0.98)
print(f"accept from {found.threshold:.3f} on: {found.coverage:.1%}")
