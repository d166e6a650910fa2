"""A model with an expert beside it: what the two reach together."""

from __future__ import annotations

import numpy as np

from howsure._core.check import InputError
from howsure.metrics.facts import metric
from howsure.tallies.tally import Tally, needs_zero_one


@metric(better="higher", bounds=(0, 1), rank_only=True)
def oracle_accuracy(t: Tally, budget: float = 0.1) -> float:
    r"""Accuracy where the least trusted share `budget` of the answers is replaced by the truth.

    .. math:: \frac1n \Bigl( n - \mathrm{wrong} + E[\mathrm{wrong\ of\ the\ } \lfloor bn \rfloor \mathrm{\ last}] \Bigr)

    Tied answers are taken in expectation. Range [0, 1], 1 is perfect; a budget of 0 gives the accuracy.
    Kivlichan et al. 2021 (oracle-model collaborative accuracy).

    >>> from howsure import tally
    >>> oracle_accuracy(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]), 0.25)
    0.75
    """
    needs_zero_one(t, "oracle_accuracy")
    if not 0 <= budget <= 1:
        raise InputError(f"budget is {budget:g}; a share between 0 and 1 is needed.")
    whole = np.array_equal(t.count, np.round(t.count))  # weights have no whole samples
    replaced = np.floor(budget * t.n + 1e-9) if whole else budget * t.n
    count, wrong = t.count[::-1].astype(np.float64), t.loss[::-1].astype(np.float64)
    before = np.cumsum(count) - count
    taken = np.clip(replaced - before, 0.0, count)
    return float((t.n - t.total + (wrong * taken / count).sum()) / t.n)


__all__ = ["oracle_accuracy"]
