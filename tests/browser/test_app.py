"""The page that evaluates in the browser: real Chromium, real Pyodide, real files, servers that
count.
"""

import contextlib
import functools
import http.server
import json
import math
import shlex
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

    def __init__(self, folder: Path, pause: float = 0):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                asked.append(self.requestline)

            def copyfile(self, source: Any, outputfile: Any) -> None:
                """A slow line, where a pause is asked for."""
                while block := source.read(1 << 18):
                    outputfile.write(block)
                    time.sleep(pause)

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

    def remove_all(self) -> None:
        self.browser.execute_script(
            "document.querySelectorAll('#files [aria-label^=Remove]').forEach((b) => b.click())"
        )
        self.wait("!howsure.state.files.size && !document.getElementById('hint').hidden")

    def click(self, button: str) -> dict[str, Any]:
        """Click on the button whose text begins so; its answer."""
        self.browser.execute_script("howsure.state.answer = null")
        xpath = f"//div[@class='choices']/button[starts-with(., {json.dumps(button, ensure_ascii=False)})]"
        self.browser.find_element("xpath", xpath).click()
        self.wait("howsure.state.answer")
        return self.browser.execute_script("return howsure.state.answer")

    def only(self, *paths: Path) -> None:
        """These files and no others."""
        self.remove_all()
        self.browser.find_element("id", "pick").send_keys("\n".join(map(str, paths)))
        self.wait(f"document.querySelectorAll('#files li').length === {len(paths)}")
        self.wait("[...howsure.state.files.values()].every((f) => f.found)")
        self.wait(f"document.querySelectorAll('#files li').length === {len(paths)}")
        self.wait("document.getElementById('state').classList.contains('still')")

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
    assert "Nothing says which answers are right." in app.text("files")
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
    assert "There are no labels" in app.text("files")
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
    app.remove_all()


def test_files_are_dropped(app: App, tmp_path: Path):
    """A drag from the desktop, by the browser's own events; two files at once."""
    app.remove_all()
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


