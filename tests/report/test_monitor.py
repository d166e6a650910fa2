"""monitor(): months beside a reference, in every form, with limits and labels."""

from dataclasses import replace

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions, monitor
from howsure.policies import Policy
from howsure.predictions import Unanswered
from howsure.report.drift import (
    measure_number_drift,
    measure_share_drift,
    measure_value_drift,
)
from schemas import validate
from two_classes import drawn, harder, without

NAMES = ["<b>cat</b>", "dog | 1"]


def named(preds: Predictions, seed: int) -> Predictions:
    ids = np.arange(preds.n) + 100_000 * seed
    return Predictions.from_logits(preds.values, preds.known_labels, ids=ids, class_names=NAMES)


def month(seed: int, hard: bool = False) -> Predictions:
    later = drawn(1000, seed)
    return named(without(harder(later, seed) if hard else later), seed)


@pytest.fixture(scope="module")
def found() -> hs.Monitor:
    months = {"May": month(1), "June": month(2), "July": month(3, hard=True)}
    return monitor(named(drawn(3000, 0), 0), months, policy=Policy("max_prob", 0.9), max_drop=0.05)


def test_the_third_month_fails(found):
    assert [limit["passed"] for limit in found.data["limits"]] == [True, True, False]
    assert not found.passed
    drifted = {
        m["name"]: [d["column"] for d in m["drift"] if d["drifted"]] for m in found.data["months"]
    }
    assert drifted == {"May": [], "June": [], "July": ["score", "accepted"]}
    assert found.data["tests"] == 9


def test_its_json_is_the_published_schema_and_comes_back(found, tmp_path):
    validate(found.data, "monitor")
    hs.save(found, tmp_path / "m.json")
    assert hs.load(tmp_path / "m.json").data == found.data


def test_every_form_shows_the_months_and_what_cannot_be_seen(found):
    for text in (found.to_text(), found.to_markdown(), found.to_html()):
        assert all(name in text for name in ("May", "June", "July"))
        assert "three times" in " ".join(text.split())
    page = found.to_html()
    assert "<b>cat</b>" not in page
    assert (
        page.count("<svg") == 2
    )  # the time line, and the distributions of all months beside the reference


def test_tables_and_pictures_serve_all_periods():
    """However many months there are, the page has the same tables and pictures, and each month is a
    line in them.
    """
    past, names = named(drawn(2000, 0), 0), [f"m{i}" for i in range(1, 9)]
    one, two, many = (monitor(past, {name: month(6) for name in names[:n]}) for n in (1, 2, 8))
    pages, text = [m.to_html() for m in (one, two, many)], " ".join(many.to_text().split())
    assert [page.count("<svg") for page in pages] == [2, 2, 2]
    assert pages[2].count("<table") == pages[1].count("<table") == 3
    assert "Accuracy by answer, the last 5 of 8 periods" in text
    assert "By answer, m8" in text
    assert "By answer, m7" not in text
    assert [text.count(f" {name} ") > 0 for name in names] == [True] * 8
    assert "earlier periods" in pages[2]
    assert "earlier periods" not in pages[0]


def test_labels_for_some_rows_say_how_far_the_estimate_was_off():
    past, later = named(drawn(3000, 0), 0), drawn(1000, 5)
    hidden = named(without(later), 5)
    labels = {str(i): NAMES[y] for i, y in zip(hidden.ids[:400], later.labels[:400], strict=True)}
    watched = monitor(past, hidden, labels=labels)
    come = watched.data["months"][0]["labelled"]
    # What labels say stands first, in words and in tables.
    text = " ".join(watched.to_text().split())
    assert text.index("by the 400 labels that came") < text.index("The estimate without labels")
    assert text.index("Where labels came") < text.index("Estimated without labels;")
    assert come["n"] == 400
    assert come["accuracy"]["value"] == pytest.approx(later.correct[:400].mean())
    assert come["off"] == pytest.approx(come["estimate"]["value"] - come["accuracy"]["value"])


def test_labels_count_where_the_estimate_cannot_see():
    """Every answer became wrong at equal confidence: the estimate stands, the labels fail."""
    past, hidden = named(drawn(3000, 0), 0), month(6)
    wrong = {str(i): NAMES[1 - p] for i, p in zip(hidden.ids, hidden.prediction, strict=True)}
    assert monitor(past, hidden, max_drop=0.05).passed
    assert not monitor(past, hidden, labels=wrong, max_drop=0.05).passed


