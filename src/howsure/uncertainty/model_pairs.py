"""Many models at once: which differences are clear although so many were looked at."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf
from typing import Any, NamedTuple

import numpy as np

from howsure import metrics
from howsure._core.check import Floats, InputError
from howsure.metrics.metric_facts import Metric
from howsure.uncertainty.intervals import each_paired_difference, pair_sides
from howsure.uncertainty.means import student_quantile, sum_by_unit
from howsure.uncertainty.paired import compute_sample_influence, find_unseen_auroc_variance

MAX_T_DRAWS = 20_000


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
    spread = measure_spread(metric, models)
    if spread is not None:
        values = np.array([difference for difference, _, _ in own])
        beyond = find_beyond_equal(spread, values, pairs, level, seed)
    else:
        strict = 1 - (1 - level) / len(pairs)
        beyond: list[bool] = []
        for i, j in pairs:
            _, low, high = each_paired_difference([metric], models[i], models[j], strict, seed)[0]
            beyond.append(low > 0 or high < 0)
    return [
        PairDifference(
            first=i,
            second=j,
            difference=difference,
            low=low,
            high=high,
            clear=bool(far) and (low > 0 or high < 0),
        )
        for (i, j), (difference, low, high), far in zip(pairs, own, beyond, strict=True)
    ]


class ModelSpread(NamedTuple):
    """Covariance of the numbers of all models, the fewest errors of any, and what a quantile must
    be multiplied by.
    """

    covariance: Floats
    errors: float
    wider: float
    extra: float  # variance that a few errors leave unseen


def measure_spread(metric: Metric, models: Sequence[Any]) -> ModelSpread | None:
    """How the numbers of all models vary together; None where the influence of single samples on
    the metric is not known.
    """
    sides = [pair_sides(metric, models[0], other)[1] for other in models]
    units = sides[0].case.units
    sums: list[Floats] = []
    for case, number in sides:
        influence = compute_sample_influence(number, case)
        if influence is None:
            return None
        sums.append(sum_by_unit(influence, units))
    together = np.stack(sums)
    wider = 1.0
    if units.group is not None:
        wider = student_quantile(units.many - 1, 0.025) / student_quantile(inf, 0.025)
    errors = min(side.case.ranks.k for side in sides)
    extra = 0.0
    if metric is metrics.auroc:
        extra = find_unseen_auroc_variance(errors)
    return ModelSpread(
        covariance=together @ together.T / units.n**2, errors=errors, wider=wider, extra=extra
    )


def find_beyond_equal(
    spread: ModelSpread,
    difference: Floats,
    pairs: Sequence[tuple[int, int]],
    level: float,
    seed: int,
) -> list[bool]:
    """Which differences are larger than the largest of equal models."""
    covariance = spread.covariance
    i, j = np.array(pairs).T
    variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
    error = np.sqrt(np.maximum(variance, 0.0))
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    varies = error > 1e-12 * max(1e-300, float(error.max()))
    if not varies.any():
        return [False] * len(pairs)
    # Models that are equal but for noise: how large is the largest difference between two?
    x = np.random.default_rng(seed).standard_normal((MAX_T_DRAWS, len(covariance))) @ root.T
    largest = np.zeros(MAX_T_DRAWS)
    for a, b, e in zip(i[varies], j[varies], error[varies], strict=True):
        largest = np.maximum(largest, np.abs(x[:, a] - x[:, b]) / e)
    unseen = np.sqrt(error**2 * (1 + 4 / (spread.errors + 1)) + spread.extra)
    limit = spread.wider * float(np.quantile(largest, level)) * unseen
    known = varies & np.isfinite(difference)
    return [bool(k and abs(d) > far) for d, far, k in zip(difference, limit, known, strict=True)]
