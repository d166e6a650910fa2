"""Which limits belong to which metric: one recipe each, closed form; `RECIPES` is the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import hypot, inf, isfinite, nan, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.frozen import frozen
from howsure.binning import Binning, equal_size
from howsure.bounds import compute_proportion_limits
from howsure.metrics.metric_facts import Metric, get_arguments, unwrap_metric
from howsure.metrics.metric_facts import get_options as options
from howsure.metrics.proper_scores import OtherLoss, mean_loss
from howsure.uncertainty.calibration_limits import (
    BinCounts,
    compute_error_limits,
    compute_noise_floor,
    compute_rms_limits,
)
from howsure.uncertainty.influence import (
    CLAIM_LOSSES,
    GAP_KINDS,
    ClaimLoss,
    Influence,
    Ranks,
    RowInfluence,
    choose_aupr_influence,
    compute_augrc_influence,
    compute_aurc_influence,
    compute_auroc_influence,
    compute_e_aurc_influence,
    compute_error_influence,
    compute_influence,
    compute_own_precision,
)
from howsure.uncertainty.means import (
    UNSAFE_BELOW_GROUPS,
    Limits,
    UnseenDeviation,
    compute_mean_limits,
    cover_both_limits,
    describe_few_groups,
    student_quantile,
)
from howsure.uncertainty.ranking_limits import (
    AREA_ERROR,
    GENERALISED_ERROR,
    NumberSample,
    UnseenError,
    compute_aupr_limits,
    compute_auroc_limits,
    compute_coverage_limits,
    compute_excess_limits,
    compute_gamma_limits,
    compute_rare_sum_limits,
    compute_risk_limits,
    gamma_quantile,
)
from howsure.uncertainty.sample_case import SampleCase

LimitsOrReason: TypeAlias = "Limits | str"  # or why there are none

OTHER_LOSS = "this number has limits for right and wrong only, not for other losses"
SINGLE_GRADES = "limits of graded answers need single ones, and a tally holds none"
ONE_SAMPLE = "one sample does not tell how much samples differ"
FIRST_POSITIVES = "all positives come first, so nothing tells how far the truth is"

AREA_OF_LOSS = 2.0  # mean of ln² u over shares u: what a loss at rank u · n weighs in an AURC
GENERALISED_OF_LOSS = 1 / 3  # the mean of (1 − u)²

NORMAL_MEAN_ERRORS = 25  # errors, or right answers, below which a mean loss is not taken as normal
NORMAL_MEAN_DECIDING = 12  # the same for so many errors as decide the sum of their squared losses
NEVER_FEW_DECIDE = 300  # errors, and right answers, of which hardly ever so few decide


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


NO_KNOWN_INTERVAL = "no interval is known for this number"  # it jumps when single samples change


def refuse_limits(why: str) -> Interval:
    """No limits, with the reason."""
    return Interval(low=nan, high=nan, why=why)


def describe_infinite(value: float) -> str:
    """Why a value that is not finite has no limits."""
    if value != value:
        return "its value is undefined"
    return "its value is infinite"


@frozen(eq=False)
class LimitsTask:
    """What a recipe works on: a metric with its options and its value on a case.

    `half` is the probability of missing at either end.
    """

    metric: Metric
    options: Mapping[str, Any]
    case: SampleCase
    value: float
    half: float

    def choose_bins(self) -> Binning:
        """The bins asked for, or the usual ones of the metric."""
        if "bins" in self.options:
            return self.options["bins"]
        if self.metric in GAP_KINDS:
            return GAP_KINDS[self.metric].bins
        return equal_size(15)

    def compute_design(self, influence: RowInfluence) -> float:
        """The design effect of a number with this influence."""
        return self.case.compute_design(lambda: influence, self.half)

    def sample(
        self, influence: Influence, *, right_counts: bool = False, area: bool = False
    ) -> NumberSample:
        """The number in effective samples; `k` counts right answers where those are sought. Areas
        under risk curves keep their counts beside the design effect of clusters.
        """
        ranks = self.case.runs
        design = self.case.compute_design(lambda: self.case.spread_over_rows(influence), self.half)
        k = ranks.k
        if right_counts:
            k = ranks.m
        squares = influence.sum_squares(ranks)
        number = NumberSample(value=self.value, n=ranks.n, k=k, squares=squares)
        if area and self.case.groups is not None:
            return replace(number, design=design)
        return number.divide(design)


def compute_limits(
    metric: Metric, case: SampleCase, half: float, value: float | None = None
) -> Interval | None:
    """Limits of a metric, given as such or as a partial with options; None where there is no recipe
    for it.

    `value` is the metric of the case, where it is known already.
    """
    recipe = RECIPES.get(unwrap_metric(metric))
    if recipe is None or get_arguments(metric):
        return None
    if value is None:
        value = metric(case.tally)
    if not isfinite(value):
        return refuse_limits(describe_infinite(value))
    task = LimitsTask(
        metric=unwrap_metric(metric), options=options(metric), case=case, value=value, half=half
    )
    limits = recipe(task)
    if isinstance(limits, str):
        return refuse_limits(limits)

    # What makes limits hold less often than they say is measured in docs/intervals.md.
    note = describe_few_groups(case.few_groups)
    if case.n < UNSAFE_BELOW_GROUPS and not case.tally.zero_one:
        note = f"only {case.n:g} samples, so these limits are unsafe"
    # What calibrated claims would show; over- and under-confidence have half of it each.
    floor = None
    if task.metric in GAP_KINDS:
        floor = compute_noise_floor(case.count_in_bins(task.choose_bins(), np.sign, half))
        if GAP_KINDS[task.metric].part != "all":
            floor *= 0.5
    return Interval(
        low=float(limits[0]),
        high=max(float(limits[1]), find_group_high(metric, case, value, half)),
        note=note,
        floor=floor,
    )


# ---- a few groups, or a few heavy samples, may decide


def find_group_high(metric: Metric, case: SampleCase, value: float, half: float) -> float:
    """The least upper end of a number that is better the lower it is, where samples belong to
    groups; −inf elsewhere.
    """
    if case.groups is None or getattr(unwrap_metric(metric), "better", "lower") != "lower":
        return -inf
    influence = compute_influence(metric, case, value)
    if influence is None:
        return -inf
    high = find_deciding_high(case, influence, value, half)
    if case.tally.zero_one:
        return min(getattr(unwrap_metric(metric), "bounds", (0.0, inf))[1], high)
    return high


def find_deciding_high(
    case: SampleCase, influence: RowInfluence, value: float, half: float
) -> float:
    """The upper end of a number where a few groups, or heavy samples, decide.

    They are rare events, as in `compute_rare_sum_limits`, and those that were not seen are missed
    by a design effect as well. One of them is allowed for, the largest that there may be, and the
    share of one among those that decide.
    """
    seen = case.find_deciding(influence)
    # Nothing is added where every single sample decides as much.
    some = sqrt(max(0.0, 1 - seen.deciding / max(1.0, seen.alone)))
    mean = some * (seen.largest + seen.total / (seen.deciding + 1))
    square = some * (seen.largest**2 + seen.squares / (seen.deciding + 1))
    wider = 1.0
    if case.groups is not None:
        wider = student_quantile(case.groups - 1, half) / student_quantile(inf, half)
    variance = (seen.squares * wider**2 + square) / case.n**2
    return gamma_quantile(value + mean / case.n, variance, 1 - half)


# ---- recipes: ranking


class AreaKind(NamedTuple):
    """What one error adds to an area under a risk curve, seen or unseen; with other losses, its
    squared weight at a rank drawn at random.
    """

    influence: Callable[[Ranks], Influence]
    error: UnseenError
    rank_weight: float


AREA = AreaKind(influence=compute_aurc_influence, error=AREA_ERROR, rank_weight=AREA_OF_LOSS)
GENERALISED_AREA = AreaKind(
    influence=compute_augrc_influence, error=GENERALISED_ERROR, rank_weight=GENERALISED_OF_LOSS
)


def _limit_area(task: LimitsTask, kind: AreaKind) -> LimitsOrReason:
    influence = kind.influence(task.case.runs)  # all three variants of the AURC vary alike
    if not task.case.tally.zero_one:
        return _limit_losses(task, task.case.spread_over_rows(influence), kind.rank_weight)
    return compute_gamma_limits(task.sample(influence, area=True), kind.error, task.half)


def _limit_losses(
    task: LimitsTask, influence: RowInfluence, rank_weight: float = 0.0
) -> LimitsOrReason:
    """Limits from the influence as of a mean, for losses that are no counts.

    An area depends much on the few samples at the top, where a large loss may not have been seen:
    the upper limit allows for one more sample with the largest loss, at a rank drawn at random;
    `rank_weight` is its squared weight there.
    """
    case = task.case
    if case.n < 2:
        return ONE_SAMPLE
    unseen = None
    if rank_weight:
        # Where single losses are forgotten, the means of rows are all there is.
        known = case.rows.loss / case.rows.count if case.outcomes is None else case.losses
        unseen = UnseenDeviation(mean=0.0, square=rank_weight * float(np.max(known)) ** 2)
    design = task.compute_design(influence)
    return compute_mean_limits(
        task.value,
        squares=case.sum_squares(influence) / design,
        cubes=case.sum_cubes(influence) / design,
        n=case.n / design,
        half=task.half,
        unseen=unseen,
    )


def _limit_e_aurc(task: LimitsTask) -> LimitsOrReason:
    if not task.case.tally.zero_one:
        return OTHER_LOSS
    influence = compute_e_aurc_influence(task.case.runs)
    return compute_excess_limits(task.sample(influence, area=True), task.half)


def _limit_auroc(task: LimitsTask) -> LimitsOrReason:
    case = task.case
    design = case.compute_design(
        lambda: case.spread_over_rows(compute_auroc_influence(case.runs)), task.half
    )
    return compute_auroc_limits(case.runs, design, task.half)


def _limit_aupr(task: LimitsTask) -> LimitsOrReason:
    ranks = task.case.runs
    positive = task.options.get("positive", "error")
    influence = choose_aupr_influence(positive)(ranks)  # all methods vary alike
    if positive == "error":
        own = compute_own_precision(ranks)
        limits = compute_aupr_limits(task.sample(influence), task.half, own)
    else:
        limits = compute_aupr_limits(task.sample(influence, right_counts=True), task.half)
    return limits or FIRST_POSITIVES


# ---- recipes: shares and cuts


def _limit_accuracy(task: LimitsTask) -> LimitsOrReason:
    if not task.case.tally.zero_one:
        return _limit_mean_grade(task)
    return _limit_share_right(task.case, task.value, task.half)


def _limit_share_right(case: SampleCase, value: float, half: float) -> Limits:
    if case.is_simple:
        low, high = compute_proportion_limits(case.ranks.m, case.n, half)
        return float(low), float(high)
    influence = compute_error_influence(case, 1 - value)
    design = case.compute_design(lambda: influence, half)
    low, high = compute_proportion_limits(case.ranks.m / design, case.n / design, half)
    most_wrong = find_deciding_high(case, influence, 1 - value, half)
    return min(float(low), 1 - most_wrong), float(high)


def _limit_mean_grade(task: LimitsTask) -> LimitsOrReason:
    """Either end allows for one answer with the grade 0 or 1 that was not seen, the more so the less
    the grades differ.
    """
    case, value = task.case, task.value
    if case.n < 2:
        return ONE_SAMPLE
    influence = compute_error_influence(case, 1 - value)
    design = task.compute_design(influence)
    squares, cubes = case.sum_squares(influence) / design, case.sum_cubes(influence) / design
    extreme = 1 / (1 + squares)
    limit = partial(
        compute_mean_limits,
        squares=squares,
        n=case.n / design,
        half=task.half,
        unseen=UnseenDeviation(mean=extreme, square=extreme),
    )
    worst, best = limit(1 - value, cubes=cubes)[1], limit(value, cubes=-cubes)[1]
    return max(0.0, 1 - worst), min(1.0, best)


def _limit_optimal_aurc(task: LimitsTask) -> LimitsOrReason:
    """The best area is a function of the accuracy alone."""
    case = task.case
    if not case.tally.zero_one:
        return OTHER_LOSS
    low, high = _limit_share_right(case, 1 - case.ranks.k / case.n, task.half)
    best = metrics.optimal_aurc_asymptotic
    return best(1 - high), best(1 - low)


def _limit_coverage(task: LimitsTask) -> LimitsOrReason:
    case, risk = task.case, float(task.options["risk"])
    end = case.n
    if task.value > 0:
        end = task.value * case.n
    return compute_coverage_limits(
        case.ranks,
        risk=risk,
        point=task.value,
        find_cuts=case.find_cuts,
        design=_compute_cut_design(task, end, risk),
        half=task.half,
    )


def _limit_risk(task: LimitsTask) -> LimitsOrReason:
    case, coverage = task.case, float(task.options["coverage"])
    if not case.tally.zero_one:
        return OTHER_LOSS
    end = float(case.find_cuts(np.array([coverage * case.n]))[0])
    return compute_risk_limits(
        case.ranks,
        coverage=coverage,
        find_cuts=case.find_cuts,
        design=_compute_cut_design(task, end, task.value),
        half=task.half,
    )


def _compute_cut_design(task: LimitsTask, end: float, risk: float) -> float:
    """The larger design effect of the accepted share and of the errors among the accepted."""
    if task.case.is_simple:
        return 1.0
    kept = task.case.mark_accepted(end)
    of_share = task.compute_design(task.case.centre(kept, 0 * kept))
    of_errors = task.compute_design(task.case.centre(-risk * kept, kept))
    return max(of_share, of_errors)


# ---- recipes: calibration errors


def _limit_gaps(task: LimitsTask) -> LimitsOrReason:
    kind = GAP_KINDS[task.metric]
    bins = task.choose_bins()
    if task.metric is metrics.aece:
        # Adaptive bins are wide where answers are few, so claims differ within them.
        return compute_error_limits(_count_with_squares(task, bins), task.half)
    counts = task.case.count_in_bins(bins, kind.sign, task.half)
    return compute_error_limits(counts, task.half, kind.part)


def _limit_rms_gap(task: LimitsTask) -> LimitsOrReason:
    return compute_rms_limits(_count_with_squares(task, task.choose_bins()), task.half)


def _count_with_squares(task: LimitsTask, bins: Binning) -> BinCounts:
    counts = task.case.count_in_bins(bins, np.sign, task.half)
    return replace(counts, squares=task.case.sum_gap_squares(bins))


# ---- recipes: means


def _limit_claim_loss(
    task: LimitsTask, *, low: float, high: float, is_loss: bool = True
) -> LimitsOrReason:
    """Limits, between `low` and `high`, of a mean whose values depend on claim and outcome.

    The upper end of a loss allows for one outcome that was not seen, drawn in proportion to what it
    would add: a claim of almost 1 that is wrong is rare, and weighs much.
    """
    case, loss = task.case, CLAIM_LOSSES[task.metric]
    if case.n < 2:
        return ONE_SAMPLE
    if not case.tally.zero_one:
        limits = _limit_graded_mean(task, loss)
        return limits if isinstance(limits, str) else (max(low, limits[0]), min(high, limits[1]))
    squares = cubes = 0.0
    sizes = np.zeros(3)
    with np.errstate(divide="ignore", invalid="ignore"):
        for claim, count, missed in case.tally.pieces():
            right, wrong = loss.right(claim), loss.wrong(claim)
            if is_loss:
                # What the other outcome would have added, its square and its cube; nothing where
                # it is infinite.
                size = np.abs(wrong - right)
                size = np.where(np.isfinite(size), size, 0.0)
                first = count * size
                sizes += (first.sum(), np.dot(first, size), np.dot(first * size, size))
            for times, of_outcome in ((count - missed, right), (missed, wrong)):
                off = np.where(times > 0, of_outcome - task.value, 0.0)
                times = times.astype(np.float64)
                square = off * off  # a cube by np.power takes ten times as long
                squares += float(np.dot(times, square))
                cubes += float(np.dot(times, square * off))
    design = 1.0
    if not case.is_simple:
        influence = case.compute_loss_influence(loss, task.value)
        design = task.compute_design(influence)
        squares = case.sum_squares(influence) / design
        cubes = case.sum_cubes(influence) / design
    unseen = None
    if sizes[0] > 0:
        unseen = UnseenDeviation(mean=sizes[1] / sizes[0], square=sizes[2] / sizes[0])
    limits = compute_mean_limits(
        task.value, squares=squares, cubes=cubes, n=case.n / design, half=task.half, unseen=unseen
    )
    rare = limit_rare_outcome(task, loss, design)
    if rare is not None:
        limits = cover_both_limits(limits, rare)
    return max(low, limits[0]), min(high, limits[1])


def _limit_graded_mean(task: LimitsTask, loss: ClaimLoss) -> LimitsOrReason:
    """Limits of the same mean where answers are graded."""
    if task.metric is not metrics.correctness_brier:
        return _limit_losses(task, task.case.compute_loss_influence(loss, task.value))
    # The squared distance to a grade is not between those to right and wrong: a loss of its own.
    o = task.case.outcomes
    if o is None:
        return SINGLE_GRADES
    case = SampleCase.of(replace(o, loss=task.case.square_gaps))
    return _limit_losses(replace(task, case=case), compute_error_influence(case, task.value))


def limit_rare_outcome(task: LimitsTask, loss: ClaimLoss, design: float) -> Limits | None:
    """Limits of a mean where one outcome is rare: what it adds is a sum of rare events, and one may
    be unseen.

    None where both outcomes are many, and not a few of them decide.
    """
    case, value, half = task.case, task.value, task.half
    rarer = min(case.ranks.k, case.ranks.m) / design
    if rarer >= NEVER_FEW_DECIDE:
        return None
    rows = case.rows
    wrong_is_rare = case.ranks.k <= case.ranks.m
    with np.errstate(divide="ignore", invalid="ignore"):
        if wrong_is_rare:
            usual, rare, hits = loss.right(rows.score), loss.wrong(rows.score), rows.loss
        else:
            usual, rare = loss.wrong(rows.score), loss.right(rows.score)
            hits = rows.count - rows.loss
        size = np.abs(rare - usual)
    known = np.isfinite(usual) & np.isfinite(size)
    usual = np.where(known, usual, 0.0)
    size = np.where(known, size, 0.0)
    count = np.where(known, rows.count, 0.0)
    hits = np.where(known, hits, 0.0)
    squares = float((hits * size**2).sum())
    fourth = float((hits * size**4).sum())
    if rarer >= NORMAL_MEAN_ERRORS and squares**2 >= NORMAL_MEAN_DECIDING * design * fourth:
        return None

    mean = float((count * usual).sum()) / case.n
    spread = float((count * (usual - mean) ** 2).sum()) * design / case.n**2
    total = float((hits * size).sum()) / case.n
    sample = NumberSample(value=total, n=case.n, k=float(hits.sum()), squares=squares)
    error = UnseenError(
        mean=float((count * size).sum()) / case.n,
        square=float((count * size**2).sum()) / case.n,
        top=inf,
    )
    low, high = compute_rare_sum_limits(sample.divide(design), error, half)
    reach = student_quantile(inf, half) * sqrt(spread)
    below, above = total - low, high - total
    if not wrong_is_rare:
        # A rare right answer lowers the mean, so the far end lies below.
        below, above = above, below
    return value - hypot(reach, below), value + hypot(reach, above)


def _limit_mean_loss(task: LimitsTask) -> LimitsOrReason:
    """Of losses of all classes: a sum of rare surprises, and one may be unseen.

    It weighs what those weigh that were seen, drawn in proportion to their loss, and what another
    label would lose where the loss is small: as much smaller than the mean as those that decide are
    fewer than all.
    """
    case, value = task.case, task.value
    influence = compute_error_influence(case, value)
    loss_of_other: OtherLoss | None = task.options.get("other")
    if loss_of_other is None or case.n < 2:
        return _limit_losses(task, influence)
    design = task.compute_design(influence)
    squares = case.sum_squares(influence)
    first = value * case.n
    second = squares + value * value * case.n
    deciding = seen = 0.0
    if second > 0:
        deciding = first * first / second
    if first > 0:
        seen = second / first
    other = loss_of_other(value * deciding / case.n)
    mean, square = seen + other, seen**2 + other**2
    low, high = compute_rare_sum_limits(
        NumberSample(value=value, n=case.n, k=deciding, squares=squares).divide(design),
        UnseenError(mean=mean, square=square, top=inf, beside=(mean, square)),
        task.half,
    )
    _, high_of_mean = compute_mean_limits(
        value, squares=squares / design, cubes=0.0, n=case.n / design, half=task.half
    )
    return low, max(high, high_of_mean)


RECIPES: Mapping[Metric, Callable[[LimitsTask], LimitsOrReason]] = {
    metrics.aac: partial(_limit_area, kind=AREA),
    metrics.accuracy: _limit_accuracy,
    metrics.aece: _limit_gaps,
    metrics.augrc: partial(_limit_area, kind=GENERALISED_AREA),
    metrics.aupr: _limit_aupr,
    metrics.aurc: partial(_limit_area, kind=AREA),
    metrics.auroc: _limit_auroc,
    metrics.correctness_brier: partial(_limit_claim_loss, low=0.0, high=1.0),
    metrics.correctness_nll: partial(_limit_claim_loss, low=0.0, high=inf),
    metrics.coverage_at_risk: _limit_coverage,
    metrics.debiased_ece: _limit_rms_gap,
    metrics.e_aurc: _limit_e_aurc,
    metrics.ece: _limit_gaps,
    mean_loss: _limit_mean_loss,
    metrics.optimal_aurc: _limit_optimal_aurc,
    metrics.over_confidence: _limit_gaps,
    metrics.risk_at_coverage: _limit_risk,
    metrics.rms_calibration_error: _limit_rms_gap,
    metrics.signed_calibration_error: partial(_limit_claim_loss, low=-1.0, high=1.0, is_loss=False),
    metrics.under_confidence: _limit_gaps,
}