def test_groups_are_estimated_and_compared():
    past, hidden = named(drawn(2000, 0), 0), month(7)
    found = monitor(
        past, hidden, by=np.repeat(["a", "b"], 500), reference_by=np.repeat(["a", "b"], [1800, 200])
    )
    data = found.data["months"][0]
    assert {p["name"] for p in data["estimate"]["groups"]} == {"a", "b"}
    assert next(d for d in data["drift"] if d["column"] == "group")["drifted"]


def silent(preds: Predictions, missing: int) -> Predictions:
    return replace(preds, unanswered=Unanswered(missing=missing))


def test_missing_answers_are_a_column_where_some_are_missing():
    past, later = drawn(2000, 0), without(drawn(500, 1))
    columns = [d["column"] for d in monitor(past, later).data["months"][0]["drift"]]
    assert columns == ["score", "answer"]
    found = monitor(silent(past, 20), silent(later, 40))
    assert found.data["tests"] == 3
    drift = next(d for d in found.data["months"][0]["drift"] if d["column"] == "no answer")
    assert drift["effect"] == pytest.approx(40 / 540 - 20 / 2020)
    assert drift["drifted"]
    assert (found.data["reference"]["unanswered"], found.data["months"][0]["unanswered"]) == (
        20 / 2020,
        40 / 540,
    )
    assert "no answer: 1.0 % to 7.4 %" in found.to_markdown()


def test_a_share_is_tested_exactly():
    """Fisher's exact test by hand: 3 of 4 beside 1 of 4 has the p-value 34/70."""
    assert measure_share_drift("x", 3, 4, 1, 4).p == pytest.approx(34 / 70)
    assert measure_share_drift("x", 0, 3000, 4, 1000).p == pytest.approx(0.25**4, rel=0.01)
    assert measure_share_drift("x", 0, 10, 0, 20).p == 1.0
    assert measure_share_drift(
        "x", 5_000_000, 10_000_000, 5_000_100, 10_000_000
    ).p == pytest.approx(0.965, abs=0.002)
    assert measure_share_drift("x", 0, 1_000_000, 1_000_000, 1_000_000).p == 0.0


def test_rare_missing_answers_keep_the_level():
    rng = np.random.default_rng(0)
    some, later = rng.binomial(3000, 0.001, 3000).tolist(), rng.binomial(1000, 0.001, 3000).tolist()
    small = [
        measure_share_drift("no answer", a, 3000, b, 1000).p < 0.005
        for a, b in zip(some, later, strict=True)
    ]
    assert sum(small) <= 15


def test_missing_answers_of_groups_count_as_many_rows_as_there_are_groups():
    rows = np.repeat(np.arange(50), 40)
    past, later = drawn(2000, 0, group=rows), without(drawn(2000, 1, group=rows))
    columns = monitor(silent(past, 20), silent(later, 80)).data["months"][0]["drift"]
    drift = next(d for d in columns if d["column"] == "no answer")
    assert drift["p"] == pytest.approx(measure_share_drift("no answer", 0, 50, 2, 52).p)


def test_drift_tests_keep_their_level():
    rng = np.random.default_rng(0)
    draws = [
        (rng.random(200), rng.random(300), rng.integers(0, 5, 200), rng.integers(0, 5, 300))
        for _ in range(400)
    ]
    assert (
        sum(measure_number_drift("x", a, b).p < 0.05 for a, b, _, _ in draws) <= 30
    )  # 20 expected
    assert sum(measure_value_drift("x", c, d).p < 0.05 for _, _, c, d in draws) <= 30


def test_bad_calls():
    past = named(drawn(100, 0), 0)
    with pytest.raises(InputError, match="no new data"):
        monitor(past, {})
    with pytest.raises(InputError, match="max_drop is 2"):
        monitor(past, month(1), max_drop=2)
    with pytest.raises(InputError, match="have no ids"):
        monitor(past, without(drawn(100, 1)), labels={"1": 0})
    with pytest.raises(InputError, match="hold no id"):
        monitor(past, month(1), labels={"nobody": 0})
    with pytest.raises(InputError, match="the label is 'cow'"):
        monitor(past, month(1), labels={"100000": "cow"})
    with pytest.raises(InputError, match="no column for"):
        monitor(past, {"a": month(1)}, by={"b": [1]})


@pytest.mark.parametrize("label", ["nan", "inf", "1.5", "-1", "7", "bird"])
def test_a_label_that_is_no_class_is_refused(label: str) -> None:
    reference, new = named(drawn(500, 0), 0), month(1)
    with pytest.raises(InputError, match=f"the label is '{label}'; "):
        monitor(reference, new, labels={str(new.ids[0]): label})
