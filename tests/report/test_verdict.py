"""What a reader is told first: every sentence says what the numbers say."""

from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import Outcomes, Predictions, evaluate
from howsure.policies import guaranteed_threshold
from howsure.report.masks import write_image_verdict
from howsure.report.verdict_text import format_between, write_verdict


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def drawn(confidence: Any, chance: Any, rng: np.random.Generator, **columns: Any) -> Predictions:
    return Predictions.from_confidence(confidence, rng.random(len(confidence)) < chance, **columns)


def said(preds: Predictions) -> list[str]:
    return evaluate(preds, ["max_prob"]).data["verdict"]


def build(**changes: Any) -> list[str]:
    """The verdict of an ordinary report with other numbers in it."""
    data = evaluate(confidence=[0.9, 0.8, 0.7, 0.6] * 20, correct=[1, 1, 1, 0] * 20).data
    data = {key: value for key, value in data.items() if key != "calibration_test"}
    return write_verdict({**data, "findings": [], **changes}, None)  # type: ignore[typeddict-item]


def test_a_score_that_is_no_probability() -> None:
    accuracy = {"accuracy": {"value": 0.7, "low": None, "high": None}}
    assert build(metrics=accuracy, guarantees=[]) == [
        "It got 70.0 % right.",
        "How much may be automated was not looked at.",
        "Its score is not a probability: it ranks answers, but states no chance of being right.",
    ]


def test_eighty_right_answers_guarantee_nothing_of_one_in_a_hundred() -> None:
    worth, decides, _ = said(Predictions.from_confidence(np.full(80, 0.99), np.ones(80)))
    assert worth == "It got 80 of 80 right: 100.0 % (95.5–100.0)."
    assert decides == (
        "Automate all answers: guaranteed at most 5 % wrong among such answers (95 % confidence)."
    )


def test_one_answer() -> None:
    assert said(Predictions.from_confidence([0.9], [1]))[0] == "It got 1 of 1 right: 100 % (3–100)."


def test_digits_are_those_that_the_limits_allow() -> None:
    few = {"value": 0.83333, "low": 0.6528, "high": 0.9436}
    many = {"value": 0.9242, "low": 0.9188, "high": 0.9293}
    most = {"value": 0.99999, "low": 0.99, "high": 0.999999}
    assert format_between(few, percent=True) == "83 % (65–94)"
    assert format_between(many, percent=True) == "92.4 % (91.9–92.9)"
    assert format_between(most, percent=True).startswith("99.999 %")
    assert format_between({"value": 0.8, "low": None, "high": None}) == "0.800"


def test_how_many_labels_a_guarantee_would_take() -> None:
    _, decides, _ = said(Predictions.from_confidence(np.full(40, 0.99), np.ones(40)))
    assert decides.startswith("Not enough labels to guarantee at most 5 % errors; about ")
    assert decides.endswith(" would usually be enough.")


def test_out_of_reach_is_said_only_where_it_is_shown() -> None:
    none = {"risk": 0.05, "sure": 0.95, "feasible": False, "coverage": 0.0, "labels_needed": None}
    data = evaluate(confidence=[0.9, 0.8] * 40, correct=[1, 0] * 40).data["metrics"]
    shown = {**data, "coverage_at_risk_0.05": {"value": 0.0, "low": 0.0, "high": 0.0}}
    unshown = {**data, "coverage_at_risk_0.05": {"value": 0.0, "low": 0.0, "high": 0.1}}
    even = "Even the most confident answers are wrong more than 5 % of the time."
    assert build(metrics=shown, guarantees=[none])[1] == even
    assert build(metrics=unshown, guarantees=[none])[1] == (
        "Not enough labels to guarantee at most 5 % errors, or to tell how many would be."
    )


def test_the_guarantee_is_that_of_guaranteed_threshold(rng: np.random.Generator) -> None:
    c = 1 - rng.beta(0.3, 6, 6000)
    preds = drawn(c, c, rng)
    # The data decide which of two risks is told: each may fail half as often.
    promised = guaranteed_threshold(Outcomes.of(preds), risk=0.01, delta=0.025)
    found = evaluate(preds, ["max_prob"]).data
    first = found["guarantees"][0]
    assert (first["threshold"], first["coverage"]) == (promised.threshold, promised.coverage)
    assert 0.05 < promised.coverage < 0.9
    share = f"{100 * promised.coverage:.1f}".removesuffix(".0")
    assert found["verdict"][1].startswith(f"Automate the most confident {share} %: guaranteed at")


