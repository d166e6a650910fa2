"""How far a mean may be from what it estimates: of samples, of groups, of weighted samples.

Every limit of this folder is a function of counts and of sums over samples. Unequal weights, and
samples that belong together, make the same number of samples worth less: the design effect says
how many times fewer independent samples they are worth, and dividing all counts and sums by it
carries that through. It depends on the number in question: weights on answers without influence
cost nothing.
"""

from __future__ import annotations

from functools import cached_property
from math import copysign, inf, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values

Limits: TypeAlias = tuple[float, float]

# Fewer groups cannot tell how groups differ: limits are about these groups, and are marked so. Means
# of fewer losses are unsafe, and are marked so.
UNSAFE_BELOW_GROUPS = 10


def student_quantile(df: float, half: float) -> float:
    """The upper `half` quantile of Student's t; normal at infinitely many degrees of freedom.

    >>> round(student_quantile(10, 0.025), 3)
    2.228
    """
    from scipy.special import ndtri, stdtrit

    if df == inf:
        return float(-ndtri(half))
    return float(stdtrit(df, 1 - half))


def standard_error(d: Floats, group: Array | None) -> float:
    """The standard error of a mean; samples of a group count as one."""
    rest: Floats = d - d.mean()
    if group is not None:
        unit: Ints = np.unique(group, return_inverse=True)[1].reshape(-1)
        rest = count_values(unit, weights=rest)
    return float(np.sqrt((rest**2).sum()) / len(d))


class UnseenDeviation(NamedTuple):
    """Mean and mean square of a deviation that was not seen, which the upper limit allows for."""

    mean: float
    square: float


def compute_mean_limits(
    mean: float,
    squares: float,
    cubes: float,
    n: float,
    half: float,
    unseen: UnseenDeviation | None = None,
) -> Limits:
    """Limits of a mean from the sums of squared and cubed deviations; n may be an effective size.

    Student's t, bent by the skewness (Hall 1992): the mean of losses that are mostly small is more
    often too low than too high. Where nothing is known of what is `unseen`, the end that the
    skewness points to lies further out by half a deviation, drawn in proportion to its square: what
    exact limits of a count have over those of half its tails.

    >>> low, high = compute_mean_limits(0.5, squares=25.0, cubes=0.0, n=100, half=0.025)
    >>> round(low, 3), round(high, 3)
    (0.4, 0.6)
    """
    df = max(1.0, n - 1)
    reach = student_quantile(df, half)
    skew = step = 0.0
    if squares > 0:
        skew = cubes / squares**1.5
        step = cubes / squares / 2
    if unseen is None:
        unseen = UnseenDeviation(mean=max(0.0, step), square=0.0)
    below = sqrt(max(0.0, squares) / df / n)
    above = sqrt((max(0.0, squares) + unseen.square) / df / n)
    low = mean - below * invert_hall(reach, skew) - max(0.0, -step) / n
    high = mean - above * invert_hall(-reach, skew) + unseen.mean / n
    return low, high


def invert_hall(t: float, skew: float) -> float:
    """A quantile of a studentised mean: Hall's transformation, inverted.

    `skew` is the skewness over the root of n.

    >>> invert_hall(1.96, 0.0), invert_hall(-1.96, 0.1) < -1.96
    (1.96, True)
    """
    if abs(skew) < 1e-6:
        return t
    inside = 1 + skew * (t - skew / 6)
    return 3 / skew * (copysign(abs(inside) ** (1 / 3), inside) - 1)


def cover_both_limits(one: Limits, other: Limits) -> Limits:
    """The narrowest limits that hold both."""
    return min(one[0], other[0]), max(one[1], other[1])


# ---- groups and weights


def describe_few_groups(groups: int | None) -> str | None:
    """What is said of limits where groups are so few that rows are taken as independent.

    >>> describe_few_groups(6)
    'for these 6 groups in this mix; rows inside a group taken as independent'
    """
    if groups is None or groups >= UNSAFE_BELOW_GROUPS:
        return None
    which = f"these {groups} groups in this mix"
    if groups == 1:
        which = "this one group"
    return f"for {which}; rows inside a group taken as independent"


