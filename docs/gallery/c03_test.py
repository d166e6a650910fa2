"""Could this be chance?.

Exact under the assumption that outcomes happen as claimed.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
found = hs.calibration_test(t)
print("contradicted" if found.p < 0.01 else "not contradicted")
