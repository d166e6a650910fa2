"""Compare two models.

Which columns may be compared is part of the answer.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
scaled = hs.calibrators.Temperature.fit(val)(test)
print(hs.compare({"raw": test, "scaled": scaled}).to_text().splitlines()[0])
