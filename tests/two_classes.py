"""Predictions of two Gaussian classes, whose posterior is known."""

import numpy as np

from howsure import Predictions


def drawn(n: int, seed: int, *, share=(0.5, 0.5), group=None) -> Predictions:
    """Two Gaussian classes with the exact posterior for equal shares as probability."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < share[1]).astype(int)
    x = rng.normal(np.where(label, 1.0, -1.0))
    return Predictions.from_logits(np.stack((np.zeros(n), 2 * x), axis=1), label, group=group)


def without(preds: Predictions) -> Predictions:
    return Predictions.from_logits(preds.values, group=preds.group, class_names=preds.class_names)


def harder(preds: Predictions, seed: int) -> Predictions:
    """Of the surer half every fourth row only."""
    sure = preds.confidence > np.median(preds.confidence)
    return preds[~sure | (np.random.default_rng([seed, 1]).random(preds.n) < 0.25)]
