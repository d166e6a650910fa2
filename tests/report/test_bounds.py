"""Reports of compact tallies: bounds in the JSON and in every rendering."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.report.catalogue import list_claim_items, list_ranking_items
from howsure.report.measurement import build_entry
from howsure.report.render.sentences import describe_bounds, explain_metric
from howsure.report.report import Report
from howsure.scale import evaluate_files
from howsure.uncertainty.intervals import Interval

N = 3000


@pytest.fixture(scope="module")
def report() -> Report:
    """An ordinary report whose ranking and calibration numbers are replaced by those of the compact
    tally.
    """
    rng = np.random.default_rng(0)
    confidence = rng.random(N)
    preds = hs.Predictions.from_confidence(confidence, rng.random(N) < confidence)
    data = json.loads(hs.evaluate(preds).to_json())
    t = hs.tally(confidence, correct=preds.correct).compact(400)
    for item in [*list_ranking_items(), *list_claim_items()]:
        data["metrics"][item.name] = build_entry(item, item.measure(t), Interval(0.0, 1.0), t)
    return Report({**data, "approximate": t.approximate})


def test_every_entry_of_a_compact_tally_has_bounds_or_says_why(report: Report) -> None:
    for name in (item.name for item in [*list_ranking_items(), *list_claim_items()]):
        entry = report.data["metrics"][name]
        assert entry["bounds"] is not None or entry["bounds_why"], name
    assert (
        json.loads(report.to_json())["metrics"]["aurc"]["bounds"]
        == report.data["metrics"]["aurc"]["bounds"]
    )


@pytest.mark.parametrize("render", [Report.to_text, Report.to_markdown, Report.to_html])
def test_bounds_and_compaction_are_shown(report: Report, render: Any) -> None:
    shown = " ".join(render(report).split())
    whole = shown if render is Report.to_html else " ".join(render(report, full=True).split())
    low, high = report.data["metrics"]["aurc"]["bounds"]
    assert f"{low:.6g} … {high:.6g}" in shown
    assert report.data["approximate"] in shown
    assert "approximate, without certified bounds" in whole


def test_an_exact_report_has_no_bounds() -> None:
    data = hs.evaluate(hs.Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0])).data
    assert "approximate" not in data
    assert not any("bounds" in entry for entry in data["metrics"].values())


def test_bounds_in_words() -> None:
    assert describe_bounds({"bounds": [0.25, 0.25]}) == "exactly 0.25"
    assert describe_bounds({"bounds": [1.5, None]}) == "certainly 1.5 … ∞"
    assert explain_metric("aurc", {"value": 0.1, "bounds": [0.09, 0.11]}).endswith(
        "; certainly 0.09 … 0.11"
    )


def test_a_stream_in_compact_form_has_bounds_that_hold(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(60_000)
    preds = hs.Predictions.from_confidence(confidence, rng.random(60_000) < confidence)
    for i in range(2):
        hs.write(preds[i::2], tmp_path / f"part{i}.npz")
    report = evaluate_files([tmp_path / f"part{i}.npz" for i in range(2)], compact=True)
    assert report.data["approximate"] in report.to_text()
    exact = hs.tally(confidence, correct=preds.correct)
    for item in [*list_ranking_items(), *list_claim_items()]:
        bounds = report.data["metrics"][item.name]["bounds"]
        if bounds is not None:
            low, high = bounds
            assert low <= item.measure(exact) <= (np.inf if high is None else high), item.name
