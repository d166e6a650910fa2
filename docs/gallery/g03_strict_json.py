"""Strict JSON.

nan and infinity are null, with the reason.
"""

import json
from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
report = json.loads(hs.evaluate(test).to_json())
print(
    report["schema"],
    {k: round(v, 4) for k, v in report["metrics"]["ece"].items() if isinstance(v, float)},
)
