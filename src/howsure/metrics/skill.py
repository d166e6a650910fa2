"""What a number is worth beside one that knows nothing but the class shares."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np

from howsure.predictions import Predictions, needs_predictions


def skill(metric: Callable[[Predictions], float], preds: Predictions) -> float:
    r"""How much better than always answering with the class shares.

    .. math:: 1 - \frac{\mathrm{value}}{\mathrm{value\ of\ the\ shares}}

    `metric` is one that should be low: `nll`, `brier`. 1 is perfect, 0 knows no more than the shares of the same data,
    below 0 is worse than that; 0/0 is nan. Murphy 1973 (skill scores).

    >>> from howsure import brier
    >>> round(skill(brier, Predictions.from_probs([[0.8, 0.2], [0.3, 0.7]], [0, 1])), 2)
    0.74
    """
    needs_predictions(preds, "skill")
    k = preds.needs_vector("skill")
    weight = np.ones(preds.n) if preds.weight is None else preds.weight
    share = np.bincount(preds.labels, weights=weight, minlength=k) / weight.sum()
    constant = Predictions.from_probs(
        np.tile(share, (preds.n, 1)), preds.labels, weight=preds.weight, renormalise=True
    )
    value, base = metric(preds), metric(constant)
    if base == 0:
        return nan if value == 0 else -np.inf
    return float(1 - value / base)


__all__ = ["skill"]
