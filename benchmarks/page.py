"""Time of a report and of its page: `python -m benchmarks.page`. Browser times need Chromium and selenium."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import howsure as hs


def predictions(n: int, k: int = 10) -> hs.Predictions:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    logits = 4 * np.eye(k, dtype=np.float32)[labels] + 2 * rng.standard_normal((n, k), dtype=np.float32)
    return hs.Predictions.from_logits(logits, labels)


def timed(job):
    start = time.process_time()
    result = job()
    return result, time.process_time() - start


def browser_times(path: Path) -> tuple[float, float]:
    """Milliseconds to load the page, and for one move of the slider (median of 200)."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    for flag in (*flags, f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as driver:
        driver.get(path.as_uri())
        driver.get(path.as_uri())
        load = driver.execute_script("const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd")
        move = driver.execute_script("""
          const s = document.getElementById("operating"), times = [];
          for (let i = 0; i < 200; i++) {
            s.value = i; const start = performance.now();
            s.dispatchEvent(new Event("input")); document.body.getBoundingClientRect();
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[100];""")
    return load, move


def main() -> None:
    print("samples    evaluate (CPU s)   page (CPU s)   HTML (KB)   JSON (KB)   load (ms)   slider (ms)")
    for n in (10_000, 1_000_000):
        preds = predictions(n)
        report, evaluating = timed(lambda preds=preds: hs.evaluate(preds))
        html, rendering = timed(report.to_html)
        path = Path(tempfile.mkdtemp()) / "report.html"
        path.write_text(html, encoding="utf-8")
        seen = browser_times(path) if shutil.which("chromium") and shutil.which("chromedriver") else None
        shown = f"{seen[0]:9.0f}   {seen[1]:11.2f}" if seen else "left out: no chromium"
        sizes = f"{len(html.encode()) / 1e3:9.0f}   {len(report.to_json().encode()) / 1e3:9.0f}"
        print(f"{n:9,}   {evaluating:15.2f}   {rendering:12.3f}   {sizes}   {shown}")


if __name__ == "__main__":
    main()
