"""Notebooks: results as tables and pages, and a widget whose threshold comes back; in real Jupyter
and marimo.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
        "estimate": hs.estimate(preds[:150], preds[150:]),
        "monitor": hs.monitor(preds[:150], {"<b>": preds[150:]}),
    }


SHOWN = ["report", "comparison", "calibration", "choice", "policy", "estimate", "monitor"]


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_shows_itself_as_html_and_as_text(name: str, found: dict[str, Any]) -> None:
    made = found[name]
    html, text = made._repr_html_(), made.to_text()
    assert html.lstrip().startswith("<")
    assert "<b>" not in html
    assert text.endswith("\n")
    assert len(text.splitlines()) >= 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", SHOWN)
def test_tables_become_frames(name: str, library: str, found: dict[str, Any]) -> None:
    module = pytest.importorskip(library)
    made = found[name].frame(library)
    assert isinstance(made, module.DataFrame)
    if name == "report":
        row = (
            made[made["metric"] == "aurc"].iloc[0]
            if library == "pandas"
            else made.filter(made["metric"] == "aurc")
        )
        value = row["value"] if library == "pandas" else row["value"][0]
        assert value == found["report"]["aurc"]
    if name == "choice":
        assert list(made["name"]) == [c.name for c in found["choice"].table]
    if name == "policy":
        assert list(made["threshold"]) == [found["policy"].threshold]
    if name == "estimate":
        assert next(iter(made["accuracy"])) == found["estimate"].accuracy
        assert list(made["name"]) == ["all", "0", "1", "2"]
    if name == "monitor":
        assert list(made["accuracy"]) == [
            found["monitor"].data["months"][0]["estimate"]["accuracy"]["value"]
        ]


def test_another_library_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(hs.InputError, match="'pandas' or 'polars'"):
        found["report"].frame("numpy")


def test_the_widget_knows_what_the_page_says(found: dict[str, Any]) -> None:
    pytest.importorskip("anywidget", reason="left out: anywidget is not installed")
    from howsure.notebook import deciding

    widget = deciding(found["report"])
    assert widget.policy().threshold == float("inf")
    widget.set_state({"threshold": 0.75, "coverage": 0.8, "rule": "coverage at least 0.8"})
    assert widget.policy() == Policy("max_prob", 0.75, guarantee=widget.policy().guarantee)
    assert "<!doctype html>" in widget.page


def notebook(path: Path, *cells: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="left out: nbformat is not installed")
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    )
    made.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
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


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def serving(command: list[str], folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A server that runs as long as the block."""
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        yield
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab of its own."""
    pytest.importorskip("jupyterlab", reason="left out: jupyterlab is not installed")
    port = free_port()
    flags = [
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--allow-root",
    ]
    env = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
    }
    with serving([sys.executable, "-m", "jupyterlab", *flags], tmp_path, env):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Headless Chromium."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="left out: selenium is not installed"
    )
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("left out: chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1280,1600",
        profile,
    ):
        options.add_argument(flag)
    found = webdriver.Chrome(options=options, service=service.Service(driver))
    yield found
    found.quit()


def moved(browser: Any, wait: Any, frame: Any) -> str:
    """The slider of the page in a frame moves; what the page then says is decided alone."""
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    wait.until(lambda b: b.switch_to.frame(frame) or True)
    slider = wait.until(lambda b: b.find_element("id", "operating"))
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
    slider.send_keys(*[keys.ARROW_LEFT] * 30)
    return browser.find_element("css selector", "[data-shown=coverage]").text


def heard(folder: Path, shown: str) -> Any:
    """Whether Python wrote the share that the page shows."""
    path = folder / "threshold.txt"

    def said(_: Any) -> bool:
        words = path.read_text().split() if path.exists() else []
        return len(words) == 2 and f"{float(words[1]) * 100:.1f} %" == shown

    return said


def test_the_threshold_comes_back_in_a_real_lab(lab: str, browser: Any, tmp_path: Path) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    chains = pytest.importorskip("selenium.webdriver").ActionChains
    notebook(tmp_path / "a.ipynb", MADE, WIDGET)
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(
        browser, 90, ignored_exceptions=[Exception]
    )
    wait.until(lambda b: b.get(f"{lab}/lab/tree/a.ipynb") or True)
    wait.until(
        lambda b: (
            b.find_element("css selector", ".jp-Notebook .jp-CodeCell .cm-content").click() or True
        )
    )
    wait.until(lambda b: "Idle" in b.find_element("css selector", ".jp-NotebookPanel").text or b.find_elements(
        "css selector", "[data-status=idle]"))  # fmt: skip
    for _ in range(2):
        chains(browser).key_down(keys.SHIFT).send_keys(keys.ENTER).key_up(keys.SHIFT).perform()
    frame = wait.until(lambda b: b.find_element("css selector", ".jp-OutputArea iframe"))
    wait.until(heard(tmp_path, moved(browser, wait, frame)))
    assert 0 < float((tmp_path / "threshold.txt").read_text().split()[0]) < 1


def app(*cells: str) -> str:
    """A marimo notebook: its cells, each with what it takes and gives."""
    made = "\n".join(f"    {line}" for line in MADE.strip().splitlines())
    first = f"@app.cell\ndef _():\n{made}\n    return preds, report\n"
    return "\n".join(
        [
            "import marimo",
            "app = marimo.App()",
            first,
            *cells,
            'if __name__ == "__main__":',
            "    app.run()",
        ]
    )


SHOWS = """@app.cell
def _(report):
    report
    return
