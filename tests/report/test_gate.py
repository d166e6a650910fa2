"""Limits: the unfavourable end decides."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs
from howsure.report.gate import Limit, check


@pytest.fixture
def preds() -> hs.Predictions:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400)
    return hs.Predictions.from_confidence(confidence, rng.random(400) < confidence)


def test_the_unfavourable_end_is_compared(preds: hs.Predictions) -> None:
    entry = hs.evaluate(preds).data["metrics"]["auroc"]
    at_least, at_most = check(preds, [Limit("auroc", "min", 0.5), Limit("aurc", "max", 0.5)])
    assert at_least.compared == entry["low"]
    assert at_most.compared is not None
    assert at_most.value is not None
    assert at_most.compared > at_most.value


def test_a_metric_without_interval_is_compared_by_value(preds: hs.Predictions) -> None:
    (verdict,) = check(preds, [Limit("mce", "max", 1.0)])
    assert verdict.compared == verdict.value
    assert "no interval" in verdict.note


def test_an_undefined_metric_fails_with_the_reason() -> None:
    sure = hs.Predictions.from_confidence([0.9, 0.8], [1, 1])
    (verdict,) = check(sure, [Limit("auroc", "min", 0.1)])
    assert not verdict.passed
    assert "every answer is right" in verdict.note


def test_argument_in_the_key(preds: hs.Predictions) -> None:
    (verdict,) = check(preds, [Limit("coverage_at_risk", "min", 0.0, 0.3)])
    assert verdict.what == "coverage_at_risk_0.3 ≥ 0"
    assert verdict.passed


def test_a_metric_that_the_data_do_not_allow(preds: hs.Predictions) -> None:
    with pytest.raises(hs.InputError, match="nll cannot be measured"):
        check(preds, [Limit("nll", "max", 1.0)])


def test_nothing_to_check(preds: hs.Predictions) -> None:
    with pytest.raises(hs.InputError, match="nothing to check"):
        check(preds, [])


def test_baseline_fails_only_where_it_is_certainly_worse(preds: hs.Predictions) -> None:
    now = hs.evaluate(preds).data
    assert all(v.passed for v in check(preds, [], baseline=now))
    far = {"metrics": {**now["metrics"], "accuracy": {"value": 1.0}}}
    failed = [v.what for v in check(preds, [], baseline=far) if not v.passed]
    assert failed == ["accuracy not worse than the baseline"]
