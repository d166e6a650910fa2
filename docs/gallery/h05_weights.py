"""Samples that count more.

Importance of any scale: ten times the weight changes nothing.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
weight = 1.0 + (test.labels == 6)
a, b = (hs.tally(test.confidence, correct=test.correct, weight=w) for w in (weight, 10 * weight))
print(f"{hs.aurc(a):.5f} {hs.aurc(b):.5f}")