def test_groups_weaken_the_guarantee() -> None:
    group = np.repeat(np.arange(40), 25)
    preds = Predictions.from_confidence(np.full(1000, 0.99), np.ones(1000), group=group)
    report = evaluate(preds, ["max_prob"])
    assert report.data["verdict"][1].startswith("Not enough groups to guarantee at most 5 %")
    assert "1,000 predictions in 40 groups" in report.to_text()


def test_few_groups_are_said_to_be_these_groups(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 200)
    few = said(drawn(c, c, rng, group=np.arange(200) % 4))[0]
    many = said(drawn(c, c, rng, group=np.arange(200) % 20))[0]
    assert few.endswith("The limits are for these 4 groups in this mix.")
    assert "in this mix" not in many


def test_weights_have_no_guarantee_and_no_test(rng: np.random.Generator) -> None:
    weight = rng.uniform(1, 2, 900)
    c = rng.uniform(0.5, 1, 900)
    worth, decides, reads = said(drawn(c, c, rng, weight=weight))
    assert worth.startswith("It got 7")
    assert "weights are refused" in decides
    assert "the samples carry weights" in reads or reads.startswith("There is a hint")


def test_claims_that_are_off_without_a_pattern_are_not_called_true() -> None:
    metrics = {
        "accuracy": {"value": 0.7, "better": "higher"},
        "ece": {"value": 0.02, "floor": 0.01, "better": "lower"},
    }
    test = {"statistic": 5.0, "p": 0.001, "gap": 0.0, "p_gap": 0.7, "tilt": 1.0, "p_tilt": 0.6}
    assert build(metrics=metrics, calibration_test=test)[2] == (
        "Its confidence is off in places, by 2.0 points on average (ECE 0.020; 0.010 would be chance)."
    )
    shifted = {**test, "gap": -0.0312, "p_gap": 0.01}
    assert build(metrics=metrics, calibration_test=shifted)[2] == (
        "It is underconfident by 3.1 points on average (ECE 0.020; 0.010 would be chance)."
    )
    assert "too extreme" in build(metrics=metrics, calibration_test={**test, "p_tilt": 0.01})[2]


def test_nothing_contradicts_only_where_a_gap_would_have_shown() -> None:
    metrics = {
        "accuracy": {"value": 0.7, "better": "higher"},
        "ece": {"value": 0.02, "better": "lower", "low": 0.0, "high": 0.03},
    }
    test = {"statistic": 1.0, "p": 0.4, "errors": 9, "detectable_gap": 0.031}
    seen = build(metrics=metrics, calibration_test=test)[2]
    assert seen.startswith("Nothing contradicts its confidence as a probability; a gap of 3.1")
    few = build(metrics=metrics, calibration_test={**test, "detectable_gap": 0.2})[2]
    assert few.startswith("Too few answers to tell whether its confidence can be trusted")
    hinted = {**metrics, "signed_calibration_error": {"value": 0.02, "low": 0.001, "high": 0.04}}
    assert build(metrics=hinted, calibration_test=test)[2].startswith(
        "There is a hint that it is overconfident (confidence − accuracy 0.020, 0.001–0.040)"
    )
    none = {**test, "errors": 0, "expected_errors": 3.2, "no_error_chance": 0.04}
    assert build(metrics=metrics, calibration_test=none)[2].startswith(
        "No answer is wrong, where its confidence expects 3.2 wrong ones; if that is true, it "
        "happens 4 % of the time"
    )


def two_classes(
    rng: np.random.Generator, n: int, share: float, strength: float, **columns: Any
) -> Predictions:
    """P(1) of two normal distributions, calibrated by construction."""
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(size=n) + strength * y
    z = strength * x - strength**2 / 2 + np.log(share / (1 - share))
    return Predictions.from_probs(1 / (1 + np.exp(-z)), y, **columns)


def test_two_classes_name_the_constant_answer(rng: np.random.Generator) -> None:
    preds = two_classes(rng, 2000, 0.4, 2.0, class_names=["benign", "malignant"])
    report = evaluate(preds).data
    base = report["base_rate"]
    negatives = float(np.mean(np.asarray(preds.labels) == 0))
    assert base["answer"] == "benign"
    assert base["accuracy"] == pytest.approx(negatives)
    assert base["missed"] == int(((preds.labels == 1) & (preds.prediction == 0)).sum())
    assert not base["leads"]
    end = f'Always answering "benign" would get {100 * negatives:.1f} %.'
    assert report["verdict"][0].endswith(end)


