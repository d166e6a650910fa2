"""Which limits belong to which metric: one recipe each, closed form; `RECIPES` is the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import hypot, inf, isfinite, nan, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.check import Floats
from howsure.binning import Binning, adaptive, equal_range, equal_size
from howsure.bounds import proportion_limits
from howsure.metrics.facts import Metric, options, plain, positional
from howsure.metrics.mean_loss import Other, mean_loss
from howsure.uncertainty import influence
from howsure.uncertainty.calibration import (
    Bins,
    ece_limits,
    noise_floor,
    over_limits,
    rms_limits,
    under_limits,
)
from howsure.uncertainty.case import Case, Linear, Loss
from howsure.uncertainty.clusters import FEW_GROUPS, few_groups
from howsure.uncertainty.differences import hull
from howsure.uncertainty.influence import Influence
from howsure.uncertainty.means import Unseen, mean_limits, student
from howsure.uncertainty.parts import LOSSES, over_sign, part_of, under_sign, wrong_share
from howsure.uncertainty.ranking import (
    AREA,
    GENERALISED,
    Limits,
    Sample,
    Unit,
    auroc_limits,
    average_precision_limits,
    coverage_limits,
    excess_limits,
    gamma_limits,
    gamma_quantile,
    rare_sum_limits,
    risk_limits,
)

__all__ = ["RECIPES", "Interval", "limits_of"]


class Interval(NamedTuple):
    """Limits of a number, or nan twice and `why` it has none; `note` says what makes given limits
    unsafe.

    `floor` stands beside a calibration error: what a perfectly calibrated model would show on
    average with the same claims and so many samples.

    >>> Interval(0.2, 0.4).why is None
    True
    """

    low: float
    high: float
    why: str | None = None
    note: str | None = None
    floor: float | None = None


def none(why: str) -> Interval:
    """No limits, with the reason."""
    return Interval(nan, nan, why)


def limits_of(
    metric: Metric, case: Case, half: float, value: float | None = None
) -> Interval | None:
    """Limits of a metric, given as such or as a partial with options; None where there is no recipe
    for it.

    `value` is the metric of the case, where it is known already.
    """
    recipe = RECIPES.get(plain(metric))
    if recipe is None or positional(metric):
        return None
    value = metric(case.tally) if value is None else value
    if not isfinite(value):
        return none("its value is undefined" if value != value else "its value is infinite")
    if case.groups == 1:
        return none("all samples belong to one group, so nothing tells how groups differ")
    found = recipe(case, value, half, **options(metric))
    if isinstance(found, str):
        return none(found)
    high = max(float(found[1]), _of_groups(metric, case, value, half))
    floor = FLOORS.get(plain(metric))
    return Interval(
        float(found[0]), high, None, _unsafe(case), floor and floor(case, half, **options(metric))
    )


def _unsafe(case: Case) -> str | None:
    """What makes limits hold less often than they say: measured in docs/intervals.md."""
    if case.n < FEW_GROUPS and not case.tally.zero_one:
        return f"only {case.n:g} samples, so these limits are unsafe"
    return few_groups(case.groups)


Found: TypeAlias = "Limits | str"
OTHER_LOSS = "this number has limits for right and wrong only, not for other losses"


def _sample(case: Case, value: float, part: Influence, half: float) -> Sample:
    r = case.runs
    return Sample(value, r.n, r.k, part.squares(r)).over(
        case.design(lambda: case.spread(part), half)
    )


def _aurc(case: Case, value: float, half: float, variant: str | None = None) -> Found:
    del variant  # all three variants vary alike
    part = influence.aurc(case.runs)
    if not case.tally.zero_one:
        return _of_losses(case, value, case.spread(part), half, AREA_OF_ONE)
    return gamma_limits(_sample(case, value, part, half), AREA, half)


def _e_aurc(case: Case, value: float, half: float) -> Found:
    if not case.tally.zero_one:
        return OTHER_LOSS
    return excess_limits(_sample(case, value, influence.e_aurc(case.runs), half), half)


def _augrc(case: Case, value: float, half: float) -> Found:
    part = influence.augrc(case.runs)
    if not case.tally.zero_one:
        return _of_losses(case, value, case.spread(part), half, GENERALISED_OF_ONE)
    return gamma_limits(_sample(case, value, part, half), GENERALISED, half)


def _of_losses(case: Case, value: float, part: Linear, half: float, rank: float = 0.0) -> Found:
    """Limits from the influence as of a mean, for losses that are no counts.

    An area depends much on the few samples at the top, where a large loss may not have been seen:
    the upper limit allows for one more sample with the largest loss, at a rank drawn at random;
    `rank` is its squared weight there.
    """
    if case.n < 2:
        return ONE
    design = case.design(lambda: part, half)
    squares, cubes = case.squares(part) / design, case.cubes(part) / design
    unseen = Unseen(0.0, rank * _largest(case) ** 2) if rank else None
    return mean_limits(value, squares, cubes, case.n / design, half, unseen)


AREA_OF_ONE = 2.0  # the mean of ln² u over shares u: what a loss at rank u · n weighs in the area under the risks
GENERALISED_OF_ONE = 1 / 3  # the mean of (1 − u)²


def _largest(case: Case) -> float:
    """The largest loss; the largest mean of a row where single losses are forgotten."""
    return float(np.max(case.rows.loss / case.rows.count if case.outcomes is None else case.losses))


def _auroc(case: Case, value: float, half: float) -> Found:
    del value
    design = case.design(lambda: case.spread(influence.auroc(case.runs)), half)
    return auroc_limits(case.runs, design, half)


def _aupr(
    case: Case, value: float, half: float, positive: str = "error", method: str = "step"
) -> Found:
    del method  # all of them vary alike
    r, errors = case.runs, positive == "error"
    part = influence.aupr_error(r) if errors else influence.aupr_success(r)
    design = case.design(lambda: case.spread(part), half)
    sample = Sample(value, r.n, r.k if errors else r.m, part.squares(r)).over(design)
    found = average_precision_limits(sample, half, influence.own_precision(r) if errors else 0.0)
    return (
        "all positives come first, so nothing tells how far the truth is"
        if found is None
        else found
    )


def _accuracy(case: Case, value: float, half: float) -> Found:
    part = wrong_share(case, 1 - value)
    design = case.design(lambda: part, half)
    low, high = proportion_limits(case.ranks.m / design, case.n / design, half)
    if case.groups is None and not case.tally.weighted:
        return float(low), float(high)
    return min(float(low), 1 - _few_decide(case, part, 1 - value, half)), float(high)


def _of_groups(metric: Metric, case: Case, value: float, half: float) -> float:
    """The least upper end of a number that is better the lower it is, where samples belong to
    groups.
    """
    if case.groups is None or getattr(plain(metric), "better", "lower") != "lower":
        return -inf
    part = part_of(metric, case, value)
    top: float = getattr(plain(metric), "bounds", (0.0, inf))[1] if case.tally.zero_one else inf
    return -inf if part is None else min(top, _few_decide(case, part, value, half))


def _few_decide(case: Case, part: Linear, value: float, half: float) -> float:
    """The upper end of a number where a few groups, or heavy samples, decide.

    They are rare events, as in `rare_sum_limits`, and those that were not seen are missed by a
    design effect as well. One of them is allowed for, the largest that there may be, and the share
    of one among those that decide.
    """
    seen = case.few(part)
    some = sqrt(
        max(0.0, 1 - seen.deciding / max(1.0, seen.alone))
    )  # none where every single sample decides as much
    mean, square = (
        some * (one + every / (seen.deciding + 1))
        for one, every in ((seen.largest, seen.total), (seen.largest**2, seen.squares))
    )
    wider = 1.0 if case.groups is None else student(case.groups - 1, half) / student(inf, half)
    return gamma_quantile(
        value + mean / case.n, (seen.squares * wider**2 + square) / case.n**2, 1 - half
    )


def _optimal(case: Case, value: float, half: float) -> Found:
    del value
    if not case.tally.zero_one:
        return OTHER_LOSS
    low, high = _accuracy(case, 1 - case.ranks.k / case.n, half)
    best = metrics.optimal_aurc_asymptotic
    return best(1 - float(high)), best(1 - float(low))


def _coverage(case: Case, value: float, half: float, risk: float = nan) -> Found:
    design = _cut_design(case, value * case.n if value > 0 else case.n, risk, half)
    return coverage_limits(case.ranks, risk, value, case.cut_at, design, half)


def _risk(case: Case, value: float, half: float, coverage: float = nan) -> Found:
    if not case.tally.zero_one:
        return OTHER_LOSS
    end = float(case.cut_at(np.array([coverage * case.n]))[0])
    return risk_limits(case.ranks, coverage, case.cut_at, _cut_design(case, end, value, half), half)


def _cut_design(case: Case, end: float, risk: float, half: float) -> float:
    """The larger design effect of the accepted share and of the errors among the accepted."""
    if case.groups is None and not case.tally.weighted:
        return 1.0
    kept = case.accepted(end)
    parts = (case.centred(kept, 0 * kept), case.centred(-risk * kept, kept))
    return max(case.design(lambda part=part: part, half) for part in parts)


def _ece(case: Case, value: float, half: float, bins: Binning = equal_range(15)) -> Found:
    del value
    return ece_limits(case.binned(bins, np.sign, half), half)


def _aece(case: Case, value: float, half: float, bins: Binning = adaptive()) -> Found:
    """Adaptive bins are wide where answers are few, so claims differ within them."""
    del value
    return ece_limits(_with_squares(case, bins, half), half)


def _with_squares(case: Case, bins: Binning, half: float) -> Bins:
    return replace(case.binned(bins, np.sign, half), squares=case.gap_squares(bins))


def _over(case: Case, value: float, half: float, bins: Binning = equal_range(15)) -> Found:
    del value
    return over_limits(case.binned(bins, over_sign, half), half)


def _under(case: Case, value: float, half: float, bins: Binning = equal_range(15)) -> Found:
    del value
    return under_limits(case.binned(bins, under_sign, half), half)


def _floor(case: Case, half: float, bins: Binning = equal_range(15), part: float = 1.0) -> float:
    """What calibrated claims would show; over- and under-confidence have half of it each."""
    return part * noise_floor(case.binned(bins, np.sign, half))


def _debiased(case: Case, value: float, half: float, bins: Binning = equal_size(15)) -> Found:
    del value
    return rms_limits(_with_squares(case, bins, half), half)


FEW = 25  # errors, or right answers, below which the mean of a loss is not taken as normal
FEW_HEAVY = 12  # the same for so many errors as decide the sum of their squared losses
MANY = 300  # errors, and right answers, of which hardly ever so few decide
ONE = "one sample does not tell how much samples differ"


def _mean(
    case: Case, value: float, half: float, right: Loss, wrong: Loss, *, loss: bool = True
) -> Limits | None:
    """Limits of a mean whose values depend on claim and outcome; None of a single sample.

    The upper end of a loss allows for one outcome that was not seen, drawn in proportion to what it
    would add: a claim of almost 1 that is wrong is rare, and weighs much.
    """
    if case.n < 2:
        return None
    design, squares, cubes, sizes = 1.0, 0.0, 0.0, np.zeros(3)
    with np.errstate(divide="ignore", invalid="ignore"):
        for r, count, missed in case.tally.pieces():
            good, bad = right(r), wrong(r)
            sizes += _powers(count, np.abs(bad - good)) if loss else 0.0
            for many, off in ((count - missed, good - value), (missed, bad - value)):
                off = np.where(many > 0, off, 0.0)
                times, square = (
                    many.astype(np.float64),
                    off * off,
                )  # a cube by np.power takes ten times as long
                squares += float(np.dot(times, square))
                cubes += float(np.dot(times, square * off))
    if case.groups is not None or case.tally.weighted:
        part = case.mean(right, wrong, value)
        design = case.design(lambda: part, half)
        squares, cubes = case.squares(part) / design, case.cubes(part) / design
    unseen = Unseen(*(sizes[1:] / sizes[0])) if loss and sizes[0] > 0 else None
    found = mean_limits(value, squares, cubes, case.n / design, half, unseen)
    rare = _of_rare(case, value, half, right, wrong, design)
    return found if rare is None else hull(found, rare)


def _powers(count: Floats, size: Floats) -> Floats:
    """Sums of what the other outcome would have added, of its square and of its cube; nothing where
    it is infinite.
    """
    size = np.where(np.isfinite(size), size, 0.0)
    first = count * size
    return np.array([first.sum(), np.dot(first, size), np.dot(first * size, size)])


def _of_rare(
    case: Case, value: float, half: float, right: Loss, wrong: Loss, design: float
) -> Limits | None:
    """Limits of a mean where one outcome is rare: what it adds is a sum of rare events, and one may
    be unseen.

    None where both outcomes are many, and not a few of them decide.
    """
    least = min(case.ranks.k, case.ranks.m) / design
    if least >= MANY:
        return None
    rows, few_wrong = case.rows, case.ranks.k <= case.ranks.m
    usual, other = (right, wrong) if few_wrong else (wrong, right)
    hits = rows.loss if few_wrong else rows.count - rows.loss
    with np.errstate(divide="ignore", invalid="ignore"):
        base, size = usual(rows.score), np.abs(other(rows.score) - usual(rows.score))
    known = np.isfinite(base) & np.isfinite(size)
    base, size, count, hits = (np.where(known, c, 0.0) for c in (base, size, rows.count, hits))
    squares, fourth = (float((hits * size**i).sum()) for i in (2, 4))
    if least >= FEW and squares**2 >= FEW_HEAVY * design * fourth:
        return None
    mean = float((count * base).sum()) / case.n
    spread = float((count * (base - mean) ** 2).sum()) * design / case.n**2
    total = float((hits * size).sum()) / case.n
    sample = Sample(total, case.n, float(hits.sum()), squares).over(design)
    unit = Unit(float((count * size).sum()) / case.n, float((count * size**2).sum()) / case.n, inf)
    low, high = rare_sum_limits(sample, unit, half)
    reach = student(inf, half) * sqrt(spread)
    down, up = (total - low, high - total) if few_wrong else (high - total, total - low)
    return value - hypot(reach, down), value + hypot(reach, up)


def _clipped(found: Limits | None, low: float, high: float) -> Found:
    return ONE if found is None else (max(low, found[0]), min(high, found[1]))


def _signed(case: Case, value: float, half: float) -> Found:
    return _clipped(
        _mean(case, value, half, *LOSSES[metrics.signed_calibration_error], loss=False), -1.0, 1.0
    )


def _correctness_brier(case: Case, value: float, half: float) -> Found:
    return _clipped(_mean(case, value, half, *LOSSES[metrics.correctness_brier]), 0.0, 1.0)


def _correctness_nll(case: Case, value: float, half: float) -> Found:
    return _clipped(_mean(case, value, half, *LOSSES[metrics.correctness_nll]), 0.0, inf)


def _mean_loss(case: Case, value: float, half: float, other: Other | None = None) -> Found:
    """Of losses of all classes: a sum of rare surprises, and one may be unseen.

    It weighs what those weigh that were seen, drawn in proportion to their loss, and what another
    label would lose where the loss is small: as much smaller than the mean as those that decide are
    fewer than all.
    """
    part = wrong_share(case, value)
    if other is None or case.n < 2:
        return _of_losses(case, value, part, half)
    design, squares = case.design(lambda: part, half), case.squares(part)
    first, second = value * case.n, squares + value * value * case.n
    deciding = first * first / second if second > 0 else 0.0
    seen, more = second / first if first > 0 else 0.0, other(value * deciding / case.n)
    unit = (seen + more, seen**2 + more**2)
    found = rare_sum_limits(
        Sample(value, case.n, deciding, squares).over(design), Unit(*unit, inf, unit), half
    )
    return found[0], max(
        found[1], mean_limits(value, squares / design, 0.0, case.n / design, half)[1]
    )


RECIPES: Mapping[Metric, Callable[..., Found]] = {
    metrics.aac: _aurc,
    metrics.accuracy: _accuracy,
    metrics.aece: _aece,
    metrics.augrc: _augrc,
    metrics.aupr: _aupr,
    metrics.aurc: _aurc,
    metrics.auroc: _auroc,
    metrics.correctness_brier: _correctness_brier,
    metrics.correctness_nll: _correctness_nll,
    metrics.coverage_at_risk: _coverage,
    metrics.debiased_ece: _debiased,
    metrics.e_aurc: _e_aurc,
    metrics.ece: _ece,
    mean_loss: _mean_loss,
    metrics.optimal_aurc: _optimal,
    metrics.over_confidence: _over,
    metrics.risk_at_coverage: _risk,
    metrics.rms_calibration_error: _debiased,
    metrics.signed_calibration_error: _signed,
    metrics.under_confidence: _under,
}
FLOORS: Mapping[Metric, Callable[..., float]] = {
    metrics.aece: partial(_floor, bins=adaptive()),
    metrics.ece: _floor,
    metrics.over_confidence: partial(_floor, part=0.5),
    metrics.under_confidence: partial(_floor, part=0.5),
}
