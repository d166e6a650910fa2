"""A real browser. Tests are left out, saying so, where Chromium or selenium is missing."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from howsure.report.render.page import render_page

GOLDEN = Path(__file__).parents[1] / "golden"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium with its logs of the console and the network."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="left out: selenium is not installed"
    )
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("left out: chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=service.Service(driver))
    yield found
    found.quit()


class Page:
    """One page in the browser, and what happened there."""

    def __init__(self, browser: Any, path: Path):
        self.browser, self.path = browser, path
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(path.as_uri())

    def script(self, code: str, *arguments: Any) -> Any:
        return self.browser.execute_script(code, *arguments)

    def shown(self, name: str) -> str:
        return self.script(
            "return document.querySelector(`[data-shown='${arguments[0]}']`).textContent", name
        )

    def cut(self) -> list[str]:
        """Tables that do not fit, so that some of their numbers are out of sight."""
        wide = "filter((e) => e.scrollWidth > e.clientWidth + 1 && e.checkVisibility())"
        return self.script(
            f"return [...document.querySelectorAll('.scroll')].{wide}.map((e) => e.ariaLabel)"
        )

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        entries = [
            json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")
        ]
        return [
            e["params"]["request"]["url"]
            for e in entries
            if e["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="session")
def report() -> dict[str, Any]:
    """The stored report."""
    return json.loads((GOLDEN / "report.json").read_text())


@pytest.fixture
def show(browser: Any, report: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page of a report at some width, light or dark."""

    def open_(
        data: dict[str, Any] | None = None,
        *,
        width: int = 1280,
        dark: bool = False,
        html: str = "",
        media: str = "",
    ) -> Page:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [scheme], "media": media}
        )
        path = tmp_path / "report.html"
        path.write_text(html or render_page(report if data is None else data), encoding="utf-8")
        return Page(browser, path)

    yield open_
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
