"""The page that evaluates in the browser: real Chromium, real Pyodide, real files, servers that
count.
"""

import contextlib
import functools
import http.server
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from conftest import shared_or_skip
from howsure.cli.app import run_command, write_app

PATIENCE = 300  # seconds; only ever waited for in full where something is broken
pytestmark = pytest.mark.slow


class Server:
    """The page's folder on an address of this machine, with a record of what was asked for."""

    def __init__(self, folder: Path):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                asked.append(self.requestline)

        make = functools.partial(Handler, directory=str(folder))
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make)
        self.address = f"http://127.0.0.1:{self.http.server_port}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class Listener:
    """Counts connections and datagrams and keeps what is said on them."""

    def __init__(self) -> None:
        self.count, self.heard = 0, b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", self.port))
        for listen in (self._listen, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def _receive(self) -> None:
        while True:
            heard = self.datagrams.recv(1000)
            self.count, self.heard = self.count + 1, self.heard + heard

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:  # closed: the end
                return
            self.count += 1
            connection.settimeout(1)
            with connection, contextlib.suppress(TimeoutError):
                self.heard += connection.recv(1000)


class App:
    """The page, driven as a person would."""

    def __init__(self, browser: Any, address: str):
        self.browser = browser
        browser.get(address)
        self.inside()

    def inside(self) -> None:
        self.wait_outside("return document.querySelector('iframe') !== null")
        self.browser.switch_to.frame(self.browser.find_element("tag name", "iframe"))
        self.wait("window.howsure && howsure.state.ready")

    def wait_outside(self, code: str) -> None:
        self.browser.switch_to.default_content()
        self._until(lambda: self.browser.execute_script(code), code)

    def wait(self, code: str) -> None:
        self._until(lambda: self.browser.execute_script(f"return !!({code})"), code)

    def _until(self, met: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not met():
            assert time.monotonic() < end, f"never: {what}; the page says {self.text('doing')!r}"
            time.sleep(0.1)

    def text(self, id_: str) -> str:
        return self.browser.execute_script(f"return document.getElementById('{id_}')?.textContent")

    def only(self, *paths: Path) -> None:
        """These files and no others."""
        self.browser.execute_script(
            "document.querySelectorAll('#files button').forEach((b) => b.click())"
        )
        self.wait("!howsure.state.files.size")
        self.browser.find_element("id", "pick").send_keys("\n".join(map(str, paths)))
        self.wait(f"document.querySelectorAll('#files li').length === {len(paths)}")
        self.wait("[...howsure.state.files.values()].every((f) => f.found)")

    def choose(self, task: str, **values: str) -> None:
        self.browser.execute_script(
            "document.querySelector(`[value=${arguments[0]}]`).click();"
            "for (const [id, v] of Object.entries(arguments[1])) {"
            " const e = document.getElementById(id); e.value = v;"
            " e.dispatchEvent(new Event(e.onchange ? 'change' : 'input')); }",
            task,
            values,
        )

    def run(self) -> dict[str, Any]:
        self.browser.execute_script(
            "howsure.state.answer = null; document.getElementById('run').click()"
        )
        self.wait("howsure.state.answer")
        return self.browser.execute_script("return howsure.state.answer")

    def ask(self, **message: Any) -> dict[str, Any]:
        code = "const done = arguments[1]; howsure.ask(arguments[0]).then(done)"
        return self.browser.execute_async_script(code, message)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("app")
    write_app(str(made), str(shared_or_skip("pyodide")), None, tell=str)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    made = Server(folder)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def app(browser: Any, server: Server) -> App:
    browser.set_script_timeout(PATIENCE)
    return App(browser, server.address)


def numbers(data: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a report with its place, but for where it was made.

    Which 1,500 dots the scatter plot shows is chosen by the bits of their coordinates; the last bit
    of an `exp` may differ between two machines, so the choice is left out. The numbers do not come
    from it.
    """
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in ("provenance", "howsure", "scatter"):
                yield from numbers(value, f"{where}.{key}")
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from numbers(value, f"{where}[{i}]")
    else:
        yield where, data


def assert_same(found: Any, expected: Any) -> int:
    here, there = dict(numbers(found)), dict(numbers(expected))
    assert here.keys() == there.keys()
    for where, value in there.items():
        if isinstance(
            value, float
        ):  # some are rounded to 12 digits, where a difference of 1e-16 may become one of 1e-12
            assert math.isclose(here[where], value, rel_tol=1e-12, abs_tol=1.001e-12), where
        else:
            assert here[where] == value, where
    return sum(isinstance(value, float) for value in there.values())


def native(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    code, out, _ = run_command(arguments, tell=str)
    return code, out


FILES = ["eurosat_rgb", "f538_nfl", "llm_mmlu_gpt_35_turbo"]


@pytest.mark.parametrize("name", FILES)
def test_every_number_is_that_of_the_command_line(
    app: App, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    split = ["--split", "test"]
    path = shared_or_skip(f"data/{name}.npz")
    app.only(path)
    app.choose("evaluate")
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    code, _ = native(
        ["evaluate", str(path), *split, "-o", "report.json", "--quiet"], tmp_path, monkeypatch
    )
    assert code == 0
    assert app.text("command") == " ".join(["howsure", "evaluate", path.name, *split])
    expected = json.loads((tmp_path / "report.json").read_text())
    assert assert_same(json.loads(answer["written"]["report.json"]), expected) > 100
    stages = app.browser.execute_script("return howsure.state.stages")
    parts = [stage for stage in stages if stage.startswith("measuring ")]
    assert stages == [
        f"reading {name}.npz",
        "measuring",
        *parts,
        *(f"writing report.{kind}" for kind in ("html", "json", "md")),
    ]
    assert len(parts) >= 5
    assert all(
        part.startswith(f"measuring {i} of {len(parts)}: ") for i, part in enumerate(parts, 1)
    )
    assert "<title>" in answer["written"]["report.html"]


def test_calibrate_gives_the_same_calibrator(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = shared_or_skip("data/eurosat_rgb.npz")
    app.only(path)
    app.choose("calibrate", more="--method temperature")
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    options = ["--method", "temperature", "-o", "calibrator.json", "--quiet"]
    native(
        ["calibrate", "--fit", str(path), "--split", "val", "--on-split", "test", *options],
        tmp_path,
        monkeypatch,
    )
    expected = json.loads((tmp_path / "calibrator.json").read_text())
    assert_same(json.loads(answer["written"]["calibrator.json"])["value"], expected["value"])


def test_threshold_gives_the_same_policy(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = shared_or_skip("data/eurosat_rgb.npz")
    app.only(path)
    app.choose("threshold", more="")
    app.choose("threshold", value="0.05")
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    options = ["--risk", "0.05", "-o", "policy.json"]
    code, out = native(
        [
            "threshold",
            str(path),
            "--split",
            "val",
            *options,
            "--on",
            str(path),
            "--on-split",
            "test",
        ],
        tmp_path,
        monkeypatch,
    )
    assert code == 0
    expected = json.loads((tmp_path / "policy.json").read_text())
    assert_same(json.loads(answer["written"]["policy.json"])["value"], expected["value"])
    assert answer["out"].splitlines()[0] == out.splitlines()[0]


def test_compare_gives_the_same_table(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = [shared_or_skip(f"data/ak_resnet{depth}_c10.npz") for depth in (20, 32)]
    app.only(*paths)
    app.choose("compare")
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    options = ["--split", "test", "-o", "report.json", "--quiet"]
    native(["compare", *map(str, paths), *options], tmp_path, monkeypatch)
    assert_same(
        json.loads(answer["written"]["report.json"]),
        json.loads((tmp_path / "report.json").read_text()),
    )


def test_wrong_columns_are_named_with_the_repair_and_can_be_renamed(app: App, tmp_path: Path):
    path = tmp_path / "odd.csv"
    rows = "".join(f"{0.5 + 0.004 * (i % 100):.3f},{int(i % 5 > 0)}\n" for i in range(200))
    path.write_text("confidence,was_it\n" + rows)
    app.only(path)
    assert "which answers are right; add a column correct" in app.text("files")
    app.browser.execute_script(
        "const e = [...document.querySelectorAll('td select')].at(-1);"
        "e.value = 'correct'; e.dispatchEvent(new Event('change'))"
    )
    app.wait("document.getElementById('files').textContent.includes('No problems.')")
    app.choose("evaluate")
    assert app.run()["code"] == 0
    assert app.text("command") == "howsure evaluate odd.csv --name correct=was_it"


def test_a_pair_of_numpy_files_is_one(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whichever comes first, it is looked at again when the other is there."""
    preds = hs.read(shared_or_skip("data/eurosat_rgb.npz"), split="test")
    hs.write(preds, tmp_path / "pair.npy")
    ids, labels, logits = sorted(tmp_path.iterdir())
    app.only(logits)
    assert "there are no labels" in app.text("files")
    app.browser.find_element("id", "pick").send_keys(f"{labels}\n{ids}")
    app.wait("document.getElementById('files').textContent.includes('No problems.')")
    assert "pair_logits.npy, pair_labels.npy, pair_ids.npy" in app.text("files")
    app.choose("evaluate")
    assert app.text("command") == "howsure evaluate pair_logits.npy"
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    native(["evaluate", str(logits), "-o", "report.json", "--quiet"], tmp_path, monkeypatch)
    expected = json.loads((tmp_path / "report.json").read_text())
    assert_same(json.loads(answer["written"]["report.json"]), expected)
    assert expected["n"] == preds.n
    app.browser.find_element("css selector", "#files button").click()
    app.wait("!howsure.state.files.size && !document.getElementById('hint').hidden")


def test_files_are_dropped(app: App, tmp_path: Path):
    """A drag from the desktop, by the browser's own events; two files at once."""
    app.browser.execute_script(
        "document.querySelectorAll('#files button').forEach((b) => b.click())"
    )
    rows = "".join(f"{0.5 + 0.004 * (i % 100):.3f},{int(i % 5 > 0)}\n" for i in range(200))
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("confidence,correct\n" + rows)
    data = {
        "items": [],
        "files": [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")],
        "dragOperationsMask": 1,
    }
    for kind in ("dragEnter", "dragOver", "drop"):
        app.browser.execute_cdp_cmd(
            "Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 220, "data": data}
        )
    app.wait("[...howsure.state.files.values()].filter((f) => f.found).length === 2")
    app.choose("evaluate")
    assert app.text("command") == "howsure evaluate one.csv two.csv"
    answer = app.run()
    assert answer["code"] == 0, answer["err"]
    assert json.loads(answer["written"]["report.json"])["n"] == 400


def test_a_name_that_begins_with_a_dash_is_no_option(app: App, tmp_path: Path):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 200).round(3)
    right = (rng.random(200) < confidence).astype(int)
    path = tmp_path / "-dash.csv"
    path.write_text("\n".join(["confidence,correct", *map("{},{}".format, confidence, right)]))
    app.only(path)
    for task in ("evaluate", "threshold"):
        app.choose(task)
        answer = app.run()
        assert answer["code"] in (0, 1), answer["err"]
        assert answer["written"]


def test_no_result_takes_the_place_of_a_file(app: App, tmp_path: Path):
    path = tmp_path / "report.json"
    path.write_text('{"a": 1}')
    app.only(path)
    app.choose("evaluate")
    said = [app.run()["err"] for _ in range(2)]
    # The second run finds the file too.
    assert said[0] == said[1]
    assert "report.json is no log" in said[0]


WRITTEN = {
    "evaluate": ["report.html", "report.json", "report.md"],
    "calibrate": ["report.html", "calibrator.json"],
    "threshold": ["policy.json"],
}


def test_what_is_downloaded_is_what_was_made(app: App, tmp_path: Path):
    app.only(shared_or_skip("data/eurosat_rgb.npz"))
    app.browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    made = {}
    for task in ("evaluate", "calibrate", "threshold"):
        app.choose(task, more="")
        answer = app.run()
        assert answer["code"] == 0, answer["err"]
        made |= answer["written"]
        links = app.browser.find_elements("css selector", "#downloads a")
        assert [link.get_attribute("download") for link in links] == WRITTEN[task]
        for link in links if task == "evaluate" else links[-1:]:
            link.click()
            path = tmp_path / link.get_attribute("download")
            app._until(path.exists, f"{path.name} is downloaded")
    for name in ("calibrator.json", "policy.json", "report.json", "report.md"):
        app._until(
            lambda name=name: (tmp_path / name).read_text(encoding="utf-8") == made[name],
            f"all of {name}",
        )


def test_a_format_whose_reader_is_not_there(app: App, tmp_path: Path):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    app.only(path)
    assert "needs pyarrow; Pyodide has none; save it as npz, csv or jsonl (python -c" in app.text(
        "files"
    )
    assert "pandas.read_parquet('table.parquet').to_csv('table.csv', index=False)" in app.text(
        "files"
    )


def test_safetensors_are_read(app: App, tmp_path: Path):
    rng = np.random.default_rng(0)
    preds = hs.Predictions.from_confidence(rng.random(300), rng.integers(0, 2, 300))
    hs.write(preds, tmp_path / "a.safetensors")
    app.only(tmp_path / "a.safetensors")
    app.choose("evaluate")
    assert app.run()["code"] == 0


def test_a_mistake_is_one_sentence(app: App):
    app.only(shared_or_skip("data/eurosat_rgb.npz"))
    app.choose("evaluate", more="--score no_such_score")
    answer = app.run()
    assert answer["code"] == 2
    assert "no_such_score" in app.text("error")
    assert "Traceback" not in answer["err"]
    app.choose("evaluate", more="")


def test_no_byte_leaves(app: App, server: Server):
    """Everything that can send, from JavaScript and from Python, to a listener and back home."""
    listener = Listener()
    app.only(shared_or_skip("data/f538_nfl.npz"))
    before, targets = (
        list(server.asked),
        [f"127.0.0.1:{listener.port}/", server.address.removeprefix("http://")],
    )
    app.browser.get_log("performance")
    for target in targets:
        said = app.browser.execute_async_script(
            FROM_THE_FRAME, f"http://{target}?secret", f"ws://{target}?secret"
        )
        assert said == dict.fromkeys(said, "refused")
        assert said.keys() >= {
            "fetch",
            "xhr",
            "socket",
            "beacon",
            "image",
            "worker",
            "script",
            "navigate",
            "webrtc",
        }
        for name, code in FROM_PYTHON.items():
            out = app.ask(python=code.replace("TARGET", f"{target}?secret"))
            assert out.get("out") == "refused", (name, out)
    app.run()
    app.browser.switch_to.frame(app.browser.find_element("css selector", "#report iframe"))
    assert (
        app.browser.execute_async_script(FROM_A_REPORT, f"127.0.0.1:{listener.port}") == "undefined"
    )
    app.browser.switch_to.default_content()
    app.inside()
    assert listener.heard == b""
    assert listener.count == 0
    assert server.asked == before
    events = [json.loads(e["message"])["message"] for e in app.browser.get_log("performance")]
    answered = [
        e["params"]["response"]["url"] for e in events if e["method"] == "Network.responseReceived"
    ]
    assert [url for url in answered if not url.startswith(("blob:", "data:"))] == []
    listener.socket.close()


FROM_THE_FRAME = (Path(__file__).parent / "sending.js").read_text(encoding="utf-8")
FROM_A_REPORT = """
const [host, done] = arguments;
document.head.insertAdjacentHTML("beforeend", `<link rel=preconnect href=http://${host}/>`);
document.body.insertAdjacentHTML("beforeend", `<iframe src=http://${host}/?secret></iframe>`);
setTimeout(() => done(typeof RTCPeerConnection), 2000);
"""
FROM_PYTHON = {
    "fetch": """
import js
try:
    await js.fetch("http://TARGET")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "pyfetch": """
from pyodide.http import pyfetch
try:
    await pyfetch("http://TARGET")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "open_url": """
from pyodide.http import open_url
try:
    open_url("http://TARGET")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "urllib": """
import urllib.request
try:
    urllib.request.urlopen("http://TARGET", timeout=3)
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "importScripts": """
import js
try:
    js.importScripts("http://TARGET")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "xhr": """
import js
try:
    x = js.XMLHttpRequest.new()
    x.open("POST", "http://TARGET", False)
    x.send("secret")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "socket": """
import asyncio, js
from pyodide.ffi import create_proxy
opened = []
try:
    s = js.WebSocket.new("ws://TARGET")
    s.onopen = create_proxy(opened.append)
    await asyncio.sleep(0.5)
except Exception:
    opened = []
"sent" if opened else "refused"
""",
    "beacon": """
import js
try:
    js.navigator.sendBeacon("http://TARGET", "secret")
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "webrtc": """
import js
"sent" if hasattr(js, "RTCPeerConnection") else "refused"
""",
    "image": """
import js
try:
    js.Image.new().src = "http://TARGET"
    found = "sent"
except Exception:
    found = "refused"
found
""",
    "module": """
import js
try:
    await js.eval("import('http://TARGET')")
    found = "sent"
except Exception:
    found = "refused"
found
""",
}


def test_it_can_be_stopped_and_goes_on(app: App):
    app.only(shared_or_skip("data/eurosat_rgb.npz"))
    app.choose("calibrate", more="--method all")
    app.browser.execute_script(
        "howsure.state.answer = null; document.getElementById('run').click()"
    )
    app.wait("!document.getElementById('cancel').hidden")
    app.browser.execute_script("document.getElementById('cancel').click()")
    assert app.browser.execute_script("return howsure.state.answer") is None
    app.wait("howsure.state.ready")
    app.choose("threshold", more="")
    assert app.run()["code"] == 0


def test_a_sample_to_start_with(app: App):
    app.browser.execute_script(
        "document.querySelectorAll('#files button').forEach((b) => b.click())"
    )
    app.browser.execute_script("document.getElementById('sample').click()")
    app.wait("document.getElementById('files').textContent.includes('No problems.')")
    app.choose("evaluate")
    assert app.run()["code"] == 0


def test_it_is_small_enough(folder: Path):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 20e6


def test_without_a_network_after_the_first_visit(app: App, server: Server):
    """Last: the server is gone afterwards."""
    app.wait_outside("return !!navigator.serviceWorker.controller")
    server.stop()
    app.browser.refresh()
    app.inside()
    app.only(shared_or_skip("data/f538_nfl.npz"))
    app.choose("evaluate")
    assert app.run()["code"] == 0
