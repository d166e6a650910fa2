"""The page that evaluates files, started in the middle of the landing page: it works there, and no
byte leaves it.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from browser.test_app import FROM_PYTHON, FROM_THE_FRAME, PATIENCE, App, Listener, Server
from conftest import shared_or_skip
from howsure.cli.app import write_app

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.slow


class Embedded(App):
    """The page inside a frame of another one, which is there after a click."""

    def inside(self) -> None:
        self.browser.execute_script("document.querySelector('.live button')?.click()")
        self.wait_outside("return document.querySelector('.live iframe') !== null")
        assert not self.browser.find_elements("css selector", ".live img")
        self.browser.switch_to.frame(self.browser.find_element("tag name", "iframe"))
        self._until(
            lambda: self.browser.execute_script("return !!document.querySelector('iframe')"),
            "the inner frame",
        )
        # The service worker loads the outer page once more, so the frame is taken when that is
        # over.
        self._until(
            lambda: self.browser.execute_script("return !!navigator.serviceWorker.controller"),
            "sealed",
        )
        self._until(
            lambda: self.browser.execute_script("return !!document.querySelector('iframe')"),
            "the inner frame",
        )
        self.browser.switch_to.frame(self.browser.find_element("tag name", "iframe"))
        self.wait("window.howsure && howsure.state.ready")


def landing() -> str:
    """The part of the landing page that holds it, as Sphinx makes it of the Markdown."""
    found = re.search(
        r'<div class="live">.*?</div>', (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert found
    part, posters = re.subn(
        r"!\[[^\]]*\]\([^)]*\)\{\.poster[^}]*\}", '<img class="poster" alt="">', found[0]
    )
    assert posters == 4
    return f'<!doctype html><meta charset=utf-8>{part}<script src="_static/live.js"></script>'


def test_it_starts_on_a_click_and_lets_nothing_out(browser: Any, tmp_path: Path):
    shutil.copytree(DOCS / "_static", tmp_path / "_static")
    (tmp_path / "index.html").write_text(landing(), encoding="utf-8")
    write_app(str(tmp_path / "app"), str(shared_or_skip("pyodide")), None, tell=str)
    server, listener = Server(tmp_path), Listener()
    browser.set_script_timeout(PATIENCE)
    browser.get(server.address)
    assert not [
        line for line in server.asked if "app/" in line
    ]  # nothing is loaded before the click
    app = Embedded(browser, server.address)
    app.only(shared_or_skip("data/f538_nfl.npz"))
    before, target = list(server.asked), f"127.0.0.1:{listener.port}/"
    for host in (target, server.address.removeprefix("http://")):
        said = browser.execute_async_script(
            FROM_THE_FRAME, f"http://{host}?secret", f"ws://{host}?secret"
        )
        assert said == dict.fromkeys(said, "refused")
        assert {
            app.ask(python=code.replace("TARGET", f"{host}?secret"))["out"]
            for code in FROM_PYTHON.values()
        } == {"refused"}
    app.choose("evaluate")
    assert app.run()["code"] == 0
    assert (listener.count, listener.heard, server.asked) == (0, b"", before)
    browser.switch_to.default_content()
    server.stop()
    listener.socket.close()
