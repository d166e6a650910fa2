"""Each finding fires where its fault was built in, and rarely on calibrated data."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from howsure import Predictions, compare, ece, evaluate, tally
from howsure.report.calibration_report import calibration_report, find_changes
from howsure.report.score_findings import find_all
from howsure.report.summary import Summary
from howsure.report.verdict import (
    build_case,
    compute_design_effect,
    compute_lower_tail,
    compute_upper_tail,
)
from howsure.uncertainty.intervals import each_interval

SETS = 200
MOST = 0.05 * SETS


def names(preds: Predictions, score: Any = None) -> list[str]:
    scores = ["max_prob"] if score is None else [lambda _: score]
    return [f["name"] for f in find_all(build_case(Summary.of(preds, scores)))]


def drawn(confidence: Any, chance: Any, rng: np.random.Generator, **columns: Any) -> Predictions:
    return Predictions.from_confidence(confidence, rng.random(len(confidence)) < chance, **columns)


def softmax_honest(
    rng: np.random.Generator, n: int, k: int = 10, scale: float = 3.0
) -> tuple[Any, Any]:
    """Logits, and labels drawn from their softmax: calibrated by construction."""
    z = rng.normal(scale=scale, size=(n, k))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return z, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_calibrated_confidences_earn_each_finding_at_most_5_percent_of_the_time() -> None:
    rng = np.random.default_rng(1)
    found: Counter[str] = Counter()
    for _ in range(SETS):
        c = rng.uniform(0.3, 1, 3000)
        found.update(names(drawn(c, c, rng, group=np.arange(3000) % 12)))
    assert max(found.values(), default=0) <= MOST, found


def test_calibrated_softmax_earns_each_finding_at_most_5_percent_of_the_time() -> None:
    """1,000 to 6,000 samples of 2 to 60 classes, from hard tasks to easy ones: low bins are thin,
    top bins full.
    """
    rng = np.random.default_rng(2)
    found: Counter[str] = Counter()
    for _ in range(SETS):
        n, k, scale = int(rng.integers(1000, 6000)), int(rng.integers(2, 60)), rng.uniform(1.5, 10)
        found.update(names(Predictions.from_logits(*softmax_honest(rng, n, k, scale))))
    assert max(found.values(), default=0) <= MOST, found


def test_calibrated_clusters_do_not_look_over_confident() -> None:
    """Samples of a cluster share their fate, so sums scatter more than independent ones would."""
    rng = np.random.default_rng(3)
    found: Counter[str] = Counter()
    for _ in range(SETS):
        c, luck = np.repeat(rng.uniform(0.3, 1, 150), 10), np.repeat(rng.random(150), 10)
        found.update(
            names(Predictions.from_confidence(c, luck < c, group=np.repeat(np.arange(150), 10)))
        )
    about = ("over_confident", "over_confident_above_0.9", "under_confident")
    assert max(found[name] for name in about) <= MOST, found


def test_over_confident_above_09(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 4000)
    assert "over_confident_above_0.9" in names(drawn(c, np.where(c > 0.9, c - 0.1, c), rng))


def test_over_confident_below_09(rng: np.random.Generator) -> None:
    c = rng.uniform(0.4, 0.85, 4000)
    found = names(drawn(c, c - 0.1, rng))
    assert "over_confident" in found
    assert "over_confident_above_0.9" not in found


def test_under_confident(rng: np.random.Generator) -> None:
    c = rng.uniform(0.4, 0.85, 4000)
    assert "under_confident" in names(drawn(c, c + 0.1, rng))


def test_an_error_hidden_in_a_wide_bin(rng: np.random.Generator) -> None:
    """Most samples of the last bin are honest; a tenth of them, at its lower end, is far off (Ding
    2020, figure 2).
    """
    c = np.concatenate((rng.uniform(0.98, 1, 9000), rng.uniform(0.935, 0.94, 1000)))
    assert "hidden_error" in names(drawn(c, np.where(c < 0.95, 0.7, c), rng))


def test_internal_compensation(rng: np.random.Generator) -> None:
    c = rng.uniform(0.802, 0.866, 6000)
    found = names(drawn(c, np.where(c < 0.834, c - 0.15, c + 0.13), rng))
    assert "internal_compensation" in found
    assert "hidden_error" not in found


def test_mce_from_a_handful_of_samples(rng: np.random.Generator) -> None:
    c = rng.uniform(0.7, 1, 3000)
    correct = rng.random(3000) < c
    preds = Predictions.from_confidence(
        np.append(c, [0.01, 0.02]), np.append(correct, [True, True])
    )
    assert "mce_from_few" in names(preds)
    by_chance = Predictions.from_confidence(
        np.append(c, [0.3, 0.4]), np.append(correct, [False, False])
    )
    assert "mce_from_few" not in names(by_chance)


def test_likely_label_errors(rng: np.random.Generator) -> None:
    c = rng.uniform(0.6, 1, 4000)
    c[:1000] = 1 - rng.uniform(0, 1e-4, 1000)
    right = rng.random(4000) < c
    right[:12] = False
    assert "label_errors" in names(Predictions.from_confidence(c, right))


def test_a_class_that_claims_too_much(rng: np.random.Generator) -> None:
    z, y = softmax_honest(rng, 6000)
    of_class = z.argmax(axis=1) == 4
    y[of_class & (rng.random(6000) < 0.3)] = 5
    preds = Predictions.from_logits(z, y)
    found = find_all(build_case(Summary.of(preds)))
    assert [f["evidence"]["class"] for f in found if f["name"] == "worse_class"] == ["4"]


def test_a_group_that_fares_worse(rng: np.random.Generator) -> None:
    c, group = rng.uniform(0.5, 1, 5000), np.arange(5000) % 10
    found = names(drawn(c, np.where(group == 3, c - 0.25, c), rng, group=group))
    assert "worse_group" in found


def test_clusters_that_differ_by_chance_have_no_worse_group() -> None:
    """40 clusters of 25 whose answers are lucky or unlucky together; single rows would fire in
    nearly every set.
    """
    rng = np.random.default_rng(5)
    found: Counter[str] = Counter()
    for _ in range(100):
        group = np.repeat(np.arange(40), 25)
        c = rng.uniform(0.4, 1, 1000)
        luck = np.clip(rng.random(1000) + rng.normal(0, 0.25, 40)[group], 0, 1)
        found.update(names(Predictions.from_confidence(c, luck < c, group=group)))
    assert found["worse_group"] <= 5, found


def test_a_part_that_somebody_named_may_be_worse(rng: np.random.Generator) -> None:
    c, part = rng.uniform(0.5, 1, 2000), np.arange(2000) % 2
    assert "worse_group" in names(drawn(c, np.where(part == 1, c - 0.3, c), rng, group=part))


def test_saturated_confidences(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 3000)
    c[:600] = 1.0
    assert "saturated" in names(drawn(c, c - 0.01, rng))


def test_bins_too_thin_for_the_odds_ratio(rng: np.random.Generator) -> None:
    c = rng.uniform(0.3, 1, 300)
    assert "thin_bins" in names(drawn(c, c, rng))


def test_a_score_that_does_not_rank(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 2000)
    preds = drawn(c, 0.75, rng)
    assert "does_not_rank" in names(preds)
    assert "does_not_rank" in names(preds, score=rng.normal(size=2000))


def texts(preds: Predictions) -> dict[str, str]:
    return {f["name"]: f["text"] for f in evaluate(preds, ["max_prob"]).data["findings"]}


@pytest.mark.parametrize(
    ("n", "chance", "says"),
    [
        (5000, lambda c: 0.75 + 0 * c, "The score does not tell right answers from wrong"),
        (5000, lambda c: 1.4 - c, "The score ranks the wrong way round"),
        (
            120,
            lambda c: 0.68 + 0 * c,
            "Too few answers to tell whether the score separates",
        ),
    ],
)
def test_what_is_said_of_a_score_depends_on_what_can_be_seen(
    n: int, chance: Any, says: str
) -> None:
    rng = np.random.default_rng(5)
    c = rng.uniform(0.5, 1, n)
    assert texts(drawn(c, chance(c), rng))["does_not_rank"].startswith(says)


@pytest.mark.parametrize(
    ("right", "says"),
    [
        (np.ones(100), "no errors."),
        (np.zeros(100), "no right answers."),
        (np.arange(100) > 0, "too few errors."),
    ],
)
def test_bins_without_errors_or_without_right_answers(right: Any, says: str) -> None:
    found = texts(Predictions.from_confidence(np.linspace(0.5, 0.99, 100), right))
    assert found["thin_bins"].endswith(says)
    assert (
        "mce_from_few" not in found
    )  # no bin is full: there is nothing to hold the largest gap against


def test_scores_that_are_no_probabilities_get_ranking_findings_only(
    rng: np.random.Generator,
) -> None:
    c = rng.uniform(0.5, 1, 2000)
    preds = drawn(c, c - 0.2, rng)
    assert names(preds, score=10 * c) == []


def test_calibration_that_made_it_worse(rng: np.random.Generator) -> None:
    z, y = softmax_honest(rng, 3000)
    found = find_changes(Predictions.from_logits(z, y), Predictions.from_logits(2.5 * z, y))
    assert "calibration_made_it_worse" in [f["name"] for f in found]


def test_calibrated_data_are_rarely_made_worse_by_a_temperature_near_one() -> None:
    rng = np.random.default_rng(5)
    found: Counter[str] = Counter()
    for _ in range(SETS):
        z, y = softmax_honest(rng, 300)
        after = z / rng.normal(1, 0.01)
        found.update(
            f["name"]
            for f in find_changes(Predictions.from_logits(z, y), Predictions.from_logits(after, y))
        )
    assert max(found.values(), default=0) <= MOST, found


def test_ranking_unchanged_by_a_monotone_map(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 500)
    before = drawn(c, c, rng)
    after = Predictions.from_confidence(c**2, before.correct)
    assert [f["name"] for f in find_changes(before, after)].count("ranking_unchanged") == 1


def test_ranking_changed_for_the_worse(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 2000)
    before = drawn(c, c, rng)
    after = Predictions.from_confidence(1.5 - c, before.correct)
    found = {f["name"]: f for f in find_changes(before, after)}
    assert found["ranking_changed"]["evidence"]["low"] > 0


def test_answers_flip_when_samples_are_scaled() -> None:
    """A sharp pass against two soft ones: P(1) is (.953 + 2 · .269) / 3 = .497, scaled (.646 + 2 ·
    .450) / 3 = .515.
    """
    passes = np.array([[[0.0, 3.0]], [[1.0, 0.0]], [[1.0, 0.0]]])
    before = Predictions.from_samples(passes, [1])
    after = Predictions.from_samples(passes * 0.2, [1])
    assert (before.prediction != after.prediction).all()
    assert "predictions_flip" in [f["name"] for f in find_changes(before, after)]


def test_few_groups_are_marked_on_screen(rng: np.random.Generator) -> None:
    c = rng.uniform(0.5, 1, 200)
    report = evaluate(drawn(c, c, rng, group=np.arange(200) % 6), ["max_prob"])
    text = " ".join(report.to_text().split())
    assert "200 predictions in 6 groups" in text
    assert (
        text.count("or these 6 groups in this mix; rows inside a group taken as independent") == 1
    )  # not in every row
    assert " ".join(report.to_text(full=True).split()).count("or these 6 groups in this mix") == 2


def test_few_groups_are_marked_once_where_models_are_compared_or_corrected(
    rng: np.random.Generator,
) -> None:
    c = rng.uniform(0.5, 1, 300)
    group = np.arange(300) % 6
    one, two = (drawn(c, c, rng, group=group) for _ in range(2))
    compared = " ".join(compare({"one": one, "two": two}).to_text().split())
    assert "2 models on the same 300 samples in 6 groups" in compared
    assert (
        compared.count("or these 6 groups in this mix; rows inside a group taken as independent")
        == 1
    )
    corrected = calibration_report(one, two, "platt")
    text = " ".join(corrected.to_text().split())
    assert corrected.to_dict().get("groups") == 6
    assert "judged on 300 predictions in 6 groups" in text
    assert (
        text.count("or these 6 groups in this mix; rows inside a group taken as independent") == 1
    )
    many = calibration_report(one, drawn(c, c, rng, group=np.arange(300) % 20), "platt")
    assert "in 20 groups" in many.to_text()
    assert "in this mix" not in many.to_text()


def test_chance_alone_stands_beside_a_calibration_error() -> None:
    """Calibrated claims show on average what the noise floor says."""
    rng = np.random.default_rng(3)
    shown: list[float] = []
    floor: list[float] = []
    for _ in range(200):
        c = rng.uniform(0.3, 1, 300)
        preds = drawn(c, c, rng)
        t = tally(preds.confidence, correct=preds.correct)
        shown.append(ece(t))
        floor.append(each_interval([ece], t)[0].floor or 0.0)
    assert np.mean(floor) == pytest.approx(np.mean(shown), rel=0.05)
    entry = evaluate(preds, ["max_prob"]).data["metrics"]["ece"]
    assert (entry["value"], entry["floor"]) == (shown[-1], floor[-1])


def test_tails_of_the_binomial() -> None:
    assert compute_upper_tail(3, 3, 0.5) == pytest.approx(1 / 8)
    assert compute_lower_tail(0, 3, 0.5) == pytest.approx(1 / 8)
    assert (compute_upper_tail(0, 3, 0.5), compute_lower_tail(3, 3, 0.5)) == (1, 1)
    assert compute_upper_tail(2, 3, 0.5) + compute_lower_tail(1, 3, 0.5) == pytest.approx(1)


def test_design_effect_of_copies_is_their_number(rng: np.random.Generator) -> None:
    claim = rng.uniform(0.2, 0.8, 2000)
    residual = (rng.random(2000) < claim) - claim
    five = compute_design_effect(
        np.repeat(residual, 5), np.repeat(claim, 5), None, np.repeat(np.arange(2000), 5)
    )
    assert five == pytest.approx(5, rel=0.1)
    assert compute_design_effect(residual, claim, None, None) == 1


def test_sums_of_weights_are_not_said_to_be_counts_of_answers() -> None:
    rng = np.random.default_rng(4)
    confidence = np.r_[rng.uniform(0.9, 0.999, 500), np.ones(500)]
    weight = rng.choice([1.0, 5.0], 1000)
    preds = drawn(confidence, 0.8, rng, weight=weight)
    said = {f["name"]: f["text"] for f in find_all(build_case(Summary.of(preds, ["max_prob"])))}

    right = np.average(preds.correct, weights=weight) * 100
    top = f"such answers are right {right:.1f} % of the time and claim"
    assert said["over_confident_above_0.9"].startswith(f"Overconfident above 0.9: {top}")

    wrong = np.average(~preds.correct[500:], weights=weight[500:]) * 100
    assert f"exactly 1, {wrong:.2g} % of these answers are wrong." in said["saturated"]

    sure = confidence >= 0.999
    wrong = np.average(~preds.correct[sure], weights=weight[sure]) * 100
    assert f"Sure and wrong: {wrong:.2g} % of answers are wrong" in said["label_errors"]
