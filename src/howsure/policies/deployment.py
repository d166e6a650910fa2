"""What to expect of a threshold on new data, and what it would defer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, InputError
from howsure.bounds import clopper_pearson_interval
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Tally


class Chosen(Protocol):
    """What a rule for choosing returns: `Threshold` or `Guaranteed`."""

    @property
    def threshold(self) -> float: ...


@dataclass(frozen=True)
class Share:
    """A proportion with its Clopper–Pearson interval; nan with (0, 1) where there was nothing to count."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Expected:
    """Coverage and accuracy to expect, with intervals, and the counts behind them."""

    coverage: Share
    accuracy: Share
    kept: int
    n: int


def expected_on_new_data(
    o: Outcomes, choose: Callable[[Tally], Chosen], *, folds: int = 5, level: float = 0.95, seed: int = 0
) -> Expected:
    """Coverage and accuracy that a chosen threshold will have on data it has not seen.

    Choosing and judging on the same data flatters. Here each fold is judged by the threshold that the other
    folds chose, and the counts are pooled (clusters stay whole where `group` is given). The intervals are
    Clopper–Pearson of the pooled counts: the folds share data, so read them as approximate.
    Vemuri 2020, chapter 7, asks for it; Stone 1974 for the method.

    >>> from howsure.policies import threshold_for_accuracy
    >>> rng = np.random.default_rng(0); s = rng.random(2000)
    >>> e = expected_on_new_data(Outcomes(s, rng.random(2000) < s), lambda t: threshold_for_accuracy(t, 0.8))
    >>> e.accuracy.value, e.coverage.value
    (0.798, 0.414)
    """
    if o.correct is None or o.weight is not None:
        raise InputError("expected_on_new_data counts right and wrong answers; give correct= and no weight.")
    check.at_least(folds, 2, "folds")
    fold = folds_of(len(o), o.group, folds, seed)
    kept = np.zeros(len(o), dtype=np.bool_)
    for i in range(folds):
        mine = fold == i
        if mine.any() and not mine.all():
            kept[mine] = np.asarray(o.score)[mine] >= choose(o[~mine].tally()).threshold
    return count_kept(kept, np.asarray(o.correct), level)


def folds_of(n: int, group: Array | None, folds: int, seed: int) -> Array:
    """The fold of each of n samples; those of a group are in the same one."""
    rng = np.random.default_rng(seed)
    if group is None:
        return rng.permutation(n) % folds
    names, number = np.unique(group, return_inverse=True)
    return (rng.permutation(len(names)) % folds)[number.reshape(-1)]


def count_kept(kept: Bools, correct: Bools, level: float = 0.95) -> Expected:
    """Coverage and accuracy of an accepted set, with intervals."""
    k, right, n = int(kept.sum()), int((kept & correct).sum()), len(kept)
    return Expected(share(k, n, level), share(right, k, level), k, n)


def share(count: int, n: int, level: float = 0.95) -> Share:
    """count / n with its interval."""
    low, high = clopper_pearson_interval(count, n, level)
    return Share(count / n if n else nan, low, high)


@dataclass(frozen=True)
class Deferral:
    """One class or group at the operating point: its size, share deferred, and accuracy of both sides."""

    name: str
    n: int
    deferred: Share
    accuracy_accepted: Share
    accuracy_deferred: Share


def deferral_table(
    accept: ArrayLike, correct: ArrayLike, key: ArrayLike, *, level: float = 0.95
) -> tuple[Deferral, ...]:
    """What would be deferred: rate and accuracy of each class or group, and of all together (first row).

    `key` is the predicted class, the true class or a group, one per sample. The most deferred come first.
    Vemuri 2020, chapter 7.

    >>> rows = deferral_table([1, 0, 1, 1], [1, 0, 1, 0], ["cat", "cat", "dog", "dog"])
    >>> [(r.name, r.deferred.value, r.accuracy_accepted.value) for r in rows]
    [('all', 0.25, 0.667), ('cat', 0.5, 1.0), ('dog', 0.0, 0.5)]
    """
    a, c = check.zero_one(accept, "accept"), check.zero_one(correct, "correct")
    keys = check.same_length(np.asarray(key), "key", len(a), "accept")
    check.same_length(c, "correct", len(a), "accept")
    rows = [_deferral(str(name), a[keys == name], c[keys == name], level) for name in np.unique(keys)]
    rows.sort(key=lambda r: -r.deferred.value)
    return (_deferral("all", a, c, level), *rows)


def _deferral(name: str, accept: Bools, correct: Bools, level: float) -> Deferral:
    away, n = int((~accept).sum()), len(accept)
    kept_right, away_right = int((accept & correct).sum()), int((~accept & correct).sum())
    return Deferral(name, n, share(away, n, level), share(kept_right, n - away, level), share(away_right, away, level))


def named(keys: ArrayLike, class_names: tuple[str, ...] | None) -> Array:
    """Class numbers as their names, where there are names."""
    numbers = np.asarray(keys)
    return numbers.astype(str) if class_names is None else np.array(class_names)[numbers.astype(np.int64)]
