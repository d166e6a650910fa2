"""Alarms, promises, torn lines and lines of cases, each by hand or by a slow loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.formats.streams import StreamBatch
from howsure.policies import Decisions, DriftMonitor, Policy, label_policy
from howsure.serving.alarm_guard import AlarmGuard, AlarmInputs, load_state
from howsure.serving.feedback import (
    BROKEN_FACTORS,
    FRESH_BET_LABELS,
    KEPT_FACTORS,
    GuaranteeMonitor,
    LabelFeed,
    LabelledDecision,
)
from howsure.serving.journal import case_lines, cut_torn_line, decision_lines, read_decisions

POLICY = Policy("max_prob", 0.8)


@pytest.mark.parametrize("size", [0, 1, 5, 65_535, 65_536, 65_537, 131_072, 200_000])
@pytest.mark.parametrize("torn", [0, 1, 65_535, 65_536, 65_537, 140_000])
def test_only_what_follows_the_last_newline_is_cut(tmp_path: Path, size: int, torn: int) -> None:
    path = tmp_path / "out.jsonl"
    whole = b"x" * (size - 1) + b"\n" if size else b""
    path.write_bytes(whole + b"y" * torn)
    cut_torn_line(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("risk", [0.05, 0.3])
@pytest.mark.parametrize("calls", [(240,), (49, 1, 51, 139)])
def test_bets_on_a_promise_by_a_slow_loop(risk: float, calls: tuple[int, ...]) -> None:
    right = np.random.default_rng(2).random(240) < 1 - 1.8 * risk
    above = [min(risk * times, (1 + risk) / 2) for times in BROKEN_FACTORS]
    purse, favour, broken, kept = (
        np.zeros(len(BROKEN_FACTORS)),
        np.full(len(KEPT_FACTORS), 1 / len(KEPT_FACTORS)),
        None,
        None,
    )
    for i, ok in enumerate(right):
        if i % FRESH_BET_LABELS == 0:
            w = i // FRESH_BET_LABELS
            purse = purse + 1 / ((w + 1) * (w + 2)) / len(BROKEN_FACTORS)
        purse = purse * np.array([(1 - q) / (1 - risk) if ok else q / risk for q in above])
        favour = favour * np.array([(1 - risk * x) / (1 - risk) if ok else x for x in KEPT_FACTORS])
        broken = i + 1 if broken is None and purse.sum() >= 100 else broken
        kept = i + 1 if kept is None and favour.sum() >= 100 else kept
    promise, at = GuaranteeMonitor.start(risk=risk), 0
    for size in calls:
        promise = promise.see(right[at : at + size])
        at += size
    assert np.exp(promise.against) == pytest.approx(purse)
    assert np.exp(promise.favour) == pytest.approx(favour)
    assert (promise.broken, promise.kept) == (broken, kept)
    assert (promise.labels, promise.wrong) == (240, int((~right).sum()))


def test_a_promise_that_is_kept_and_one_that_is_reset() -> None:
    good = GuaranteeMonitor.start(risk=0.3, policy="abc").see(np.ones(200))
    assert good.kept is not None
    first = next(
        n
        for n in range(1, 200)
        if sum((1 - 0.3 * x) ** n for x in KEPT_FACTORS) / 4 / 0.7**n >= 100
    )
    assert good.kept == first
    bad = GuaranteeMonitor.start(risk=0.05, policy="abc").see(np.zeros(40))
    assert bad.alarms == {"guarantee": bad.broken}
    again = bad.reset("mended")
    assert (again.labels, again.broken, again.alarms, again.resets, again.policy) == (
        0,
        None,
        {},
        ("mended",),
        "abc",
    )
    assert again.see([1, 0]).against == pytest.approx(
        GuaranteeMonitor.start(risk=0.05).see([1, 0]).against
    )


def decisions(score: Any) -> Any:
    return POLICY.decide(Predictions.from_confidence(score))


def files(folder: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    watch, promise = folder / "watch.json", folder / "promise.json"
    hs.save(DriftMonitor.start(decisions(rng.beta(5, 1.2, 400)), false_alarms=0.01), watch)
    hs.save(GuaranteeMonitor.start(risk=0.05), promise)
    return watch, promise


def test_a_guard_tells_each_alarm_once_and_again_at_the_next_start(tmp_path: Path) -> None:
    watch, _ = files(tmp_path)
    told: list[str] = []
    lines: list[str] = []
    guard = AlarmGuard(AlarmInputs(drift=watch), tell=told.append, write_line=lines.append)
    assert (guard.raised, told) == (False, [])
    rng = np.random.default_rng(1)
    low = Predictions.from_confidence(rng.beta(2, 3, 300))
    for _ in range(3):
        guard.see(POLICY.decide(low), low)
    assert guard.raised
    assert sorted(json.loads(line)["alarm"] for line in lines) == ["coverage", "score"]
    assert all(
        json.loads(line)["unit"] == "sample" and not json.loads(line)["again"] for line in lines
    )
    assert all("(at sample" in text for text in told)
    guard.close()
    told.clear()
    again = AlarmGuard(AlarmInputs(drift=watch), tell=told.append, write_line=lines.append)
    assert again.raised
    assert len(told) == 2
    assert all(
        "(since sample" in text and "howsure alarms reset watch.json" in text for text in told
    )
    assert json.loads(lines[-1])["again"]


def test_a_guard_learns_from_labels_and_saves(tmp_path: Path) -> None:
    _, promise = files(tmp_path)
    labels, told = tmp_path / "labels.jsonl", list[str]()
    guard = AlarmGuard(AlarmInputs(guarantee=promise, labels=LabelFeed(labels)), tell=told.append)
    labels.write_text(
        "".join(f'{{"line":{i},"decision":"accept","correct":0}}\n' for i in range(1, 41))
    )
    guard.learn()
    guard.close()
    found = load_state(promise)
    assert isinstance(found, GuaranteeMonitor)
    assert (found.labels, found.wrong) == (40, 40)
    assert told == [f"ALARM: the guaranteed risk is exceeded (at label {found.broken})"]
    AlarmGuard(
        AlarmInputs(guarantee=promise)
    ).learn()  # without a file of labels there is nothing to learn


def test_what_is_no_watch_and_no_promise_is_refused(tmp_path: Path) -> None:
    watch, promise = files(tmp_path)
    policy = tmp_path / "policy.json"
    hs.save(POLICY, policy)
    with pytest.raises(
        InputError, match="holds a saved Policy, not a drift or a guarantee monitor"
    ):
        load_state(policy)
    with pytest.raises(InputError, match="is not a drift monitor"):
        AlarmGuard(AlarmInputs(drift=promise))
    with pytest.raises(InputError, match="is not a guarantee monitor"):
        AlarmGuard(AlarmInputs(guarantee=watch))
    guard, preds = (
        AlarmGuard(AlarmInputs(drift=watch, bursts=True)),
        Predictions.from_confidence([0.9, 0.8]),
    )
    with pytest.raises(InputError, match="which burst"):
        guard.see(POLICY.decide(preds), StreamBatch(preds, [1, 2], None))
    grouped = Predictions.from_confidence([0.9, 0.8, 0.7], group=["a", "a", "b"])
    guard.see(POLICY.decide(grouped), StreamBatch(grouped, [1, 2, 3], None))
    assert guard.drift is not None
    assert guard.drift.state.seen == 2


def test_lines_of_cases_hold_each_label_of_each_case() -> None:
    p = np.array([[0.99, 0.2], [0.4, 0.97], [0.6, 0.55]])
    preds = Predictions.from_multilabel(p, np.ones((3, 2)), label_names=["cat", "dog"])
    policy = label_policy(
        Predictions.from_multilabel(
            np.full((300, 2), 0.95), np.ones((300, 2)), label_names=["cat", "dog"]
        ),
        risk=0.05,
        delta=0.05,
    )
    made = policy.decide(preds)
    lines = [
        json.loads(x)
        for x in case_lines(made, ["cat", "dog"], [4, 7, 9], ["a", None, "c"], "s").splitlines()
    ]
    assert [line["line"] for line in lines] == [4, 7, 9]
    assert [line.get("id") for line in lines] == ["a", None, "c"]
    for i, line in enumerate(lines):
        for j, name in enumerate(("cat", "dog")):
            sure = max(p[i, j], 1 - p[i, j])
            assert line["labels"][name]["confidence"] == pytest.approx(sure)
            assert (line["labels"][name]["decision"] == "accept") == (sure >= 0.95)
    assert {line["policy"] for line in lines} == {"s"}


def test_lines_of_decisions_without_a_stamp_or_ids() -> None:
    made = decisions([0.9, 0.3])
    first, second = (json.loads(x) for x in decision_lines(made, [1, 2], None).splitlines())
    assert (first["line"], first["decision"], second["decision"]) == (1, "accept", "defer")
    assert "policy" not in first
    assert "id" not in first


@pytest.mark.parametrize(
    ("ticket", "number"),
    [("12-abc", 12), ("9" * 18 + "-a", 10**18 - 1), ("9" * 19 + "-a", -1), ("x-1", -1), ("", -1)],
)
def test_the_number_of_a_ticket(ticket: str, number: int) -> None:
    assert (
        LabelledDecision(ticket=ticket, accept=True, audit=True, score=0.5, correct=True).number
        == number
    )


def test_a_level_is_the_log_of_the_rate() -> None:
    """Two errors in a row at a risk of 1 %: the boldest gambler has ten times his stake twice over."""
    promise = GuaranteeMonitor.start(risk=0.01, false_alarms=0.1)
    errors = next(
        n
        for n in range(1, 9)
        if sum(min(0.01 * t, 0.505) ** n for t in BROKEN_FACTORS) / 0.01**n / 2 / 6 >= 10
    )
    assert promise.see(np.zeros(8)).broken == errors


def test_a_guard_catches_up_with_its_own_output_only(tmp_path: Path) -> None:
    watch, _ = files(tmp_path)
    fresh, out = tmp_path / "fresh.json", tmp_path / "out.jsonl"
    fresh.write_bytes(watch.read_bytes())
    made = decisions(np.linspace(0.2, 0.9, 30))

    def after(output: Path, *, resume: bool) -> tuple[str, int, int]:
        guard = AlarmGuard(AlarmInputs(drift=watch))
        guard.follow(output, resume=resume)
        found = load_state(watch)
        assert isinstance(found, DriftMonitor)
        return found.output, found.written, found.seen

    assert after(out, resume=False) == ("out.jsonl", 0, 0)  # remembered before the first line
    out.write_bytes(decision_lines(made, range(1, 31), None) + b'{"line":31')
    assert after(out, resume=False) == (
        "out.jsonl",
        0,
        0,
    )  # it is refused, and nothing is forgotten
    assert after(out, resume=True) == ("out.jsonl", 30, 30)  # the torn line is no decision
    assert after(out, resume=True) == ("out.jsonl", 30, 30)
    other = out.rename(tmp_path / "other.jsonl")
    assert after(other, resume=True) == (
        "other.jsonl",
        30,
        30,
    )  # what another watch saw of it is not known
    other.write_bytes(decision_lines(made[:10], range(1, 11), None))
    assert after(other, resume=True) == ("other.jsonl", 10, 30)  # another file of that name
    other.unlink()
    assert after(other, resume=True) == ("other.jsonl", 0, 30)
    begun, found = load_state(fresh), load_state(watch)
    assert isinstance(begun, DriftMonitor)
    assert isinstance(found, DriftMonitor)
    assert found.score.capital.tolist() == begun.see(made).score.capital.tolist()


def test_infinite_scores_of_an_output_are_known_by_their_decision(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    score = np.array([np.inf, -np.inf, 0.5])
    made = Decisions(
        np.array([True, False, True]), np.array([0, 1, 0]), np.array([1.0, 0.5, 0.7]), score
    )
    out.write_bytes(decision_lines(made, [1, 2, 3], None, bursts=["a", 'b"', "a"]))
    found = list(read_decisions(out))
    assert [d.score for d in found] == score.tolist()
    assert [d.burst for d in found] == ["a", 'b"', "a"]
