"""One number makes it honest.

Fitted on validation data, judged on test data.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
fitted = hs.calibrators.Temperature.fit(val)
for name, preds in (("before", test), ("after", fitted(test))):
    print(
        f"{name}: ECE {hs.ece(hs.tally(preds.confidence, correct=preds.correct)):.4f}, NLL {hs.nll(preds):.4f}"
    )
