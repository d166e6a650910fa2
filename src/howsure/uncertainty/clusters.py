"""Design effects: how many times fewer independent samples weights and clusters leave.

Every limit of this folder is a function of counts and of sums over samples. Unequal weights, and
samples that belong together, make the same number of samples worth less; dividing all counts and
sums by the design effect of the number in question carries that through. It depends on the number:
weights on answers without influence cost nothing.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from howsure._core.check import Floats, Ints
from howsure._core.frozen import frozen
from howsure.uncertainty.means import student

__all__ = [
    "FEW_GROUPS",
    "Few",
    "Units",
    "deciding",
    "few_groups",
    "freedom",
    "group_design",
    "unit_sums",
]

FEW_GROUPS = 10  # with fewer groups limits are unsafe, and are marked so


def few_groups(many: int | None) -> str | None:
    """What is said of limits of so few groups that they are unsafe.

    >>> few_groups(6)
    'only 6 groups, so these limits are unsafe'
    """
    few = many is not None and many < FEW_GROUPS
    return f"only {many} groups, so these limits are unsafe" if few else None


@frozen(eq=False)
class Units:
    """Weights of mean 1 and the number of each sample's group; None where there are none."""

    n: int
    weight: Floats | None = None
    group: Ints | None = None

    @classmethod
    def of(cls, n: int, weight: Any = None, group: Any = None) -> Units:
        """From the columns as given; weights are scaled, so that their unit never matters."""
        w = None if weight is None else np.asarray(weight, dtype=np.float64)
        if w is not None:
            w = w / w.max()
            w = w / w.mean()
        g = (
            None
            if group is None
            else np.unique(np.asarray(group), return_inverse=True)[1].reshape(-1)
        )
        return cls(n, w, g)

    @cached_property
    def many(self) -> int:
        """How many units are drawn independently: groups, or samples where there are none."""
        return self.n if self.group is None else int(self.group.max()) + 1

    def total(self, values: Floats) -> float:
        """Weighted sum over all samples."""
        return float(values.sum() if self.weight is None else np.dot(self.weight, values))


def unit_sums(influence: Floats, units: Units) -> Floats:
    """Summed influence of each unit that is drawn whole: a group, or a sample.

    The share of a group in the mean is taken out of it, as a jackknife does; the squares add up to
    the variance of n times the number.
    """
    weighted = influence if units.weight is None else units.weight * influence
    if units.group is None:
        return weighted
    share = np.bincount(units.group, units.weight) / units.n
    sums = np.bincount(units.group, weighted) / np.maximum(1 - share, 1e-9)
    return np.asarray(sums, dtype=np.float64) * np.sqrt(1 - 1 / units.many)


def group_design(influence: Floats, units: Units, half: float) -> float:
    """The design effect of groups for a number with this influence per sample (mean 0), widened by
    Student's t.

    n over the number of groups where nothing varies.

    >>> twice = Units.of(100, group=np.arange(100) // 2)  # every sample two times
    >>> round(group_design(np.tile([1.0, 1.0, -1.0, -1.0], 25), twice, 0.025), 1)
    2.1
    """
    single = units.total(influence**2)
    if single <= 0:
        return units.n / units.many
    squares = unit_sums(influence, units) ** 2
    total = float(squares.sum())
    wide = (student(freedom(squares, units.many - 1), half) / student(inf, half)) ** 2
    return max(1.0, total / single) * wide


class Few(NamedTuple):
    """Units that raise a number, groups or weighted samples: what they add, and how many of them
    decide.

    `squares` are those of all units. `largest` is what one more may add. `alone` is how many single
    samples decide.
    """

    total: float
    squares: float
    deciding: float
    largest: float
    alone: float

    @classmethod
    def of(cls, squares: float, worse: Floats, times: Floats, largest: float, alone: float) -> Few:
        """From the sizes of those that raise it, each so many times.

        >>> Few.of(8.0, np.array([2.0]), np.array([2.0]), 3.0, 5.0)
        Few(total=4.0, squares=8.0, deciding=2.0, largest=3.0, alone=5.0)
        """
        return cls(float(np.dot(times, worse)), squares, deciding(worse, times), largest, alone)


def deciding(sizes: Floats, times: Floats | None = None) -> float:
    """How many of these sizes decide the sum of their squares: all, where they are alike.

    >>> deciding(np.array([1.0, 1.0, 1.0])), round(deciding(np.array([1.0, 0.1, 0.1])), 2)
    (3.0, 1.04)
    """
    square = sizes * sizes
    times = np.ones(len(sizes)) if times is None else times
    second, fourth = float(np.dot(times, square)), float(np.dot(times, square * square))
    return second * second / fourth if fourth > 0 else 0.0


def freedom(squares: Floats, most: float) -> float:
    """Degrees of freedom of a sum of squares, by its fourth moments: units that decide everything
    count as few.
    """
    total = float(squares.sum())
    rest = float((squares**2).sum()) - total**2 / len(squares)
    return max(1.0, min(most, 2 * total**2 / rest)) if rest > 1e-12 * total**2 else max(1.0, most)
