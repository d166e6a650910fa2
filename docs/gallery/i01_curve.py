"""The curve behind the number.

Risk against coverage, drawn with matplotlib.
"""

import sys
from importlib.resources import files

import matplotlib.pyplot as plt

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
curve = hs.risk_coverage(t)
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(curve.x, curve.y)
axes.set(xlabel="coverage", ylabel="risk")
figure.savefig(sys.argv[1])
