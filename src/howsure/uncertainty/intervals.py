"""How sure is a number: limits of metrics, and of differences on the same samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure.metrics.facts import Metric, options, plain
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.tallies.sets import SetTally
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.case import Case
from howsure.uncertainty.draws import Stack, draw_pair, draw_rows, draw_units
from howsure.uncertainty.limits import Interval, limits_of, none
from howsure.uncertainty.pairs import difference_of

if TYPE_CHECKING:
    from howsure.workers import Map

__all__ = ["Interval", "each_interval", "interval", "paired_difference"]

Data: TypeAlias = Tally | SetTally | Outcomes | Predictions


def interval(
    metric: Metric, data: Data, level: float = 0.95, seed: int = 0, *, map: Map = map
) -> tuple[float, float]:
    """Limits of a metric that contain the truth with this probability; (nan, nan) where it has
    none.

    `data` is a tally, outcomes or predictions. The metrics of howsure have closed forms: gamma
    limits for areas under risk curves (Fay & Feuer 1997), beta limits for `auroc`, Clopper &
    Pearson for proportions, Student's t for means, and limits of calibration errors that allow for
    their noise; docs/intervals.md shows how often they hold. A `group` and unequal weights widen
    them by their design effect. `each_interval` says why there are no limits: a metric that jumps
    (`mce`), an infinite value. A metric of your own gets percentiles of 1,000 Poisson bootstrap
    draws, with `seed`; `map` says where it is worked on (`howsure.workers`). Efron & Tibshirani
    1993; Hanley & MacGibbon 2006.

    >>> from howsure import auroc, tally
    >>> t = tally([0.9, 0.8, 0.7, 0.6, 0.5, 0.4] * 20, correct=[1, 1, 0, 1, 0, 0] * 20)
    >>> low, high = interval(auroc, t)
    >>> 0.8 < low < auroc(t) < high < 0.95
    True
    """
    found = each_interval([metric], data, level, seed, map=map)[0]
    return found.low, found.high


def each_interval(
    metrics: Sequence[Metric], data: Data, level: float = 0.95, seed: int = 0, *, map: Map = map
) -> list[Interval]:
    """`interval` of several metrics, each with the reason where it has no limits and a note where
    they are unsafe.

    >>> from howsure import aurc, mce, tally
    >>> each_interval([aurc, mce], tally([0.9, 0.8, 0.7, 0.6] * 9, correct=[1, 1, 0, 0] * 9))[1].why
    'mce jumps when single samples change, so resampling gives it no valid limits'
    """
    _check_level(level)
    if not isinstance(data, (Predictions, SetTally)):
        needs_outcomes(data, "an interval")
    whole = _Whole(Outcomes.of(data) if isinstance(data, Predictions) else data, seed, map)
    return [_limits(metric, data, whole, level) for metric in metrics]


def limits_around(
    values: Sequence[float], metrics: Sequence[Metric], t: Tally, level: float
) -> list[Interval]:
    """`each_interval` of metrics of a tally whose values are known already.

    >>> from howsure import accuracy, tally
    >>> t = tally([0.9, 0.8, 0.7, 0.6] * 9, correct=[1, 1, 0, 0] * 9)
    >>> limits_around([accuracy(t)], [accuracy], t, 0.95) == each_interval([accuracy], t)
    True
    """
    whole = _Whole(t, 0, map)
    return [
        _limits(metric, t, whole, level, value)
        for metric, value in zip(metrics, values, strict=True)
    ]


def _limits(
    metric: Metric, data: Data, whole: _Whole, level: float, value: float | None = None
) -> Interval:
    if not _fact(metric, "smooth", True):
        return none(
            f"{_name(metric)} jumps when single samples change, so resampling gives it no valid limits"
        )
    if not isinstance(data, Predictions):
        _takes_tally(metric)
    elif _fact(metric, "through", None) is not None:
        return _through(metric, data, whole, level)
    return whole.limits(metric, level, value)


def _through(metric: Metric, preds: Predictions, whole: _Whole, level: float) -> Interval:
    value = metric(preds)
    if not isfinite(value):
        return none(_not_finite(value))
    outcomes, number = _reduced(metric, preds)
    return (whole if number is metric else _Whole(outcomes, whole.seed, whole.map)).limits(
        number, level
    )


class _Whole:
    """One table with what limits need of it, each made once, when first needed."""

    def __init__(self, source: Tally | SetTally | Outcomes, seed: int, map: Map):
        self.source, self.seed, self.map = source, seed, map
        self.case = None if isinstance(source, SetTally) else Case.of(source)
        self.stack: Stack | None = None

    def limits(self, number: Metric, level: float, value: float | None = None) -> Interval:
        """Closed form where there is one, else percentiles of the number over the draws."""
        if self.case is None:
            return none("a set loss belongs to whole images, which its tally has forgotten")
        found = limits_of(number, self.case, (1 - level) / 2, value)
        return self._percentiles(number, self.case.tally, level) if found is None else found

    def _percentiles(self, number: Metric, t: Tally, level: float) -> Interval:
        value = number(t)
        if not isfinite(value):
            return none(_not_finite(value))
        if t.weighted and is_tally(self.source):
            return none("a weighted tally has forgotten the single weights; give Outcomes instead")
        try:
            return percentiles(values(number, self._drawn(t), self.map), level)
        except InputError as e:
            return none(str(e))

    def _drawn(self, t: Tally) -> Stack:
        if self.stack is None:
            units = (
                self.source
                if isinstance(self.source, Outcomes) and not _alike(self.source)
                else None
            )
            self.stack = draw_rows(t, self.seed) if units is None else draw_units(units, self.seed)
        return self.stack


def _alike(o: Outcomes) -> bool:
    """Whether samples differ in nothing but score and outcome, so that a tally says it all."""
    return o.group is None and o.weight is None


def values(number: Metric, stack: Stack, map: Map = map) -> Floats:
    """The number of every drawn table; all at once where the metric can, else one by one through
    `map`.
    """
    chosen = options(number)
    of_blocks, of_bins = _fact(number, "of_blocks", None), _fact(number, "of_bins", None)
    if of_blocks is not None and not chosen and stack.rows.zero_one:
        return np.concatenate([of_blocks(part.blocks, part.n) for part in stack.parts])
    if of_bins is not None and set(chosen) <= {"bins"}:
        default = signature(plain(number)).parameters["bins"].default
        return of_bins(stack.binned(chosen.get("bins", default)))
    pairs: Iterable[tuple[int, Floats]] = map(partial(_one_by_one, number), enumerate(stack.parts))
    found = dict(pairs)
    return np.concatenate([found[i] for i in range(len(stack.parts))])


def _one_by_one(number: Metric, numbered: tuple[int, Stack]) -> tuple[int, Floats]:
    """The number of some drawn tables, with their place."""
    i, part = numbered
    return i, np.array([number(t) for t in part.tallies()])


def percentiles(found: Floats, level: float) -> Interval:
    """The middle `level` of what was found."""
    known = found[np.isfinite(found)]
    lost = 1 - len(known) / len(found)
    if lost > (1 - level) / 2:
        return none(f"undefined in {lost:.1%} of the draws: too few right or too few wrong answers")
    if known.min() == known.max():
        return none(
            "every draw gives the same value, so resampling cannot tell how uncertain it is"
        )
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def paired_difference(
    metric: Metric, a: Any, b: Any, level: float = 0.95, seed: int = 0
) -> tuple[float, float, float]:
    """metric(a) − metric(b) on the same samples, with limits: (difference, low, high).

    `a` and `b` are predictions, outcomes or pairs (score, correct). Where both have ids they are
    joined by them, else row by row; what is hard for both cancels. Accuracy: Bonett & Price 2012.
    Other metrics: the hull of Student's limits of the difference of influences and of the limits of
    both sides combined (Zou & Donner 2008). Calibration errors: the noise of every bin is taken off
    first. A `group` makes whole groups count. A metric of your own gets percentiles over 1,000
    Poisson draws of the same samples for both. Limits are nan where `interval` has none.

    >>> a = Outcomes([0.9, 0.8, 0.7, 0.6] * 25, correct=[1, 1, 1, 0] * 25)
    >>> b = Outcomes([0.9, 0.8, 0.7, 0.6] * 25, correct=[1, 0, 1, 0] * 25)
    >>> from howsure import accuracy
    >>> difference, low, high = paired_difference(accuracy, a, b)
    >>> difference, low > 0
    (0.25, True)
    """
    return each_paired_difference([metric], a, b, level, seed)[0]


def each_paired_difference(
    metrics: Sequence[Metric], a: Any, b: Any, level: float = 0.95, seed: int = 0
) -> list[tuple[float, float, float]]:
    """`paired_difference` of several metrics; those that look at the same outcomes share their
    draws.

    >>> from howsure import accuracy, aurc
    >>> pair = Outcomes([0.9, 0.8] * 9, correct=[1, 0] * 9), Outcomes([0.8, 0.9] * 9, correct=[1, 0] * 9)
    >>> [round(difference, 2) for difference, _, _ in each_paired_difference([accuracy, aurc], *pair)]
    [0.0, -0.67]
    """
    _check_level(level)
    drawn: list[tuple[Stack, Stack]] = []
    return [_paired(metric, a, b, level, seed, drawn) for metric in metrics]


def _paired(
    metric: Metric, a: Any, b: Any, level: float, seed: int, drawn: list[tuple[Stack, Stack]]
) -> tuple[float, float, float]:
    """One difference; `drawn` keeps the draws of the plain outcomes."""
    (left, number), (right, other) = _reduced(metric, a), _reduced(metric, b)
    left, right = _joined(left, right)
    difference = number(left.tally()) - other(right.tally())
    if not isfinite(difference) or not _fact(metric, "smooth", True):
        return difference, nan, nan
    found = difference_of(number, other, *_cases(left, right), (1 - level) / 2)
    if found is not None:
        return difference, *found
    plain = number is metric
    one, two = drawn[0] if plain and drawn else draw_pair(left, right, seed)
    if plain and not drawn:
        drawn.append((one, two))
    drawn_limits = percentiles(values(number, one) - values(other, two), level)
    return difference, drawn_limits.low, drawn_limits.high


def paired_sides(metric: Metric, a: Any, b: Any) -> tuple[tuple[Case, Metric], tuple[Case, Metric]]:
    """Both sides as cases of the same samples in the same order, each with the metric of its tally."""
    (left, number), (right, other) = _reduced(metric, a), _reduced(metric, b)
    one, two = _cases(*_joined(left, right))
    return (one, number), (two, other)


def _cases(a: Outcomes, b: Outcomes) -> tuple[Case, Case]:
    """Both sides sample by sample; a group or weight that only one side has holds for both."""
    group, weight = (
        a.group if b.group is None else b.group,
        a.weight if b.weight is None else b.weight,
    )
    left, right = (
        o if o.group is group and o.weight is weight else replace(o, group=group, weight=weight)
        for o in (a, b)
    )
    return Case.of(left, singly=True), Case.of(right, singly=True)


def _is_pair(data: object) -> bool:
    return isinstance(data, Outcomes | tuple | list)


def _reduced(metric: Metric, data: Any) -> tuple[Outcomes, Metric]:
    """Outcomes, and the metric as a function of their tally."""
    if is_tally(data) or isinstance(data, SetTally):
        raise InputError(
            "a tally has forgotten which sample is which; give Predictions, Outcomes or (score, correct)."
        )
    if not isinstance(data, Predictions):
        _takes_tally(metric)
        if not _is_pair(data):
            got = f"of a {type(data).__name__} cannot be told"
            raise InputError(
                "a difference", got=got, need="give Predictions, Outcomes or (score, correct)"
            )
        return (data if isinstance(data, Outcomes) else Outcomes(*data)), metric
    through = _fact(metric, "through", None)
    return (Outcomes.of(data), metric) if through is None else through(data, **options(metric))


def _joined(a: Outcomes, b: Outcomes) -> tuple[Outcomes, Outcomes]:
    """The same samples in the same order."""
    if a.id is not None and b.id is not None:
        first, second = _sorted_ids(a.id, "the first"), _sorted_ids(b.id, "the second")
        if np.array_equal(a.id, b.id):
            return _alike_grouped(a, b)
        strange = np.setxor1d(a.id, b.id)
        if len(strange):
            side = "second" if strange[0] in a.id else "first"
            raise InputError(
                f"id {strange[0]} is missing in the {side} set ({len(strange):,} ids are in one set only); "
                "a paired difference needs the same samples on both sides."
            )
        a, b = a[first], b[second]
    if len(a) != len(b):
        raise InputError(
            f"{len(a):,} samples against {len(b):,}; a paired difference needs the same samples. Give ids."
        )
    return _alike_grouped(a, b)


def _alike_grouped(a: Outcomes, b: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Both, where they put the same samples into the same groups."""
    if a.group is not None and b.group is not None and not np.array_equal(a.group, b.group):
        raise InputError(
            "the two sides put the same samples into different groups; give both the same group."
        )
    return a, b


def _sorted_ids(ids: Array, side: str) -> Array:
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(again):
        i, j = order[again[0]], order[again[0] + 1]
        raise InputError(
            f"id {ids[i]} occurs twice in {side} set (rows {i} and {j}); ids must be unique to pair by them."
        )
    return order


def _takes_tally(metric: Metric) -> None:
    """Refuse a metric of predictions where only a tally or outcomes are at hand; `accuracy` reads
    both.
    """
    if _fact(metric, "takes", "tally") != "tally" and _fact(metric, "of_blocks", None) is None:
        raise InputError(
            f"{_name(metric)} needs Predictions; a tally or outcomes do not hold what it measures."
        )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; a number between 0 and 1 is needed.")


def _not_finite(value: float) -> str:
    return "its value is undefined" if value != value else "its value is infinite"


def _fact(metric: Metric, name: str, default: Any) -> Any:
    return getattr(plain(metric), name, default)


def _name(metric: Metric) -> str:
    return getattr(plain(metric), "__name__", "this metric")
