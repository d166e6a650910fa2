"""Stored JSON → text, Markdown and page, byte for byte: renderers compute nothing and change
nothing.
"""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howsure.render import comparison, sections
from howsure.render.html import page

GOLDEN = Path(__file__).parents[1] / "golden"
RENDERERS: dict[str, Callable[[Any], str]] = {
    "report.txt": lambda data: sections.sheet(data).text(),
    "report.md": lambda data: sections.sheet(data).markdown(),
    "report.html": page,
    "comparison.txt": lambda data: comparison.sheet(data).text(),
    "comparison.md": lambda data: comparison.sheet(data).markdown(),
    "comparison.html": comparison.page,
}


def stored(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / name).with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RENDERERS)
def test_what_is_stored_looks_as_it_did(name: str, request: pytest.FixtureRequest) -> None:
    made, path = RENDERERS[name](stored(name)), GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8", newline="\n")
    assert path.exists(), (
        f"{path} is missing: run pytest tests/render --update-golden and look at what it wrote"
    )
    assert made == path.read_text(encoding="utf-8"), (
        f"{name} changed: run with --update-golden and look at the difference"
    )


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_leaves_its_data_alone(name: str) -> None:
    data = stored(name)
    before = copy.deepcopy(data)
    RENDERERS[name](data)
    assert data == before
