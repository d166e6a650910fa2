"""Is the difference real?.

Paired: both models saw the same samples.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
after = hs.calibrators.Temperature.fit(val)(test)
difference, low, high = hs.paired_difference(hs.nll, test, after)
print(f"NLL falls by {difference:.4f} ({low:.4f} to {high:.4f})")