def test_a_rare_class_leads_with_its_auc_and_what_is_missed(rng: np.random.Generator) -> None:
    preds = two_classes(rng, 1000, 0.03, 1.5, class_names=["benign", "malignant"])
    report = evaluate(preds).data
    missed = int(((preds.labels == 1) & (preds.prediction == 0)).sum())
    positives = int((preds.labels == 1).sum())
    lead, worth, *_ = report["verdict"]
    assert lead.startswith(f"AUC of malignant: {hs.class_auroc(preds, positive=1):.2f}")
    assert f"it misses {missed} of {positives} cases of malignant" in lead
    assert worth.endswith("which is not clearly less.")


def test_a_guarantee_that_the_constant_answer_keeps_is_not_offered(
    rng: np.random.Generator,
) -> None:
    report = evaluate(two_classes(rng, 3000, 0.004, 1.0)).data
    first, second = report["guarantees"]
    assert first["empty"] == second["empty"] == "0"
    decides = report["verdict"][2]
    assert decides == (
        'A guarantee of at most 5 % errors would be empty: always answering "0" keeps it.'
    )


def test_a_guarantee_without_positive_calls_may_be_left_to_say_no(rng: np.random.Generator) -> None:
    report = evaluate(two_classes(rng, 4000, 0.1, 1.2)).data
    kept = next(g for g in report["guarantees"] if g["feasible"] and "empty" not in g)
    assert kept["only_negative"]
    assert "It may be left to say no to the most confident" in report["verdict"][2]


def test_many_labels_lead_with_what_is_missed(rng: np.random.Generator) -> None:
    labels = (rng.random((400, 5)) < 0.06).astype(int)
    probs = 1 / (1 + np.exp(-(rng.normal(size=(400, 5)) + 1.5 * labels - 3)))
    report = evaluate(Predictions.from_multilabel(probs, labels)).data
    missed, present = int((labels[probs <= 0.5]).sum()), int(labels.sum())
    lead, worth, decides, _ = report["verdict"]
    assert lead.startswith("Mean AUC of the labels: 0.")
    assert f"it misses {missed} of {present} labels that are present" in lead
    right = int(((probs > 0.5) == labels).sum())
    assert worth.startswith(f"It got {right:,} of 2,000 labels right")
    assert 'Always answering "absent" would get' in worth
    assert "groups" not in decides


def test_many_classes_are_beside_the_commonest_only_where_it_matters(
    rng: np.random.Generator,
) -> None:
    y = rng.integers(0, 5, 500)
    good = Predictions.from_logits(3 * np.eye(5)[y] + rng.normal(size=(500, 5)), y)
    bad = Predictions.from_logits(rng.normal(size=(500, 5)), y)
    assert "Always" not in said(good)[0]
    assert "Always answering" in said(bad)[0]


def test_a_score_that_is_the_same_for_all_cannot_rank() -> None:
    report = evaluate(confidence=np.full(200, 0.7), correct=[1, 0] * 100).data
    texts = [f["text"] for f in report["findings"] if f["name"] == "does_not_rank"]
    assert texts == ["The score is the same for every answer, so it cannot rank them."]
    assert report["verdict"][1].startswith("Its confidence does not tell right answers from wrong")


def test_a_label_whose_guarantee_is_empty_is_not_offered(rng: np.random.Generator) -> None:
    """Of 2,000 cases 0.5 % are present: always answering absent is wrong less often than 5 %."""
    labels = np.stack([rng.random(2000) < 0.005, rng.random(2000) < 0.4], axis=1).astype(int)
    probs = 1 / (1 + np.exp(-(4 * labels - 2 + rng.normal(size=(2000, 2)))))
    rare, common = evaluate(Predictions.from_multilabel(probs, labels)).data["labels"]["rows"]
    assert rare["guarantee"]["threshold"] is None
    assert rare["guarantee"]["why"] == 'empty: always answering "absent" keeps it'
    assert common["guarantee"]["threshold"] is not None
    assert common["guarantee"]["coverage"] > 0.3


def test_masks_have_a_guarantee_about_such_images() -> None:
    loss = {"value": 0.2, "low": 0.1, "high": 0.3, "better": "lower"}
    kept = {"risk": 0.2, "sure": 0.95, "threshold": 0.9, "coverage": 0.881, "images_needed": None}
    none = {**kept, "threshold": None, "coverage": 0.0, "images_needed": 1449}
    assert write_image_verdict(loss, {"images": 9, "guarantees": [kept]})[1] == (
        "Use the most confident 88.1 % of the masks as they are: guaranteed a mean 1 − Dice of at "
        "most 0.2 among such images (95 % confidence); the others go to a reader."
    )
    assert write_image_verdict(loss, {"images": 9, "guarantees": [none]})[1] == (
        "Not enough images to guarantee a mean 1 − Dice of at most 0.2; about 1,500 would usually "
        "be enough."
    )
