"""Two classes: the section about the probability of the positive class."""

from __future__ import annotations

from math import isfinite
from statistics import NormalDist

from howsure import curves, metrics
from howsure.binning import equal_size
from howsure.metrics.binary import brier_decomposition, net_benefit, recalibration
from howsure.render.model import Binary, BrierData, Number, curve_json
from howsure.report.summary import Summary


def binary(s: Summary, level: float) -> Binary | None:
    """What is asked of the probability of class 1; None where there is no such class.

    >>> from howsure import Predictions
    >>> found = binary(Summary.of(Predictions.from_probs([0.9, 0.2, 0.6], [1, 0, 0])), 0.95)
    >>> found["positive_class"], round(found["prevalence"], 3)
    ('1', 0.333)
    """
    t = s.positive
    if t is None:
        return None
    fit, parts = recalibration(t), brier_decomposition(t)
    return {
        "positive_class": s.shape.names[1],
        "prevalence": float(1 - t.total / t.n),
        "ece": metrics.ece(t),
        "calibration_intercept": wald(fit.intercept, fit.intercept_error, level),
        "calibration_slope": wald(fit.slope, fit.slope_error, level),
        "brier_decomposition": BrierData(**parts._asdict()),
        "reliability": curve_json(curves.reliability(t, equal_size(10))),
        "net_benefit": curve_json(net_benefit(t)),
    }


def wald(value: float, error: float, level: float) -> Number:
    """A fitted coefficient with its normal limits."""
    if not isfinite(value):
        return {"value": None, "why": "one class is missing, the score is constant, or the classes separate"}
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    return {"value": value, "low": value - reach, "high": value + reach}
