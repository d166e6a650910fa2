"""evaluate and Report: complete, strict, reproducible."""

from __future__ import annotations

import json

import numpy as np
import pytest

import howsure as hs
from howsure.report.report_types import build_curve_data


def made_up(n: int = 300, k: int = 4, seed: int = 0, **columns: object) -> hs.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    return hs.Predictions.from_logits(
        3 * np.eye(k)[labels] + 2 * rng.standard_normal((n, k)), labels, **columns
    )


@pytest.fixture(scope="module")
def report() -> hs.Report:
    return hs.evaluate(made_up())


def test_values_are_those_of_the_functions(report: hs.Report) -> None:
    preds = made_up()
    t = hs.tally(preds.confidence, correct=preds.correct)
    for name, value in (
        ("accuracy", hs.accuracy(preds)),
        ("nll", hs.nll(preds)),
        ("aurc", hs.aurc(t)),
        ("aupr_success", hs.aupr(t, positive="success")),
        ("ece", hs.ece(t)),
        ("coverage_at_risk_0.05", hs.coverage_at_risk(t, 0.05)),
    ):
        assert report[name] == value, name


def test_every_number_has_an_interval_or_a_reason(report: hs.Report) -> None:
    tables = [report.data["metrics"], *(s["metrics"] for s in report.data["scores"].values())]
    for table in tables:
        for name, entry in table.items():
            if entry.get("low") is None:
                assert entry["why"], name
            else:
                assert entry["low"] <= entry["high"], name


def test_intervals_contain_the_value_of_what_is_not_biased(report: hs.Report) -> None:
    for name in ("accuracy", "nll", "brier", "aurc", "augrc", "auroc", "signed_calibration_error"):
        entry = report.data["metrics"][name]
        assert entry["low"] < entry["value"] < entry["high"], name


def test_json_is_strict_and_comes_back(report: hs.Report) -> None:
    text = report.to_json()
    back = json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} in the JSON"))
    assert back == report.data
    assert hs.Report.from_json(text).data == report.data


def test_same_call_same_report(report: hs.Report) -> None:
    assert hs.evaluate(made_up()).to_json() == report.to_json()


def test_provenance_changes_with_the_data(report: hs.Report) -> None:
    digest = lambda r: r.data["provenance"]["inputs"][0]["sha256"]
    assert digest(hs.evaluate(made_up(seed=1))) != digest(report)


def test_undefined_is_null_with_the_reason() -> None:
    sure = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [0, 1, 0])
    entry = hs.evaluate(sure).data["metrics"]["auroc"]
    assert entry == {"value": None, "why": "undefined: every answer is right", "better": "higher"}


def test_infinite_is_null_with_the_reason() -> None:
    preds = hs.Predictions.from_probs([[1.0, 0.0], [0.2, 0.8], [0.6, 0.4]], [1, 1, 0])
    entry = hs.evaluate(preds).data["metrics"]["nll"]
    assert entry["value"] is None
    assert entry["why"].startswith("infinite")


def test_a_group_widens_the_interval() -> None:
    base = made_up(60)
    rows = np.repeat(np.arange(60), 10)  # ten copies of each sample: no more information
    copies = hs.Predictions.from_logits(base.values[rows], base.labels[rows], group=rows)
    alone = hs.Predictions.from_logits(base.values[rows], base.labels[rows])
    width = lambda p: np.diff(
        [hs.evaluate(p).data["metrics"]["accuracy"][end] for end in ("low", "high")]
    )[0]
    assert width(copies) > 2 * width(alone)


def test_scores_in_the_order_asked_for() -> None:
    report = hs.evaluate(made_up(), scores=["entropy", hs.scores.margin])
    assert report.data["score"] == "entropy"
    assert list(report.data["scores"]) == ["margin"]


def test_a_score_that_is_no_claim_has_no_calibration() -> None:
    metrics = hs.evaluate(made_up(), scores=["energy"]).data["metrics"]
    assert "aurc" in metrics
    assert "ece" not in metrics


def test_samples_have_their_own_scores() -> None:
    z = np.random.default_rng(0).standard_normal((5, 80, 3))
    report = hs.evaluate(hs.Predictions.from_samples(z, np.arange(80) % 3))
    assert {"mutual_information", "variance"} <= set(report.data["scores"])
    assert report.data["samples"] == 5


def test_top_label_only() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(200)
    report = hs.evaluate(hs.Predictions.from_confidence(confidence, rng.random(200) < confidence))
    assert report.data["k"] is None
    assert "nll" not in report.data["metrics"]
    assert report["ece"] is not None


def test_binary_adds_the_positive_class() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(500)
    binary = hs.evaluate(hs.Predictions.from_probs(p, (rng.random(500) < p).astype(int))).data[
        "binary"
    ]
    slope = binary["calibration_slope"]
    assert slope["low"] < 1 < slope["high"]
    parts = binary["brier_decomposition"]
    total = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within"]
    assert total == pytest.approx(
        np.mean((p - (np.random.default_rng(0).random(1000)[500:] < p)) ** 2)
    )


def test_the_level_is_that_of_slope_and_intercept_too() -> None:
    """They had 95 % limits at every level."""
    rng = np.random.default_rng(0)
    p = rng.random(500)
    preds = hs.Predictions.from_probs(p, (rng.random(500) < p).astype(int))
    wide, narrow = (hs.evaluate(preds, level=level).data["binary"] for level in (0.95, 0.5))
    for name in ("calibration_slope", "calibration_intercept"):
        (a, b), (c, d) = ((found[name]["low"], found[name]["high"]) for found in (wide, narrow))
        assert d - c == pytest.approx((b - a) * 0.6744897501960817 / 1.959963984540054)