@frozen(eq=False)
class Units:
    """Weights of mean 1 and the number of each sample's group; None where there are none."""

    n: int
    weight: Floats | None = None
    group: Ints | None = None

    @classmethod
    def of(cls, n: int, weight: Any = None, group: Any = None) -> Units:
        """Units from the columns as given; weights are scaled, so that their unit never matters."""
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float64)
            # The maximum goes first: a sum of huge weights would overflow.
            weight = weight / weight.max()
            weight = weight / weight.mean()
        if group is not None:
            group = np.unique(np.asarray(group), return_inverse=True)[1].reshape(-1)
        return cls(n=n, weight=weight, group=group)

    @cached_property
    def many(self) -> int:
        """How many units are drawn independently: groups, or samples where there are none."""
        if self.group is None:
            return self.n
        return int(self.group.max()) + 1

    def total(self, values: Floats | Bools) -> float:
        """The weighted sum over all samples."""
        if self.weight is None:
            return float(values.sum())
        return float(np.dot(self.weight, values))


def sum_by_unit(influence: Floats, units: Units) -> Floats:
    """Summed influence of each unit that is drawn whole: a group, or a sample.

    The share of a group in the mean is taken out of it, as a jackknife does; the squares add up to
    the variance of n times the number.
    """
    weighted = influence
    if units.weight is not None:
        weighted = units.weight * influence
    if units.group is None:
        return weighted
    share = count_values(units.group, units.weight) / units.n
    sums = count_values(units.group, weighted) / np.maximum(1 - share, 1e-9)
    return np.asarray(sums, dtype=np.float64) * np.sqrt(1 - 1 / units.many)


def compute_group_design(influence: Floats, units: Units, half: float) -> float:
    """The design effect of groups for a number with this influence per sample (mean 0).

    It is widened by Student's t, and n over the number of groups where nothing varies.

    >>> twice = Units.of(100, group=np.arange(100) // 2)  # every sample two times
    >>> round(compute_group_design(np.tile([1.0, 1.0, -1.0, -1.0], 25), twice, 0.025), 1)
    2.1
    """
    alone = units.total(influence**2)
    if alone <= 0:
        return units.n / units.many
    squares = sum_by_unit(influence, units) ** 2
    df = estimate_freedom(squares, units.many - 1)
    wider = student_quantile(df, half) / student_quantile(inf, half)
    return max(1.0, float(squares.sum()) / alone) * wider**2


def estimate_freedom(squares: Floats, most: float, times: Floats | None = None) -> float:
    """Degrees of freedom of a sum of squares, by its fourth moments, at least 1 and at most `most`.

    Units that decide everything count as few. `times` says how often each square is there.
    """
    if times is None:
        times = np.ones(len(squares))
    total = float(np.dot(times, squares))
    rest = float(np.dot(times, squares**2)) - total**2 / float(times.sum())
    if rest <= 1e-12 * total**2:
        return max(1.0, most)
    return max(1.0, min(most, 2 * total**2 / rest))


def count_deciding(sizes: Floats, times: Floats | None = None) -> float:
    """How many of these sizes decide the sum of their squares: all, where they are alike.

    >>> count_deciding(np.array([1.0, 1.0, 1.0])), round(count_deciding(np.array([1.0, 0.1, 0.1])), 2)
    (3.0, 1.04)
    """
    if times is None:
        times = np.ones(len(sizes))
    square = sizes * sizes
    second = float(np.dot(times, square))
    fourth = float(np.dot(times, square * square))
    if fourth <= 0:
        return 0.0
    return second * second / fourth


class DecidingUnits(NamedTuple):
    """Units that raise a number, groups or weighted samples: what they add, and how many decide.

    `squares` are those of all units. `largest` is what one more may add. `alone` is how many single
    samples decide.
    """

    total: float
    squares: float
    deciding: float
    largest: float
    alone: float
