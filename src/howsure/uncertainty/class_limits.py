"""How sure are numbers of the positive class that are no means: recalibration, observed over
expected, a curve.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, nan, sqrt

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.curves import Curve
from howsure.metrics.binary import positive_outcomes
from howsure.metrics.class_calibration import (
    LogOdds,
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    convert_log_odds,
    fit_flexible,
    fit_in_the_large,
    fit_log_odds,
    observed_expected,
)
from howsure.metrics.metric_facts import Metric
from howsure.metrics.proper_scores import accuracy
from howsure.predictions import Outcomes, Predictions, needs_outcomes
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally
from howsure.uncertainty.influence import RowInfluence
from howsure.uncertainty.limits import Interval, compute_limits, refuse_limits
from howsure.uncertainty.means import student_quantile
from howsure.uncertainty.sample_case import SampleCase

__all__ = ["flexible_calibration"]

FLEXIBLE_CURVE_POINTS = 101
# Quantiles of the claims between which a curve is drawn: nothing is known beyond.
FLEXIBLE_CURVE_QUANTILES = (0.005, 0.995)


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


def compute_net_benefit_limits(
    source: Tally | Outcomes, threshold: float, level: float
) -> Interval:
    """Limits of the net benefit where cases are called positive from `threshold` on.

    Those of the shares a of true and b of false positives, as accuracies, are combined with their
    correlation, −sqrt(ab/((1−a)(1−b))); groups and weights widen them. Zou & Donner 2008.

    >>> from howsure import tally
    >>> limits = compute_net_benefit_limits(tally([0.9] * 50, correct=[1] * 30 + [0] * 20), 0.5, 0.95)
    >>> round(limits.low, 3), round(limits.high, 3)
    (-0.096, 0.472)
    """
    half = (1 - level) / 2
    o = source
    shares: list[tuple[float, float, float]] = []
    for right in (True, False):
        if isinstance(o, Outcomes):
            hit = (o.score >= threshold) & (o.right == right)
            case = SampleCase.of(Outcomes(o.score, correct=hit, weight=o.weight, group=o.group))
        else:
            called = o.score >= threshold
            hits = np.where(called, o.count - o.loss if right else o.loss, 0)
            total = float(hits.sum())
            case = SampleCase(of_moments(o.n, o.n - total, o.n - total, zero_one=True))
        value = accuracy(case.tally)
        limits = compute_limits(accuracy, case, half, value)
        if limits is None or limits.why is not None:
            return refuse_limits("the shares of true and false positives have no limits")
        shares.append((value, limits.low, limits.high))
    a, b = shares[0][0], shares[1][0]
    rho = 0.0
    if 0 < a < 1 and 0 < b < 1:
        rho = -sqrt(a * b / ((1 - a) * (1 - b)))
    return combine_benefit_limits(shares[0], shares[1], odds=threshold / (1 - threshold), rho=rho)


def combine_benefit_limits(
    gain: tuple[float, float, float], harm: tuple[float, float, float], *, odds: float, rho: float
) -> Interval:
    """Limits of gain − odds · harm, each given as (value, low, high), with their correlation. Zou &
    Donner 2008.

    >>> limits = combine_benefit_limits((0.5, 0.2, 0.8), (0.5, 0.1, 0.9), odds=1.0, rho=0.0)
    >>> round(limits.low, 3), round(limits.high, 3)
    (-0.5, 0.5)
    """
    value = gain[0] - odds * harm[0]
    below, above = gain[0] - gain[1], odds * (harm[2] - harm[0])
    low = value - sqrt(max(0.0, below**2 + above**2 - 2 * rho * below * above))
    below, above = gain[2] - gain[0], odds * (harm[0] - harm[1])
    high = value + sqrt(max(0.0, below**2 + above**2 - 2 * rho * below * above))
    return Interval(low=low, high=high)


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
        y=convert_log_odds(middle),
        weight=np.full(len(x), nan),
        threshold=x,
        low=convert_log_odds(middle - reach),
        high=convert_log_odds(middle + reach),
        labels=("predicted probability", "observed share"),
    )
