"""Five calibrators side by side.

Temperature never changes the answer; isotonic regression may.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
for kind in ("Temperature", "VectorScaling", "HistogramBinning", "Isotonic", "Platt"):
    after = getattr(hs.calibrators, kind).fit(val)(test)
    print(f"{kind:17} accuracy {hs.accuracy(after):.4f}, Brier {hs.brier(after):.4f}")
