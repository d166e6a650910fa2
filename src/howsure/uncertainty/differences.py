"""Limits of differences on the same samples: influences of both sides → both ends."""

from __future__ import annotations

from math import inf, sqrt

from howsure._core.check import Floats
from howsure.uncertainty.clusters import Units, freedom, unit_sums
from howsure.uncertainty.means import student

__all__ = ["accuracy_difference", "correlation", "hull", "mover", "student_difference"]

Limits = tuple[float, float]


def accuracy_difference(only_a: float, only_b: float, n: float, half: float) -> Limits:
    """Share right in A minus share right in B, from the samples that only one of them got right.

    Wald's limits after one imagined sample on either side. Bonett & Price 2012.

    >>> low, high = accuracy_difference(30, 10, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.078, 0.315)
    """
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    reach = student(inf, half) * sqrt((a + b - (a - b) ** 2) / (n + 2))
    return max(-1.0, a - b - reach), min(1.0, a - b + reach)


def student_difference(
    value: float,
    influence: Floats,
    units: Units,
    half: float,
    *,
    errors: float,
    unseen: float = 0.0,
    extra: float = 0.0,
) -> Limits:
    """Student's limits of a difference whose influence per sample is known.

    `errors` samples are wrong on either side; `unseen` is what one error that was not seen may add
    to the squares, `extra` to the variance. The degrees of freedom follow from the fourth powers,
    so that a few samples that decide everything count as few.
    """
    squares = unit_sums(influence, units) ** 2
    total = float(squares.sum())
    variance = (total * (1 + 4 / (errors + 1)) + unseen) / units.n**2 + extra
    most = inf if units.group is None else units.many - 1
    reach = student(freedom(squares, most) if total > 0 else 1.0, half) * sqrt(variance)
    return value - reach, value + reach


def correlation(a: Floats, b: Floats, units: Units) -> float:
    """Correlation of the influences of both sides, over groups where there are some; 0 where
    undefined.
    """
    one, two = unit_sums(a, units), unit_sums(b, units)
    size = sqrt(float(one @ one) * float(two @ two))
    return min(1.0, max(-1.0, float(one @ two) / size)) if size > 0 else 0.0


def mover(a: float, a_limits: Limits, b: float, b_limits: Limits, rho: float) -> Limits:
    """Limits of a − b from those of either side, with correlation rho. Zou & Donner 2008.

    >>> low, high = mover(0.5, (0.4, 0.6), 0.3, (0.2, 0.4), 0.0)
    >>> round(low, 3), round(high, 3)
    (0.059, 0.341)
    """
    down, up = a - a_limits[0], a_limits[1] - a
    below, above = b - b_limits[0], b_limits[1] - b
    low = a - b - sqrt(max(0.0, down**2 + above**2 - 2 * rho * down * above))
    return low, a - b + sqrt(max(0.0, up**2 + below**2 - 2 * rho * up * below))


def hull(one: Limits, other: Limits) -> Limits:
    """The limits that hold both."""
    return min(one[0], other[0]), max(one[1], other[1])
