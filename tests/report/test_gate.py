"""Limits: the unfavourable end decides."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import howsure as hs
from howsure.cli.check import build_table, format_verdict
from howsure.report.gate import Limit, check, parse_requirement


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


def test_no_limits_no_pass(preds: hs.Predictions) -> None:
    (verdict,) = check(preds, [Limit("mce", "max", 1.0)])
    assert not verdict.passed
    assert verdict.compared is None
    assert "--point" in verdict.note


def test_point_compares_the_value(preds: hs.Predictions) -> None:
    (verdict,) = check(preds, [Limit("mce", "max", 1.0)], point=True)
    assert verdict.passed
    assert verdict.compared == verdict.value


@pytest.mark.parametrize("n", [1, 10, 50, 300])
def test_no_error_among_few_answers_does_not_pass(n: int) -> None:
    right = hs.Predictions.from_confidence(np.full(n, 0.99), np.ones(n))
    (strict,) = check(right, [Limit("accuracy", "min", 0.99)])
    assert strict.passed == (n >= 368)  # 1 − 3.69/n
    (value,) = check(right, [Limit("accuracy", "min", 0.99)], point=True)
    assert value.passed


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


def drawn(seed: int, n: int, *, accuracy: float = 0.9, ids: bool = False) -> hs.Predictions:
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(2 * accuracy - 1, 1, n)
    more = {"ids": np.arange(n)} if ids else {}
    return hs.Predictions.from_confidence(confidence, rng.random(n) < confidence, **more)


def test_baseline_fails_only_where_it_is_certainly_worse(preds: hs.Predictions) -> None:
    now = hs.evaluate(preds).data
    assert all(v.passed for v in check(preds, [], baseline=now))
    better = hs.evaluate(drawn(1, 400, accuracy=0.99)).data
    failed = [v for v in check(preds, [], baseline=better) if not v.passed]
    assert [v.what for v in failed] == [
        "accuracy not worse than the baseline",
        "aurc not worse than the baseline",
    ]
    assert [v.other for v in failed] == [
        better["metrics"][name]["value"] for name in ("accuracy", "aurc")
    ]


def test_the_noise_of_the_baseline_counts_too() -> None:
    """An accuracy that lies below the baseline's value, but not below its limits by more than its
    own.
    """
    old, new = hs.evaluate(drawn(0, 100, accuracy=0.95)).data, drawn(3, 100, accuracy=0.9)
    accuracy, *_ = check(new, [], baseline=old)
    (alone,) = hs.each_interval([hs.accuracy], new)
    assert accuracy.other is not None
    assert alone.high < accuracy.other  # one sample alone would fail it
    assert accuracy.passed


def test_limits_of_a_baseline_at_another_level_are_moved_to_this_one(preds: hs.Predictions) -> None:
    other = drawn(1, 400)
    at = [
        check(preds, [], baseline=hs.evaluate(other, level=level).data)[0].compared
        for level in (0.8, 0.95, 0.99)
    ]
    assert at == pytest.approx([at[1]] * 3, abs=0.005)


def test_a_baseline_without_limits_does_not_pass(preds: hs.Predictions) -> None:
    now = hs.evaluate(preds).data
    bare = {**now, "metrics": {**now["metrics"], "ece": {"value": 0.5, "better": "lower"}}}
    assert [v.passed for v in check(preds, [], baseline=bare)] == [True, True, False]
    assert all(v.passed for v in check(preds, [], baseline=bare, point=True))


def test_against_another_model_is_paired_by_ids() -> None:
    rng = np.random.default_rng(0)
    model, order = drawn(0, 500, ids=True), rng.permutation(500)
    assert all(v.passed for v in check(model, [], against=model[order]))
    spoiled = model.correct & (rng.random(500) > 0.04)
    worse = hs.Predictions.from_confidence(model.confidence, spoiled, ids=np.arange(500))
    accuracy, *_ = check(worse, [], against=model[order])
    assert not accuracy.passed  # 20 answers of 500, which two samples could not tell apart
    assert accuracy.other == model.correct.mean()
    assert check(worse, [], baseline=hs.evaluate(model).data)[0].passed


def test_against_other_samples_is_refused() -> None:
    with pytest.raises(hs.InputError, match="ids"):
        check(drawn(0, 50, ids=True), [], against=drawn(0, 60, ids=True))


def test_few_groups_are_said_once(preds: hs.Predictions) -> None:
    grouped = hs.Predictions.from_confidence(
        preds.confidence, preds.correct, group=np.arange(400) % 6
    )
    verdicts = check(
        grouped, [Limit("accuracy", "min", 0.5), Limit("aurc", "max", 0.5)], against=grouped
    )
    assert {v.unsafe for v in verdicts} == {
        "for these 6 groups in this mix; rows inside a group taken as independent"
    }
    screen = StringIO()
    Console(width=200, file=screen).print(build_table(verdicts))
    assert screen.getvalue().count("for these 6 groups") == 1
    assert "for these 6 groups" in format_verdict(verdicts[0])


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("ece<=0.05", Limit("ece", "max", 0.05)),
        (" accuracy >= 9e-1 ", Limit("accuracy", "min", 0.9)),
        ("auroc>.5", Limit("auroc", "min", 0.5, strict=True)),
        ("coverage_at_risk_0.05>=0.5", Limit("coverage_at_risk_0.05", "min", 0.5)),
        ("risk_at_coverage( 0.8 )<0.02", Limit("risk_at_coverage", "max", 0.02, 0.8, strict=True)),
        ("signed_calibration_error>=-0.02", Limit("signed_calibration_error", "min", -0.02)),
        ("signed_calibration_error<=0.02", Limit("signed_calibration_error", "max", 0.02)),
    ],
)
def test_a_requirement_is_a_limit(text: str, limit: Limit) -> None:
    assert parse_requirement(text) == limit


def test_a_strict_limit_itself_does_not_pass() -> None:
    right = hs.Predictions.from_confidence([0.9, 0.8], [1, 1])
    texts = ("accuracy>=1", "accuracy>1")
    verdicts = check(right, [parse_requirement(text) for text in texts], point=True)
    assert [(v.what, v.passed) for v in verdicts] == [
        ("accuracy ≥ 1", True),
        ("accuracy > 1", False),
    ]
