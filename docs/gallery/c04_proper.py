"""Proper scores of the whole vector.

They cannot be improved by hiding errors in bins.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
print(f"NLL {hs.nll(test):.4f}, Brier {hs.brier(test):.4f}, top-2 {hs.top_k_accuracy(test, 2):.4f}")
