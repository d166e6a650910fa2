"""Keep a calibrator.

Versioned JSON, checked when it is read; never a pickle.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
hs.save(hs.calibrators.Temperature.fit(val), "calibrator.json")
print(hs.load("calibrator.json"))
