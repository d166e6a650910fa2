"""Predictions → one loss per sample; a tally takes any of them as `loss=`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats
from howsure.predictions.columns import rank_labels
from howsure.predictions.predictions import Predictions, needs_predictions

__all__ = [
    "brier",
    "level_distance",
    "nll",
    "off_by_more",
    "ranked_probability",
    "top_k",
    "zero_one",
]


def zero_one(preds: Predictions) -> Floats:
    """1 where the answer is wrong, else 0.

    >>> zero_one(Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]], [0, 0]))
    array([0., 1.])
    """
    needs_predictions(preds, "zero_one")
    return (~preds.correct).astype(np.float64)


def top_k(k: int) -> Callable[[Predictions], Floats]:
    """The loss that is 1 where the label is not among the k most probable classes.

    A label's rank counts the classes with a higher value and, among equals, those with a lower
    number.

    >>> top_k(2)(Predictions.from_probs([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [1, 2]))
    array([0., 1.])
    """
    checks.at_least(k, 1, "k")

    def loss(preds: Predictions) -> Floats:
        preds.needs_vector("top-k loss")
        return (rank_labels(preds.raw, preds.labels) >= k).astype(np.float64)

    return loss


def nll(preds: Predictions) -> Floats:
    r"""Negative log likelihood :math:`-\log p_y` in nats.

    From logits it is always finite; from probabilities a label of probability 0 costs inf, never a
    clipped number. For samples p is the mean over them.

    >>> nll(Predictions.from_probs([[0.5, 0.5]], [0]))
    array([0.69314718])
    """
    needs_predictions(preds, "nll")
    _ = preds.labels  # raises where there are none; the column would be nan
    return preds.columns.nll


def brier(preds: Predictions) -> Floats:
    r"""Squared distance to the one-hot label, :math:`\sum_k (p_k - 1[y=k])^2`, in [0, 2].

    >>> brier(Predictions.from_probs([[0.5, 0.5]], [0]))
    array([0.5])
    """
    needs_predictions(preds, "brier")
    _ = preds.labels  # as for nll
    return preds.columns.brier


# ---- classes that are ordered levels, such as grades


def off_by_more(tolerance: int) -> Callable[[Predictions], Floats]:
    """The loss that is 1 where answer and label are more than `tolerance` levels apart.

    >>> off_by_more(1)(Predictions.from_probs([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]], [1, 2]))
    array([0., 1.])
    """
    checks.at_least(tolerance, 0, "tolerance")

    def loss(preds: Predictions) -> Floats:
        preds.needs_vector("the loss of ordered levels")
        return (np.abs(preds.prediction - preds.labels) > tolerance).astype(np.float64)

    return loss


def level_distance(preds: Predictions) -> Floats:
    r"""How many levels answer and label are apart, :math:`|i - j| / (K - 1)`, in [0, 1].

    >>> level_distance(Predictions.from_probs([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]], [1, 2]))
    array([0.5, 1. ])
    """
    needs_predictions(preds, "level_distance")
    levels = preds.needs_vector("level_distance")
    return np.abs(preds.prediction - preds.labels) / max(1, levels - 1)


def ranked_probability(preds: Predictions) -> Floats:
    r"""Ranked probability score of ordered levels, :math:`\sum_k (F_k - 1[y \le k])^2 / (K - 1)`.

    F is the cumulated probability. Epstein 1969.

    >>> ranked_probability(Predictions.from_probs([[0.5, 0.5, 0.0]], [0]))
    array([0.125])
    """
    needs_predictions(preds, "ranked_probability")
    levels = preds.needs_vector("ranked_probability")
    cumulated = np.cumsum(preds.probs, axis=1, dtype=np.float64)[:, :-1]
    reached = preds.labels[:, None] <= np.arange(levels - 1)
    return ((cumulated - reached) ** 2).sum(axis=1) / max(1, levels - 1)
