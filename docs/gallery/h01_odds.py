"""What is knowing the confidence worth?.

The odds that a bettor gains who sees it (Finlay & Oberman).
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
bands = hs.bands(t)
for weight, accuracy in zip(bands.weight, bands.accuracy, strict=True):
    print(f"{weight:.1%} of the answers: right {accuracy:.2%}")
