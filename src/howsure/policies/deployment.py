"""What to expect of a threshold on new data, and what it would defer."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError
from howsure._core.frozen import frozen
from howsure.bounds import clopper_pearson_interval, proportion_limits
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Tally
from howsure.uncertainty.clusters import Units, freedom, unit_sums
from howsure.uncertainty.means import student

WIDE = 0.025  # tail at which the noise of a choice among few folds is widened


class Chosen(Protocol):
    """What a rule for choosing returns: `Threshold` or `Guaranteed`."""

    @property
    def threshold(self) -> float: ...


@frozen
class Share:
    """A proportion with its limits; nan with (0, 1) where there was nothing to count."""

    value: float
    low: float
    high: float


@frozen
class Expected:
    """Coverage and accuracy to expect, with intervals, and the counts behind them."""

    coverage: Share
    accuracy: Share
    kept: int
    n: int


def expected_on_new_data(
    o: Outcomes,
    choose: Callable[[Tally], Chosen],
    *,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> Expected:
    """Coverage and accuracy that a chosen threshold will have on data it has not seen, as
    prediction intervals.

    Choosing and judging on the same data flatters. Here each fold is judged by the threshold that
    the other folds chose, and the counts are pooled (clusters stay whole where `group` is given).
    The intervals are for a new sample of as many answers (and groups): they hold its own noise,
    that of these data, and that of the choice (the jackknife over folds), at an effective number of
    samples. docs/act.md shows how often they hold. Vemuri 2020, chapter 7, asks for it; Stone 1974
    for the method.

    >>> from howsure.policies import threshold_for_accuracy
    >>> rng = np.random.default_rng(0); s = rng.random(2000)
    >>> e = expected_on_new_data(Outcomes(s, rng.random(2000) < s), lambda t: threshold_for_accuracy(t, 0.8))
    >>> round(e.accuracy.value, 3), e.coverage.value
    (0.798, 0.414)
    """
    if o.correct is None or o.weight is not None:
        raise InputError(
            "expected_on_new_data counts right and wrong answers; give correct= and no weight."
        )
    check.at_least(folds, 2, "folds")
    fold, score = folds_of(len(o), o.group, folds, seed), np.asarray(o.score)
    kept = np.zeros(len(o), dtype=np.bool_)
    trials: list[
        tuple[float, float]
    ] = []  # coverage and accuracy of every fold's threshold on all data
    for i in range(folds):
        mine = fold == i
        if mine.any() and not mine.all():
            accepted = score >= choose(o[~mine].tally()).threshold
            kept[mine] = accepted[mine]
            trials.append(
                (float(accepted.mean()), float(o.right[accepted].mean()) if accepted.any() else nan)
            )
    return _predicted(kept, o, np.array(trials).reshape(len(trials), 2), level)


def _predicted(kept: Bools, o: Outcomes, trials: Floats, level: float) -> Expected:
    units = Units.of(len(o), None, o.group)
    accepted, right = kept.astype(np.float64), (kept & o.right).astype(np.float64)
    n, k = float(len(kept)), float(accepted.sum())
    accuracy = float(right.sum()) / k if k else 0.0
    coverage = _prediction(k, n, accepted - k / n, units, _jackknife(trials[:, 0]), level)
    among = _prediction(
        float(right.sum()), k, right - accuracy * accepted, units, _jackknife(trials[:, 1]), level
    )
    return Expected(coverage, among, int(k), int(n))


def _jackknife(found: Floats) -> float:
    """Variance of a number that depends on a choice, from the choices without one fold each,
    widened by Student's t.
    """
    known = found[np.isfinite(found)]
    if len(known) < 2:
        return 0.0
    wider = (student(len(known) - 1, WIDE) / student(inf, WIDE)) ** 2
    return float(((known - known.mean()) ** 2).sum()) * (1 - 1 / len(known)) * wider


def _prediction(
    count: float, n: float, influence: Floats, units: Units, choice: float, level: float
) -> Share:
    """count / n with the limits of what another sample of the same size will show."""
    if n == 0:
        return Share(nan, 0.0, 1.0)
    value, half = count / n, (1 - level) / 2
    squares = unit_sums(influence, units) ** 2
    own = max(float(squares.sum()), value * (1 - value) * n) / n**2
    wider = (student(freedom(squares, units.many - 1), half) / student(inf, half)) ** 2
    variance = 2 * own * wider + choice
    size = value * (1 - value) / variance if variance > 0 else n / 2 * units.many / units.n
    low, high = proportion_limits(value * size, size, half)
    return Share(value, float(low), float(high))


def folds_of(n: int, group: Array | None, folds: int, seed: int) -> Array:
    """The fold of each of n samples; those of a group are in the same one."""
    rng = np.random.default_rng(seed)
    if group is None:
        return rng.permutation(n) % folds
    names, number = np.unique(group, return_inverse=True)
    return (rng.permutation(len(names)) % folds)[number.ravel()]


def count_kept(kept: Bools, correct: Bools, level: float = 0.95) -> Expected:
    """Coverage and accuracy of an accepted set, with intervals."""
    k, right, n = int(kept.sum()), int((kept & correct).sum()), len(kept)
    return Expected(share(k, n, level), share(right, k, level), k, n)


def share(count: int, n: int, level: float = 0.95) -> Share:
    """count / n with its interval."""
    low, high = clopper_pearson_interval(count, n, level)
    return Share(count / n if n else nan, low, high)


@frozen
class Deferral:
    """One class or group at the operating point: its size, share deferred, and accuracy of both
    sides.
    """

    name: str
    n: int
    deferred: Share
    accuracy_accepted: Share
    accuracy_deferred: Share


def deferral_table(
    accept: ArrayLike, correct: ArrayLike, key: ArrayLike, *, level: float = 0.95
) -> tuple[Deferral, ...]:
    """What would be deferred: rate and accuracy of each class or group, and of all together (first
    row).

    `key` is the predicted class, the true class or a group, one per sample. The most deferred come
    first. Vemuri 2020, chapter 7.

    >>> rows = deferral_table([1, 0, 1, 1], [1, 0, 1, 0], ["cat", "cat", "dog", "dog"])
    >>> [(r.name, r.deferred.value, round(r.accuracy_accepted.value, 3)) for r in rows]
    [('all', 0.25, 0.667), ('cat', 0.5, 1.0), ('dog', 0.0, 0.5)]
    """
    a, c = check.zero_one(accept, "accept"), check.zero_one(correct, "correct")
    keys = check.same_length(np.asarray(key), "key", len(a), "accept")
    check.same_length(c, "correct", len(a), "accept")
    rows = [
        _deferral(str(name), a[keys == name], c[keys == name], level) for name in np.unique(keys)
    ]
    rows.sort(key=lambda r: -r.deferred.value)
    return (_deferral("all", a, c, level), *rows)


def _deferral(name: str, accept: Bools, correct: Bools, level: float) -> Deferral:
    away, n = int((~accept).sum()), len(accept)
    kept_right, away_right = int((accept & correct).sum()), int((~accept & correct).sum())
    return Deferral(
        name,
        n,
        share(away, n, level),
        share(kept_right, n - away, level),
        share(away_right, away, level),
    )


def named(keys: ArrayLike, class_names: tuple[str, ...] | None) -> Array:
    """Class numbers as their names, where there are names."""
    numbers = np.asarray(keys)
    return (
        numbers.astype(str)
        if class_names is None
        else np.array(class_names)[numbers.astype(np.int64)]
    )
