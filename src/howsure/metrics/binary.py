"""Two classes: what clinicians ask of the probability of the positive class (class 1)."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.binning import Binning, equal_size
from howsure.curves import Curve, bin_table
from howsure.predictions import Predictions
from howsure.tallies.build import tally
from howsure.tallies.tally import Tally

CLIP = 1e-12  # a probability of exactly 0 or 1 has no logit


def positive_tally(preds: Predictions) -> Tally:
    """P(y = 1) as the score, y = 1 as the outcome: any metric of it speaks of the positive class.

    >>> positive_tally(Predictions.from_probs([0.9, 0.2], [1, 0]))
    <Tally: n=2, wrong=1, 2 distinct scores>
    """
    return tally(_positive(preds), correct=preds.labels == 1, weight=preds.weight)


def _positive(preds: Predictions) -> Floats:
    if preds.k != 2:
        raise InputError(f"these predictions have {preds.k} classes; a positive class needs exactly two.")
    return np.clip(preds.probs[:, 1], 0.0, 1.0)


class Recalibration(NamedTuple):
    """Logistic recalibration: outcome log odds = intercept + slope × logit(p), with standard errors.

    >>> recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])).slope
    0.5
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float


def recalibration(preds: Predictions) -> Recalibration:
    r"""Slope and intercept of the outcome's log odds against the logit of P(y = 1), by Newton's method.

    Slope 1 and intercept 0 are perfect; a slope below 1 means predictions that are too extreme. Probabilities
    are kept 1e-12 away from 0 and 1. nan where one class is missing or the classes separate. Cox 1958.

    >>> r = recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8, 0.8, 0.8], [0, 1, 1, 1, 1, 1, 0]))
    >>> round(r.slope, 2), round(abs(r.intercept), 2)
    (1.0, 0.0)
    """
    p = np.clip(_positive(preds), CLIP, 1 - CLIP)
    x = np.stack((np.ones(len(p)), np.log(p) - np.log1p(-p)), axis=1)
    y = (preds.labels == 1).astype(np.float64)
    w = np.ones(len(p)) if preds.weight is None else preds.weight
    if len(np.unique(y)) < 2 or np.ptp(x[:, 1]) == 0:
        return Recalibration(nan, nan, nan, nan)
    beta, information = _newton(x, y, w)
    if beta is None:
        return Recalibration(nan, nan, nan, nan)
    error = np.sqrt(np.diag(np.linalg.inv(information)))
    return Recalibration(float(beta[0]), float(beta[1]), float(error[0]), float(error[1]))


def _newton(x: Floats, y: Floats, w: Floats) -> tuple[Floats | None, Floats]:
    """Logistic regression with halved steps; None where the coefficients run away because the classes separate."""
    beta: Floats = np.zeros(2)
    information: Floats = np.eye(2)
    for _ in range(100):
        q = 1 / (1 + np.exp(-np.clip(x @ beta, -700, 700)))
        information = (x * (w * q * (1 - q))[:, None]).T @ x
        gradient = x.T @ (w * (y - q))
        if np.abs(beta).max() > 1e4 or np.linalg.cond(information) > 1e15:
            break
        step = np.linalg.solve(information, gradient)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            return beta, information
        before = _likelihood(x @ beta, y, w)
        while _likelihood(x @ (beta + step), y, w) < before - 1e-12 * abs(before):
            step = step / 2
        beta = beta + step
    return None, information


def _likelihood(z: Floats, y: Floats, w: Floats) -> float:
    return float(np.dot(w, y * z - np.logaddexp(0.0, z)))


def calibration_intercept(preds: Predictions) -> float:
    """Intercept of `recalibration`: 0 is perfect, negative means that risks are overestimated. Cox 1958.

    >>> round(abs(calibration_intercept(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0]))), 2)
    0.0
    """
    return recalibration(preds).intercept


def calibration_slope(preds: Predictions) -> float:
    """Slope of `recalibration`: 1 is perfect, below 1 predictions are too extreme. Cox 1958.

    >>> calibration_slope(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0]))
    0.5
    """
    return recalibration(preds).slope


class BrierParts(NamedTuple):
    """Murphy's parts of the Brier score of P(y = 1): brier = reliability − resolution + uncertainty + within.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1]))
    BrierParts(reliability=0.0, resolution=0.0, uncertainty=0.25, within=0.0)
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_decomposition(preds: Predictions, bins: Binning = equal_size(10)) -> BrierParts:
    r"""The Brier score of the positive class, taken apart over bins.

    .. math:: \sum_j w_j (\bar p_j - \bar y_j)^2 - \sum_j w_j (\bar y_j - \bar y)^2 + \bar y (1 - \bar y)

    plus what varies inside bins, so that the parts always add up. Low reliability and high resolution are
    good. Murphy 1973.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1])).uncertainty
    0.25
    """
    t = positive_tally(preds)
    table = bin_table(t, bins)
    w = table.count / table.count.sum()
    base = float(np.dot(w, table.accuracy))
    reliability = float(np.dot(w, table.gap**2))
    resolution = float(np.dot(w, (table.accuracy - base) ** 2))
    right, wrong = t.count - t.loss, t.loss
    brier = float((np.dot(right, (1 - t.score) ** 2) + np.dot(wrong, t.score**2)) / t.n)
    within = brier - (reliability - resolution + base * (1 - base))
    return BrierParts(reliability, resolution, base * (1 - base), within)


def net_benefit(preds: Predictions, thresholds: Floats | None = None) -> Curve:
    r"""Net benefit of treating those with P(y = 1) of at least a threshold, against the threshold.

    .. math:: \frac{TP}{n} - \frac{FP}{n} \cdot \frac{q}{1 - q}

    `.low` is the net benefit of treating all; treating none has 0. Vickers & Elkin 2006.

    >>> net_benefit(Predictions.from_probs([0.9, 0.2], [1, 0]), thresholds=np.array([0.5])).y
    array([0.5])
    """
    q = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    t = positive_tally(preds)
    rows = np.searchsorted(-t.score, -q, side="right")
    sums = np.concatenate(([[0.0, 0.0]], np.cumsum(np.stack((t.count - t.loss, t.loss), axis=1), axis=0)))
    odds = q / (1 - q)
    treated = (sums[rows, 0] - sums[rows, 1] * odds) / t.n
    everyone = (sums[-1, 0] - sums[-1, 1] * odds) / t.n
    labels = ("threshold probability", "net benefit")
    return Curve(q, treated, sums[rows].sum(axis=1), q, low=everyone, labels=labels)


__all__ = [
    "BrierParts",
    "Recalibration",
    "brier_decomposition",
    "calibration_intercept",
    "calibration_slope",
    "net_benefit",
    "positive_tally",
    "recalibration",
]
