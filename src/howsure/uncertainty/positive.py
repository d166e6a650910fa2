"""How sure are numbers of the positive class that are no means: recalibration, observed over
expected, a curve.
"""

from __future__ import annotations

from math import exp, isfinite, nan, sqrt

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.curves import Curve
from howsure.metrics.binary import observed_expected, positive_outcomes
from howsure.metrics.recalibration import LogOdds, flexible, log_odds
from howsure.predictions import Outcomes, Predictions, needs_outcomes
from howsure.tallies.tally import Tally
from howsure.uncertainty.case import Case, Linear
from howsure.uncertainty.limits import Interval, none
from howsure.uncertainty.means import student

POINTS = 101  # of a curve
RANGE = (
    0.005,
    0.995,
)  # quantiles of the claims between which a curve is drawn: nothing is known beyond

__all__ = ["flexible_calibration", "line_limits", "observed_limits", "smooth_calibration"]


def line_limits(source: Tally | Outcomes, level: float) -> tuple[Interval, Interval]:
    """Normal limits of the intercept and the slope of `recalibration`; groups and weights widen
    them.

    >>> from howsure import tally
    >>> t = tally([0.2, 0.4, 0.6, 0.8] * 50, correct=[0, 0, 1, 1, 0, 1, 0, 1] * 25)
    >>> intercept, slope = line_limits(t, 0.95)
    >>> slope.low < 2 < slope.high
    True
    """
    case, half = Case.of(source), (1 - level) / 2
    found = log_odds(case.tally)
    if found is None:
        why = none("one class is missing, the score is constant, or the classes separate")
        return why, why
    intercept, slope = (_wald(found, np.eye(2)[i], case, half) for i in range(2))
    return intercept, slope


def _wald(fit: LogOdds, of: Floats, case: Case, half: float) -> Interval:
    """Limits of a linear combination of the coefficients."""
    value, error = float(of @ fit.coefficients), _error(fit, of, case, half)
    reach = student(float("inf"), half) * error
    return Interval(value - reach, value + reach)


def _error(fit: LogOdds, of: Floats, case: Case, half: float) -> float:
    """The standard error, by the information; times the design effect of groups and weights."""

    def influence() -> Linear:
        x = fit.basis(case.rows.score)
        pull = case.n * (x @ fit.covariance @ of)
        return Linear(pull / (1 + np.exp(x @ fit.coefficients)), -pull)

    return sqrt(float(of @ fit.covariance @ of) * case.design(influence, half))


def observed_limits(source: Tally | Outcomes, level: float) -> Interval:
    """Limits of `observed_expected`, normal on its logarithm; none without positive cases.

    >>> from howsure import tally
    >>> found = observed_limits(tally([0.2, 0.4, 0.6, 0.8] * 25, correct=[0, 0, 1, 1] * 25), 0.95)
    >>> round(found.low, 3), round(found.high, 3)
    (0.883, 1.132)
    """
    case, half = Case.of(source), (1 - level) / 2
    value = observed_expected(case.tally)
    if not isfinite(value) or value == 0:
        return none("there are no positive cases, or none is expected")
    rows = case.rows
    expected = float(np.dot(rows.score, rows.count)) / case.n
    part = Linear((1 - value * rows.score) / expected, np.full(len(rows.score), -1 / expected))
    error = sqrt(case.squares(part) * case.design(lambda: part, half)) / case.n
    reach = exp(student(float("inf"), half) * error / value)
    return Interval(value / reach, value * reach)


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
    found = smooth_calibration(source, level)
    if found is None:
        raise InputError(
            "one class is missing, the score is constant, or the classes separate; there is no curve."
        )
    return found


def smooth_calibration(source: Tally | Outcomes, level: float) -> Curve | None:
    """`flexible_calibration`, or None where there is none."""
    case, half = Case.of(source), (1 - level) / 2
    fit = flexible(case.tally)
    if fit is None:
        return None
    x = _drawn(case)
    columns = fit.basis(x)
    middle = columns @ fit.coefficients
    reach = student(float("inf"), half) * np.array(
        [_error(fit, row, case, half) for row in columns]
    )
    y, low, high = (_share(z) for z in (middle, middle - reach, middle + reach))
    return Curve(
        x,
        y,
        np.full(len(x), nan),
        x,
        low=low,
        high=high,
        labels=("predicted probability", "observed share"),
    )


def _drawn(case: Case) -> Floats:
    rows = case.rows
    below = np.cumsum(rows.count[::-1])
    at = np.searchsorted(below, np.array(RANGE) * case.n).clip(max=len(below) - 1)
    low, high = rows.score[::-1][at]
    return np.linspace(float(low), float(high), POINTS)


def _share(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
