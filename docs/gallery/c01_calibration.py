"""Is it a probability?.

Three binnings, three answers; adaptive bins are as narrow as the samples allow.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
for bins in (hs.equal_range(15), hs.equal_size(15), hs.adaptive()):
    print(f"{type(bins).__name__}: ECE {hs.ece(t, bins=bins):.4f}")
print(f"smooth {hs.smooth_ece(t):.4f}, debiased {hs.debiased_ece(t):.4f}")
