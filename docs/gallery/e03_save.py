"""Keep a calibrator.

Versioned JSON, checked when it is read; never a pickle.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val = hs.read(path, split="val")
fitted = hs.calibrators.Temperature.fit(val)
hs.save(fitted, "calibrator.json")
kept = hs.load("calibrator.json")
print(f"T = {kept.temperature:.4f}; the same to the last bit: {kept == fitted}")
