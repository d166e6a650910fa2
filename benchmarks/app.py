"""`python -m benchmarks.app PYODIDE_FOLDER`: how fast the page that evaluates in the browser
starts, works and loads.

Start: until howsure is ready, beside the same run's bare Pyodide with NumPy. Work: `evaluate` of
the sample (10,000 × 10 logits) with page, JSON and Markdown, warm, in turns with the same command
here. Bytes: what the server sent up to the first report. Needs Chromium, chromedriver and selenium.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import sys
import tempfile
import threading
import time
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from howsure.cli.app import run_command, write_app

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_app(f"{folder}/app", sys.argv[1], None, tell=str)
        serve = functools.partial(Handler, directory=f"{folder}/app")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = chromium(f"{folder}/profile")
        starts = [opened(browser, f"http://127.0.0.1:{server.server_port}/") for _ in range(STARTS)]
        until(browser, "!document.getElementById('sample').disabled")
        browser.execute_script("document.getElementById('sample').click()")
        until(browser, "document.getElementById('files').textContent.includes('No problems.')")
        first = page_seconds(browser)
        sent = Handler.sent
        os.chdir(Path(folder))
        native_seconds()
        turns = [(page_seconds(browser), native_seconds()) for _ in range(TURNS)]
        browser.quit()
        os.chdir("/")
    for start in starts:
        ratio = start["howsure"] / start["NumPy"]
        print(
            f"start: {start['howsure']:.1f} s, bare with NumPy {start['NumPy']:.1f} s, {ratio:.2f} times"
        )
    ratios = sorted(page / native for page, native in turns)
    page, native = (median(column) for column in zip(*turns, strict=True))
    print(
        f"evaluate 10,000 × 10: first {first:.1f} s, warm {page:.2f} s, here {native:.2f} s (medians of {TURNS} turns)"
    )
    print(f"ratios: {', '.join(f'{ratio:.1f}' for ratio in ratios)}; median {median(ratios):.1f}")
    print(f"up to the first report {sent / 1e6:.2f} MB were sent")


if __name__ == "__main__":
    main()
