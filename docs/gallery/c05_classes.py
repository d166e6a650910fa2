"""Calibration class by class.

One pass for all classes.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
print(f"class-wise ECE {hs.classwise_ece(test):.4f}")
