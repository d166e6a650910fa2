"""Predictions from logits.

What a network gives before the softmax, one row per sample, and the labels.
"""

import numpy as np

import howsure as hs

rng = np.random.default_rng(0)
labels = rng.integers(0, 4, 1000)
logits = 2.5 * np.eye(4)[labels] + rng.standard_normal((1000, 4))
preds = hs.Predictions.from_logits(logits, labels)
print(preds.n, preds.k, f"accuracy {hs.accuracy(preds):.3f}")
