"""The examples of the gallery, run on a page: they print what they print here."""

import html
import shutil
from pathlib import Path
from typing import Any

import pytest
from docs.build import runs_here

from browser.test_app import PATIENCE, Server
from conftest import shared_or_skip
from howsure.cli.app import run_example, write_app

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = {p.stem: p.read_text(encoding="utf-8") for p in sorted(DOCS.glob("gallery/*.py"))}
HERE = {name: code for name, code in EXAMPLES.items() if runs_here(code)}
pytestmark = pytest.mark.slow


def test_most_can_be_run_on_their_page():
    assert len(HERE) >= 30


def test_they_print_the_same(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocks = [
        f'<div class="here" id="{name}"><pre>{html.escape(code)}</pre></div>'
        for name, code in HERE.items()
    ]
    page = (
        "<!doctype html><meta charset=utf-8>"
        + "".join(blocks)
        + '<script src="_static/run.js"></script>'
    )
    (tmp_path / "gallery.html").write_text(page, encoding="utf-8")
    shutil.copytree(DOCS / "_static", tmp_path / "_static")
    write_app(str(tmp_path / "app"), str(shared_or_skip("pyodide")), None, tell=str)
    server = Server(tmp_path)
    browser.set_script_timeout(PATIENCE)
    browser.get(server.address + "gallery.html")
    found = browser.execute_async_script(RUN)
    server.stop()
    monkeypatch.chdir(tmp_path)
    assert found == {name: ["done", run_example(code)] for name, code in HERE.items()}


RUN = """
const done = arguments[0], found = {};
(async () => {
  for (const block of document.querySelectorAll(".here")) {
    const below = block.nextElementSibling, out = below.querySelector(".ran");
    below.querySelector("button").click();
    while (!out.dataset.state) await new Promise((r) => setTimeout(r, 50));
    found[block.id] = [out.dataset.state, out.textContent];
  }
  done(found);
})();
"""
