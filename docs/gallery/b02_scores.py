"""Which score ranks best?.

Scores of one model may be compared by any ranking metric.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
for name in ("max_prob", "margin", "entropy", "energy"):
    s = hs.tally(getattr(hs.scores, name)(test), correct=test.correct)
    print(f"{name:9} AURC {hs.aurc(s):.4f}")
