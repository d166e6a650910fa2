"""Accept or defer.

A policy is a score, a threshold and, where there is one, a calibrator.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
val, test = hs.read(path, split="val"), hs.read(path, split="test")
policy = hs.policies.Policy.fit(val, lambda t: hs.policies.threshold_for_accuracy(t, 0.98))
decisions = policy.decide(test)
print(
    f"{decisions.accept.mean():.1%} accepted, {test.correct[decisions.accept].mean():.2%} of them right"
)
