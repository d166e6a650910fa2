"""Calibration in the large, and one recipe for the limits of every number of P(positive)."""

from __future__ import annotations

from functools import partial
from math import isnan, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit

import howsure as hs
from howsure import Predictions
from howsure.metrics.metric_facts import Metric

NUMBERS = [
    hs.calibration_in_the_large,
    hs.calibration_intercept,
    hs.calibration_slope,
    hs.observed_expected,
]


def make(n: int = 400, seed: int = 0) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    y = rng.random(n) < expit(0.7 * logit(p) - 0.4)
    return Predictions.from_probs(p, y.astype(int), group=np.arange(n) // 4)


def test_the_root_and_its_limits() -> None:
    preds = make()
    z, y = logit(preds.probs[:, 1]), preds.labels
    root = brentq(lambda a: float((y - expit(a + z)).sum()), -9, 9, xtol=1e-13)
    assert hs.calibration_in_the_large(preds) == pytest.approx(root, abs=1e-10)
    alone = hs.tally(preds.probs[:, 1], correct=y == 1)
    q = expit(root + z)
    reach = 1.959963984540054 / sqrt((q * (1 - q)).sum())
    assert hs.interval(hs.calibration_in_the_large, alone) == pytest.approx(
        (root - reach, root + reach), abs=1e-8
    )


@pytest.mark.parametrize("shift", [-40.0, 0.0, 40.0])
def test_far_from_the_root(shift: float) -> None:
    p = expit(np.linspace(-1, 1, 20) + shift)
    value = hs.calibration_in_the_large(Predictions.from_probs(p, np.arange(20) % 2))
    # Probabilities are kept 1e-12 away from 0 and 1.
    z = logit(np.clip(p, 1e-12, 1 - 1e-12))
    assert expit(value + z).sum() == pytest.approx(10, abs=1e-6)


@pytest.mark.parametrize("number", NUMBERS)
def test_one_recipe_for_report_and_interval(number: Metric) -> None:
    preds = make()
    limits = hs.interval(number, preds)
    rows = hs.metrics.positive_outcomes(preds)
    assert limits == hs.interval(number, rows)
    assert limits == hs.interval(partial(number, positive=1), preds)
    assert limits[0] < number(preds) < limits[1]
    shown = hs.evaluate(preds).data["binary"]
    shown = {**shown, **shown["numbers"]}
    name = number.__name__
    if name in shown:
        assert (shown[name]["low"], shown[name]["high"]) == pytest.approx(limits)


def test_a_difference_is_about_the_positive_class() -> None:
    a, b = make(), make()
    assert hs.paired_difference(hs.calibration_slope, a, b)[0] == 0
    other = Predictions.from_probs(expit(2 * logit(a.probs[:, 1])), a.labels, group=a.group)
    difference = hs.paired_difference(hs.calibration_slope, a, other)[0]
    assert difference == pytest.approx(hs.calibration_slope(a) / 2)


def test_one_class_is_missing() -> None:
    preds = Predictions.from_probs([0.2, 0.6], [1, 1])
    assert isnan(hs.calibration_in_the_large(preds))
    assert all(map(isnan, hs.interval(hs.calibration_in_the_large, preds)))
    # A constant probability has no slope, but may be too high.
    constant = Predictions.from_probs([0.5] * 4, [1, 0, 0, 0])
    assert hs.calibration_in_the_large(constant) == pytest.approx(-np.log(3))
    assert isnan(hs.calibration_slope(constant))
