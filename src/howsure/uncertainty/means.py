"""The mean of a column: how far it may be from what it estimates."""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats


def standard_error(d: Floats, group: Array | None) -> float:
    """Of a mean; samples of a group count as one."""
    rest = d - d.mean()
    if group is not None:
        rest = np.bincount(np.unique(group, return_inverse=True)[1].reshape(-1), weights=rest)
    return float(np.sqrt((rest**2).sum()) / len(d))


def student(df: float, half: float) -> float:
    """The upper `half` quantile of Student's t; normal at infinitely many degrees of freedom.

    >>> round(student(10, 0.025), 3)
    2.228
    """
    from scipy.special import ndtri, stdtrit

    return float(-ndtri(half)) if df == inf else float(stdtrit(df, 1 - half))


class Unseen(NamedTuple):
    """Mean and mean square of a deviation that was not seen, which the upper limit allows for."""

    mean: float
    square: float


def mean_limits(
    mean: float, squares: float, cubes: float, n: float, half: float, unseen: Unseen | None = None
) -> tuple[float, float]:
    """Limits of a mean from the sums of squared and cubed deviations; n may be an effective size.

    Student's t, bent by the skewness (Hall 1992): the mean of losses that are mostly small is more
    often too low than too high. Where nothing is known of what is `unseen`, the end that the
    skewness points to lies further out by half a deviation, drawn in proportion to its square: what
    exact limits of a count have over those of half its tails.

    >>> low, high = mean_limits(0.5, 25.0, 0.0, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.4, 0.6)
    """
    df = max(1.0, n - 1)
    reach = student(df, half)
    skew = cubes / squares**1.5 if squares > 0 else 0.0
    step = cubes / squares / 2 if squares > 0 else 0.0
    more = Unseen(max(0.0, step), 0.0) if unseen is None else unseen
    below, above = (
        sqrt(max(0.0, squares) / df / n),
        sqrt((max(0.0, squares) + more.square) / df / n),
    )
    low = mean - below * bent(reach, skew) - max(0.0, -step) / n
    return low, mean - above * bent(-reach, skew) + more.mean / n


def bent(t: float, skew: float) -> float:
    """Hall's transformation, inverted: a quantile of a studentised mean; `skew` is the skewness
    over the root of n.

    >>> bent(1.96, 0.0), bent(-1.96, 0.1) < -1.96
    (1.96, True)
    """
    if abs(skew) < 1e-6:
        return t
    inside = 1 + skew * (t - skew / 6)
    return 3 / skew * (abs(inside) ** (1 / 3) * (1 if inside > 0 else -1) - 1)
