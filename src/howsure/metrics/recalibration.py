"""Logistic recalibration of the positive class: a straight line of log odds, and a flexible one."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats
from howsure._core.frozen import frozen
from howsure.metrics.binary import as_positive
from howsure.predictions import Predictions
from howsure.tallies.tally import Tally

CLIP = 1e-12  # a probability of exactly 0 or 1 has no logit
QUANTILES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
}  # Harrell 2015
CASES = 10  # of the rarer outcome for each knot
ENDS = 3  # of each outcome beyond the inner knots


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
        return basis(logit(p), self.knots)


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
    found = log_odds(as_positive(preds, positive))
    if found is None:
        return Recalibration(nan, nan, nan, nan)
    error = np.sqrt(np.diag(found.covariance))
    return Recalibration(*map(float, (*found.coefficients, *error)))


def log_odds(t: Tally, knots: tuple[float, ...] = ()) -> LogOdds | None:
    """The maximum-likelihood fit; None where one outcome is missing, claims are constant or
    outcomes separate.

    >>> from howsure import tally
    >>> log_odds(tally([0.5, 0.5, 0.8, 0.8, 0.8], correct=[0, 1, 1, 1, 0])).coefficients.round(2) + 0.0
    array([0. , 0.5])
    """
    z = logit(t.score)
    if not 0 < t.total < t.n or np.ptp(z) == 0:
        return None
    x = np.tile(basis(z, knots), (2, 1))
    y = np.repeat([1.0, 0.0], len(z))
    w = np.concatenate((t.count - t.loss, t.loss)).astype(np.float64)
    found = _newton(x, y, w)
    return (
        None
        if found is None
        else LogOdds(knots, found[0], np.asarray(np.linalg.inv(found[1]), dtype=np.float64))
    )


def flexible(t: Tally) -> LogOdds | None:
    """A restricted cubic spline with 5 knots, fewer where the rarer outcome has fewer than 50 cases
    (Harrell 2015).

    Fewer also until both outcomes occur on either side of the inner knots: where one is missing at
    an end, nothing holds the curve there.

    >>> from howsure import tally
    >>> tuple(round(x, 1) for x in flexible(tally(np.arange(1, 100) / 100, correct=np.arange(99) % 3 > 0)).knots)
    (-2.2, 0.0, 2.2)
    """
    most = min(5, int(min(t.total, t.n - t.total)) // CASES)
    found = (_knots(t, many) for many in range(most, min(QUANTILES) - 1, -1))
    return log_odds(t, next((knots for knots in found if knots and _held(t, knots)), ()))


def _held(t: Tally, knots: tuple[float, ...]) -> bool:
    """Whether some of both outcomes lie below the second knot and above the last but one."""
    z = logit(t.score)
    ends = (z < knots[1], z > knots[-2])
    return all(
        float(part[end].sum()) >= ENDS for part in (t.loss, t.count - t.loss) for end in ends
    )


def _knots(t: Tally, many: int) -> tuple[float, ...]:
    """Quantiles of the logits; none where they are not all different."""
    below = np.cumsum(t.count[::-1])
    at = np.searchsorted(below, np.array(QUANTILES[many]) * float(t.n)).clip(max=len(below) - 1)
    found = np.unique(logit(t.score[::-1][at]))
    return tuple(found.tolist()) if len(found) == many else ()


def logit(p: Floats) -> Floats:
    """Log odds of probabilities, which are kept away from 0 and 1."""
    kept = np.clip(p, CLIP, 1 - CLIP)
    return np.log(kept) - np.log1p(-kept)


def basis(z: Floats, knots: tuple[float, ...]) -> Floats:
    """1, z and the columns of a restricted cubic spline, which is linear beyond its outer knots."""
    columns: list[Floats] = [np.ones(len(z)), z]
    if knots:
        *inner, last, end = knots
        for at in inner:
            bent = _cube(z, at) - (_cube(z, last) * (end - at) - _cube(z, end) * (last - at)) / (
                end - last
            )
            columns.append(bent / (end - knots[0]) ** 2)
    return np.stack(columns, axis=1)


def _cube(z: Floats, at: float) -> Floats:
    return np.clip(z - at, 0.0, None) ** 3


def _newton(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats] | None:
    """Coefficients of a logistic regression and their information; None where they run away:
    outcomes separate.
    """
    width = int(x.shape[1])
    beta: Floats = np.zeros(width, dtype=np.float64)
    for _ in range(100):
        q = 1 / (1 + np.exp(-np.clip(x @ beta, -700, 700)))
        information: Floats = (x * (w * q * (1 - q))[:, None]).T @ x
        gradient: Floats = x.T @ (w * (y - q))
        if np.abs(beta).max() > 1e4 or np.linalg.cond(information) > 1e15:
            return None
        step: Floats = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            return beta, information
        before = _likelihood(x @ beta, y, w)
        while _likelihood(x @ (beta + step), y, w) < before - 1e-12 * abs(before):
            step = step / 2
        beta = beta + step
    return None


def _likelihood(z: Floats, y: Floats, w: Floats) -> float:
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


__all__ = ["Recalibration", "calibration_intercept", "calibration_slope", "recalibration"]
