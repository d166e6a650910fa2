"""Is the probability of the positive class right: on the whole, in bins, and after a line or a spline
through its log odds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import nan, sqrt
from typing import Concatenate, Literal, NamedTuple, ParamSpec
from weakref import WeakKeyDictionary

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import repeat_values, sort_distinct, sum_runs
from howsure.binning import Binning, equal_size
from howsure.curves import bin_table
from howsure.metrics.binary import as_positive, positive_tally
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.row_tally import RowTally
from howsure.tallies.tally import WEIGHT_SUM_ROUNDING, Tally, is_tally, needs_whole_counts

P = ParamSpec("P")
LOGIT_CLIP = 1e-12  # a probability of exactly 0 or 1 has no logit
# Where the knots of a spline stand, by their number: quantiles of the logits (Harrell 2015).
KNOT_QUANTILES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
}
CASES_PER_KNOT = 10  # of the rarer outcome
CASES_PER_END = 3  # of each outcome beyond the inner knots
FLOOR_REDRAWS = 199
FLOOR_ROWS = 500  # of neighbours with their mean claim: enough for a smooth curve
LOWESS_SHARE, LOWESS_STEP = 2 / 3, 0.01  # of the cases, and of their range
MOST_PASSES = 100
STEP_GOAL = 1e-12
START_RUNS = 1 << 12  # of neighbours, which show where a fit to many rows starts
FIT_PIECE_ROWS = 1 << 14
# A log odds may change this much: (exp(r) − r − 1)/r² is 1 here (Bach 2010, proposition 1).
SAFE_STEP = 1.79
LONGEST_STEP = 4.0  # of log odds: far from the root a step of Newton's goes too far


def observed_expected(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    r"""Positive cases over the sum of P(positive): observed over expected, :math:`\sum_i y_i /
    \sum_i p_i`.

    Of predictions, or of their `positive_tally`. 1 is perfect; below 1 risks are overestimated on
    the whole. nan where all probabilities are 0. Debray et al. 2017.

    >>> observed_expected(Predictions.from_probs([0.9, 0.4, 0.3, 0.4], [1, 0, 0, 0]))
    0.5
    """
    t = as_positive(preds, positive)
    expected = float(np.dot(t.score, t.count))
    if not expected:
        return nan
    return float(t.n - t.total) / expected


def calibration_in_the_large(
    preds: Predictions | Tally, positive: str | int | None = None
) -> float:
    r"""How much must be added to all log odds so that as many cases are positive as expected.

    .. math:: \sum_i \big( y_i - \sigma(a + \mathrm{logit}\, p_i) \big) = 0

    The intercept a of a logistic regression with offset logit(p). 0 is perfect; below 0
    probabilities are too high on the whole. Of predictions, or of their `positive_tally`.
    Probabilities are kept 1e-12 away from 0 and 1. nan where one class is missing.
    `calibration_intercept` is another number: its slope is fitted too. Cox 1958; Steyerberg 2009.

    >>> round(calibration_in_the_large(Predictions.from_probs([0.5, 0.5, 0.5, 0.5], [1, 1, 1, 0])), 4)
    1.0986
    """
    fit = fit_in_the_large(as_positive(preds, positive))
    if fit is None:
        return nan
    return float(fit.coefficients[0])


class BrierParts(NamedTuple):
    """Murphy's parts of the Brier score: brier = reliability − resolution + uncertainty + within.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1]))
    BrierParts(reliability=0.0, resolution=0.0, uncertainty=0.25, within=0.0)
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_decomposition(preds: Predictions | Tally, bins: Binning = equal_size(10)) -> BrierParts:
    r"""The Brier score, taken apart over bins: of the positive class where there are two, else
    summed over classes.

    .. math:: \sum_j w_j (\bar p_j - \bar y_j)^2 - \sum_j w_j (\bar y_j - \bar y)^2 + \bar y (1 - \bar y)

    plus what varies inside bins, so that the parts always add up. Low reliability and high resolution are
    good. Murphy 1973.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1])).uncertainty
    0.25
    """
    if is_tally(preds):
        return _decompose_brier(preds, bins)
    needs_predictions(preds, "brier_decomposition")
    k = preds.needs_vector("brier_decomposition")
    if k == 2:
        return _decompose_brier(positive_tally(preds, 1), bins)
    parts = np.sum([_decompose_brier(positive_tally(preds, c), bins) for c in range(k)], axis=0)
    return BrierParts(*parts.tolist())


