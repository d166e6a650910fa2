"""Stored JSON → text and Markdown, byte for byte: renderers compute nothing and change nothing."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howsure.report.render.comparison_page import build_comparison_sheet, render_comparison_page
from howsure.report.render.page import render_page
from howsure.report.render.report_sheet import build_report_sheet

GOLDEN = Path(__file__).parents[1] / "golden"
TEXTS: dict[str, Callable[[Any], str]] = {
    "report.txt": lambda data: build_report_sheet(data).text(),
    "report.md": lambda data: build_report_sheet(data).markdown(),
    "comparison.txt": lambda data: build_comparison_sheet(data).text(),
    "comparison.md": lambda data: build_comparison_sheet(data).markdown(),
}
# The tests of the browser see the page; it is not stored.
PAGES: dict[str, Callable[[Any], str]] = {
    "report.html": render_page,
    "comparison.html": render_comparison_page,
}


def stored(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / name).with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_stored_looks_as_it_did(name: str, request: pytest.FixtureRequest) -> None:
    made, path = TEXTS[name](stored(name)), GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8", newline="\n")
    assert path.exists(), (
        f"{path} is missing: run pytest tests/render --update-golden and look at what it wrote"
    )
    assert made == path.read_text(encoding="utf-8"), (
        f"{name} changed: run with --update-golden and look at the difference"
    )


@pytest.mark.parametrize("name", [*TEXTS, *PAGES])
def test_a_renderer_leaves_its_data_alone(name: str) -> None:
    data = stored(name)
    before = copy.deepcopy(data)
    {**TEXTS, **PAGES}[name](data)
    assert data == before
