"""A stored report → text, Markdown and page, byte for byte: renderers compute nothing and change nothing."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howsure.render.html import page
from howsure.render.markdown import markdown
from howsure.render.text import text

GOLDEN = Path(__file__).parents[1] / "golden"
RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {"report.txt": text, "report.md": markdown, "report.html": page}


@pytest.fixture
def report() -> dict[str, Any]:
    return json.loads((GOLDEN / "report.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RENDERERS)
def test_a_stored_report_looks_as_it_did(name: str, report: dict[str, Any], request: pytest.FixtureRequest) -> None:
    made, path = RENDERERS[name](report), GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8", newline="\n")
    assert path.exists(), f"{path} is missing: run pytest tests/render --update-golden and look at what it wrote"
    assert made == path.read_text(encoding="utf-8"), (
        f"{name} changed: run with --update-golden and look at the difference"
    )


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_leaves_the_report_alone(name: str, report: dict[str, Any]) -> None:
    before = copy.deepcopy(report)
    RENDERERS[name](report)
    assert report == before
