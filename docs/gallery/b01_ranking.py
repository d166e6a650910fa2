"""Can I rank by this confidence?.

AURC is the mean risk over all coverages; E-AURC takes away what no score could avoid.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
print(f"AURC {hs.aurc(t):.4f}, best possible {hs.optimal_aurc(t):.4f}, excess {hs.e_aurc(t):.4f}")
print(f"AUROC of spotting errors {hs.auroc(t):.3f}, AUGRC {hs.augrc(t):.4f}")
