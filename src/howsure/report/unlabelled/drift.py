"""Drift of one column: how much a distribution moved, and whether that is chance."""

from __future__ import annotations

from math import sqrt

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure._core.frozen import frozen

EXPECTED = 5.0  # rows that a value should have on each side for the test; rarer ones are pooled
NAMED = 5  # values that are named as having moved most
FAR = 50  # standard deviations beyond which a probability is 0


@frozen
class Drift:
    """A column beside the reference: effect size with its name, p-value, and the values that moved
    most.

    `moved` are (value, share in the reference, share now).
    """

    column: str
    effect: float
    measure: str
    p: float
    moved: tuple[tuple[str, float, float], ...] = ()


def numbers_drift(column: str, reference: Floats, new: Floats) -> Drift:
    r"""Kolmogorov and Smirnov's test: the largest difference D of the shares below any value, with
    its p-value.

    The p-value is the asymptotic one at :math:`D\sqrt{nm/(n+m)}`, on the safe side where values are
    tied.

    >>> numbers_drift("score", np.linspace(0, 1, 200), np.linspace(0, 0.5, 200)).effect
    0.5
    """
    from scipy.special import kolmogorov

    values = np.unique(np.concatenate((reference, new)))
    below = [
        np.searchsorted(np.sort(side), values, side="right") / len(side)
        for side in (reference, new)
    ]
    d = float(np.abs(below[0] - below[1]).max())
    size = len(reference) * len(new) / (len(reference) + len(new))
    return Drift(
        column, d, "largest difference of shares below a value", float(kolmogorov(d * sqrt(size)))
    )


def values_drift(column: str, reference: Array, new: Array) -> Drift:
    """Chi-squared test of equal shares; the effect is the share of rows that would have to change
    (total variation).

    Values with fewer than 5 expected rows are pooled.

    >>> round(values_drift("answer", np.repeat([0, 1], 50), np.repeat([0, 1], [80, 20])).effect, 1)
    0.3
    """
    from scipy.special import chdtrc

    names, number = np.unique(np.concatenate((reference, new)), return_inverse=True)
    sides: list[Array] = np.split(number.reshape(-1), [len(reference)])
    counts = np.stack([np.bincount(side, minlength=len(names)) for side in sides]).astype(
        np.float64
    )
    share = counts / counts.sum(axis=1, keepdims=True)
    most: Ints = np.argsort(-np.abs(share[1] - share[0]), kind="stable")[:NAMED]
    moved = tuple(
        (str(names[i]), float(share[0, i]), float(share[1, i]))
        for i in most
        if share[0, i] != share[1, i]
    )
    pooled = _pooled(counts)
    expected = pooled.sum(axis=1, keepdims=True) * pooled.sum(axis=0) / pooled.sum()
    statistic = float(((pooled - expected) ** 2 / np.maximum(expected, 1e-300)).sum())
    freedom = len(pooled[0]) - 1
    p = float(chdtrc(freedom, statistic)) if freedom else 1.0
    return Drift(
        column, float(np.abs(share[1] - share[0]).sum() / 2), "share of rows that changed", p, moved
    )


def share_drift(column: str, some: int, n: int, later: int, m: int) -> Drift:
    """A share, `later` of `m` rows beside `some` of `n`: the change, with Fisher's exact p-value,
    right for rare ones.

    >>> round(share_drift("no answer", 0, 3000, 4, 1000).p, 4)  # (1/4)^4: all four in the later quarter
    0.0039
    """
    share = some / n, later / m
    p = _exact(some, n, some + later, m)
    return Drift(column, abs(share[1] - share[0]), "change of the share", p, ((column, *share),))


def _exact(some: int, n: int, total: int, m: int) -> float:
    """The probability that `total` of n + m rows fall among the n as unevenly as `some` did, or
    more so.
    """
    from scipy.special import betaln

    middle, spread = n * total / (n + m), sqrt(n * m * total * (n + m - total) / (n + m) ** 3)
    ends = middle - FAR * (spread + 1), middle + FAR * (spread + 1)
    if not ends[0] <= some <= ends[1]:
        return 0.0
    x = np.arange(
        max(0, total - m, int(ends[0])), min(n, total, int(ends[1])) + 1, dtype=np.float64
    )
    log = -betaln(x + 1, n - x + 1) - betaln(total - x + 1, m - total + x + 1)
    chance = np.exp(log - log.max())
    return float(chance[chance <= chance[some - int(x[0])] * (1 + 1e-6)].sum() / chance.sum())


def _pooled(counts: Floats) -> Floats:
    """Columns whose expected count is small on either side, as one column."""
    total = counts.sum(axis=0)
    least = total * counts.sum(axis=1).min() / counts.sum()
    small = least < EXPECTED
    if not small.any():
        return counts
    rest = counts[:, small].sum(axis=1, keepdims=True)
    return np.concatenate((counts[:, ~small], rest), axis=1)
