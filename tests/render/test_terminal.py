"""What a terminal shows of a report: verdict, findings, the numbers that matter, what to do next."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from howsure.report.catalogue import BY_NAME, TERMINAL_NUMBERS
from howsure.report.render.report_sheet import build_report_sheet, suggest_steps
from howsure.report.render.sentences import explain_metric, format_limits, format_metric
from howsure.report.render.text_tables import break_command

GOLDEN = Path(__file__).parents[1] / "golden"
PAGE = "howsure evaluate animals.npz --html report.html"


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return json.loads((GOLDEN / "report.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("width", [80, 100, 140])
def test_verdict_findings_numbers_steps_in_this_order_and_no_line_too_long(
    stored: dict[str, Any], width: int
) -> None:
    text = build_report_sheet(stored).text(width)
    assert all(len(line) <= width for line in text.splitlines())
    flat = " ".join(text.split())
    order = [
        *(flat.index(sentence) for sentence in stored["verdict"]),
        flat.index("What stands out"),
        flat.index("The numbers that matter"),
        flat.index("What to do next"),
    ]
    assert order == sorted(order)
    assert all(
        BY_NAME[name].title in flat for name in TERMINAL_NUMBERS if name in stored["metrics"]
    )


@pytest.mark.parametrize("width", [80, 110])
def test_no_number_is_a_bare_dash(stored: dict[str, Any], width: int) -> None:
    assert re.findall(r"(?<!\S)–(?!\S)", build_report_sheet(stored, full=True).text(width)) == []


def test_a_number_without_limits_says_why_in_words(stored: dict[str, Any]) -> None:
    for name, entry in stored["metrics"].items():
        assert format_limits(name, entry) or "why" in entry
        assert entry.get("why", "") in explain_metric(name, entry)
    assert format_metric("eor", {"value": None, "why": "no bins at all"}) == "none"


def test_full_shows_every_number_and_the_rest_of_the_tables(stored: dict[str, Any]) -> None:
    short, full = build_report_sheet(stored).text(), build_report_sheet(stored, full=True).text()
    assert all(BY_NAME[name].title in full for name in stored["metrics"])
    assert "Bands of trust" in full
    assert "Bands of trust" not in short
    assert "--full" not in full


def test_one_line_says_how_to_get_the_page_unless_it_is_there(stored: dict[str, Any]) -> None:
    assert sum(PAGE in line for line in build_report_sheet(stored).text().splitlines()) == 1
    assert "--html" not in build_report_sheet(stored, page=True).text()
    assert f"    {PAGE}" in build_report_sheet(stored).markdown()


def test_after_calibration_nobody_says_calibrate(stored: dict[str, Any]) -> None:
    assert any("calibrate" in step.run for step in suggest_steps(stored))
    assert not any(
        "calibrate" in step.run
        for step in suggest_steps({**stored, "calibration": {"metrics": {}}})
    )


def test_a_score_that_does_not_rank_is_not_thresholded(stored: dict[str, Any]) -> None:
    flat = {"name": "does_not_rank", "text": "", "evidence": {}, "paper": ""}
    found = suggest_steps({**stored, "findings": [flat]})
    assert found[0].run == "howsure compare animals.npz --score max_prob --score energy"
    assert not any("threshold" in step.run for step in found)


@pytest.mark.parametrize("room", range(20, 90, 7))
def test_a_broken_command_is_one_command_to_a_shell(room: int) -> None:
    run = "howsure threshold 'a folder/my test.npz' --split test --risk 0.02 -o policy.json"
    lines = break_command(run, room)
    assert shlex.split("".join(line.removesuffix("\\") + " " for line in lines)) == shlex.split(run)
    assert all(len(line) <= max(room, 30) for line in lines)
