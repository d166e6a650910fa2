"""How sure is a number: limits of a metric on one set of answers, of the difference between two sets
of answers to the same samples, and of all differences among several models.

Limits in closed form come from `limits` and `paired`; what has none is measured on draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import combinations
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.checks import Array, Floats, InputError
from howsure._core.indices import interpolate_quantiles
from howsure.metrics.binary import positive_outcomes
from howsure.metrics.metric_facts import Metric, get_options, unwrap_metric
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.tallies.building import SetTally
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.bootstrap import DrawStack, draw_pair, draw_rows, draw_units
from howsure.uncertainty.class_limits import POSITIVE_LIMITS, combine_benefit_limits
from howsure.uncertainty.limits import (
    NO_KNOWN_INTERVAL,
    Interval,
    compute_limits,
    describe_infinite,
    refuse_limits,
)
from howsure.uncertainty.means import (
    compute_group_design,
    describe_few_groups,
    student_quantile,
    sum_by_unit,
)
from howsure.uncertainty.paired import (
    MetricSide,
    compute_difference_limits,
    find_unseen_auroc_variance,
    limit_accuracy_difference,
)
from howsure.uncertainty.sample_case import SampleCase

if TYPE_CHECKING:
    from howsure.workers import Map

IntervalSource: TypeAlias = Tally | SetTally | Outcomes | Predictions

MAX_T_DRAWS = 20_000


# ---- one set of answers


def interval(
    metric: Metric, data: IntervalSource, level: float = 0.95, seed: int = 0, *, map: Map = map
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
    limits = each_interval([metric], data, level, seed, map=map)[0]
    return limits.low, limits.high


def each_interval(
    metrics: Sequence[Metric],
    data: IntervalSource,
    level: float = 0.95,
    seed: int = 0,
    *,
    map: Map = map,
) -> list[Interval]:
    """`interval` of several metrics, each with the reason where it has no limits and a note where
    they are unsafe.

    >>> from howsure import aurc, mce, tally
    >>> each_interval([aurc, mce], tally([0.9, 0.8, 0.7, 0.6] * 9, correct=[1, 1, 0, 0] * 9))[1].why
    'no interval is known for this number'
    """
    _check_level(level)
    if isinstance(data, Predictions):
        table = _MeasuredTable(Outcomes.of(data), seed, map)
        return [_measure_predictions(metric, data, table, level) for metric in metrics]
    if not isinstance(data, SetTally):
        needs_outcomes(data, "an interval")
    table = _MeasuredTable(data, seed, map)
    return [_measure_table(metric, table, level) for metric in metrics]


def compute_intervals_around(
    values: Sequence[float], metrics: Sequence[Metric], t: Tally, level: float
) -> list[Interval]:
    """`each_interval` of metrics of a tally whose values are known already.

    >>> from howsure import accuracy, tally
    >>> t = tally([0.9, 0.8, 0.7, 0.6] * 9, correct=[1, 1, 0, 0] * 9)
    >>> compute_intervals_around([accuracy(t)], [accuracy], t, 0.95) == each_interval([accuracy], t)
    True
    """
    table = _MeasuredTable(t, seed=0, map=map)
    return [
        _measure_table(metric, table, level, value)
        for metric, value in zip(metrics, values, strict=True)
    ]


def _measure_table(
    metric: Metric, table: _MeasuredTable, level: float, value: float | None = None
) -> Interval:
    if not _get_fact(metric, "smooth", True):
        return refuse_limits(NO_KNOWN_INTERVAL)
    _check_takes_tally(metric)
    return table.compute_limits(metric, level, value)


def _measure_predictions(
    metric: Metric, preds: Predictions, table: _MeasuredTable, level: float
) -> Interval:
    """Limits of a metric of predictions, by way of the outcomes that give the same number."""
    if not _get_fact(metric, "smooth", True):
        return refuse_limits(NO_KNOWN_INTERVAL)
    of_positive = unwrap_metric(metric) in POSITIVE_LIMITS
    if _get_fact(metric, "through", None) is None and not of_positive:
        return table.compute_limits(metric, level)
    value = metric(preds)
    if not isfinite(value):
        return refuse_limits(describe_infinite(value))
    outcomes, of_tally = _reduce_to_outcomes(metric, preds)
    if of_tally is not metric or of_positive:
        table = _MeasuredTable(outcomes, table.seed, table.map)
    return table.compute_limits(of_tally, level)


class _MeasuredTable:
    """One table with what limits need of it, each made once, when first needed."""

    def __init__(self, source: Tally | SetTally | Outcomes, seed: int, map: Map):
        self.source, self.seed, self.map = source, seed, map
        self.case = None if isinstance(source, SetTally) else SampleCase.of(source)
        if isinstance(source, Outcomes) and self.case is not None and self.case.few_groups:
            self.source = replace(source, group=None)
        self.stack: DrawStack | None = None

    def compute_limits(self, metric: Metric, level: float, value: float | None = None) -> Interval:
        """Closed form where there is one, else percentiles of the number over the draws."""
        if self.case is None:
            return refuse_limits(
                "a set loss belongs to whole images, which its tally has forgotten"
            )
        of_positive = POSITIVE_LIMITS.get(unwrap_metric(metric))
        if of_positive is not None and not isinstance(self.source, SetTally):
            return self._mark(of_positive(self.source, level))
        limits = compute_limits(metric, self.case, (1 - level) / 2, value)
        if limits is not None:
            return limits
        t = self.case.tally
        value = metric(t)
        if not isfinite(value):
            return refuse_limits(describe_infinite(value))
        if t.weighted and is_tally(self.source):
            return refuse_limits(
                "a weighted tally has forgotten the single weights; give Outcomes instead"
            )
        try:
            if self.stack is None:
                self.stack = self._draw(t)
            values = evaluate_draws(metric, self.stack, self.map)
            return self._mark(compute_percentiles(values, level))
        except InputError as e:
            return refuse_limits(str(e))

    def _mark(self, limits: Interval) -> Interval:
        """The limits, with a note where groups are few."""
        if self.case is None or limits.why is not None:
            return limits
        return limits._replace(note=describe_few_groups(self.case.few_groups))

    def _draw(self, t: Tally) -> DrawStack:
        """Draws of single units only where they differ in more than score and outcome."""
        o = self.source
        if isinstance(o, Outcomes) and (o.group is not None or o.weight is not None):
            return draw_units(o, self.seed)
        return draw_rows(t, self.seed)


# ---- draws


def evaluate_draws(metric: Metric, stack: DrawStack, map: Map = map) -> Floats:
    """The number of every drawn table; all at once where the metric can, else one by one through
    `map`.
    """
    chosen = get_options(metric)
    of_blocks, of_bins = _get_fact(metric, "of_blocks", None), _get_fact(metric, "of_bins", None)
    if of_blocks is not None and not chosen and stack.rows.zero_one:
        return np.concatenate([of_blocks(part.blocks, part.n) for part in stack.parts])
    if of_bins is not None and set(chosen) <= {"bins"}:
        default = signature(unwrap_metric(metric)).parameters["bins"].default
        return of_bins(stack.sum_in_bins(chosen.get("bins", default)))
    # Workers may answer in any order, so each part carries its place.
    numbered: Iterable[tuple[int, Floats]] = map(
        partial(_evaluate_part, metric), enumerate(stack.parts)
    )
    by_place = dict(numbered)
    return np.concatenate([by_place[i] for i in range(len(stack.parts))])


def _evaluate_part(metric: Metric, numbered: tuple[int, DrawStack]) -> tuple[int, Floats]:
    """The number of some drawn tables, with their place."""
    place, part = numbered
    return place, np.array([metric(t) for t in part.build_tallies()])


def compute_percentiles(values: Floats, level: float) -> Interval:
    """The middle `level` of the values of the draws."""
    known = values[np.isfinite(values)]
    lost = 1 - len(known) / len(values)
    if lost > (1 - level) / 2:
        return refuse_limits(
            f"undefined in {lost:.1%} of the draws: too few right or too few wrong answers"
        )
    if known.min() == known.max():
        return refuse_limits(
            "every draw gives the same value, so resampling cannot tell how uncertain it is"
        )
    low, high = interpolate_quantiles(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(low=float(low), high=float(high))


# ---- two sets of answers to the same samples


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
    draws: PairDraws = {}
    differences: list[tuple[float, float, float]] = []
    for metric in metrics:
        sides = join_sides(metric, (a, b), level)
        differences += measure_pairs(metric, sides, [(0, 1)], seed, draws)
    return differences


def net_benefit_difference(
    a: Predictions,
    b: Predictions,
    threshold: float,
    positive: str | int | None = None,
    *,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """Net benefit of `a` minus that of `b` on the same cases, called positive from `threshold` on:
    (difference, low, high).

    Only cases that one of them calls count: limits of the positive ones and of the negative ones
    (Bonett & Price 2012), the latter weighed by the odds of the threshold, are combined with their
    correlation (Zou & Donner 2008). Joined by ids where both have them. A `group` widens the
    limits; weights are refused.

    >>> p = [0.9, 0.4, 0.3, 0.1] * 25
    >>> a = Predictions.from_probs(p, [1, 1, 0, 0] * 25)
    >>> b = Predictions.from_probs(np.flip(p), [1, 1, 0, 0] * 25)
    >>> [round(number, 3) for number in net_benefit_difference(a, b, 0.35)]
    [0.769, 0.718, 0.811]
    """
    for preds in (a, b):
        needs_predictions(preds, "net_benefit_difference")
    if not 0 < threshold < 1:
        raise InputError(
            f"the threshold {threshold:g} is none; a probability between 0 and 1 is needed."
        )
    of_positive = partial(metrics.observed_expected, positive=positive)
    one, two = join_sides(of_positive, (a, b), level)
    first, second = one.case.samples, two.case.samples
    if first.weight is not None:
        raise InputError("a difference of net benefits counts cases; these carry weights.")
    if not np.array_equal(first.right, second.right):
        raise InputError("the two sides have different labels; give the same cases to both.")
    odds, n, half = threshold / (1 - threshold), float(len(first)), (1 - level) / 2
    only = (first.score >= threshold) * 1.0 - (second.score >= threshold)
    # Cases that one model calls, of those that are positive and of those that are not.
    each = np.where(first.right, only, -odds * only)
    design = 1.0
    if one.case.groups is not None:
        design = compute_group_design(each - each.mean(), one.case.units, half)
    shares: list[tuple[float, float, float]] = []
    spreads: list[float] = []
    for cases in (first.right, ~first.right):
        ours, theirs = float((only[cases] > 0).sum()), float((only[cases] < 0).sum())
        share = (ours - theirs) / n
        limits = limit_accuracy_difference(ours / design, theirs / design, n / design, half)
        shares.append((share, *limits))
        spreads.append((ours + theirs) / n - share**2)
    rho = 0.0
    if min(spreads) > 0:
        rho = -shares[0][0] * shares[1][0] / sqrt(spreads[0] * spreads[1])
    limits = combine_benefit_limits(shares[0], shares[1], odds=odds, rho=rho)
    return shares[0][0] - odds * shares[1][0], limits.low, limits.high


def pair_with_first(
    metric: Metric, models: Sequence[Any], level: float, seed: int
) -> list[tuple[float, float, float]]:
    """`paired_difference` of the first model and each of the others."""
    sides = join_sides(metric, models, level)
    pairs = [(0, other) for other in range(1, len(sides))]
    return measure_pairs(metric, sides, pairs, seed, {})


PairDraws: TypeAlias = dict[tuple[int, int], tuple[DrawStack, DrawStack]]


def measure_pairs(
    metric: Metric,
    sides: Sequence[MetricSide],
    pairs: Sequence[tuple[int, int]],
    seed: int,
    draws: PairDraws,
) -> list[tuple[float, float, float]]:
    """The difference of each pair of sides with its limits; `draws` holds those of the outcomes as
    they are, for several metrics.
    """
    smooth = _get_fact(metric, "smooth", True)
    differences: list[tuple[float, float, float]] = []
    for i, j in pairs:
        one, two = sides[i], sides[j]
        difference = one.value - two.value
        if not isfinite(difference) or not smooth:
            differences.append((difference, nan, nan))
            continue
        limits = compute_difference_limits(one, two)
        if limits is None:
            kept = draws if one.metric is metric else PairDraws()
            if (i, j) not in kept:
                kept[i, j] = draw_pair(one.case.samples, two.case.samples, seed)
            stacks = kept[i, j]
            drawn = evaluate_draws(one.metric, stacks[0]) - evaluate_draws(two.metric, stacks[1])
            middle = compute_percentiles(drawn, 1 - 2 * one.half)
            limits = middle.low, middle.high
        differences.append((difference, *limits))
    return differences


def hold_same_outcomes(a: Outcomes, b: Outcomes) -> bool:
    """Whether every sample has the same score and the same outcome on both sides."""
    if not np.array_equal(a.score, b.score):
        return False
    if a.loss is None or b.loss is None:
        return a.loss is b.loss and np.array_equal(a.right, b.right)
    return np.array_equal(a.loss, b.loss)


def join_sides(metric: Metric, models: Sequence[Any], level: float) -> list[MetricSide]:
    """Models as sides of pairs: the same samples in the same order, each with the metric of its
    tally. A group or weight that only some have holds for all.
    """
    _check_level(level)
    sides: list[tuple[Outcomes, Metric]] = []
    group: Array | None = None
    weight: Array | None = None
    for data in models:
        side, of_tally = _reduce_to_outcomes(metric, data)
        if sides:
            side = _join_samples(sides[0][0], side)
        if side.group is not None:
            if group is not None and not np.array_equal(group, side.group):
                raise InputError(
                    "the two sides put the same samples into different groups; give both the same group."
                )
            group = side.group
        if side.weight is not None:
            weight = side.weight
        sides.append((side, of_tally))
    cases: list[MetricSide] = []
    for side, of_tally in sides:
        if side.group is not group or side.weight is not weight:
            side = replace(side, group=group, weight=weight)
        case = SampleCase.of(side, singly=True)
        cases.append(MetricSide(case=case, metric=of_tally, half=(1 - level) / 2))
    return cases


def _reduce_to_outcomes(metric: Metric, data: Any) -> tuple[Outcomes, Metric]:
    """Outcomes, and the metric as a function of their tally."""
    if is_tally(data) or isinstance(data, SetTally):
        raise InputError(
            "a tally has forgotten which sample is which; give Predictions, Outcomes or (score, correct)."
        )
    if isinstance(data, Predictions):
        if unwrap_metric(metric) in POSITIVE_LIMITS:
            # The tally that these read is that of P(positive), not of the confidence.
            return positive_outcomes(data, **get_options(metric)), unwrap_metric(metric)
        through = _get_fact(metric, "through", None)
        if through is None:
            return Outcomes.of(data), metric
        return through(data, **get_options(metric))
    _check_takes_tally(metric)
    if isinstance(data, Outcomes):
        return data, metric
    if not issubclass(type(data), tuple | list):
        raise InputError(
            "a difference",
            got=f"of a {type(data).__name__} cannot be told",
            need="give Predictions, Outcomes or (score, correct)",
        )
    return Outcomes(*data), metric


def _join_samples(a: Outcomes, b: Outcomes) -> Outcomes:
    """The samples of b in the order of a, which are the same."""
    if a.id is not None and b.id is not None:
        first, second = _sort_ids(a.id, "the first"), _sort_ids(b.id, "the second")
        if not np.array_equal(a.id, b.id):
            strange = np.setxor1d(a.id, b.id)
            if len(strange):
                side = "second" if strange[0] in a.id else "first"
                raise InputError(
                    f"id {strange[0]} is missing in the {side} set ({len(strange):,} ids are in one set only); "
                    "a paired difference needs the same samples on both sides."
                )
            # In the order of the first, so that several sets joined with it stay in step.
            rows = np.empty_like(second)
            rows[first] = second
            b = b[rows]
    if len(a) != len(b):
        raise InputError(
            f"{len(a):,} samples against {len(b):,}; a paired difference needs the same samples. Give ids."
        )
    return b


def _sort_ids(ids: Array, side: str) -> Array:
    """The order of the ids; raise where one occurs twice."""
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(again):
        i, j = order[again[0]], order[again[0] + 1]
        raise InputError(
            f"id {ids[i]} occurs twice in {side} set (rows {i} and {j}); ids must be unique to pair by them."
        )
    return order


# ---- several models on the same samples


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
    (Bonferroni). A model whose number is undefined or infinite differs from none clearly, with
    limits of nan. `models` as in `paired_difference`.

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
    draws: PairDraws = {}
    sides = join_sides(metric, models, level)
    own = measure_pairs(metric, sides, pairs, seed, draws)
    # Pairs of models whose numbers are both finite; of others nothing tells how they vary.
    finite = [k for k, (difference, _, _) in enumerate(own) if isfinite(difference)]
    known = sorted({model for k in finite for model in pairs[k]})
    clear = [False] * len(pairs)
    spread = None
    if known:
        spread = measure_spread(metric, [sides[i] for i in known])
    if spread is not None:
        values = np.array([own[k][0] for k in finite])
        places = [(known.index(pairs[k][0]), known.index(pairs[k][1])) for k in finite]
        beyond = find_beyond_equal(spread, values, places, level, seed)
        for k, far in zip(finite, beyond, strict=True):
            clear[k] = far and (own[k][1] > 0 or own[k][2] < 0)
    else:
        strict = join_sides(metric, models, 1 - (1 - level) / len(pairs))
        shared_out = measure_pairs(metric, strict, [pairs[k] for k in finite], seed, draws)
        for k, (_, low, high) in zip(finite, shared_out, strict=True):
            clear[k] = (low > 0 or high < 0) and (own[k][1] > 0 or own[k][2] < 0)
    return [
        PairDifference(first=i, second=j, difference=difference, low=low, high=high, clear=is_clear)
        for (i, j), (difference, low, high), is_clear in zip(pairs, own, clear, strict=True)
    ]


class ModelSpread(NamedTuple):
    """Covariance of the numbers of all models, the fewest errors of any, and what a quantile must
    be multiplied by.
    """

    covariance: Floats
    errors: float
    wider: float
    extra: float  # variance that a few errors leave unseen


def measure_spread(metric: Metric, sides: Sequence[MetricSide]) -> ModelSpread | None:
    """How the numbers of all models vary together; None where the influence of single samples on
    the metric is not known.
    """
    units = sides[0].case.units
    sums: list[Floats] = []
    for side in sides:
        if side.influence is None:
            return None
        sums.append(sum_by_unit(side.influence, units))
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
    x = np.ascontiguousarray(x.T)
    largest, apart = np.zeros(MAX_T_DRAWS), np.empty(MAX_T_DRAWS)
    for a, b, e in zip(i[varies], j[varies], error[varies], strict=True):
        np.subtract(x[a], x[b], out=apart)
        np.abs(apart, out=apart)
        apart /= e
        np.maximum(largest, apart, out=largest)
    unseen = np.sqrt(error**2 * (1 + 4 / (spread.errors + 1)) + spread.extra)
    limit = spread.wider * float(interpolate_quantiles(largest, level)) * unseen
    known = varies & np.isfinite(difference)
    return [bool(k and abs(d) > far) for d, far, k in zip(difference, limit, known, strict=True)]


# ---- checks


def _check_takes_tally(metric: Metric) -> None:
    """Refuse a metric of predictions where only a tally or outcomes are at hand; `accuracy` reads
    both.
    """
    takes = _get_fact(metric, "takes", "tally")
    if takes != "tally" and _get_fact(metric, "of_blocks", None) is None:
        name = _get_fact(metric, "__name__", "this metric")
        raise InputError(
            f"{name} needs Predictions; a tally or outcomes do not hold what it measures."
        )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; a number between 0 and 1 is needed.")


def _get_fact(metric: Metric, name: str, default: Any) -> Any:
    return getattr(unwrap_metric(metric), name, default)


__all__ = [
    "Interval",
    "each_interval",
    "interval",
    "net_benefit_difference",
    "paired_difference",
]
