"""Read a file.

One reader for every format; splits are named, nothing is guessed.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
preds = hs.read(path, split="test")
print(preds.n, preds.k, preds.class_names is not None)
