"""The whole job.

Every number that the data allow, with its interval, and findings in words.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
report = hs.evaluate(test)
for finding in report.data["findings"][:3]:
    print("-", finding["text"])