def _decompose_brier(t: Tally, bins: Binning) -> BrierParts:
    table = bin_table(t, bins)
    weight = table.count / table.count.sum()
    base = float(np.dot(weight, table.accuracy))
    reliability = float(np.dot(weight, table.gap**2))
    resolution = float(np.dot(weight, (table.accuracy - base) ** 2))
    uncertainty = base * (1 - base)
    right, wrong = t.count - t.loss, t.loss
    brier = float((np.dot(right, (1 - t.score) ** 2) + np.dot(wrong, t.score**2)) / t.n)
    return BrierParts(
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within=brier - (reliability - resolution + uncertainty),
    )


class Recalibration(NamedTuple):
    """Logistic recalibration: outcome log odds = intercept + slope × logit(p), with standard
    errors.

    >>> round(recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])).slope, 1)
    0.5
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float


def recalibration(preds: Predictions | Tally, positive: str | int | None = None) -> Recalibration:
    r"""Slope and intercept of the outcome's log odds against the logit of P(y = 1), by Newton's
    method.

    Of predictions, or of their `positive_tally`.

    Slope 1 and intercept 0 are perfect; a slope below 1 means predictions that are too extreme.
    Probabilities are kept 1e-12 away from 0 and 1. nan where one class is missing or the classes
    separate. Cox 1958.

    >>> r = recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8, 0.8, 0.8], [0, 1, 1, 1, 1, 1, 0]))
    >>> round(r.slope, 2), round(abs(r.intercept), 2)
    (1.0, 0.0)
    """
    fit = fit_log_odds(as_positive(preds, positive))
    if fit is None:
        return Recalibration(intercept=nan, slope=nan, intercept_error=nan, slope_error=nan)
    intercept, slope = fit.coefficients.tolist()
    intercept_error, slope_error = np.sqrt(np.diag(fit.covariance)).tolist()
    return Recalibration(
        intercept=intercept,
        slope=slope,
        intercept_error=intercept_error,
        slope_error=slope_error,
    )


def calibration_intercept(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    """Intercept of `recalibration`: 0 is perfect, negative means that risks are overestimated. Cox
    1958.

    >>> round(abs(calibration_intercept(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0]))), 2)
    0.0
    """
    return recalibration(preds, positive).intercept


def calibration_slope(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    """Slope of `recalibration`: 1 is perfect, below 1 predictions are too extreme. Cox 1958.

    >>> round(calibration_slope(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])), 1)
    0.5
    """
    return recalibration(preds, positive).slope


def spiegelhalter_z(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    r"""How many standard errors the Brier score is from what true probabilities would give.

    .. math:: z = \frac{\sum_i (y_i - p_i)(1 - 2p_i)}{\sqrt{\sum_i (1 - 2p_i)^2 p_i (1 - p_i)}}

    Standard normal where the probabilities are true; above 0 they are too extreme, below 0 too
    timid. Of predictions, or of their `positive_tally`. nan where every probability is 0, 1/2 or 1.
    Spiegelhalter 1986. See also: `calibration_test`, which looks at more than this.

    >>> round(spiegelhalter_z(Predictions.from_probs([0.8, 0.8, 0.8, 0.8, 0.8], [1, 1, 1, 0, 0])), 3)
    1.118
    """
    t = as_positive(preds, positive)
    p, count = np.asarray(t.score, dtype=np.float64), np.asarray(t.count, dtype=np.float64)
    variance = float(np.dot(count, (1 - 2 * p) ** 2 * p * (1 - p)))
    if variance <= 0:
        return nan
    residual = (t.count - t.loss) - count * p
    return float(np.dot(residual, 1 - 2 * p)) / sqrt(variance)


class CalibrationDistance(NamedTuple):
    """How far a smooth calibration curve is from the diagonal, over the cases: mean (the integrated
    calibration index), median, 90 % quantile and maximum.

    >>> CalibrationDistance(ici=0.02, e50=0.01, e90=0.05, emax=0.1).e90
    0.05
    """

    ici: float
    e50: float
    e90: float
    emax: float


def calibration_distance(
    preds: Predictions | Tally,
    positive: str | int | None = None,
    *,
    smoother: Literal["spline", "lowess"] = "spline",
) -> CalibrationDistance:
    r"""ICI, E50, E90 and Emax: mean, median, 90 % quantile and maximum of :math:`|f(p_i) - p_i|`.

    f is the curve of `flexible_calibration`, or with `smoother="lowess"` that of Cleveland (f =
    2/3, no robustness steps), which R's val.prob uses. 0 is perfect and never reached: even true
    probabilities give what `distance_floor` says. nan where there is no curve. Of predictions, or of
    their `positive_tally`. Austin & Steyerberg 2019; Harrell 2015.

    >>> p = np.arange(1, 100) / 100
    >>> round(calibration_distance(Predictions.from_probs(p, np.arange(99) % 3 > 0)).ici, 2)
    0.26
    """
    t = as_positive(preds, positive)
    if smoother not in ("spline", "lowess"):
        raise InputError(
            f"smoother={smoother!r}; calibration_distance knows 'spline' and 'lowess'."
        )
    p, count = np.asarray(t.score, dtype=np.float64), np.asarray(t.count, dtype=np.float64)
    if smoother == "lowess":
        needs_whole_counts(t, "lowess", "smoother='spline'")
        curve = smooth_lowess(t)
    else:
        fit = fit_flexible(t)
        if fit is None:
            return CalibrationDistance(ici=nan, e50=nan, e90=nan, emax=nan)
        curve = convert_log_odds(fit.basis(p) @ fit.coefficients)
    apart = np.abs(curve - p)
    order = np.argsort(apart)
    below = np.cumsum(count[order])
    return CalibrationDistance(
        ici=float(np.dot(apart, count)) / float(t.n),
        e50=_find_quantile(apart[order], below, 0.5),
        e90=_find_quantile(apart[order], below, 0.9),
        emax=float(apart.max()),
    )


def _find_quantile(values: Floats, below: Floats, share: float) -> float:
    """The quantile of ascending values that occur as often as `below` rises, linear in between."""
    place = share * (below[-1] - 1)
    ranks = np.array([np.floor(place), np.ceil(place)])
    rows = np.searchsorted(below, ranks, side="right").clip(max=len(values) - 1)
    low, high = values[rows]
    return float(low + (place - ranks[0]) * (high - low))


def distance_floor(
    preds: Predictions | Tally, positive: str | int | None = None, *, seed: int = 0
) -> CalibrationDistance:
    """The medians of `calibration_distance` over 199 redraws of the outcomes, were every probability
    true. Austin & Steyerberg 2019.

    Unequal weights are refused: what is redrawn are single cases.

    >>> p = np.arange(1, 100) / 100
    >>> 0.03 < distance_floor(Predictions.from_probs(p, np.arange(99) % 3 > 0)).ici < 0.08
    True
    """
    t = as_positive(preds, positive)
    needs_whole_counts(t, "distance_floor", "equal weights")
    if t.approximate is None:
        t = t.compact(FLOOR_ROWS)
    rng = np.random.default_rng(seed)
    count = np.round(t.count).astype(np.int64)
    score = np.asarray(t.score, dtype=np.float64)
    drawn: list[CalibrationDistance] = []
    for right in rng.binomial(count, np.clip(score, 0.0, 1.0), (FLOOR_REDRAWS, len(count))):
        wrong = count - right
        redrawn = RowTally(score=score, count=count, loss=wrong, claim=score * count, square=wrong)
        drawn.append(calibration_distance(redrawn))
    if np.isnan(drawn).all():
        return CalibrationDistance(ici=nan, e50=nan, e90=nan, emax=nan)
    return CalibrationDistance(*np.nanmedian(drawn, axis=0).tolist())


def smooth_lowess(t: Tally) -> Floats:
    """Cleveland's lowess of the outcomes at each score of a tally: a straight line through the
    nearest two thirds of the cases, nearer ones counting more, without robustness steps.

    Fitted at points at least 1 % of the range apart, linear in between. Cleveland 1979.

    >>> from howsure import tally
    >>> smooth_lowess(tally([0.9, 0.6, 0.3], correct=[1, 1, 0])).round(2)
    array([1., 1., 0.])
    """
    score = np.asarray(t.score, dtype=np.float64)[::-1]
    times = np.round(t.count)[::-1]
    x: Floats = repeat_values(score, times.astype(np.int64))
    right = np.asarray(t.count - t.loss, dtype=np.float64)[::-1]
    mean: Floats = repeat_values(right / times, times.astype(np.int64))  # tied cases count alike
    n = len(x)
    span = max(min(n, int(LOWESS_SHARE * n + 1e-7)), 2)
    extent = (x[-1] - x[0]).item()
    at: list[float] = []
    fitted: list[float] = []
    left, i = 0, 0
    while True:
        while left + span < n and x[i] - x[left] > x[left + span] - x[i]:
            left += 1
        here: float = x[i].item()
        at.append(here)
        fitted.append(fit_local_line(x, mean, i, (left, min(left + span, n) - 1), extent))
        same = int(np.count_nonzero(x <= here))
        if same >= n:
            break
        # The last case within 1 % of the range, or the next one beyond it.
        within = int(np.count_nonzero(x <= here + LOWESS_STEP * extent))
        i = max(same, within - 1)
    return np.interp(score, at, fitted)[::-1]


def fit_local_line(x: Floats, y: Floats, i: int, near: tuple[int, int], extent: float) -> float:
    """The value at x[i] of a line through the cases `near` it, by the tricube of their distance.

    >>> x = np.array([0.0, 0.5, 1.0])
    >>> round(fit_local_line(x, np.array([0.0, 0.4, 1.0]), 1, (0, 2), 1.0), 2)
    0.4
    """
    reach = max(x[i] - x[near[0]], x[near[1]] - x[i])
    distance = np.abs(x - x[i])
    weight = np.where(distance <= 0.999 * reach, 1.0, 0.0)
    some = (distance > 0.001 * reach) & (weight > 0)
    weight[some] = (1 - (distance[some] / reach) ** 3) ** 3
    weight /= weight.sum()
    centre = float(np.dot(weight, x))
    spread = float(np.dot(weight, (x - centre) ** 2))
    # A line only where the cases are not all at one place.
    if reach > 0 and np.sqrt(spread) > 0.001 * extent:
        weight *= 1 + (x[i] - centre) / spread * (x - centre)
    return float(np.dot(weight, y))


# ---- log odds as a line or a spline of the logit


@frozen(eq=False)
class LogOdds:
    """Outcome log odds as a spline of logit(p), linear beyond the outer knots; a straight line
    without knots.

    `covariance` is that of the coefficients for independent cases.
    """

    knots: tuple[float, ...]
    coefficients: Floats
    covariance: Floats

    def basis(self, p: Floats) -> Floats:
        """The columns that the coefficients belong to."""
        return spline_basis(logit(p), self.knots)


def keep_with_tally(
    fit: Callable[Concatenate[Tally, P], LogOdds | None],
) -> Callable[Concatenate[Tally, P], LogOdds | None]:
    """`fit`, made once for each tally: a number and its limits ask for the same."""
    kept: WeakKeyDictionary[Tally, dict[object, LogOdds | None]] = WeakKeyDictionary()

    @wraps(fit)
    def find(t: Tally, *args: P.args, **options: P.kwargs) -> LogOdds | None:
        fits = kept.setdefault(t, {})
        key = (args, *options.items())
        if key not in fits:
            fits[key] = fit(t, *args, **options)
        return fits[key]

    return find


@keep_with_tally
def fit_flexible(t: Tally) -> LogOdds | None:
    """A restricted cubic spline with 5 knots, fewer where the rarer outcome has fewer than 50 cases
    (Harrell 2015).

    Fewer also until both outcomes occur on either side of the inner knots: where one is missing at
    an end, nothing holds the curve there.

    >>> from howsure import tally
    >>> fit = fit_flexible(tally(np.arange(1, 100) / 100, correct=np.arange(99) % 3 > 0))
    >>> tuple(round(x, 1) for x in fit.knots)
    (-2.2, 0.0, 2.2)
    """
    rarer = int(min(t.total, t.n - t.total))
    for number in range(min(5, rarer // CASES_PER_KNOT), min(KNOT_QUANTILES) - 1, -1):
        knots = place_knots(t, number)
        if knots and has_both_outcomes_at_ends(t, knots):
            return fit_log_odds(t, knots)
    return fit_log_odds(t)


def place_knots(t: Tally, number: int) -> tuple[float, ...]:
    """Quantiles of the logits; none where they are not all different."""
    below = np.cumsum(t.count[::-1])
    ranks = np.array(KNOT_QUANTILES[number]) * float(t.n)
    rows = np.searchsorted(below, ranks).clip(max=len(below) - 1)
    knots = sort_distinct(logit(t.score[::-1][rows]))
    if len(knots) < number:
        return ()
    return tuple(knots.tolist())


def has_both_outcomes_at_ends(t: Tally, knots: tuple[float, ...]) -> bool:
    """Whether some of both outcomes lie below the second knot and above the last but one."""
    z = logit(t.score)
    for end in (z < knots[1], z > knots[-2]):
        wrong = float(t.loss[end].sum())
        right = float((t.count - t.loss)[end].sum())
        if min(wrong, right) < CASES_PER_END:
            return False
    return True


@keep_with_tally
def fit_log_odds(t: Tally, knots: tuple[float, ...] = ()) -> LogOdds | None:
    """The maximum-likelihood fit, by Newton's method; None where one outcome is missing, claims are constant or
    outcomes separate.

    >>> from howsure import tally
    >>> fit_log_odds(tally([0.5, 0.5, 0.8, 0.8, 0.8], correct=[0, 1, 1, 1, 0])).coefficients.round(2) + 0.0
    array([0. , 0.5])
    """
    rows = LogitRows.of(t)
    positive, negative = rows.z[t.count > t.loss], rows.z[t.loss > 0]
    if not len(positive) or not len(negative) or np.ptp(rows.z) == 0:
        return None
    if positive[-1] >= negative[0] or negative[-1] >= positive[0]:
        return None  # one logit divides the outcomes: the steeper a line, the likelier
    return _climb(rows, knots)


@frozen(eq=False)
class LogitRows:
    """A tally of P(positive): logits, highest first, with their cases and their positive cases."""

    z: Floats
    count: Floats
    positive: Floats

    @classmethod
    def of(cls, t: Tally) -> LogitRows:
        return cls(
            z=logit(t.score),
            count=np.asarray(t.count, dtype=np.float64),
            positive=np.asarray(t.count - t.loss, dtype=np.float64),
        )

    def join_runs(self) -> LogitRows:
        """Runs of neighbours at their mean logit; a fit to these is near that to all."""
        n = len(self.z)
        start = np.linspace(0, n, min(n, START_RUNS), endpoint=False).astype(np.int64)
        return LogitRows(
            z=sum_runs(self.z, start) / np.diff(start, append=n),
            count=sum_runs(self.count, start),
            positive=sum_runs(self.positive, start),
        )

    def log_likelihood(self, log_odds: Floats) -> float:
        # The logarithm of 1 + exp(z) without overflow.
        softplus = np.maximum(log_odds, 0.0) + np.log1p(np.exp(-np.abs(log_odds)))
        return float(np.dot(self.positive, log_odds) - np.dot(self.count, softplus))

    def differentiate(self, knots: tuple[float, ...], beta: Floats) -> tuple[Floats, Floats]:
        """Gradient of the likelihood and information, from pieces that fit into a cache."""
        gradient = np.zeros(len(beta))
        information = np.zeros((len(beta), len(beta)))
        for first in range(0, len(self.z), FIT_PIECE_ROWS):
            piece = slice(first, first + FIT_PIECE_ROWS)
            x = spline_basis(self.z[piece], knots)
            q = convert_log_odds(x @ beta)
            expected = self.count[piece] * q
            gradient += x.T @ (self.positive[piece] - expected)
            information += (x.T * (expected * (1 - q))) @ x
        return gradient, information


def _climb(rows: LogitRows, knots: tuple[float, ...]) -> LogOdds | None:
    """To the top of the likelihood, from that of few rows where there are many; None where the
    coefficients run away.
    """
    beta: Floats = np.zeros(max(2, len(knots)))
    near = None
    if len(rows.z) > 2 * START_RUNS:
        near = _climb(rows.join_runs(), knots)
    if near is not None:
        beta = near.coefficients
    elif rows.log_likelihood(rows.z) > rows.log_likelihood(np.zeros(len(rows.z))):
        beta[1] = 1.0  # claims that are about right
    for _ in range(MOST_PASSES):
        gradient, information = rows.differentiate(knots, beta)
        if np.abs(beta).max() > 1e4 or np.linalg.cond(information) > 1e15:
            return None
        step: Floats = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
            return LogOdds(knots=knots, coefficients=beta + step, covariance=covariance)
        # A step of Newton's is never one back where it changes no log odds by more than SAFE_STEP;
        # a longer one is halved until it is none. Every column is largest at one of the ends.
        if np.abs(step) @ np.abs(spline_basis(rows.z[[0, -1]], knots)).max(axis=0) > SAFE_STEP:
            x = spline_basis(rows.z, knots)
            before = rows.log_likelihood(x @ beta)
            while rows.log_likelihood(x @ (beta + step)) < before - 1e-12 * abs(before):
                step = step / 2
        beta = beta + step
    return None


def logit(p: Floats) -> Floats:
    """Log odds of probabilities, which are kept away from 0 and 1."""
    kept = np.clip(p, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(kept) - np.log1p(-kept)


def convert_log_odds(z: Floats) -> Floats:
    """Probabilities of log odds; the clip keeps the exponential finite."""
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))


def spline_basis(z: Floats, knots: tuple[float, ...]) -> Floats:
    """1, z and the columns of a restricted cubic spline, which is linear beyond its outer knots."""
    columns: list[Floats] = [np.ones(len(z)), z]
    if knots:
        cubes: list[Floats] = []
        for at in knots:
            above = np.maximum(z - at, 0.0)
            cubes.append(above * above * above)  # a cube by np.power takes ten times as long
        *inner, last, end = knots
        for at, cube in zip(inner, cubes, strict=False):
            # Cubes from the last two knots cancel the cube and the square beyond the end.
            tail = cubes[-2] * (end - at) - cubes[-1] * (last - at)
            columns.append((cube - tail / (end - last)) / (end - knots[0]) ** 2)
    return np.stack(columns).T


@keep_with_tally
def fit_in_the_large(t: Tally) -> LogOdds | None:
    """The intercept beside a slope of 1 that is not estimated; None where one outcome is missing.

    >>> from howsure import tally
    >>> fit_in_the_large(tally([0.5, 0.5], correct=[1, 0])).covariance.round(3)
    array([[2., 0.],
           [0., 0.]])
    """
    rounding = WEIGHT_SUM_ROUNDING * t.n
    if not rounding < t.total < t.n - rounding:
        return None
    rows = LogitRows.of(t)
    a, information = 0.0, 0.0
    for some in (rows.join_runs(), rows):
        positives = some.positive.sum()
        for _ in range(MOST_PASSES):
            p = convert_log_odds(a + some.z)
            missing = float(positives - np.dot(some.count, p))
            information = float(np.dot(some.count, p * (1 - p)))
            step = LONGEST_STEP * float(np.sign(missing))
            if information > 0:
                step = missing / information
            step = min(max(step, -LONGEST_STEP), LONGEST_STEP)
            a += step
            if abs(step) <= STEP_GOAL * max(1.0, abs(a)):
                break
    return LogOdds(
        knots=(),
        coefficients=np.array([a, 1.0]),
        covariance=np.array([[1 / information, 0.0], [0.0, 0.0]]),
    )


__all__ = [
    "BrierParts",
    "CalibrationDistance",
    "Recalibration",
    "brier_decomposition",
    "calibration_distance",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "distance_floor",
    "observed_expected",
    "recalibration",
    "spiegelhalter_z",
]
