"""Operating points, histogram, label errors, classes and bands, by hand."""

import numpy as np
import pytest

from howsure import Predictions
from howsure.bounds import compute_proportion_limits
from howsure.report.measurement import round_numbers
from howsure.report.summary import Place, Summary, merge_summaries
from howsure.report.views import build_views, count_confusions

PROBS = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]


def of(preds: Predictions) -> dict:
    return build_views(Summary.of(preds), 0.95)


def test_operating_points_by_hand() -> None:
    o = of(Predictions.from_probs(PROBS, [0, 1, 1, 1], class_names=["no", "yes"]))["operating"]
    assert o["coverage"] == [0.25, 0.5, 0.75, 1]
    assert o["threshold"] == [0.9, 0.8, 0.7, 0.6]
    assert o["accuracy"] == [1, 0.5, 0.666667, 0.75]
    assert o["errors"] == [0, 250, 250, 250]
    assert o["deferred"] == [750, 500, 250, 0]
    assert o["classes"] == [
        {"name": "no", "count": 1, "deferred": [0, 0, 0, 0]},
        {"name": "yes", "count": 3, "deferred": [1, 0.667, 0.333, 0]},
    ]


def test_tied_samples_are_accepted_together() -> None:
    o = of(Predictions.from_confidence([0.9, 0.8, 0.8, 0.8], [1, 1, 0, 0]))["operating"]
    assert o["coverage"] == [0.25, 1]


def test_at_most_201_operating_points() -> None:
    rng = np.random.default_rng(0)
    o = of(Predictions.from_confidence(rng.random(5000), rng.random(5000) < 0.5))["operating"]
    assert 190 <= len(o["coverage"]) <= 201
    assert o["coverage"][-1] == 1


def test_limits_are_withheld_for_weights_and_groups() -> None:
    assert (
        of(Predictions.from_confidence([0.9, 0.8], [1, 0], weight=[1, 2]))["operating"]["low"]
        is None
    )
    assert (
        of(Predictions.from_confidence([0.9, 0.8], [1, 0], group=["a", "a"]))["operating"]["low"]
        is None
    )


def test_the_histogram_counts_every_answer() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(500, 30)), rng.integers(0, 30, 500)
    h = of(Predictions.from_logits(z, y))["histogram"]
    right = (z.argmax(axis=1) == y).sum()
    rank = (z > z[np.arange(500), y][:, None]).sum(axis=1)
    assert sum(h["right"]) == right
    assert sum(h["top_5"]) == ((rank > 0) & (rank < 5)).sum()
    assert sum(h["right"]) + sum(h["top_5"]) + sum(h["wrong"]) == 500


def test_the_surest_wrong_answers_come_first() -> None:
    found = of(Predictions.from_probs(PROBS, [1, 1, 1, 0], ids=["a", "b", "c", "d"]))[
        "label_errors"
    ]
    assert [(s["id"], s["row"], s["score"], s["prediction"], s["label"]) for s in found] == [
        ("a", 0, 0.9, "0", "1"),
        ("b", 1, 0.8, "0", "1"),
        ("d", 3, 0.7, "1", "0"),
    ]


def test_classes_worst_first() -> None:
    found = of(Predictions.from_probs(PROBS, [0, 1, 1, 1]))["classes"]
    assert [
        (c["name"], c["count"], c["recall"], c["given"], c["precision"], c["confidence"])
        for c in found
    ] == [
        ("1", 3, 0.666667, 2, 1, 0.65),
        ("0", 1, 1, 2, 0.5, 0.85),
    ]


def test_a_class_without_samples_has_no_recall() -> None:
    found = {c["name"]: c for c in of(Predictions.from_probs([[0.2, 0.5, 0.3]], [1]))["classes"]}
    assert found["0"]["recall"] is None
    assert found["0"]["low"] is None


def test_top_labels_alone_have_no_scatter_and_no_classes() -> None:
    found = of(Predictions.from_confidence([0.9, 0.8], [1, 0]))
    assert found["scatter"] is None
    assert found["classes"] == []


def test_top_labels_with_text_have_classes() -> None:
    """Cats are right twice of four times, dogs always; nobody is deferred at the lowest threshold."""
    c = [0.9, 0.8, 0.7, 0.6, 0.9, 0.9] * 2
    labels = ["cat", "cat", "cat", "cat", "dog", "dog"] * 2
    said = ["cat", "cat", "dog", "dog", "dog", "dog"] * 2
    p = Predictions.from_confidence(c, prediction=said, labels=labels)
    found = of(p)
    cat, dog = found["classes"]
    assert (cat["name"], cat["count"], cat["recall"], cat["precision"]) == ("cat", 8, 0.5, 1)
    assert (dog["name"], dog["given"], dog["precision"]) == ("dog", 8, 0.5)
    assert dog["confidence"] == pytest.approx((4 * 0.9 + 2 * 0.7 + 2 * 0.6) / 8)
    assert [(k["name"], k["deferred"]) for k in found["operating"]["classes"]] == [
        ("cat", [0.75, 0.5, 0.25, 0]),
        ("dog", [0, 0, 0, 0]),
    ]


def test_labels_without_answers_have_recall_only() -> None:
    p = Predictions.from_confidence([0.9, 0.8] * 5, [1, 0] * 5, labels=[3, 7] * 5)
    found = of(p)["classes"]
    assert [(c["name"], c["recall"], c["given"], c["precision"]) for c in found] == [
        ("7", 0, 0, None),
        ("3", 1, 0, None),
    ]


def test_free_text_is_no_class() -> None:
    p = Predictions.from_confidence([0.9, 0.8], [1, 0], labels=["forty-two", "Paris"])
    assert of(p)["classes"] == []


def test_infinite_losses_are_not_drawn() -> None:
    found = of(Predictions.from_probs([[1.0, 0.0], [0.5, 0.5]], [1, 0]))["scatter"]
    assert found["loss"] == [0.6931]


def test_limits_of_a_proportion() -> None:
    low, high = compute_proportion_limits(np.array([0, 95, 10]), np.array([10, 100, 10]), 0.025)
    assert low == pytest.approx([0, 0.8872, 0.6915], abs=1e-4)
    assert high == pytest.approx([0.3085, 0.9836, 1], abs=1e-4)


def test_rounding_keeps_whole_numbers_whole() -> None:
    assert round_numbers([1.0, 0.123456789, np.inf, np.nan]) == [1, 0.123457, None, None]


@pytest.mark.parametrize("k", [4, 60])
def test_the_confidence_of_confusions_is_that_of_their_rows_whatever_the_parts(k: int) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, k, 900)
    p = Predictions.from_logits(1.5 * np.eye(k)[y] + rng.normal(size=(900, k)), y)
    whole = count_confusions(Summary.of(p))
    pieces = [(p[:300], Place(0, 0)), (p[300:], Place(0, 300))]
    parts = count_confusions(
        merge_summaries(
            [Summary.of_part(some, place, None, compact=False) for some, place in pieces]
        )
    )
    assert whole == parts
    assert whole is not None
    for row in whole["top"]:
        cell = (p.labels == int(row["label"])) & (p.prediction == int(row["prediction"]))
        assert row["count"] == cell.sum()
        assert row["confidence"] == pytest.approx(p.confidence[cell].mean(), rel=1e-3)
    if k == 4:
        assert whole["confidence"] is not None
        cell = (p.labels == 2) & (p.prediction == 2)
        assert whole["confidence"][2][2] == pytest.approx(p.confidence[cell].mean(), rel=1e-3)
