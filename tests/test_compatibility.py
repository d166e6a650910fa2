"""What howsure 0.1.0 wrote (`tests/golden/v0.1`) is read and does what it did; what 0.3 changed is
refused in one sentence.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import policies as p
from howsure._core import saving
from howsure._core.saving import SAVABLE, identify_saved
from howsure.cli.check import read_baseline
from howsure.predictions import Predictions
from howsure.report.comparing import Comparison
from howsure.report.monitoring import Monitor
from howsure.report.report import Report
from howsure.serving.stream import Serving, decide_file
from schemas import validate

OLD = Path(__file__).parent / "golden" / "v0.1"
DOES = json.loads((OLD / "behaviour.json").read_text(encoding="utf-8"))
REPORTS = sorted(path.stem for path in OLD.glob("report_*.json"))
COMPARISONS = sorted(path.stem for path in OLD.glob("comparison_*.json"))
READS = f"this is howsure {hs.__version__}, which reads schema 2"


def written(name: str) -> str:
    return (OLD / f"{name}.json").read_text(encoding="utf-8")


def predictions() -> Predictions:
    """The first eight of those that everything was fitted to."""
    y = np.arange(60) % 3
    z = (2 * np.eye(3)[y] + 1.5 * np.random.default_rng(0).standard_normal((60, 3))).round(3)
    return Predictions.from_logits(z[:8], y[:8], class_names=["ant", "bée", "cat"])


# States whose names 0.3 changed: a policy with its promise, an online policy around one, a watch.
RENAMED = sorted(name for name in DOES if name.startswith(("policy", "online", "watch")))
SAME = sorted(DOES.keys() - set(RENAMED))


def behaviour(value: Any) -> dict[str, Any]:
    if isinstance(value, p.Cascade):
        return {"thresholds": list(value.thresholds)}
    return {"values": pytest.approx(value(predictions()).values, rel=1e-12, abs=1e-300)}


@pytest.mark.parametrize("name", SAME)
def test_a_saved_value_does_what_it_did(name: str) -> None:
    assert {k: np.array(v) if k == "values" else v for k, v in DOES[name].items()} == behaviour(
        hs.load(OLD / f"{name}.json")
    )


@pytest.mark.parametrize("name", RENAMED)
def test_a_state_with_old_names_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(hs.InputError) as refused:
        hs.load(OLD / f"{name}.json")
    what, new, command = (
        ("a drift watch", "calls it DriftMonitor", "howsure threshold --drift")
        if name == "watch"
        else ("a policy", "calls 'promise' 'guarantee'", "howsure threshold -o")
    )
    assert str(refused.value) == (
        f"{OLD / f'{name}.json'} cannot be loaded: it holds {what} of howsure 0.2 or older, and 0.3 "
        f"{new}. Start a new one with {command}."
    )


def test_a_watched_promise_of_0_2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "promise.json"
    hs.save(hs.serving.GuaranteeMonitor.start(risk=0.1), path)
    document = json.loads(path.read_text())
    document["value"]["class"] = "WatchedPromise"
    del document["digest"]
    document["digest"] = saving.compute_digest(document)
    path.write_text(json.dumps(document))
    with pytest.raises(hs.InputError, match="calls it GuaranteeMonitor"):
        hs.load(path)


def test_every_class_that_could_be_saved_is_there() -> None:
    found = "".join(written(name) for name in DOES)
    # unknown to 0.1.0
    later = {"PerLabel", "DriftMonitor", "Guarantee", "GuaranteeMonitor"}
    later |= {"Asked", "ReadOptions", "SecondOpinion", "StructuredScaling", "Suggestions"}
    assert [name for name in SAVABLE.keys() - later if f'"class": "{name}"' not in found] == []


@pytest.mark.parametrize("name", [*REPORTS, *COMPARISONS])
def test_a_report_of_schema_1_is_refused_in_one_sentence(name: str) -> None:
    what, cls, again = "report", Report, "evaluate"
    if name in COMPARISONS:
        what, cls, again = "comparison", Comparison, "compare"
    said = f"this {what} was written by howsure 0.1.0 with schema 1; {READS}: {again} again."
    with pytest.raises(hs.InputError) as refused:
        cls.from_json(written(name))
    assert str(refused.value) == said
    path = OLD / f"{name}.json"
    with pytest.raises(hs.InputError) as refused:
        hs.load(path)
    assert str(refused.value) == f"{path} cannot be loaded: {said}"


def test_a_monitor_of_schema_1_is_refused() -> None:
    old = json.dumps({"howsure": "0.2.0", "schema": 1, "monitor": True})
    with pytest.raises(hs.InputError, match=r"howsure 0.2.0 with schema 1; .*: monitor again"):
        Monitor.from_json(old)


def test_decisions_are_resumed(tmp_path: Path) -> None:
    out = tmp_path / "decisions.jsonl"
    out.write_bytes((OLD / "decisions.jsonl").read_bytes())
    saved = json.loads(written("policy"))["value"]
    policy = p.Policy(saved["score"], saved["threshold"], class_names=tuple(saved["class_names"]))
    stamp = identify_saved(OLD / "policy.json")[1][:12]
    done = decide_file(policy.decide, OLD / "rows.csv", out, resume=True, how=Serving(stamp=stamp))
    lines = out.read_text(encoding="utf-8").splitlines()
    assert (done.decided, done.skipped) == (7, 5)
    assert [json.loads(line)["id"] for line in lines] == [f"r{i}" for i in range(12)]
    assert [json.loads(line).keys() for line in lines] == [json.loads(lines[0]).keys()] * 12


def test_a_report_of_schema_1_is_no_baseline() -> None:
    with pytest.raises(hs.InputError, match=r"written by howsure 0.1.0 with schema 1"):
        read_baseline(str(OLD / "report_confidence.json"))


def test_a_calibration_report_fits_its_schema() -> None:
    validate(json.loads(written("calibration")), "calibration")
