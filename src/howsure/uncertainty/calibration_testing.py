"""Are the claims true? A test of calibration whose null distribution is exact: outcomes redrawn as
claimed. And how sure are numbers of the positive class that are no means: recalibration, observed
over expected, a curve.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values, sum_runs
from howsure.curves import Curve
from howsure.metrics.binary import positive_outcomes
from howsure.metrics.class_calibration import (
    LogOdds,
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    fit_flexible,
    fit_in_the_large,
    fit_log_odds,
    observed_expected,
)
from howsure.metrics.metric_facts import Metric
from howsure.predictions import Outcomes, Predictions, needs_outcomes
from howsure.tallies.tally import Tally, needs_claims
from howsure.uncertainty.influence import RowInfluence
from howsure.uncertainty.limits import Interval, refuse_limits
from howsure.uncertainty.means import estimate_freedom, student_quantile
from howsure.uncertainty.sample_case import SampleCase

__all__ = ["CalibrationTest", "calibration_test", "flexible_calibration"]

REDRAWS = 999
TEST_SCALES = 7  # 1, 2, 4, ..., 64 intervals of equal information
LEAVES = 1 << (TEST_SCALES - 1)  # the finest of them
MAX_SINGLE_REDRAWS = 2048  # up to so many samples each is drawn by itself
MAX_REDRAWN_ROWS = 512  # beyond, neighbouring rows share their mean claim
REDRAW_CHUNK_NUMBERS = 1 << 22  # numbers drawn at a time
MIN_INTERVAL_VARIANCE = 1.0  # null variance of an interval whose residual tells something
MAX_SIGN_GROUPS = 4096  # groups whose signs are redrawn; 999 signs of each are 8 kB
MIN_INTERVAL_SAMPLES = 60  # effective samples in an interval, where signs of groups are redrawn
SMALLEST_P, SMALLEST_VARIANCE = 1e-300, 1e-12
FLEXIBLE_CURVE_POINTS = 101
# Quantiles of the claims between which a curve is drawn: nothing is known beyond.
FLEXIBLE_CURVE_QUANTILES = (0.005, 0.995)


class CalibrationTest(NamedTuple):
    """How far the outcomes are from the claims, and how often true claims look as bad or worse.

    `statistic` is −log10 of the smallest nominal p-value over all scales; `p` corrects for the
    choice among them.

    >>> CalibrationTest(statistic=0.4, p=0.7).p
    0.7
    """

    statistic: float
    p: float


def calibration_test(data: Tally | Outcomes | Predictions, seed: int = 0) -> CalibrationTest:
    r"""Whether outcomes fall as the claims say: a test of perfect calibration, exact for
    independent samples.

    Outcomes are redrawn as :math:`c_i \sim \mathrm{Bernoulli}(r_i)` 999 times. The statistic is the
    smallest nominal p-value over 1, 2, 4, ..., 64 intervals of equal null variance (at least 1
    each), of the sum of their squared standardised residuals (smooth defects) and of the largest of
    them (local ones). With a `group`, signs of whole groups are redrawn instead, which holds for
    many groups; more than 4,096 are pooled at random. Unequal weights are refused. Bröcker & Smith
    2007 for redrawn outcomes.

    >>> from howsure import tally
    >>> calibration_test(tally([0.9] * 50 + [0.6] * 50, correct=[1] * 45 + [0] * 5 + [1] * 30 + [0] * 20)).p > 0.5
    True
    >>> calibration_test(tally([0.9] * 100, correct=[1] * 60 + [0] * 40)).p
    0.001
    """
    source = Outcomes.of(data) if isinstance(data, Predictions) else data
    t = source.tally() if isinstance(source, Outcomes) else source
    needs_claims(t, "calibration_test")
    if not t.equal_weights:
        raise InputError(
            "calibration_test redraws the outcomes of single samples; unequal weights are refused."
        )
    rows = ClaimRows(
        claim=np.asarray(t.score, dtype=np.float64)[::-1],
        count=np.asarray(t.count, dtype=np.float64)[::-1],
        right=np.asarray(t.count - t.loss, dtype=np.float64)[::-1],
    )
    if not isinstance(source, Outcomes) or source.group is None:
        return run_outcome_test(rows, seed)
    # With groups: the residual sums of every group in every interval.
    group = pool_groups(source.units, seed)
    groups = int(group.max()) + 1
    if groups < 2:
        raise InputError("calibration_test needs more than one group to tell how groups differ.")
    leaf = assign_leaves(rows.variance)
    row = np.searchsorted(rows.claim, source.score.astype(np.float64) + 0.0)
    cell = group * LEAVES + leaf[row]
    sums = count_values(cell, source.right - source.score, minlength=groups * LEAVES)
    leaf_sums = sums.reshape(groups, LEAVES).astype(np.float64)
    return run_sign_test(leaf_sums, _sum_by_leaf(leaf, rows.variance), len(source), seed)


# ---- independent samples


@frozen(eq=False)
class ClaimRows:
    """Rows of one claim each, ascending: claims, samples, right answers."""

    claim: Floats
    count: Floats
    right: Floats

    @property
    def variance(self) -> Floats:
        """Variance of the number of right answers, if claims are true."""
        return self.count * self.claim * (1 - self.claim)


def run_outcome_test(rows: ClaimRows, seed: int) -> CalibrationTest:
    """Outcomes of every row are redrawn as binomial numbers at the row's claim, 999 times.

    The statistic looks at 1, 2, 4, ..., 64 neighbouring intervals of equal null variance: at the
    sum of their squared standardised residuals, which sees smooth defects, and at the largest of
    them, which sees local ones. Only as many intervals as leave a null variance of 1 to each: in
    thinner ones a single wrong answer among sure ones looks worse than all that whole data can
    show.
    """
    singly = bool(rows.count.sum() <= MAX_SINGLE_REDRAWS)
    if not singly:
        rows = merge_rows(rows, MAX_REDRAWN_ROWS)
    leaf = assign_leaves(rows.variance)
    null = _sum_by_leaf(leaf, rows.variance)
    residual = _sum_by_leaf(leaf, rows.right - rows.count * rows.claim)
    if singly:
        # Single outcomes are drawn much faster than binomial numbers.
        times = rows.count.astype(np.int64)
        one = np.ones(int(times.sum()))
        rows = ClaimRows(claim=repeat_values(rows.claim, times), count=one, right=one)
        leaf = repeat_values(leaf, times)
    rng = np.random.default_rng(seed)
    step = max(1, REDRAW_CHUNK_NUMBERS // len(leaf))
    redrawn = [
        redraw_residuals(rows, leaf, min(step, REDRAWS - i), rng) for i in range(0, REDRAWS, step)
    ]
    scales = _count_scales(float(null.sum()) / MIN_INTERVAL_VARIANCE)
    return compare_with_null(
        standardise(residual[None], null, scales),
        standardise(np.concatenate(redrawn), null, scales),
    )


def merge_rows(rows: ClaimRows, most: int) -> ClaimRows:
    """At most so many rows, neighbours merged at their mean claim: a binomial number there varies
    no less.
    """
    if len(rows.claim) <= most:
        return rows
    start = np.arange(0, len(rows.claim), -(-len(rows.claim) // most))
    count = sum_runs(rows.count, start)
    claim = sum_runs(rows.count * rows.claim, start) / count
    return ClaimRows(claim=claim, count=count, right=sum_runs(rows.right, start))


def assign_leaves(variance: Floats) -> Ints:
    """The interval of each row: the total variance is cut into equal parts; rows are never split."""
    total = float(variance.sum())
    if total <= 0:
        return np.zeros(len(variance), dtype=np.int64)
    middle = (np.cumsum(variance) - variance / 2) / total
    return np.minimum((middle * LEAVES).astype(np.int64), LEAVES - 1)


def _sum_by_leaf(leaf: Ints, column: Floats) -> Floats:
    return count_values(leaf, column, minlength=LEAVES).astype(np.float64)


def redraw_residuals(rows: ClaimRows, leaf: Ints, draws: int, rng: np.random.Generator) -> Floats:
    """Residual sums of the leaves for so many redrawn data sets, one line each."""
    shape = (draws, len(leaf))
    if (rows.count == 1).all():
        right = rng.random(shape) < rows.claim
    else:
        right = rng.binomial(rows.count.astype(np.int64), rows.claim, shape)
    start = np.flatnonzero(np.concatenate(([True], leaf[1:] != leaf[:-1])))
    claimed = sum_runs(rows.count * rows.claim, start)
    sums = np.zeros((draws, LEAVES))
    sums[:, leaf[start]] = sum_runs(right, start, axis=1, dtype=np.float64) - claimed
    return sums


# ---- groups


def pool_groups(group: Ints, seed: int) -> Ints:
    """Groups, put together at random where there are very many: sums of independent groups are
    independent too.
    """
    groups = int(group.max()) + 1
    if groups <= MAX_SIGN_GROUPS:
        return group
    return (np.random.default_rng([seed, groups]).permutation(groups) % MAX_SIGN_GROUPS)[group]


def run_sign_test(leaf_sums: Floats, variance: Floats, n: int, seed: int) -> CalibrationTest:
    """The same where n samples come in groups, a line of residual sums each: signs of whole groups
    are redrawn.

    Not exact: it takes residual sums to be as likely of either sign, which needs many samples in an
    interval; so there are only as many intervals as leave 60 effective samples to each, the
    skewness of the groups is taken out of the seen and of the drawn sums (Hall 1992), and what was
    seen is held against Student's t of so many groups. `variance` are the null variances of
    independent samples; the standardisation takes the larger of these and of what the groups show.
    """
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1.0, 1.0]), (REDRAWS, len(leaf_sums)))
    of_groups = float((leaf_sums.sum(axis=1) ** 2).sum())
    design = max(1.0, of_groups / max(float(variance.sum()), SMALLEST_VARIANCE))
    scales = _count_scales(n / design / MIN_INTERVAL_SAMPLES)
    seen: list[Floats] = []
    redrawn: list[Floats] = []
    for scale in range(scales):
        part, null = _sum_leaves(leaf_sums, scale), _sum_leaves(variance[None], scale)
        one, many = standardise_signs(part, null, signs)
        seen.append(one)
        redrawn.append(many)
    return compare_with_null(seen, redrawn)


def standardise_signs(part: Floats, null: Floats, signs: Floats) -> tuple[Floats, Floats]:
    """Standardised sums of the intervals of one scale: as seen, and with signs redrawn."""
    squares = part**2
    shown: Floats = squares.sum(axis=0, keepdims=True)
    spread = np.sqrt(np.maximum(np.maximum(shown, null), SMALLEST_VARIANCE))
    scale = np.maximum(shown, SMALLEST_VARIANCE) ** 1.5
    freedoms = [estimate_freedom(column, len(part) - 1) for column in squares.T]
    normal = student_quantile(inf, 0.025)
    wider = np.array([[student_quantile(df, 0.025) / normal for df in freedoms]])
    one: Floats = np.ones((1, len(part)))
    seen = apply_hall(one @ part / (spread * wider), one @ part**3 / scale)
    return seen, apply_hall(signs @ part / spread, signs @ part**3 / scale)


def apply_hall(t: Floats, skew: Floats) -> Floats:
    """Hall's transformation: a studentised sum without its skewness, `skew` over the root of the
    number of groups.
    """
    return t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27


# ---- scales and the statistic


def _count_scales(intervals: float) -> int:
    """How many scales have at most so many intervals; at least one."""
    return int(np.clip(np.log2(max(1.0, intervals)), 0, TEST_SCALES - 1)) + 1


def _sum_leaves(leaves: Floats, scale: int) -> Floats:
    """Sums over the 2^scale intervals of neighbouring leaves."""
    return leaves.reshape(len(leaves), 1 << scale, -1).sum(axis=2)


def standardise(residual: Floats, variance: Floats, scales: int) -> list[Floats]:
    """Residuals of the leaves as standardised ones of every scale."""
    standard: list[Floats] = []
    for scale in range(scales):
        null = np.maximum(_sum_leaves(variance[None], scale), SMALLEST_VARIANCE)
        standard.append(_sum_leaves(residual, scale) / np.sqrt(null))
    return standard


def compare_with_null(seen: list[Floats], redrawn: list[Floats]) -> CalibrationTest:
    """The rank of what was seen among the redrawn: standardised residuals of every scale, one line
    for each set of outcomes.
    """
    statistic, null = compute_statistic(seen)[0], compute_statistic(redrawn)
    as_bad = (null >= statistic - 1e-12).sum()
    return CalibrationTest(statistic=float(statistic), p=float((1 + as_bad) / (len(null) + 1)))


def compute_statistic(standard: list[Floats]) -> Floats:
    """−log10 of the smallest nominal p-value of each line."""
    from scipy.special import chdtrc, ndtr

    smallest = np.ones(len(standard[0]))
    for part in standard:
        intervals = part.shape[1]
        square = part**2
        total: Floats = np.sum(square, axis=1)
        largest: Floats = np.max(square, axis=1)
        of_sum = chdtrc(np.float64(intervals), total)
        tail = ndtr(-np.sqrt(largest))
        of_largest = -np.expm1(intervals * np.log1p(-2 * tail.clip(max=0.5 - 1e-16)))
        smallest = np.minimum(smallest, np.minimum(of_sum, of_largest))
    return -np.log10(np.maximum(smallest, SMALLEST_P))


# ---- limits of recalibration, observed over expected, and the curve without bins


def compute_line_limits(source: Tally | Outcomes, level: float) -> tuple[Interval, Interval]:
    """Normal limits of the intercept and the slope of `recalibration`; groups and weights widen
    them.

    >>> from howsure import tally
    >>> t = tally([0.2, 0.4, 0.6, 0.8] * 50, correct=[0, 0, 1, 1, 0, 1, 0, 1] * 25)
    >>> intercept, slope = compute_line_limits(t, 0.95)
    >>> slope.low < 2 < slope.high
    True
    """
    case, half = SampleCase.of(source), (1 - level) / 2
    fit = fit_log_odds(case.tally)
    if fit is None:
        nothing = refuse_limits(
            "one class is missing, the score is constant, or the classes separate"
        )
        return nothing, nothing
    limits: list[Interval] = []
    for direction in np.eye(2):
        value = float(direction @ fit.coefficients)
        reach = student_quantile(inf, half) * _compute_error(fit, direction, case, half)
        limits.append(Interval(low=value - reach, high=value + reach))
    return limits[0], limits[1]


def compute_large_limits(source: Tally | Outcomes, level: float) -> Interval:
    """Normal limits of `calibration_in_the_large`; groups and weights widen them.

    >>> from howsure import tally
    >>> limits = compute_large_limits(tally([0.5] * 100, correct=[1, 0] * 50), 0.95)
    >>> round(limits.low, 3), round(limits.high, 3)
    (-0.392, 0.392)
    """
    case, half = SampleCase.of(source), (1 - level) / 2
    fit = fit_in_the_large(case.tally)
    if fit is None:
        return refuse_limits("one class is missing")
    value = float(fit.coefficients[0])
    error = _compute_error(fit, np.array([1.0, 0.0]), case, half)
    reach = student_quantile(inf, half) * error
    return Interval(low=value - reach, high=value + reach)


# The numbers of P(positive) that are no means: for predictions and their reports the same limits.
POSITIVE_LIMITS: dict[Metric, Callable[[Tally | Outcomes, float], Interval]] = {
    calibration_in_the_large: compute_large_limits,
    calibration_intercept: lambda source, level: compute_line_limits(source, level)[0],
    calibration_slope: lambda source, level: compute_line_limits(source, level)[1],
    observed_expected: lambda source, level: compute_observed_limits(source, level),
}


def _compute_error(fit: LogOdds, direction: Floats, case: SampleCase, half: float) -> float:
    """The standard error of a linear combination of the coefficients, by the information; times
    the design effect of groups and weights.
    """

    def compute_influence() -> RowInfluence:
        x = fit.basis(case.rows.score)
        pull = case.n * (x @ fit.covariance @ direction)
        return RowInfluence(start=pull / (1 + np.exp(x @ fit.coefficients)), slope=-pull)

    design = case.compute_design(compute_influence, half)
    return sqrt(float(direction @ fit.covariance @ direction) * design)


def compute_observed_limits(source: Tally | Outcomes, level: float) -> Interval:
    """Limits of `observed_expected`, normal on its logarithm; none without positive cases.

    >>> from howsure import tally
    >>> t = tally([0.2, 0.4, 0.6, 0.8] * 25, correct=[0, 0, 1, 1] * 25)
    >>> limits = compute_observed_limits(t, 0.95)
    >>> round(limits.low, 3), round(limits.high, 3)
    (0.883, 1.132)
    """
    case, half = SampleCase.of(source), (1 - level) / 2
    value = observed_expected(case.tally)
    if not isfinite(value) or value == 0:
        return refuse_limits("there are no positive cases, or none is expected")
    score = case.rows.score
    expected = float(np.dot(score, case.rows.count)) / case.n
    influence = RowInfluence(
        start=(1 - value * score) / expected, slope=np.full(len(score), -1 / expected)
    )
    design = case.compute_design(lambda: influence, half)
    error = sqrt(case.sum_squares(influence) * design) / case.n
    reach = exp(student_quantile(inf, half) * error / value)
    return Interval(low=value / reach, high=value * reach)


def flexible_calibration(
    preds: Predictions | Outcomes | Tally, positive: str | int | None = None, *, level: float = 0.95
) -> Curve:
    """Observed against predicted probability of the positive class, without bins, with a band.

    Outcome log odds as a restricted cubic spline of the log odds of P(positive): 5 knots, 4 or 3
    where the rarer outcome has fewer than 50 or 40 cases or an end has cases of one outcome only, a
    straight line below 30. `.low` and `.high` hold at `level` at each point; a `group` and unequal
    weights widen them. Drawn between the outer half percents of the predictions. On the diagonal a
    prediction is right. Harrell 2015, section 2.4; Van Calster et al. 2016.

    >>> c = flexible_calibration(Predictions.from_probs(np.arange(1, 100) / 100, np.arange(99) % 3 > 0))
    >>> c.labels, bool((c.low < c.y).all() and (c.y < c.high).all())
    (('predicted probability', 'observed share'), True)
    """
    source = positive_outcomes(preds, positive) if isinstance(preds, Predictions) else preds
    needs_outcomes(source, "flexible_calibration")
    curve = build_flexible_curve(source, level)
    if curve is None:
        raise InputError(
            "one class is missing, the score is constant, or the classes separate; there is no curve."
        )
    return curve


def build_flexible_curve(source: Tally | Outcomes, level: float) -> Curve | None:
    """`flexible_calibration` of outcomes, or None where there is none."""
    case, half = SampleCase.of(source), (1 - level) / 2
    fit = fit_flexible(case.tally)
    if fit is None:
        return None
    ascending = case.rows.score[::-1]
    below = np.cumsum(case.rows.count[::-1])
    ends = np.searchsorted(below, np.array(FLEXIBLE_CURVE_QUANTILES) * case.n)
    first, last = ascending[ends.clip(max=len(below) - 1)]
    x = np.linspace(float(first), float(last), FLEXIBLE_CURVE_POINTS)
    columns = fit.basis(x)
    middle = columns @ fit.coefficients
    errors = np.array([_compute_error(fit, row, case, half) for row in columns])
    reach = student_quantile(inf, half) * errors
    return Curve(
        x=x,
        y=_convert_log_odds(middle),
        weight=np.full(len(x), nan),
        threshold=x,
        low=_convert_log_odds(middle - reach),
        high=_convert_log_odds(middle + reach),
        labels=("predicted probability", "observed share"),
    )


def _convert_log_odds(z: Floats) -> Floats:
    """Probabilities of log odds; the clip keeps the exponential finite."""
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
