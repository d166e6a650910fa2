"""Predictions → one loss per sample; a tally takes any of them as `loss=`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats
from howsure.predictions.columns import rank_labels
from howsure.predictions.predictions import Predictions, needs_predictions

__all__ = ["brier", "nll", "top_k", "zero_one"]


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
