"""Calibration in the large: are the probabilities of the positive class too high on the whole?"""

from __future__ import annotations

from math import nan

import numpy as np

from howsure.metrics.binary import LogOdds, as_positive, logit
from howsure.predictions.predictions import Predictions
from howsure.tallies.tally import Tally

MOST_PASSES = 100
STEP_GOAL = 1e-12
LONGEST_STEP = 4.0  # of log odds: far from the root a step of Newton's goes too far


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


def fit_in_the_large(t: Tally) -> LogOdds | None:
    """The intercept beside a slope of 1 that is not estimated; None where one outcome is missing.

    >>> from howsure import tally
    >>> fit_in_the_large(tally([0.5, 0.5], correct=[1, 0])).covariance.round(3)
    array([[2., 0.],
           [0., 0.]])
    """
    if not 0 < t.total < t.n:
        return None
    z = logit(t.score)
    count = np.asarray(t.count, dtype=np.float64)
    positives = float(t.n - t.total)
    a, information = 0.0, 0.0
    for _ in range(MOST_PASSES):
        p = 1 / (1 + np.exp(-np.clip(a + z, -700, 700)))
        information = float(np.dot(count, p * (1 - p)))
        step = LONGEST_STEP * float(np.sign(positives - np.dot(count, p)))
        if information > 0:
            step = (positives - float(np.dot(count, p))) / information
        step = min(max(step, -LONGEST_STEP), LONGEST_STEP)
        a += step
        if abs(step) <= STEP_GOAL * max(1.0, abs(a)):
            break
    return LogOdds(
        knots=(),
        coefficients=np.array([a, 1.0]),
        covariance=np.array([[1 / information, 0.0], [0.0, 0.0]]),
    )


__all__ = ["calibration_in_the_large"]