"""
CHOOSES = """@app.cell
def _(report):
    import marimo as mo
    from howsure.notebook import deciding
    widget = mo.ui.anywidget(deciding(report, height=1400))
    widget
    return (widget,)
"""
HEARS = """@app.cell
def _(preds, widget):
    chosen = widget.value["threshold"]
    if chosen is not None:
        with open("threshold.txt", "w") as f:
            f.write(f"{chosen!r} {widget.widget.policy().decide(preds).coverage!r}")
    return
"""
FRAME = """
const look = (root) => {
  for (const e of root.querySelectorAll("*")) {
    if (e.tagName === "IFRAME" && e.srcdoc.includes("id=\\"operating\\"")) return e;
    const inside = e.shadowRoot && look(e.shadowRoot);
    if (inside) return inside;
  }
  return null;
};
return look(document);
"""


def test_the_threshold_comes_back_in_a_live_marimo(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="left out: marimo is not installed")
    (tmp_path / "app.py").write_text(app(CHOOSES, HEARS))
    port = free_port()
    flags = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(
        browser, 120, ignored_exceptions=[Exception]
    )
    with serving(
        [sys.executable, "-m", "marimo", "run", "app.py", *flags], tmp_path, dict(os.environ)
    ):
        wait.until(lambda b: b.get(f"http://127.0.0.1:{port}") or True)
        frame = wait.until(lambda b: b.execute_script(FRAME))
        wait.until(heard(tmp_path, moved(browser, wait, frame)))
    assert 0 < float((tmp_path / "threshold.txt").read_text().split()[0]) < 1


def test_marimo_shows_the_page_and_the_widget(tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="left out: marimo is not installed")
    (tmp_path / "app.py").write_text(app(SHOWS, CHOOSES))
    command = [sys.executable, "-m", "marimo", "export", "html", "app.py", "-o", "out.html"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "iframe srcdoc" in html
    assert "marimo-anywidget" in html


EVIL = "</script><script>alert(1)</script>"


def list_odd_reports() -> dict[str, Any]:
    """Reports of predictions at the edge, of many labels and of masks, with hostile names."""
    rng = np.random.default_rng(0)
    y, z = np.arange(120) % 3, rng.normal(size=(120, 3))
    p = rng.random((60, 4))
    tags = (rng.random((60, 4)) < p).astype(int)
    pixels, image = rng.normal(size=(256, 2)), np.repeat(np.arange(4), 64)
    mask = (pixels[:, 1] > 0).astype(int)
    make, label = hs.Predictions.from_logits, hs.Predictions.from_multilabel
    return {
        "one row": hs.evaluate(make(z[:1], y[:1])),
        "constant": hs.evaluate(make(z * 0, y)),
        "all right": hs.evaluate(make(z, z.argmax(1))),
        "all wrong": hs.evaluate(make(z, (z.argmax(1) + 1) % 3)),
        "ruled out": hs.evaluate(make(np.where(np.arange(3) == 2, -np.inf, z), y % 2)),
        "names": hs.evaluate(make(z, y, class_names=[EVIL, "\u202e", "--\"'&"])),
        "labels": hs.evaluate(label(p, tags, label_names=[EVIL, "=1+1", "\x00", "d"])),
        "no label is true": hs.evaluate(label(p * 0, tags * 0)),
        "one label, one row": hs.evaluate(label(p[:1, :1], tags[:1, :1])),
        "masks": hs.evaluate(make(pixels, mask, group=image), loss="dice"),
        "empty masks": hs.evaluate(make(pixels, mask * 0, group=image), loss="dice"),
    }


def test_the_widget_of_odd_reports() -> None:
    pytest.importorskip("anywidget", reason="left out: anywidget is not installed")
    from howsure.notebook import deciding

    for name, report in list_odd_reports().items():
        widget = deciding(report)
        assert widget.page == report.to_html(), name
        assert EVIL not in widget.page, name
        for threshold in (None, 0.5, -1.0, 0.0, 5e-324, 1e300, float("inf")):
            widget.set_state({"threshold": threshold, "coverage": 0.5, "rule": EVIL})
            expected = float("inf") if threshold is None else threshold
            assert widget.policy().threshold == expected, name
            assert widget.policy().to_text(), name
        widget.set_state({"threshold": float("nan")})
        with pytest.raises(hs.InputError, match="threshold is nan"):
            widget.policy()


@pytest.mark.parametrize(
    "name", ["comparison", "calibration", "choice", "policy", "estimate", "monitor", None]
)
def test_the_widget_is_made_of_reports_alone(name: str | None, found: dict[str, Any]) -> None:
    pytest.importorskip("anywidget", reason="left out: anywidget is not installed")
    from howsure.notebook import deciding

    with pytest.raises(hs.InputError, match=r"the report of hs\.evaluate is needed"):
        deciding(found.get(name or ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("height", [0, -1, "900", 9.5, None, float("nan")])
def test_the_widget_has_a_height(height: Any, found: dict[str, Any]) -> None:
    pytest.importorskip("anywidget", reason="left out: anywidget is not installed")
    from howsure.notebook import deciding

    with pytest.raises(hs.InputError, match=r"height is .*; a whole number of at least 1"):
        deciding(found["report"], height=height)