SAVE = "Reading {} needs pyarrow, which a browser does not have. Save it as npz, csv or jsonl"
OTHER_FILES = {
    "table.parquet": (b"PAR1", SAVE.format("table.parquet")),
    "it's.feather": (b"ARROW1", 'pandas.read_feather("it\'s.feather").to_csv("it\'s.csv"'),
    "sheet.xlsx": (b"PK\x03\x04", "save the sheet as CSV, or pandas.read_excel('sheet.xlsx')"),
    "frame.pkl": (b"\x80\x04", "a pickle can run code, so none is read: load it yourself and save"),
    "empty.csv": (b"", "Is empty; a header line and at least one row are needed."),
    "page.pdf": (b"%PDF", "Has the unknown suffix '.pdf'; known are"),
    "report.json": (b'{"howsure": "1", "schema": 1}', "It holds results, not predictions"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_what_cannot_be_read_is_one_sentence(app: App, name: str, tmp_path: Path):
    content, sentence = OTHER_FILES[name]
    (tmp_path / name).write_bytes(content)
    app.only(tmp_path / name)
    problems = app.browser.find_elements("css selector", "#files .problem")
    assert len(problems) == 1
    assert sentence.lower() in problems[0].text.lower()
    assert "--" not in problems[0].text


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


def write_table(path: Path, columns: dict[str, Any]) -> Path:
    rows = zip(*(map(str, np.asarray(column).tolist()) for column in columns.values()), strict=True)
    text = "\n".join([",".join(columns), *map(",".join, rows)])
    path.write_text(text + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def satellite() -> hs.Predictions:
    """600 real images of ten classes."""
    preds = hs.read(shared_or_skip("data/eurosat_rgb.npz"), split="test")
    return preds[:600]


CLASSES = [
    "crop",
    "forest",
    "herbs",
    "highway",
    "industry",
    "pasture",
    "orchard",
    "houses",
    "river",
    "sea",
]


def write_classes(path: Path, preds: hs.Predictions) -> None:
    probs = dict(zip(CLASSES, preds.probs.T, strict=True))
    write_table(path, {"land": np.array(CLASSES)[preds.labels], **probs})


def write_percentages(path: Path, preds: hs.Predictions) -> None:
    write_table(path, {"confidence": 100 * preds.confidence, "correct": preds.correct.astype(int)})


def write_certainty(path: Path, preds: hs.Predictions) -> None:
    columns = {"label": preds.labels, "prediction": preds.prediction, "surely": preds.confidence}
    write_table(path, columns)


def write_scaled(path: Path, preds: hs.Predictions) -> None:
    probs = {f"prob_{i}": 0.5 * p for i, p in enumerate(preds.probs.T)}
    write_table(path, {**probs, "label": preds.labels})


# The file, the sentence, the button, and what is the same on the command line.
PROPOSALS = {
    "classes.csv": (
        write_classes,
        "Has no logit_0…, prob_0… or confidence",
        "Use 'crop' … 'sea' as the probabilities of the classes, 'land' as the label",
        ["--name", f"probs={','.join(CLASSES)}", "--name", "labels=land"],
    ),
    "percent.csv": (
        write_percentages,
        "lines 2, 3, 4, 5, 6 and 595 more: confidence is",
        "These are percentages",
        ["--percent"],
    ),
    "certainty.csv": (
        write_certainty,
        "Has no logit_0…, prob_0… or confidence",
        "Use 'surely' as how sure it is",
        ["--name", "confidence=surely"],
    ),
    "scaled.csv": (
        write_scaled,
        "probs sum to 0.5, expected 1",
        "Divide each row of probabilities by its sum",
        ["--renormalise"],
    ),
}


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_click_on_a_proposal_gives_the_report(
    app: App,
    name: str,
    satellite: hs.Predictions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    write, sentence, button, options = PROPOSALS[name]
    write(tmp_path / name, satellite)
    app.only(tmp_path / name)
    app.choose("evaluate")
    shown = app.text("files")
    assert sentence.lower() in shown.lower()
    assert "--" not in shown
    answer = app.click(button)
    assert answer["code"] == 0, answer["err"]
    assert app.browser.find_elements("css selector", "#report iframe")
    assert shlex.split(app.text("command")) == ["howsure", "evaluate", name, *options]
    call = ["evaluate", name, *options, "-o", "expected.json", "--quiet"]
    assert native(call, tmp_path, monkeypatch)[0] == 0
    expected = json.loads((tmp_path / "expected.json").read_text())
    assert expected["n"] == 600
    assert_same(json.loads(answer["written"]["report.json"]), expected)
    # It can be taken back.
    app.browser.find_element("css selector", "#files [aria-label$='as before']").click()
    app.wait("document.querySelector('#files .choices')")
    assert app.text("command") == f"howsure evaluate {name}"


def test_a_real_table_of_a_clinic_asks_what_its_columns_are(app: App):
    app.only(shared_or_skip("data2/clinical_dcurves/df_binary.csv"))
    app.choose("evaluate")
    answer = app.click(
        "Use 'cancerpredmarker' as the probability of class 1, 'cancer' as the label"
    )
    assert answer["code"] == 0, answer["err"]
    assert json.loads(answer["written"]["report.json"])["n"] == 750


def test_the_keyboard_is_enough(app: App, satellite: hs.Predictions, tmp_path: Path):
    """Tab to the button, Enter, and the reading is told where the focus is."""
    write_percentages(tmp_path / "percent.csv", satellite)
    app.only(tmp_path / "percent.csv")
    app.choose("evaluate")
    app.browser.execute_script(
        "howsure.state.answer = null; document.querySelector('#files [aria-label^=Remove]').focus()"
    )
    keyboard = app.browser.switch_to.active_element
    keyboard.send_keys("\ue004")  # Tab
    button = app.browser.switch_to.active_element
    assert button.text == "These are percentages"
    button.send_keys("\ue007")  # Enter
    app.wait("howsure.state.answer")
    assert app.browser.execute_script("return document.activeElement.id") == "result"


def test_columns_of_classes_are_one_row(app: App, satellite: hs.Predictions, tmp_path: Path):
    probs = {f"proba_{i}": p for i, p in enumerate(satellite.probs.T)}
    path = write_table(tmp_path / "wide.csv", {**probs, "y_true": satellite.labels})
    app.only(path)
    cells = "[...document.querySelectorAll('#files tbody tr')].map((r) => r.cells[0].textContent)"
    assert app.browser.execute_script(f"return {cells}") == ["proba_0 … proba_9 (10)", "y_true"]
    said = app.browser.find_element("css selector", "#files .receipt").text
    assert said == (
        "Read as: probabilities = 'proba_0' … 'proba_9', "
        "right = most probable class against 'y_true'."
    )
    # One choice is for all of them.
    app.browser.execute_script(
        "const e = document.querySelector('td select'); e.value = 'logits';"
        "e.focus(); e.dispatchEvent(new Event('change'))"
    )
    app.wait("document.querySelector('.receipt')?.textContent.startsWith('Read as: logits')")
    assert "logits=proba_0,proba_1,proba_2" in app.text("command")
    focus = "return document.activeElement.ariaLabel"
    assert app.browser.execute_script(focus) == "proba_0 … proba_9 (10) is read as"


def test_a_column_that_is_not_used_can_be(app: App, satellite: hs.Predictions, tmp_path: Path):
    columns = {
        "confidence": satellite.confidence,
        "correct": satellite.correct.astype(int),
        "freq": 1 + np.arange(600) % 3,
    }
    app.only(write_table(tmp_path / "counted.csv", columns))
    app.choose("evaluate")
    answer = app.click("Use 'freq' as how often each row counts")
    assert json.loads(answer["written"]["report.json"])["n"] == 1200


@pytest.mark.parametrize(
    ("button", "key", "value"),
    [
        ("Compare them", "models", 2),
        ("Average them", "samples", 2),
        ("Put them together", "n", 1200),
    ],
)
def test_files_of_the_same_rows_ask_what_they_are(
    app: App, satellite: hs.Predictions, tmp_path: Path, button: str, key: str, value: int
):
    for name, sharper in (("one.npz", 1), ("two.npz", 0.7)):
        np.savez(tmp_path / name, logits=sharper * np.log(satellite.probs), labels=satellite.labels)
    app.only(tmp_path / "one.npz", tmp_path / "two.npz")
    app.choose("evaluate")
    assert app.run()["code"] == 2
    assert app.text("error") == (
        "one.npz and two.npz have the same 600 rows (identical labels). What are they?"
    )
    answer = app.click(button)
    assert answer["code"] == 0, answer["err"]
    found = json.loads(answer["written"]["report.json"])[key]
    assert (len(found) if key == "models" else found) == value


def test_labels_of_a_second_file(app: App, satellite: hs.Predictions, tmp_path: Path):
    ids = [f"tile {i}" for i in range(600)]
    probs = {f"prob_{i}": p for i, p in enumerate(satellite.probs.T)}
    write_table(tmp_path / "answers.csv", {"tile": ids, **probs})
    order = np.random.default_rng(0).permutation(600)
    gold = {"tile": [ids[i] for i in order], "gold": satellite.labels[order]}
    write_table(tmp_path / "-gold.csv", gold)
    app.only(tmp_path / "answers.csv")
    app.choose("evaluate")
    assert "There are no labels" in app.text("files")
    app.browser.find_element("id", "pick").send_keys(str(tmp_path / "-gold.csv"))
    app.wait("document.querySelectorAll('#files .choices button').length")
    answer = app.click("Take the labels from -gold.csv, joined by tile")
    assert answer["code"] == 0, answer["err"]
    report = json.loads(answer["written"]["report.json"])
    assert report["n"] == 600
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(satellite.correct.mean())
    assert "Holds the labels of answers.csv." in app.text("files")


ODD_NAMES = [
    'a b\'s "c" & <i>d.csv',
    "name=value.csv",
    "a,b;c.csv",
    "50%.csv",
    "ünïcödé 漢字.csv",
    "a[1]*.csv",
    "--help.csv",
    "$(x)`y`.csv",
    "con\u202e.csv",
]


def test_odd_names_of_files(app: App, satellite: hs.Predictions, tmp_path: Path):
    app.choose("evaluate")
    for name in ODD_NAMES:
        write_table(
            tmp_path / name,
            {"confidence": satellite.confidence, "correct": satellite.correct.astype(int)},
        )
        app.only(tmp_path / name)
        answer = app.run()
        assert answer["code"] == 0, (name, answer["err"])
        assert json.loads(answer["written"]["report.json"])["n"] == 600


def test_what_stands_in_a_file_does_not_act(app: App, satellite: hs.Predictions, tmp_path: Path):
    evil = "<svg onload=document.title=1>"
    columns = {evil: satellite.confidence, "ok": satellite.correct.astype(int)}
    app.browser.get_log("browser")
    app.only(write_table(tmp_path / f"{evil.replace('/', '')}.csv", columns))
    app.choose("evaluate")
    assert app.click(f"Use '{evil}' as how sure it is")["code"] == 0
    assert not app.browser.find_elements("tag name", "svg")
    assert [e for e in app.browser.get_log("browser") if e["level"] == "SEVERE"] == []


LOOK = """
const style = getComputedStyle(document.body), root = getComputedStyle(document.documentElement);
return [style.fontFamily, style.backgroundColor, style.color, style.lineHeight,
        root.getPropertyValue("--accent"), getComputedStyle(document.querySelector("h2")).font];
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_looks_like_the_report(app: App, width: int, dark: bool, tmp_path: Path):
    """Fonts, colours and spacing are the report's; nothing is cut on a phone, and axe agrees."""
    axe = pytest.importorskip(
        "axe_core_python", reason="left out: axe-core-python is not installed"
    )
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    app.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    app.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    rows = "".join(f"{50 + i % 50},{int(i % 5 > 0)},{i}\n" for i in range(200))
    (tmp_path / "odd.csv").write_text("confidence,correct,freq\n" + rows)
    app.remove_all()
    app.browser.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text())
    check = "const done = arguments[0]; axe.run({ iframes: false }).then((r) => done(r.violations))"
    for files in ([], [tmp_path / "odd.csv"], [shared_or_skip("data/eurosat_rgb.npz")]):
        if files:
            app.only(*files)
            app.choose("threshold")
        assert app.browser.execute_async_script(check) == []
        assert app.browser.execute_script("return document.body.scrollWidth") <= width
    app.choose("evaluate")
    assert app.run()["code"] == 0
    assert app.browser.execute_async_script(check) == []
    ours = app.browser.execute_script(LOOK)
    app.browser.switch_to.frame(app.browser.find_element("css selector", "#report iframe"))
    assert app.browser.execute_script(LOOK) == ours
    app.browser.switch_to.default_content()
    app.inside()
    app.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    app.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


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


STARTING = """
return { steps: [...document.querySelectorAll("#steps li")].map((e) => e.className),
         doing: document.getElementById("doing").textContent,
         moving: document.getElementById("sign").getAnimations().length,
         bar: document.getElementById("bar").value };
"""


def test_every_step_of_the_start_is_told(app: App):
    found = app.browser.execute_script("document.getElementById('cancel').click();" + STARTING)
    assert found == {
        "steps": ["done", "now", "", ""],
        "doing": "Starting Python",
        "moving": 1,
        "bar": 0.5,
    }
    app.wait("document.getElementById('doing').textContent === 'Loading howsure'")
    app.wait("howsure.state.ready")
    found = app.browser.execute_script(STARTING)
    assert (found["doing"], found["moving"]) == ("Python is ready", 0)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_sign_moves_where_motion_is_wanted(app: App, server: Server, motion: str):
    """By itself: the browser emulates this for a page, not for the frames in it."""
    feature = {"name": "prefers-reduced-motion", "value": motion}
    app.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    app.browser.switch_to.default_content()
    app.browser.get(f"{server.address}frame.html")
    moving = app.browser.execute_script(STARTING)["moving"]
    assert moving == int(motion == "no-preference")
    app.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    app.browser.get(server.address)
    app.inside()


def test_the_download_is_counted(app: App, folder: Path, server: Server):
    slow = Server(folder, pause=0.02)
    app.browser.switch_to.default_content()
    app.browser.get(slow.address)
    app.wait_outside("return document.querySelector('iframe') !== null")
    app.browser.switch_to.frame(app.browser.find_element("tag name", "iframe"))
    said: dict[str, None] = {}  # in its order
    shown = "return document.getElementById('detail')?.textContent ?? ''"
    while not app.browser.execute_script("return !!window.howsure?.state.runtime"):
        said[app.browser.execute_script(shown).split(": ")[0]] = None
    counted = [text.split(" ") for text in said if text.endswith(" MB")]
    loaded = [float(words[0]) for words in counted]
    assert len(loaded) >= 3
    assert loaded == sorted(loaded)
    assert 0 < loaded[0] < loaded[-1] <= float(counted[0][2])
    slow.stop()
    app.browser.switch_to.default_content()
    app.browser.get(server.address)
    app.inside()


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
    app.remove_all()
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
