"""Tables add up.

Parts give the same numbers to the last bit, in any order.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
a = hs.tally(test.confidence[:4000], correct=test.correct[:4000])
b = hs.tally(test.confidence[4000:], correct=test.correct[4000:])
print(hs.aurc(a + b) == hs.aurc(b + a) == hs.aurc(t))
