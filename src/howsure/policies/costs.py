"""Costs that depend on the true and the answered class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Floats, InputError, Ints
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes


def cost_matrix(costs: ArrayLike, k: int | None) -> Floats:
    """A finite k × k matrix: row = truth, column = answer."""
    c = check.finite(check.floats(costs, "costs"), "costs").astype(np.float64)
    if c.ndim != 2 or c.shape[0] != c.shape[1] or (k is not None and len(c) != k):
        raise InputError(
            f"costs has shape {c.shape}; one row per true class and one column per answer is needed."
        )
    return c


def cheapest(preds: Predictions, costs: ArrayLike) -> tuple[Ints, Floats]:
    r"""The answer with the least expected cost and that cost, :math:`\min_j \sum_i p_i C_{ij}`;
    ties: smaller class.
    """
    expected = preds.probs @ cost_matrix(costs, preds.k)
    answer = expected.argmin(axis=1)
    return answer, expected[np.arange(preds.n), answer]


def cost_outcomes(preds: Predictions, costs: ArrayLike) -> Outcomes:
    r"""Minus the expected cost of the cheapest answer as score, the cost it really had as loss.

    `costs[i][j]` is the cost of answering j when i is true.
    `threshold_for_cost(cost_outcomes(preds, costs) .tally(), error=1, deferral=d)` then finds from
    which expected cost on asking is cheaper, on data and not on faith in the probabilities. Elkan
    2001; Chow 1970.

    >>> preds = Predictions.from_probs([[0.8, 0.2], [0.1, 0.9]], [1, 1])
    >>> o = cost_outcomes(preds, [[0, 1], [10, 0]])  # missing a 1 costs ten times as much
    >>> o.score, o.loss
    (array([-0.8, -0.1]), array([0., 0.]))
    """
    needs_predictions(preds, "cost_outcomes")
    answer, expected = cheapest(preds, costs)
    return Outcomes(
        -expected, loss=cost_matrix(costs, preds.k)[preds.labels, answer], group=preds.group
    )
