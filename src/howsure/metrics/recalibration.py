"""Logistic recalibration of the positive class: a straight line of log odds, and a flexible one."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats
from howsure._core.frozen import frozen
from howsure.metrics.binary import as_positive
from howsure.predictions.predictions import Predictions
from howsure.tallies.tally import Tally

__all__ = ["Recalibration", "calibration_intercept", "calibration_slope", "recalibration"]

LOGIT_CLIP = 1e-12  # a probability of exactly 0 or 1 has no logit
# Where the knots of a spline stand, by their number: quantiles of the logits (Harrell 2015).
KNOT_QUANTILES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
}
CASES_PER_KNOT = 10  # of the rarer outcome
CASES_PER_END = 3  # of each outcome beyond the inner knots


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


def fit_log_odds(t: Tally, knots: tuple[float, ...] = ()) -> LogOdds | None:
    """The maximum-likelihood fit; None where one outcome is missing, claims are constant or
    outcomes separate.

    >>> from howsure import tally
    >>> fit_log_odds(tally([0.5, 0.5, 0.8, 0.8, 0.8], correct=[0, 1, 1, 1, 0])).coefficients.round(2) + 0.0
    array([0. , 0.5])
    """
    z = logit(t.score)
    if not 0 < t.total < t.n or np.ptp(z) == 0:
        return None
    # Each score twice: with its right answers as positive cases and its wrong ones as negative.
    x = np.tile(spline_basis(z, knots), (2, 1))
    y = np.repeat([1.0, 0.0], len(z))
    w = np.concatenate((t.count - t.loss, t.loss)).astype(np.float64)
    fit = _fit_logistic(x, y, w)
    if fit is None:
        return None
    coefficients, information = fit
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return LogOdds(knots=knots, coefficients=coefficients, covariance=covariance)


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
        knots = _place_knots(t, number)
        if knots and _has_both_outcomes_at_ends(t, knots):
            return fit_log_odds(t, knots)
    return fit_log_odds(t)


def _has_both_outcomes_at_ends(t: Tally, knots: tuple[float, ...]) -> bool:
    """Whether some of both outcomes lie below the second knot and above the last but one."""
    z = logit(t.score)
    for end in (z < knots[1], z > knots[-2]):
        wrong = float(t.loss[end].sum())
        right = float((t.count - t.loss)[end].sum())
        if min(wrong, right) < CASES_PER_END:
            return False
    return True


def _place_knots(t: Tally, number: int) -> tuple[float, ...]:
    """Quantiles of the logits; none where they are not all different."""
    below = np.cumsum(t.count[::-1])
    ranks = np.array(KNOT_QUANTILES[number]) * float(t.n)
    rows = np.searchsorted(below, ranks).clip(max=len(below) - 1)
    knots = np.unique(logit(t.score[::-1][rows]))
    if len(knots) < number:
        return ()
    return tuple(knots.tolist())


def logit(p: Floats) -> Floats:
    """Log odds of probabilities, which are kept away from 0 and 1."""
    kept = np.clip(p, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(kept) - np.log1p(-kept)


def spline_basis(z: Floats, knots: tuple[float, ...]) -> Floats:
    """1, z and the columns of a restricted cubic spline, which is linear beyond its outer knots."""
    columns: list[Floats] = [np.ones(len(z)), z]
    if knots:
        *inner, last, end = knots
        for at in inner:
            # Cubes from the last two knots cancel the cube and the square beyond the end.
            tail = _cube_above(z, last) * (end - at) - _cube_above(z, end) * (last - at)
            bent = _cube_above(z, at) - tail / (end - last)
            columns.append(bent / (end - knots[0]) ** 2)
    return np.stack(columns, axis=1)


def _cube_above(z: Floats, at: float) -> Floats:
    return np.clip(z - at, 0.0, None) ** 3


def _fit_logistic(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats] | None:
    """Coefficients of a logistic regression and their information, by Newton's method.

    None where the coefficients run away: outcomes separate.
    """
    beta: Floats = np.zeros(int(x.shape[1]), dtype=np.float64)
    for _ in range(100):
        q = 1 / (1 + np.exp(-np.clip(x @ beta, -700, 700)))
        information: Floats = (x * (w * q * (1 - q))[:, None]).T @ x
        gradient: Floats = x.T @ (w * (y - q))
        if np.abs(beta).max() > 1e4 or np.linalg.cond(information) > 1e15:
            return None
        step: Floats = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            return beta, information
        # Newton may overshoot far from the optimum: halve the step until it is no step back.
        before = _log_likelihood(x @ beta, y, w)
        while _log_likelihood(x @ (beta + step), y, w) < before - 1e-12 * abs(before):
            step = step / 2
        beta = beta + step
    return None


def _log_likelihood(z: Floats, y: Floats, w: Floats) -> float:
    return float(np.dot(w, y * z - np.logaddexp(0.0, z)))


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
