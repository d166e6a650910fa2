"""Notebooks: results as tables and pages, and a widget whose threshold comes back; in real Jupyter and marimo."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.policies import Policy, threshold_for_coverage

MADE = """
import numpy as np
import howsure as hs
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 600)
preds = hs.Predictions.from_logits(3 * np.eye(3)[y] + 1.5 * rng.normal(size=(600, 3)), y)
report = hs.evaluate(preds)
"""
WIDGET = """
from howsure.notebook import deciding
widget = deciding(report, height=1400)
def heard(change):
    with open("threshold.txt", "w") as f:
        f.write(f"{change.new!r} {widget.policy().decide(preds).coverage!r}")
widget.observe(heard, "threshold")
widget
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    preds = hs.Predictions.from_logits(3 * np.eye(3)[y] + 1.5 * rng.normal(size=(300, 3)), y)
    return {
        "report": hs.evaluate(preds),
        "comparison": hs.compare({"max_prob": (preds, "max_prob"), "<b>": (preds, "margin")}),
        "calibration": hs.calibration_report(preds[:150], preds[150:]),
        "choice": hs.choose_calibrator(preds),
        "policy": Policy.fit(preds, lambda t: threshold_for_coverage(t, 0.8)),
        "estimate": hs.estimate(preds, preds),
    }


@pytest.mark.parametrize("name", ["report", "comparison", "calibration", "choice", "policy"])
def test_a_result_shows_itself_as_html_and_as_text(name: str, found: dict[str, Any]) -> None:
    made = found[name]
    html, text = made._repr_html_(), made.to_text()
    assert html.lstrip().startswith("<")
    assert "<b>" not in html
    assert text.endswith("\n")
    assert len(text.splitlines()) >= 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["report", "comparison", "calibration", "choice"])
def test_tables_become_frames(name: str, library: str, found: dict[str, Any]) -> None:
    module = pytest.importorskip(library)
    made = found[name].frame(library)
    assert isinstance(made, module.DataFrame)
    if name == "report":
        row = made[made["metric"] == "aurc"].iloc[0] if library == "pandas" else made.filter(made["metric"] == "aurc")
        value = row["value"] if library == "pandas" else row["value"][0]
        assert value == found["report"]["aurc"]
    if name == "choice":
        assert list(made["name"]) == [c.name for c in found["choice"].table]


def test_another_library_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(hs.InputError, match="'pandas' or 'polars'"):
        found["report"].frame("numpy")


def test_the_widget_knows_what_the_page_says(found: dict[str, Any]) -> None:
    pytest.importorskip("anywidget", reason="left out: anywidget is not installed")
    from howsure.notebook import deciding

    widget = deciding(found["report"])
    assert widget.policy().threshold == float("inf")
    widget.set_state({"threshold": 0.75, "coverage": 0.8, "rule": "coverage at least 0.8"})
    assert widget.policy() == Policy("max_prob", 0.75, promise=widget.policy().promise)
    assert "<!doctype html>" in widget.page


def notebook(path: Path, *cells: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="left out: nbformat is not installed")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
    return made


def test_a_notebook_runs_and_shows_pages_and_tables(tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="left out: nbclient is not installed")
    shows = ["report", "hs.choose_calibrator(preds)", "report.frame()"]
    made = notebook(tmp_path / "a.ipynb", MADE, *shows)
    client.NotebookClient(
        made, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    page, choice, frame = (cell["outputs"][-1]["data"]["text/html"] for cell in made["cells"][1:])
    assert page.startswith("<iframe srcdoc=")
    assert "against none" in choice
    assert "<td>accuracy</td>" in frame


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab of its own."""
    pytest.importorskip("jupyterlab", reason="left out: jupyterlab is not installed")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    flags = [
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--allow-root",
    ]
    command = [sys.executable, "-m", "jupyterlab", *flags]
    env = {**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    with open(tmp_path / "lab.log", "wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.wait(20)


def test_the_threshold_comes_back_in_a_real_lab(lab: str, tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver", reason="left out: selenium is not installed")
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("left out: chromium and chromedriver are not installed")
    notebook(tmp_path / "a.ipynb", MADE, WIDGET)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1600", profile):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        wait = WebDriverWait(browser, 90, ignored_exceptions=[Exception])
        wait.until(lambda b: b.get(f"{lab}/lab/tree/a.ipynb") or True)
        wait.until(lambda b: b.find_element("css selector", ".jp-Notebook .jp-CodeCell .cm-content").click() or True)
        wait.until(lambda b: "Idle" in b.find_element("css selector", ".jp-NotebookPanel").text or b.find_elements(
            "css selector", "[data-status=idle]"))  # fmt: skip
        for _ in range(2):
            webdriver.ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
        frame = wait.until(lambda b: b.find_element("css selector", ".jp-OutputArea iframe"))
        wait.until(lambda b: b.switch_to.frame(frame) or True)
        slider = wait.until(lambda b: b.find_element("id", "operating"))
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
        slider.send_keys(*[Keys.ARROW_LEFT] * 30)
        shown = browser.find_element("css selector", "[data-shown=coverage]").text
        heard = tmp_path / "threshold.txt"
        said = lambda _: heard.exists() and f"{float(heard.read_text().split()[1]) * 100:.1f} %" == shown
        wait.until(said)
        assert 0 < float(heard.read_text().split()[0]) < 1
    finally:
        browser.quit()


def test_marimo_shows_the_page_and_the_widget(tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="left out: marimo is not installed")
    body = "\n".join(f"    {line}" for line in MADE.strip().splitlines())
    app = f"""import marimo
app = marimo.App()

@app.cell
def _():
{body}
    return (report,)

@app.cell
def _(report):
    report
    return

@app.cell
def _(report):
    import marimo as mo
    from howsure.notebook import deciding
    widget = mo.ui.anywidget(deciding(report))
    widget
    return

if __name__ == "__main__":
    app.run()
"""
    (tmp_path / "app.py").write_text(app)
    command = [sys.executable, "-m", "marimo", "export", "html", "app.py", "-o", "out.html"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "iframe srcdoc" in html
    assert "marimo-anywidget" in html
