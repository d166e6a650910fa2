"""The positive class: what a clinician asks of its probability, with limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from howsure import curves, metrics
from howsure._core import check
from howsure._core.check import Bools, InputError
from howsure.binning import equal_size
from howsure.bounds import proportion_limits
from howsure.metrics.binary import brier_decomposition, net_benefit, observed_expected
from howsure.metrics.recalibration import recalibration
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import Binary, BrierData, CallRow, Number, curve_json
from howsure.report.deciding import calling
from howsure.report.summary import Summary
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.intervals import Interval, each_interval
from howsure.uncertainty.positive import line_limits, observed_limits, smooth_calibration

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)
MEASURED = {
    "class_auroc": metrics.auroc,
    "prevalence": metrics.accuracy,
    "brier": metrics.correctness_brier,
    "ece": metrics.ece,
}


def binary(
    s: Summary, level: float, seed: int = 0, thresholds: Sequence[float] = THRESHOLDS
) -> Binary | None:
    """What is asked of the probability of the positive class; None where there is no such class.

    >>> from howsure import Predictions
    >>> found = binary(Summary.of(Predictions.from_probs([0.9, 0.2, 0.6], [1, 0, 0])), 0.95)
    >>> found["positive_class"], round(found["prevalence"], 3)
    ('1', 0.333)
    """
    t = s.positive
    if t is None or s.shape.positive is None:
        return None
    source, parts, fit = s.source("positive", ""), brier_decomposition(t), recalibration(t)
    intercept, slope = (
        (_alone(source),) * 2 if isinstance(source, str) else line_limits(source, level)
    )
    curve = None if isinstance(source, str) else smooth_calibration(source, level)
    return {
        "positive_class": s.shape.names[s.shape.positive],
        "prevalence": float(1 - t.total / t.n),
        "ece": metrics.ece(t),
        "calibration_intercept": number(fit.intercept, intercept),
        "calibration_slope": number(fit.slope, slope),
        "brier_decomposition": BrierData(**parts._asdict()),
        "reliability": curve_json(curves.reliability(t, equal_size(10))),
        "calling": calling(t),
        "net_benefit": curve_json(net_benefit(t)),
        "numbers": _numbers(t, source, level, seed),
        "thresholds": calls(t, source, thresholds, level),
        "flexible": None if curve is None else curve_json(curve),
    }


def number(value: float, limits: Interval) -> Number:
    """A number as it stands in a report; undefined ones say why."""
    if not isfinite(value):
        return {"value": None, "why": limits.why or "undefined for these data"}
    if limits.why:
        return {"value": value, "low": None, "high": None, "why": limits.why}
    return {"value": value, "low": limits.low, "high": limits.high}


def _alone(why: str) -> Interval:
    return Interval(nan, nan, why)


def _numbers(
    t: Tally, source: Tally | Outcomes | str, level: float, seed: int
) -> dict[str, Number]:
    if isinstance(source, str):
        limits, ratio = [_alone(source)] * len(MEASURED), _alone(source)
    else:
        limits, ratio = (
            each_interval(list(MEASURED.values()), source, level, seed),
            observed_limits(source, level),
        )
    found = {
        name: number(f(t), limit) for (name, f), limit in zip(MEASURED.items(), limits, strict=True)
    }
    return {**found, "observed_expected": number(observed_expected(t), ratio)}


def calls(
    t: Tally, source: Tally | Outcomes | str, thresholds: Sequence[float], level: float
) -> list[CallRow]:
    """What happens where cases are called positive from each threshold on.

    >>> from howsure import tally
    >>> t = tally([0.9, 0.4, 0.3, 0.2], correct=[1, 0, 1, 0])
    >>> calls(t, t, [0.5], 0.95)[0]["sensitivity"]["value"]
    0.5
    """
    at = np.unique(
        check.floats(np.atleast_1d(np.asarray(thresholds)), "thresholds").astype(np.float64)
    )
    for q in at.tolist():
        if not 0 < q < 1:
            raise InputError(
                f"the threshold {q:g} is none; probabilities between 0 and 1 are needed."
            )
    curve = net_benefit(t, at)
    everyone = curve.y if curve.low is None else curve.low
    benefits = zip(at.tolist(), curve.y.tolist(), everyone.tolist(), strict=True)
    return [_call(t, _Case(source, q, level), benefit, treated) for q, benefit, treated in benefits]


def _call(t: Tally, case: _Case, benefit: float, everyone: float) -> CallRow:
    called = t.score >= case.threshold
    yes, no = t.count - t.loss, t.loss
    hits, alarms, missed, cleared = (
        float(c.sum()) for c in (yes[called], no[called], yes[~called], no[~called])
    )
    return {
        "threshold": case.threshold,
        "called": (hits + alarms) / float(t.n),
        "sensitivity": _share(hits, hits + missed, "positive", case),
        "specificity": _share(cleared, cleared + alarms, "negative", case),
        "ppv": _share(hits, hits + alarms, "called", case),
        "npv": _share(cleared, cleared + missed, "cleared", case),
        "net_benefit": benefit,
        "treat_all": everyone,
    }


EMPTY = {
    "positive": "there are no positive cases",
    "negative": "there are no negative cases",
    "called": "no case is called positive",
    "cleared": "every case is called positive",
}


class _Case(NamedTuple):
    """What limits are made from, at one threshold."""

    source: Tally | Outcomes | str
    threshold: float
    level: float


def _share(k: float, n: float, part: str, case: _Case) -> Number:
    """A share of the cases of one denominator, with exact limits; groups and weights widen them."""
    if n <= 0:
        return {"value": None, "why": EMPTY[part]}
    source, q, level = case
    if isinstance(source, str):
        return number(k / n, _alone(source))
    if is_tally(source):
        low, high = proportion_limits(k, n, (1 - level) / 2)
        return number(k / n, Interval(float(low), float(high)))
    called: Bools = source.score >= q
    rows = {
        "positive": source.right,
        "negative": ~source.right,
        "called": called,
        "cleared": ~called,
    }[part]
    cases = replace(source, correct=called == source.right)[rows]
    return number(k / n, each_interval([metrics.accuracy], cases, level)[0])


__all__ = ["THRESHOLDS", "binary", "calls", "number"]
