"""Weights are importance, counts are repetition: laws over every curve, every limit and every
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import curves, metrics
from howsure.uncertainty.limits import RECIPES
from howsure.uncertainty.paired import PAIRED

UNITS = [10.0**power for power in (-12, -7, -3, 3, 7, 12)]
OPTIONS: dict[Any, dict[str, float]] = {
    metrics.coverage_at_risk: {"risk": 0.1},
    metrics.risk_at_coverage: {"coverage": 0.8},
}
COUNTS_SAMPLES = (
    metrics.aece,
    metrics.debiased_ece,
)  # adaptive and equal-size bins refuse unequal weights
CURVES: list[Callable[[hs.Tally], Any]] = [
    curves.bin_table,
    curves.precision_recall,
    curves.reliability,
    curves.risk_coverage,
    curves.roc,
    curves.threshold_diagram,
]


def named(metric: Any) -> str:
    return metric.__name__


def asked(metric: Any) -> Any:
    return partial(metric, **OPTIONS[metric]) if metric in OPTIONS else metric


def drawn(seed: int, n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    score = rng.beta(4, 1, n).round(2).clip(0.01, 0.99)
    return score, rng.random(n) < score


def weights(n: int = 300) -> Any:
    return 0.5 + np.random.default_rng(9).gamma(2.0, 1.0, n)


def numbers(found: Any) -> list[Any]:
    """All columns of a curve or table."""
    return [
        np.asarray(v, dtype=np.float64) for v in vars(found).values() if isinstance(v, np.ndarray)
    ]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("curve", CURVES, ids=named)
def test_the_unit_of_weights_changes_no_curve(curve: Any, unit: float) -> None:
    score, right = drawn(0)
    once, again = (
        numbers(curve(hs.tally(score, correct=right, weight=w)))
        for w in (weights(), unit * weights())
    )
    assert once
    for x, y in zip(once, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=named)
def test_count_is_repetition_in_every_curve(curve: Any) -> None:
    score, right = drawn(1)
    count = 1 + np.arange(len(score)) % 3
    once = numbers(curve(hs.tally(score, correct=right, count=count)))
    again = numbers(curve(hs.tally(np.repeat(score, count), correct=np.repeat(right, count))))
    for x, y in zip(once, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("metric", [m for m in RECIPES if m not in COUNTS_SAMPLES], ids=named)
def test_the_unit_of_weights_changes_no_limit(metric: Any, grouped: bool) -> None:
    score, right = drawn(2)
    group = np.arange(len(score)) // 10 if grouped else None
    of = [
        hs.Outcomes(score, correct=right, weight=c * weights(), group=group) for c in (1.0, *UNITS)
    ]
    found = [hs.each_interval([asked(metric)], o)[0] for o in of]
    assert np.isfinite(found[0].low)
    for other in found[1:]:
        assert (other.low, other.high) == pytest.approx(
            (found[0].low, found[0].high), rel=1e-12, abs=1e-12
        )


@pytest.mark.parametrize("metric", RECIPES, ids=named)
def test_equal_weights_have_the_limits_of_none(metric: Any) -> None:
    score, right = drawn(3)
    plain = hs.each_interval([asked(metric)], hs.Outcomes(score, correct=right))[0]
    for c in UNITS:
        equal = hs.each_interval(
            [asked(metric)], hs.Outcomes(score, correct=right, weight=np.full(len(score), c))
        )[0]
        assert (equal.low, equal.high) == pytest.approx(
            (plain.low, plain.high), rel=1e-12, abs=1e-12
        )


@pytest.mark.parametrize("metric", RECIPES, ids=named)
def test_limits_see_every_repetition_of_a_count(metric: Any) -> None:
    score, right = drawn(4)
    count = 1 + np.arange(len(score)) % 3
    once, again = (
        hs.each_interval([asked(metric)], t)[0]
        for t in (
            hs.tally(score, correct=right, count=count),
            hs.tally(np.repeat(score, count), correct=np.repeat(right, count)),
        )
    )
    assert (once.low, once.high) == pytest.approx((again.low, again.high), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("metric", [m for m in PAIRED if m not in COUNTS_SAMPLES], ids=named)
def test_the_unit_of_weights_changes_no_difference(metric: Any) -> None:
    (a, ca), (b, cb) = drawn(5), drawn(6)
    sides = [
        [hs.Outcomes(s, correct=c, weight=unit * weights()) for s, c in ((a, ca), (b, cb))]
        for unit in (1.0, *UNITS)
    ]
    first, *others = (hs.paired_difference(asked(metric), *pair) for pair in sides)
    assert np.isfinite(first).all()
    for other in others:
        assert other == pytest.approx(first, rel=1e-12, abs=1e-12)
