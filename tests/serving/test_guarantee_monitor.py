"""GuaranteeMonitor: valid at any time, labels in any order, state on disk."""

import json

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.serving import GuaranteeMonitor
from howsure.serving.feedback import LabelFeed, judge_labels


def test_null_streams_stay_within_the_lifetime_rate():
    start = GuaranteeMonitor.start(risk=0.1, false_alarms=0.1)
    rng = np.random.default_rng(0)
    ended = [start.see(rng.random(600) >= 0.1) for _ in range(200)]
    assert (
        sum(p.broken is not None for p in ended) <= 29
    )  # 20 expected at most; 30 or more have probability .02
    assert sum(p.kept is not None for p in ended) <= 29


def test_a_doubled_risk_is_found_late_too():
    start, rng = GuaranteeMonitor.start(risk=0.05, false_alarms=0.01), np.random.default_rng(1)
    good, bad = rng.random(2000) >= 0.04, rng.random(3000) >= 0.15
    assert start.see(good).broken is None
    assert 2000 < start.see(good).see(bad).broken < 2300


def test_a_good_risk_is_shown_to_be_kept():
    p = GuaranteeMonitor.start(risk=0.05, false_alarms=0.01).see(
        np.random.default_rng(2).random(2000) >= 0.01
    )
    assert p.broken is None
    assert p.kept is not None


def test_in_parts_is_as_at_once():
    right = np.random.default_rng(3).random(500) >= 0.2
    start = GuaranteeMonitor.start(risk=0.1)
    whole, parts = start.see(right), start
    for part in np.array_split(right, 7):
        parts = parts.see(part)
    assert (whole.broken, whole.kept, whole.labels, whole.wrong) == (
        parts.broken,
        parts.kept,
        parts.labels,
        parts.wrong,
    )
    np.testing.assert_allclose(whole.against, parts.against)


def test_by_hand():
    """One label: six gamblers with 1/12 of the first window's 1/2 each multiply by q/r."""
    p = GuaranteeMonitor.start(risk=0.1, false_alarms=0.5).see([0])
    believed = np.minimum(0.1 * np.array([1.25, 1.5, 2, 3, 5, 10]), 0.55)
    np.testing.assert_allclose(np.exp(p.against), believed / 0.1 / 12)


def test_state_on_disk(tmp_path):
    p = GuaranteeMonitor.start(risk=0.1, policy="abc").see([1, 0, 1]).reset("new model")
    hs.save(p, tmp_path / "p.json")
    back = hs.load(tmp_path / "p.json")
    assert (back.risk, back.policy, back.resets, back.labels) == (0.1, "abc", ("new model",), 0)
    np.testing.assert_array_equal(back.favour, p.favour)


def line(
    i: int, correct: object, *, decision: str = "accept", policy: str = "abc", **more: object
) -> str:
    return (
        json.dumps({"line": i, "decision": decision, "policy": policy, "correct": correct, **more})
        + "\n"
    )


def test_labels_come_in_any_order_once_and_of_this_policy(tmp_path):
    file, said = tmp_path / "came.jsonl", []
    file.write_text(
        line(9, 1)
        + line(2, 0)
        + line(2, 0)
        + line(5, 1, decision="defer")
        + line(6, 1, policy="other")
    )
    p = judge_labels(
        GuaranteeMonitor.start(risk=0.1, policy="abc"), LabelFeed(file, report=said.append)
    )
    assert (p.labels, p.wrong) == (2, 1)
    assert said == ["came.jsonl: labels not counted: 1 of another policy, 1 repeated."]
    with file.open("a") as more:
        more.write(
            line(1, 1) + line(9, 1) + '{"line": 77'
        )  # one new, one repeated, one not finished
    again = judge_labels(p, LabelFeed(file))
    assert (again.labels, again.wrong) == (3, 1)


@pytest.mark.parametrize("correct", [2, "perhaps", None, 0.5])
def test_a_label_that_is_none_is_refused(tmp_path, correct):
    file = tmp_path / "came.jsonl"
    file.write_text(line(1, correct))
    with pytest.raises(InputError, match=r"line 1 (says .*|has no 'correct')"):
        judge_labels(GuaranteeMonitor.start(risk=0.1), LabelFeed(file))
    assert (
        judge_labels(GuaranteeMonitor.start(risk=0.1), LabelFeed(file, on_bad="skip")).labels == 0
    )


def test_a_file_that_was_cut_is_refused(tmp_path):
    file = tmp_path / "came.jsonl"
    file.write_text(line(1, 1) + line(2, 1))
    p = judge_labels(GuaranteeMonitor.start(risk=0.1), LabelFeed(file))
    file.write_text(line(1, 1))
    with pytest.raises(InputError, match="cut or replaced"):
        judge_labels(p, LabelFeed(file))


@pytest.mark.parametrize("risk", [0.0, 1.0, -1.0])
def test_a_risk_outside_is_refused(risk):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        GuaranteeMonitor.start(risk=risk)
