"""A figure for a paper.

Six panels from one report.
"""

import sys
from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
hs.evaluate(test).figure().savefig(sys.argv[1])
