"""`python -m benchmarks app`: how fast the page that evaluates in the browser starts, works and
loads.

Start: until howsure is ready, beside the same run's bare Pyodide with NumPy. Work: `evaluate` of
the sample (10,000 × 10 logits) with page, JSON and Markdown, warm, in turns with the same command
here. Bytes: what the server sent up to the first report. Needs Chromium, chromedriver, selenium and
a folder with Pyodide (`HOWSURE_SHARED`/pyodide). Times of a clock: a browser is many processes.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from howsure.cli.app import run_command, write_app

from .rows import Row

SHARED = os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared")
PYODIDE = Path(SHARED) / "pyodide"
STARTS, TURNS, PATIENCE = 3, 5, 300
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
)
ARGUMENTS = ["--split", "test", "-o", "report.html", "-o", "report.json", "-o", "report.md"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and counts the bytes of its files."""

    sent = 0

    def copyfile(self, source: Any, outputfile: Any) -> None:
        Handler.sent += os.fstat(source.fileno()).st_size
        super().copyfile(source, outputfile)

    def log_message(self, *_: object) -> None:
        pass


def chromium(profile: str) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))


def until(browser: Any, code: str) -> Any:
    """What the code returns, once it returns something."""
    end = time.monotonic() + PATIENCE
    while not (found := browser.execute_script(f"return {code}")):
        if time.monotonic() > end:
            raise SystemExit(f"never: {code}")
        time.sleep(0.05)
    return found


def opened(browser: Any, address: str) -> dict[str, float]:
    """Seconds of each stage of a start."""
    browser.switch_to.default_content()
    browser.get(address)
    until(
        browser, "navigator.serviceWorker.controller && document.querySelector('iframe') !== null"
    )
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))
    until(browser, "window.howsure && howsure.state.ready")
    return browser.execute_script("return howsure.state.times")


def page_seconds(browser: Any) -> float:
    began = time.perf_counter()
    browser.execute_script("howsure.state.answer = null; document.getElementById('run').click()")
    answer = until(browser, "howsure.state.answer")
    if answer["code"]:
        raise SystemExit(answer["err"])
    return time.perf_counter() - began


def native_seconds() -> float:
    began = time.perf_counter()
    code, _, err = run_command(
        ["evaluate", str(files("howsure") / "data" / "fashion_mnist_cnn.npz"), *ARGUMENTS], tell=str
    )
    if code:
        raise SystemExit(err)
    return time.perf_counter() - began


def rows() -> Iterator[Row]:
    """The start, the work and the bytes; without the browser one row that says what is missing."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if find_spec("selenium") is None:
        missing.append("selenium")
    if not PYODIDE.is_dir():
        missing.append(str(PYODIDE.name))
    if missing:
        yield Row("app", None, "", detail=f"not measured: {', '.join(missing)} missing")
        return
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # native commands write their reports here
        try:
            yield from measure(folder)
        finally:
            os.chdir(here)


def measure(folder: str) -> Iterator[Row]:
    write_app(f"{folder}/app", str(PYODIDE), None, tell=str)
    serve = functools.partial(Handler, directory=f"{folder}/app")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = chromium(f"{folder}/profile")
    try:
        starts = [opened(browser, f"http://127.0.0.1:{server.server_port}/") for _ in range(STARTS)]
        until(browser, "!document.getElementById('sample').disabled")
        browser.execute_script("document.getElementById('sample').click()")
        until(browser, "document.getElementById('files').textContent.includes('No problems.')")
        first = page_seconds(browser)
        sent = Handler.sent
        native_seconds()
        turns = [(page_seconds(browser), native_seconds()) for _ in range(TURNS)]
    finally:
        browser.quit()
        server.shutdown()
    ready, bare = (median(start[name] for start in starts) for name in ("howsure", "NumPy"))
    yield Row(
        "app: start, × bare Pyodide with NumPy",
        median(start["howsure"] / start["NumPy"] for start in starts),
        "×",
        must=1.2,
        detail=f"{ready:.1f} s, bare {bare:.1f} s; {sent / 1e6:.1f} MB up to the first report",
    )
    page, native = (median(column) for column in zip(*turns, strict=True))
    yield Row(
        "app: evaluate 10⁴ × 10, × the same command here",
        median(page / native for page, native in turns),
        "×",
        must=2,
        detail=f"warm {page:.2f} s, here {native:.2f} s; the first time {first:.1f} s",
    )
