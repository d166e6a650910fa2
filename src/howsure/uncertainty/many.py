"""Many models at once: which differences are clear although so many were looked at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from howsure import metrics
from howsure._core.check import Floats, InputError
from howsure.metrics.facts import Metric
from howsure.uncertainty.clusters import unit_sums
from howsure.uncertainty.intervals import each_paired_difference, paired_sides
from howsure.uncertainty.means import student
from howsure.uncertainty.pairs import few_errors, single_influence

__all__ = ["PairDifference", "all_differences"]

DRAWS = 20_000


class PairDifference(NamedTuple):
    """Two of several models by number: metric(first) − metric(second), its own limits, and whether
    it is clear.
    """

    first: int
    second: int
    difference: float
    low: float
    high: float
    clear: bool


def all_differences(
    metric: Metric, models: Sequence[Any], level: float = 0.95, seed: int = 0
) -> list[PairDifference]:
    """Every pair of models on the same samples; in 1 − level of tables of equal models some pair is
    called clear.

    Where the influence of single samples is known, a pair is clear where its difference exceeds the
    `level` quantile of the largest standardised difference among equal models (max-t; Hothorn et
    al. 2008) and its own limits exclude 0. For other metrics limits are shared out among the pairs
    (Bonferroni). `models` as in `paired_difference`.

    >>> rng = np.random.default_rng(0)
    >>> right = rng.random((3, 400)) < np.array([[0.95], [0.9], [0.7]])
    >>> from howsure import accuracy
    >>> pairs = all_differences(accuracy, [(rng.random(400), c) for c in right])
    >>> [(p.first, p.second) for p in pairs if p.clear]
    [(0, 2), (1, 2)]
    """
    if len(models) < 2:
        raise InputError(f"{len(models)} model; a comparison needs at least two.")
    pairs = list(combinations(range(len(models)), 2))
    own = [each_paired_difference([metric], models[i], models[j], level, seed)[0] for i, j in pairs]
    table = _influences(metric, models)
    if table is None:
        strict = 1 - (1 - level) / len(pairs)
        held = [
            each_paired_difference([metric], models[i], models[j], strict, seed)[0]
            for i, j in pairs
        ]
        beyond = [low > 0 or high < 0 for _, low, high in held]
    else:
        beyond = _beyond(table, np.array([d for d, _, _ in own]), pairs, level, seed)
    return [
        PairDifference(i, j, d, low, high, bool(far) and (low > 0 or high < 0))
        for (i, j), (d, low, high), far in zip(pairs, own, beyond, strict=True)
    ]


class _Table(NamedTuple):
    """Covariance of the numbers of all models, the fewest errors of any, and what a quantile must
    be multiplied by.
    """

    covariance: Floats
    errors: float
    wider: float
    extra: float  # variance that a few errors leave unseen


def _influences(metric: Metric, models: Sequence[Any]) -> _Table | None:
    """None where the influence of single samples on the metric is not known."""
    sides = [paired_sides(metric, models[0], other) for other in models]
    found = [single_influence(number, case) for _, (case, number) in sides]
    units = sides[0][1][0].units
    if any(f is None for f in found):
        return None
    sums = np.stack([unit_sums(f, units) for f in found if f is not None])
    wider = 1.0 if units.group is None else student(units.many - 1, 0.025) / student(inf, 0.025)
    errors = min(case.ranks.k for _, (case, _) in sides)
    extra = few_errors(errors) if metric is metrics.auroc else 0.0
    return _Table(sums @ sums.T / units.n**2, errors, wider, extra)


def _beyond(
    table: _Table, difference: Floats, pairs: Sequence[tuple[int, int]], level: float, seed: int
) -> list[bool]:
    """Which differences are larger than the largest of equal models."""
    c = table.covariance
    i, j = np.array(pairs).T
    error = np.sqrt(np.maximum(c[i, i] + c[j, j] - 2 * c[i, j], 0.0))
    value, vector = np.linalg.eigh(c)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    rng = np.random.default_rng(seed)
    some = error > 1e-12 * max(1e-300, float(error.max()))
    if not some.any():
        return [False] * len(pairs)
    x = rng.standard_normal((DRAWS, len(c))) @ root.T
    largest = reduce(
        np.maximum,
        (
            np.abs(x[:, a] - x[:, b]) / e
            for a, b, e in zip(i[some], j[some], error[some], strict=True)
        ),
    )
    unseen = np.sqrt(error**2 * (1 + 4 / (table.errors + 1)) + table.extra)
    limit = table.wider * float(np.quantile(largest, level)) * unseen
    return [
        bool(s and isfinite(d) and abs(d) > far)
        for d, far, s in zip(difference, limit, some, strict=True)
    ]
