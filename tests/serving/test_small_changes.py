"""What one small change would change for whoever runs a service, a gateway or an export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import HistogramBinning, Isotonic
from howsure.policies import DriftMonitor, Policy
from howsure.predictions.read_options import Asked
from howsure.serving import GuaranteeMonitor, LiveMonitors, Serving
from howsure.serving.export_steps import list_pieces
from howsure.serving.export_text import MAX_SQL_COLUMNS, write_sql
from howsure.serving.exports import plan_export
from howsure.serving.feedback import LabelFeed, parse_label
from howsure.serving.gateways import find_band, plan_gateway, subtract_from_one, write_table
from howsure.serving.service import DecisionService

# Monitors beside a call that decides.


def test_live_monitors_see_what_a_whole_would() -> None:
    policy, rng = Policy("max_prob", 0.6), np.random.default_rng(0)
    start = DriftMonitor.start(policy.decide(Predictions.from_confidence(rng.random(400))))
    later = rng.random(250) ** 4
    live = LiveMonitors(drift=start)
    for confidence in later:
        policy.decide_one(confidence=confidence, monitor=live)
    whole = start.see(policy.decide(Predictions.from_confidence(later)))
    assert live.drift is not None
    assert live.drift.seen == 250
    assert live.alarms == whole.alarms
    assert "score" in live.alarms
    # A deferred answer says nothing about the guarantee.
    kept = LiveMonitors(guarantee=GuaranteeMonitor.start(risk=0.1))
    for confidence in (0.9, 0.1):
        kept.learn(policy.decide_one(confidence=confidence, monitor=kept), correct=True)
    assert kept.guarantee is not None
    assert kept.guarantee.labels == 1


# The service.


def test_a_service_counts_from_nothing(tmp_path: Path) -> None:
    hs.save(Policy("max_prob", 0.8), tmp_path / "policy.json")
    service = DecisionService(Policy("max_prob", 0.8).decide, tmp_path / "out.jsonl", Serving())

    def read() -> dict[str, float]:
        lines = [line for line in service.list_metrics() if not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    names = ['howsure_decisions_total{decision="accept"}', 'howsure_decisions_total{decision="defer"}',
             "howsure_repeated_total", "howsure_refused_total"]  # fmt: skip
    assert [read()[name] for name in names] == [0, 0, 0, 0]
    service.commit([b'[{"id": 1, "confidence": 0.9}, {"id": 2, "confidence": 0.1}]'])
    service.commit([b'[{"id": 1, "confidence": 0.9}, {"id": 3, "confidence": 0.9}]', b"{"])
    assert [read()[name] for name in names] == [2, 1, 1, 1]


def test_a_label_finds_its_decision_by_id(tmp_path: Path) -> None:
    """Before and after the service is started again; two labels of one decision have one key."""
    for _ in range(2):
        service = DecisionService(Policy("max_prob", 0.8).decide, tmp_path / "out.jsonl", Serving())
        service.commit([b'[{"id": "a", "confidence": 0.9}, {"id": "b", "confidence": 0.1}]'])
        lines = [service.complete_label({"id": name, "correct": 1}, 1) for name in "ab"]
        found = [parse_label(json.loads(line)) for line in lines]
        assert [label.accept for label in found] == [True, False]
        assert found[0].key != found[1].key
        again = json.loads(service.complete_label({"id": "a", "correct": 0}, 1))
        assert parse_label({**again, "line": 77}).key == found[0].key
        with pytest.raises(InputError, match="is not the label of a decision"):
            service.complete_label({"id": "c", "correct": 1}, 1)
    unnamed = [parse_label({"line": i, "decision": "accept", "correct": 1}).key for i in (1, 2)]
    assert unnamed[0] != unnamed[1]


@pytest.mark.parametrize(("join", "counted"), [("id", 1), (None, 0)])
def test_labels_are_joined_to_an_earlier_output(
    join: str | None, counted: int, tmp_path: Path
) -> None:
    output, labels = tmp_path / "out.jsonl", tmp_path / "labels.jsonl"
    output.write_text(
        '{"line":1,"id":"a","decision":"accept","prediction":1,"confidence":0.9,"score":0.9}\n'
    )
    labels.write_text('{"id":"a","correct":0}\n')
    feed = LabelFeed(labels, join=join, on_bad="skip")
    feed.recall_output(output)
    found = feed.read_new(0)
    assert found is not None
    assert len(found[0]) == counted


# Exports.


def test_pieces_of_an_isotonic_calibrator_follow_it() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    calibrator = Isotonic.fit(Predictions.from_probs(p, (rng.random(300) < p**2).astype(int)))
    new = np.sort(rng.random(100))
    expected = calibrator(Predictions.from_probs(new)).probs[:, 1]
    pieces = list_pieces(calibrator)[-1]
    place = np.searchsorted(pieces.start, new, side="right")
    x, y, slope = (np.array(column)[place] for column in (pieces.x, pieces.y, pieces.slope))
    assert y + slope * (new - x) == pytest.approx(expected, abs=1e-9)
    assert max(pieces.slope) > 0


def export(policy: Policy, given: str = "probs"):
    return plan_export(policy, target="sql", given=given, precision="double", dialect="sqlite",
                       digest="", model="", exported="2026-01-01", expires="")  # fmt: skip


def test_as_many_columns_as_are_exported() -> None:
    assert "accept" in write_sql(export(Policy("max_prob", 0.8, k=MAX_SQL_COLUMNS)))
    with pytest.raises(InputError, match=f"at most {MAX_SQL_COLUMNS} columns"):
        write_sql(export(Policy("max_prob", 0.8, k=MAX_SQL_COLUMNS + 1)))


def test_a_calibrator_of_classes_is_exported() -> None:
    share = np.array([[0.2, 0.8], [0.2, 0.8]])
    assert "accept" in write_sql(export(Policy("max_prob", 0.8, HistogramBinning(share), k=2)))


# Gateways.


@pytest.mark.parametrize(
    "threshold", [0.5000000000000001, 2 / 3, 0.7071067811865476, 0.9000000000000001, 1 - 1e-15]
)
def test_the_largest_no_of_a_gateway_is_accepted_and_the_next_is_not(threshold: float) -> None:
    yes, no = find_band(threshold)
    assert yes == threshold
    assert subtract_from_one(no) >= threshold
    assert no == 0.5 or subtract_from_one(float(np.nextafter(no, 1))) < threshold


@pytest.mark.parametrize(
    ("threshold", "no"), [(0.93, 0.07), (0.5, 0.5), (0.75, 0.25), (0.999999, 1e-6), (0.3, 0.5)]
)
def test_a_short_threshold_has_a_short_complement(threshold: float, no: float) -> None:
    yes, found = find_band(threshold)
    assert found == no
    assert yes == (threshold if threshold > 0.5 else np.nextafter(0.5, 1))


def test_a_table_of_a_question_that_is_not_there() -> None:
    asked = Asked(("m",), {"late": ("yes/no", "noul", "0"), "team": ("choice", "confidence", "0")})
    policy = Policy("max_prob", 0.5, asked=asked, by="question", keys=("late", "team"), thresholds=(0.9, 0.8))  # fmt: skip
    plan = plan_gateway(policy, digest="d", model="m")
    found = json.loads(write_table(plan, "late"))["thresholds"]
    assert [row["question"] for row in found] == ["late"]
    sides = [(side["answer"], side["operator"], side["threshold"]) for side in found[0]["accept"]]
    assert sides == [("yes", ">=", 0.9), ("no", "<=", 0.1)]
    (team,) = json.loads(write_table(plan, "team"))["thresholds"]
    assert team["accept"] == [{"field": "confidence", "operator": ">=", "threshold": 0.8}]
    assert len(json.loads(write_table(plan, None))["thresholds"]) == 2
    with pytest.raises(InputError):
        write_table(plan, "nothing")