def test_every_pair_of_limits_follows_the_level() -> None:
    preds = made_up(k=2)
    wide, narrow = (hs.evaluate(preds, level=level).data for level in (0.99, 0.5))
    for name, entry in wide["metrics"].items():
        if entry.get("low") is not None:
            less = narrow["metrics"][name]
            assert less["high"] - less["low"] < entry["high"] - entry["low"], name
    for key in ("operating", "classes"):
        a, b = (found["views"][key] for found in (wide, narrow))
        rows = zip(a, b, strict=True) if isinstance(a, list) else [(a, b)]
        for one, two in rows:
            assert np.all(np.asarray(two["low"]) >= np.asarray(one["low"]))


def test_curves_are_thinned_and_end_at_the_ends() -> None:
    t = hs.tally(np.arange(5000) / 5000, correct=np.arange(5000) % 2)
    curve = build_curve_data(hs.risk_coverage(t))
    assert curve["points"] == 5000
    assert len(curve["x"]) <= 400
    assert curve["x"][-1] == 1.0


def test_unknown_metric_lists_what_there_is(report: hs.Report) -> None:
    with pytest.raises(KeyError, match="auroc"):
        report["arc"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "not a howsure report"),
        ('{"howsure": "9", "metrics": {}, "schema": 9}', "schema 9"),
    ],
)
def test_what_is_not_a_report_is_refused(text: str, why: str) -> None:
    with pytest.raises(hs.InputError, match=why):
        hs.Report.from_json(text)


@pytest.mark.parametrize("level", [0, 1, 1.5])
def test_level_must_be_a_share(level: float) -> None:
    with pytest.raises(hs.InputError, match="level is"):
        hs.evaluate(made_up(20), level=level)


def test_without_labels_there_is_nothing_to_evaluate() -> None:
    with pytest.raises(hs.InputError, match="no labels"):
        hs.evaluate(hs.Predictions.from_logits(np.zeros((3, 2))))


def test_markdown_escapes_what_comes_from_files(report: hs.Report) -> None:
    from howsure.report.render.text_tables import escape_markdown

    assert escape_markdown("a|b\n<i>") == "a\\|b \\<i\\>"
    assert report.to_markdown().startswith("300 predictions, 4 classes")


def test_fractional_weights_leave_out_only_what_counts_samples() -> None:
    rng = np.random.default_rng(0)
    metrics = hs.evaluate(made_up(200, weight=rng.random(200) + 0.5)).data["metrics"]
    assert metrics["aece"]["value"] is None
    assert "weights are not equal" in metrics["aece"]["why"]
    assert metrics["aurc"]["low"] < metrics["aurc"]["value"] < metrics["aurc"]["high"]


def test_arrays_are_evaluated_by_name() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, 60)
    p = hs.Predictions.from_logits(z, y).probs
    claim, right = p.max(axis=1), p.argmax(axis=1) == y
    for arrays, preds in (
        ({"logits": z, "labels": y}, hs.Predictions.from_logits(z, y)),
        ({"probs": p, "labels": y}, hs.Predictions.from_probs(p, y)),
        ({"confidence": claim, "correct": right}, hs.Predictions.from_confidence(claim, right)),
    ):
        assert hs.evaluate(**arrays).data == hs.evaluate(preds).data


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"probs": [[0.5, 0.5]]}, "got probs= without labels="),
        ({"labels": [1]}, "got no probs=, logits= or confidence="),
        ({"probs": [[0.5, 0.5]], "logits": [[0.5, 0.5]], "labels": [0]}, "got probs= and logits="),
        ({"confidence": [0.5], "labels": [0]}, "got confidence= without correct="),
        ({"confidence": [0.5], "labels": [0], "correct": [1]}, "got labels= and correct="),
        ({"preds": hs.Predictions.from_confidence([0.5], [1]), "correct": [1]}, "one of them"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(arrays: dict[str, object], why: str) -> None:
    with pytest.raises(hs.InputError, match=why):
        hs.evaluate(**arrays)


def test_a_tally_is_evaluated_like_its_samples() -> None:
    rng = np.random.default_rng(0)
    claim = np.round(rng.beta(5, 1, 800), 2)
    right = rng.random(800) < claim
    of_tally = hs.evaluate(hs.tally(claim, correct=right))
    of_samples = hs.evaluate(confidence=claim, correct=right)
    for key in ("n", "metrics", "verdict", "guarantees", "findings", "curves", "calibration_test"):
        assert of_tally.data[key] == of_samples.data[key], key
    assert of_tally.data["provenance"]["inputs"][0]["arrays"] == "tally"
    assert hs.Report.from_json(of_tally.to_json()).to_text() == of_tally.to_text()
    assert "<html" in of_tally.to_html()


def test_a_tally_knows_no_classes_columns_or_grades() -> None:
    t = hs.tally([0.9, 0.8], correct=[1, 0])
    with pytest.raises(hs.InputError, match="a tally or a summary knows"):
        hs.evaluate(t, by="site")
    with pytest.raises(hs.InputError, match="loss"):
        hs.evaluate(hs.tally([0.9, 0.8], loss=[0.3, 0.5]))


def test_a_report_for_text_says_the_same_and_draws_nothing() -> None:
    preds = made_up()
    whole, text = hs.evaluate(preds), hs.evaluate(preds, page=False)
    assert "guarantee" in whole.data["views"]["deciding"]
    assert "deciding" not in text.data["views"]
    for full in (False, True):
        assert text.to_text(full=full) == whole.to_text(full=full)
    for draw in (text.to_html, text.pictures):
        with pytest.raises(hs.InputError, match="evaluate with page=True"):
            draw()
