"""Every number has an interval.

Two limits that contain the true value in 95 of 100 data sets.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
for metric in (hs.aurc, hs.auroc, hs.ece):
    low, high = hs.interval(metric, t)
    print(f"{metric.__name__}: {metric(t):.4f} ({low:.4f} to {high:.4f})")
