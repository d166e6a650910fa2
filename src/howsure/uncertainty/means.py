"""The mean of a column: how far it may be from what it estimates."""

from __future__ import annotations

from math import inf, sqrt

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


def student_below(df: float, t: float) -> float:
    """The chance that Student's t is below a number.

    >>> round(student_below(10, 2.228), 3)
    0.975
    """
    from scipy.special import stdtr

    return float(np.asarray(stdtr(df, t), dtype=np.float64))


def mean_limits(
    mean: float, squares: float, cubes: float, n: float, half: float, unseen: float = 0.0
) -> tuple[float, float]:
    """Limits of a mean from the sums of squared and cubed deviations; n may be an effective size.

    Student's t, bent by the skewness (Hall 1992): the mean of losses that are mostly small is more often too low than
    too high. `unseen` is the square of one more deviation that the upper limit allows for.

    >>> low, high = mean_limits(0.5, 25.0, 0.0, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.4, 0.6)
    """
    df = max(1.0, n - 1)
    reach = student(df, half)
    below, above = sqrt(max(0.0, squares) / df / n), sqrt((max(0.0, squares) + unseen) / df / n)
    skew = cubes / squares**1.5 if squares > 0 else 0.0
    return mean - below * _bent(reach, skew), mean - above * _bent(-reach, skew)


def _bent(t: float, skew: float) -> float:
    """Hall's transformation, inverted; `skew` is the skewness over the root of n."""
    if abs(skew) < 1e-6:
        return t
    inside = 1 + skew * (t - skew / 6)
    return 3 / skew * (abs(inside) ** (1 / 3) * (1 if inside > 0 else -1) - 1)
