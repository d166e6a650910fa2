"""Time of a report and of its page; browser times need Chromium and selenium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import howsure as hs

from .rows import Row
from .timing import seconds

SIZES = (10**4, 10**6)
MOVES = """
const s = document.getElementById("operating"), times = [];
for (let i = 0; i < 200; i++) {
  s.value = i; const start = performance.now();
  s.dispatchEvent(new Event("input")); document.body.getBoundingClientRect();
  times.push(performance.now() - start);
}
return times.sort((a, b) => a - b)[100];"""


def rows() -> Iterator[Row]:
    for n in SIZES:
        preds = predictions(n)
        report = hs.evaluate(preds)
        evaluating, rendering = seconds(
            lambda preds=preds: hs.evaluate(preds), report.to_html, repeats=2
        )
        html = report.to_html()
        yield Row(
            f"report, {n:,} × 10 logits",
            evaluating,
            "CPU s",
            detail="every number with its interval",
        )
        sizes = f"page {len(html.encode()) / 1e3:.0f} kB, JSON {len(report.to_json().encode()) / 1e3:.0f} kB"
        yield Row(f"its page, {n:,}", 1e3 * rendering, "ms", detail=sizes)
        yield from browser_rows(html, n)


def predictions(n: int, k: int = 10) -> hs.Predictions:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    logits = 4 * np.eye(k, dtype=np.float32)[labels] + 2 * rng.standard_normal(
        (n, k), dtype=np.float32
    )
    return hs.Predictions.from_logits(logits, labels)


def browser_rows(html: str, n: int) -> Iterator[Row]:
    if not (shutil.which("chromium") and shutil.which("chromedriver") and find_spec("selenium")):
        yield Row(
            f"page in a browser, {n:,}",
            None,
            "",
            detail="left out: needs Chromium, chromedriver and selenium",
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(html, encoding="utf-8")
        load, move = browser_times(path, folder)
    yield Row(f"page in a browser, {n:,}: load", load, "ms")
    yield Row(
        f"page in a browser, {n:,}: one move of the slider", move, "ms", detail="median of 200"
    )


def browser_times(path: Path, folder: str) -> tuple[float, float]:
    """Milliseconds to load the page a second time, and for one move of the slider."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    flags = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    )
    for flag in (*flags, f"--user-data-dir={folder}/profile"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as driver:
        driver.get(path.as_uri())
        driver.get(path.as_uri())
        load = driver.execute_script(
            "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd"
        )
        return load, driver.execute_script(MOVES)
