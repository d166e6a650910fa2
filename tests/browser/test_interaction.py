"""What answers on a page: pointer, keys, tables, files, the address; decisions equal those of the
commands.
"""

import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import howsure as hs
from howsure import Predictions, compare, tally
from howsure.cli import main
from howsure.policies import guaranteed_threshold, threshold_for_cost

COSTS = [(50, 1, 0), (10, 1, 0.01), (3, 0.5, 0), (1e6, 1, 0), (0.1, 5, 0.2), (37.5, 2, 0.05)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of predictions, whose page the tests open."""
    made = tmp_path_factory.mktemp("deciding")
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, 1500)
    logits = 3.2 * np.eye(4)[labels] + 1.6 * rng.standard_normal((1500, 4))
    np.savez(
        made / "our data.npz",
        val_logits=logits,
        val_labels=labels,
        class_names=["ant", "bée", "<cat>", "d\\og"],
    )
    return made


def howsure(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    given = pytest.MonkeyPatch()
    given.chdir(folder)
    given.setattr("sys.argv", ["howsure", "evaluate", "our data.npz", "--split", "val"])
    assert howsure("evaluate", "our data.npz", "--split", "val", "--html", "page.html", "-q") == 0
    given.undo()
    return (folder / "page.html").read_text(encoding="utf-8")


@pytest.fixture
def files(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], bytes]]:
    """Presses a button and returns the file that it downloads."""
    to = tmp_path / "downloads"
    to.mkdir()
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(to)}
    )
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait

    def press(selector: str) -> bytes:
        for old in to.iterdir():
            old.unlink()
        browser.execute_script("document.querySelector(arguments[0]).click()", selector)

        # The browser keeps the name by an empty file until the download is complete.
        def find_complete(_: object) -> list[Path]:
            return [p for p in to.iterdir() if p.suffix != ".crdownload" and p.stat().st_size]

        return wait(browser, 10).until(find_complete)[0].read_bytes()

    yield press
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "default"})


def put(p: Any, **values: Any) -> None:
    """Type into the fields of the panel."""
    for name, value in values.items():
        p.script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change'))",
            name,
            str(value),
        )


def way(p: Any, name: str) -> None:
    p.browser.find_element("css selector", f"label[for=way-{name}]").click()


def preds(folder: Path) -> Predictions:
    with np.load(folder / "our data.npz", allow_pickle=False) as f:
        return Predictions.from_logits(f["val_logits"], f["val_labels"])


def test_a_value_stands_under_the_pointer_and_by_keys(show: Any, html: str) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    chains = pytest.importorskip("selenium.webdriver").ActionChains
    p = show(html=html)
    e = p.browser.find_element("css selector", "[data-picture=risk]")
    p.script("arguments[0].scrollIntoView({block: 'center'})", e)
    chains(p.browser).move_to_element(e).perform()
    said = p.script("return arguments[0].parentElement.querySelector('.tip.on').textContent", e)
    assert re.fullmatch(
        r"share accepted \d+\.\d\d % · wrong among the accepted \d+\.\d\d % · threshold [\d.]+",
        said,
    )
    data = json.loads(p.script("return document.getElementById('drawn').textContent"))["risk"][
        "series"
    ][0]["columns"]
    e.send_keys(keys.HOME)
    first = p.script("return arguments[0].parentElement.querySelector('.tip.on').textContent", e)
    assert first.startswith(f"share accepted {data['x'][0] * 100:.2f} %")
    e.send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT)
    third = p.script("return arguments[0].parentElement.querySelector('.tip.on').textContent", e)
    assert third.startswith(
        f"share accepted {data['x'][2] * 100:.2f} % · wrong among the accepted {data['y'][2] * 100:.2f} %"
    )
    e.send_keys(keys.ESCAPE)
    assert p.script("return arguments[0].parentElement.querySelector('.tip.on')", e) is None


def test_a_touch_shows_a_value_too(show: Any, html: str) -> None:
    p = show(html=html, width=390)
    where = p.script(
        "const e = document.querySelector('[data-picture=roc]'); e.closest('section').querySelector('.fold').click();"
        "e.scrollIntoView({block: 'center'});"
        "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]"
    )
    point = [{"x": where[0], "y": where[1]}]
    p.browser.execute_cdp_cmd(
        "Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": point}
    )
    p.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    said = p.script(
        "return document.querySelector('[data-picture=roc]').parentElement.querySelector('.tip.on')?.textContent"
    )
    assert said


def test_every_picture_has_values_and_files(show: Any, html: str) -> None:
    p = show(html=html)
    names = p.script(
        "return [...document.querySelectorAll('svg[data-picture]')].map((e) => e.dataset.picture)"
    )
    tools = p.script("return document.querySelectorAll('.tools [aria-label$=\"as SVG\"]').length")
    assert len(names) == len(set(names)) == tools
    assert {"risk", "threshold", "histogram", "corp", "scatter", "odds", "roc"} <= set(names)


def test_the_table_of_a_picture_is_what_is_drawn(
    show: Any, html: str, files: Callable[[str], bytes]
) -> None:
    p = show(html=html)
    drawn = json.loads(p.script("return document.getElementById('drawn').textContent"))
    for name in ("risk", "scatter", "corp"):
        text = files(f"[aria-label='Download the data of {name} as CSV']").decode()
        head, *rows = csv.reader(io.StringIO(text))
        data = drawn[name]
        assert head[:3] == ["series", *data["labels"]]
        want = [
            (s["name"], x, y)
            for s in data["series"]
            for x, y in zip(s["columns"]["x"], s["columns"]["y"], strict=True)
        ]
        assert [(r[0], float(r[1]), float(r[2])) for r in rows] == want


def test_a_picture_alone_is_a_drawing_that_needs_nothing(
    show: Any, html: str, files: Callable[[str], bytes], tmp_path: Path
) -> None:
    show(html=html)
    text = files("[aria-label='Download corp as SVG']").decode()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in text
    assert "<script" not in text
    lines = [
        e
        for e in root.iter("{http://www.w3.org/2000/svg}path")
        if e.get("stroke", "").startswith("rgb")
    ]
    assert len(lines) >= 3


def test_tables_sort_search_and_copy(show: Any, html: str) -> None:
    p = show(html=html)
    table = "document.querySelector('[aria-label=\"Class by class, table\"]')"
    shown = f"[...{table}.querySelectorAll('tbody tr')].filter((r) => !r.hidden)"
    column = f"return {shown}.map((r) => r.cells[arguments[0]].textContent)"
    press = f"{table}.querySelectorAll('.sort')[arguments[0]].click()"
    p.script(press, 1)
    up = [int(x.replace(",", "")) for x in p.script(column, 1)]
    assert up == sorted(up)
    p.script(press, 1)
    assert p.script(column, 1) == [f"{x:,}" for x in up[::-1]]
    p.script(press, 0)
    assert p.script(column, 0) == sorted(p.script(column, 0))
    assert p.script("return document.querySelectorAll('[aria-sort]').length") == 1
    metrics = "Can I rank by it?"
    box = p.browser.find_element("css selector", f"input[aria-label='Search {metrics}']")
    box.send_keys("aupr")
    found = "[...document.querySelectorAll('[data-metric]')].filter((r) => !r.hidden"
    here = "r.closest('.scroll').ariaLabel === arguments[0])"
    rows = p.script(f"return {found} && {here}.map((r) => r.dataset.metric)", metrics)
    assert rows == ["aupr_error", "aupr_success"]
    assert "aupr" in p.browser.current_url


def test_the_list_of_sections_follows_and_links_work(show: Any, html: str) -> None:
    p = show(html=html)
    listed = p.script(
        "return [...document.querySelectorAll('#contents a')].map((a) => a.getAttribute('href'))"
    )
    assert listed == p.script(
        "return [...document.querySelectorAll('main h2')].map((h) => `#${h.id}`)"
    )
    p.script("document.querySelector('#contents a[href=\"#numbers\"]').click()")
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    wait(p.browser, 5).until(
        lambda b: (
            b.execute_script("return document.querySelector('[aria-current]').getAttribute('href')")
            == "#numbers"
        )
    )
    assert p.browser.current_url.endswith("#numbers")


def test_a_shared_address_opens_the_same_view(show: Any, html: str) -> None:
    p = show(html=html)
    way(p, "cost")
    put(p, error=37.5, deferral=2, expert=0.05)
    p.browser.find_element("css selector", "label[for=bins-adaptive]").click()
    p.script(
        "[...document.querySelectorAll('[aria-label=\"Class by class, table\"] .sort')][2].click()"
    )
    every = "'[data-shown], #command, #classes ~ .scroll tbody'"
    bins = "document.querySelector('input[name=bins]:checked').id"
    view = (
        f"return [...document.querySelectorAll({every})].map((e) => e.textContent).join() + {bins}"
    )
    before, address = p.script(view), p.browser.current_url
    assert "error=37.5" in address
    p.browser.get("about:blank")
    p.browser.get(address)
    assert p.script(view) == before


def test_the_cheapest_threshold_is_that_of_the_function(show: Any, html: str, folder: Path) -> None:
    p, given = show(html=html), preds(folder)
    t = tally(given.confidence, correct=given.correct)
    way(p, "cost")
    for error, deferral, expert in COSTS:
        put(p, error=error, deferral=deferral, expert=expert)
        best = threshold_for_cost(t, error=error, deferral=deferral, expert_error=expert)
        assert p.shown("coverage") == f"{best.coverage * 100:.1f} %"
        assert p.shown("threshold") == (
            "defer all"
            if not best.kept
            else f"{best.threshold:.{7 if 0.99 <= best.threshold < 1 else 4}g}"
        )
        assert f"Per case: {best.cost:.4g} at this threshold" in p.script(
            "return document.getElementById('priced').textContent"
        )


def test_the_slider_moves_the_cost(show: Any, html: str) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    p = show(html=html)
    way(p, "cost")
    before = p.shown("coverage")
    dial = p.browser.find_element("css selector", "[data-dial=error]")
    dial.send_keys(*[keys.ARROW_RIGHT] * 8)
    assert float(p.script("return document.getElementById('error').value")) > 10
    assert p.shown("coverage") != before


@pytest.mark.parametrize("delta", ["0.01", "0.05", "0.1"])
def test_the_guarantee_is_that_of_the_function(
    show: Any, html: str, folder: Path, delta: str
) -> None:
    p, given = show(html=html), preds(folder)
    t = tally(given.confidence, correct=given.correct)
    way(p, "guarantee")
    seen = set()
    for risk in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        put(p, risk=risk, delta=delta)
        g = guaranteed_threshold(t, risk=risk, delta=float(delta), method="band")
        said = p.script("return document.getElementById('guaranteed').textContent")
        seen.add(g.feasible)
        assert p.shown("coverage") == f"{g.coverage * 100:.1f} %"
        assert (
            (f"at this threshold alone at most {g.bound * 100:.2f} %" in said)
            if g.feasible
            else ("Not enough labels to guarantee" in said)
        )
        assert (
            p.script("return document.getElementById('download-policy').disabled") is not g.feasible
        )
    assert seen == {True, False}


def test_a_risk_between_two_steps_has_the_guarantee_of_the_stricter_one(
    show: Any, html: str
) -> None:
    p = show(html=html)
    way(p, "guarantee")
    put(p, risk=0.1, delta="0.05")
    coverage = p.shown("coverage")
    put(p, risk=0.13, delta="0.05")
    assert p.shown("coverage") == coverage
    assert "--risk 0.1 " in p.script("return document.getElementById('command').textContent")
    put(p, risk=0.001, delta="0.05")
    said = p.script("return document.getElementById('guaranteed').textContent")
    assert said.startswith("Guarantees are offered for 0.5 % wrong and more")
    assert p.script("return document.getElementById('download-policy').disabled")


@pytest.mark.parametrize(
    "fragment",
    [
        "%",
        "%E0%A4%A",
        "way=none&delta=7&risk=x",
        "at=-5&t0=99&t1=0.5",
        "bins=..&call=x&way=guarantee",
    ],
)
def test_a_wrong_fragment_does_not_stop_the_script(show: Any, html: str, fragment: str) -> None:
    p = show(html=html)
    p.console()  # empties it
    p.script("location.hash = arguments[0]; location.reload()", fragment)
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    wait(p.browser, 5).until(
        lambda b: b.execute_script("return document.getElementById('command')?.textContent")
    )
    assert [entry for entry in p.console() if "Error" in entry] == []
    way(p, "guarantee")
    put(p, risk=0.1, delta="0.05")
    assert "--risk 0.1 " in p.script("return document.getElementById('command').textContent")


CHOICES = [
    ("share", {"operating": 100}),
    ("share", {"operating": 33}),
    *(("cost", {"error": e, "deferral": d, "expert": x}) for e, d, x in COSTS),
    ("guarantee", {"risk": 0.05, "delta": "0.05"}),
    ("guarantee", {"risk": 0.1, "delta": "0.01"}),
]


@pytest.mark.parametrize(("how", "values"), CHOICES)
def test_the_policy_downloaded_is_the_one_that_the_command_writes(
    show: Any,
    html: str,
    folder: Path,
    files: Callable[[str], bytes],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    values: Any,
) -> None:
    p = show(html=html)
    way(p, how)
    put(p, **values)
    command = shlex.split(p.script("return document.getElementById('command').textContent"))
    assert command[:5] == ["howsure", "threshold", "our data.npz", "--split", "val"]
    monkeypatch.chdir(folder)
    code = howsure(*command[1:], "-q")
    if p.script("return document.getElementById('download-policy').disabled"):
        assert code == 1
        return
    assert code == 0
    # A page knows neither how its file was read nor every count that was tested: both stay empty.
    written = hs.load(folder / "policy.json")
    guarantee = replace(written.guarantee, tested=())
    hs.save(replace(written, read=None, guarantee=guarantee), folder / "unread.json")
    assert files("#download-policy").decode() == (folder / "unread.json").read_text("utf-8")


def test_the_command_is_copied(show: Any, html: str) -> None:
    p = show(html=html)
    p.browser.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    p.script("document.getElementById('copy-command').click()")
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    wait(p.browser, 5).until(
        lambda b: (
            b.execute_script("return document.getElementById('taken').textContent") == "Copied."
        )
    )
    read = p.browser.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done(`${e}`))"
    )
    assert read == p.script("return document.getElementById('command').textContent")


@pytest.fixture(scope="module")
def thirty() -> str:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    made = {
        f"model {i}": Predictions.from_logits(
            (0.5 + 0.1 * i) * np.eye(3)[y] + rng.normal(size=(240, 3)), y
        )
        for i in range(30)
    }
    return compare(
        made, cost={name: 1e5 * 1.4**i for i, name in enumerate(made)}, cost_name="parameters"
    ).to_html()


def test_thirty_models_fit_are_told_apart_and_chosen(show: Any, thirty: str) -> None:
    assert len(thirty.encode()) < 300_000
    p = show(html=thirty)
    kinds = p.script(
        "return [...document.querySelectorAll('.models .key path')].map((e) => e.getAttribute('class'))"
    )
    assert len(set(kinds)) == 30
    assert "log scale" in p.script(
        "return document.querySelector('[data-picture=cost-aurc]').textContent"
    )
    p.script("const b = document.querySelector(\"input[data-shows='model 3']\"); b.click()")
    gone = p.script("return [...document.querySelectorAll(\"[data-model='model 3'].gone\")].length")
    assert gone >= 3
    assert "without=model+3" in p.browser.current_url
    chains = pytest.importorskip("selenium.webdriver").ActionChains
    row = p.browser.find_element("css selector", "tbody tr[data-model='model 7']")
    p.script("arguments[0].scrollIntoView({block: 'center'})", row)
    chains(p.browser).move_to_element(row).perform()
    assert (
        p.script("return document.querySelector(\"svg g[data-model='model 7']\").className.baseVal")
        == "strong"
    )
    assert (
        p.script("return document.querySelector(\"svg g[data-model='model 9']\").className.baseVal")
        == "faint"
    )
