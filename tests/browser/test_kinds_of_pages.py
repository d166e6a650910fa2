"""Pages of two classes with slices, after calibration, of many classes: they read, answer and stay
within the rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.test_page import PAPER, TEXTS, overlaps
from howsure import Predictions, calibration_report, evaluate
from howsure.metrics import npv, ppv, sensitivity, specificity

PAGES = ["binary", "calibration", "many"]


def biopsies() -> Predictions:
    """Two classes with a probability that is roughly right."""
    rng = np.random.default_rng(5)
    p = rng.beta(1, 4, 800).round(3)
    return Predictions.from_probs(
        p, (rng.random(800) < p).astype(int), class_names=["benign", "malignant"]
    )


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    rng = np.random.default_rng(7)
    given = biopsies()
    y = rng.integers(0, 5, 1200)
    z = 5 * (rng.normal(size=(1200, 5)) + 1.8 * np.eye(5)[y])
    val, test = (
        Predictions.from_logits(z[rows], y[rows]) for rows in (slice(0, 600), slice(600, None))
    )
    changed = calibration_report(val, test, "vector")
    after = evaluate(changed.calibrator(test), before=test)
    after.data["calibration"] = changed.to_dict()
    many = rng.integers(0, 20, 900)
    names = [f"class with a long name {i}" for i in range(20)]
    spread = 2.2 * np.eye(20)[many] + rng.normal(size=(900, 20))
    by = {"hospital": np.array(["north", "south", "a hospital with a long name"])[np.arange(800) % 3],
          "age": rng.integers(20, 90, 800) // 20}  # fmt: skip
    return {
        "binary": evaluate(given, by=by).to_html(),
        "calibration": after.to_html(),
        "many": evaluate(Predictions.from_logits(spread, many, class_names=names)).to_html(),
    }


@pytest.mark.parametrize("name", PAGES)
def test_it_is_small_silent_and_alone(show: Any, pages: dict[str, str], name: str) -> None:
    p = show(html=pages[name])
    assert len(pages[name].encode()) < 300_000
    assert p.requests() == [p.path.as_uri()]
    assert p.console() == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_it_can_be_read(show: Any, pages: dict[str, str], name: str, width: int) -> None:
    p = show(html=pages[name], width=width)
    p.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    texts = p.script(TEXTS)
    assert [t for t in texts if t["size"] < 12] == []
    assert overlaps(texts) == []
    assert p.script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_paper_shows_every_number(show: Any, pages: dict[str, str], name: str) -> None:
    assert show(html=pages[name], width=PAPER, media="print").cut() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(
    show: Any, pages: dict[str, str], name: str, width: int, dark: bool
) -> None:
    axe = pytest.importorskip(
        "axe_core_python", reason="left out: axe-core-python is not installed"
    )
    p = show(html=pages[name], width=width, dark=dark)
    p.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    p.script((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = p.browser.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations))"
    )
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []


def called(p: Any, name: str) -> str:
    return p.script(
        "return document.querySelector(`[data-called='${arguments[0]}']`).textContent", name
    )


def test_the_second_threshold_says_what_the_metrics_say(show: Any, pages: dict[str, str]) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    p, given = show(html=pages["binary"]), biopsies()
    slider = p.browser.find_element("id", "calling")
    numbers = {"sensitivity": sensitivity, "specificity": specificity, "ppv": ppv, "npv": npv}
    for steps, key in ((30, keys.ARROW_LEFT), (10, keys.ARROW_LEFT), (45, keys.ARROW_RIGHT)):
        slider.send_keys(*[key] * steps)
        at = float(called(p, "threshold"))
        for name, metric in numbers.items():
            assert called(p, name).startswith(f"{metric(given, at) * 100:.1f} %")
        assert f"call={round(at * 100)}" in p.browser.current_url
    assert "sensitivity" in slider.get_attribute("aria-valuetext")


def test_a_shared_address_opens_the_second_threshold(show: Any, pages: dict[str, str]) -> None:
    p = show(html=pages["binary"])
    p.browser.get("about:blank")
    p.browser.get(p.path.as_uri() + "#call=20")
    assert called(p, "threshold") == "0.20"


def test_a_table_is_copied_as_it_stands(show: Any, pages: dict[str, str]) -> None:
    p = show(html=pages["many"])
    p.browser.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    table = "document.querySelector('[aria-label=\"Class by class, table\"] table')"
    p.script(
        f"{table}.querySelectorAll('.sort')[1].click()"
    )  # sorted, then searched: what is seen is what is copied
    box = p.browser.find_element("css selector", "input[aria-label='Search Class by class, table']")
    box.send_keys("name 1")
    button = p.browser.find_element(
        "css selector", "button[aria-label='Copy Class by class, table']"
    )
    p.script("arguments[0].click()", button)
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    wait(p.browser, 5).until(lambda _: button.text == "Copied")
    read = p.browser.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done(`${e}`))"
    )
    head, *rows = [line.split("\t") for line in read.splitlines()]
    assert head[:3] == ["class", "samples", "recall"]
    seen = p.script(
        f"return [...{table}.tBodies[0].rows].filter((r) => !r.hidden)"
        ".map((r) => [...r.cells].map((c) => c.textContent.trim()))"
    )
    assert rows == seen
    assert 1 < len(rows) < 20
    counts = [int(row[1].replace(",", "")) for row in rows]
    assert counts == sorted(counts)


def test_slices_answer_to_the_pointer_and_download_with_their_names(
    show: Any, pages: dict[str, str]
) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    p = show(html=pages["binary"])
    e = p.browser.find_element("css selector", "[data-picture=slices]")
    p.script("arguments[0].scrollIntoView({block: 'center'})", e)
    e.send_keys(keys.HOME)
    said = p.script("return arguments[0].parentElement.querySelector('.tip.on').textContent", e)
    first = p.script(
        "return document.querySelector('#slices ~ .stack tbody tr').cells[0].textContent"
    )
    share = p.script(
        "return document.querySelector('#slices ~ .stack tbody tr').cells[2].textContent"
    )
    assert first[:15] in said
    assert f"{float(share.split()[0]):.1f}" == f"{float(said.split('accuracy ')[1].split()[0]):.1f}"
    assert "limits" in said


def test_the_cells_of_labels_and_answers_add_up_and_say_how_sure(
    show: Any, pages: dict[str, str]
) -> None:
    p, given = show(html=pages["binary"]), biopsies()
    rows = p.script(
        "return [...document.querySelectorAll('.heat tbody tr')].map((r) => [...r.cells].slice(1)"
        ".map((c) => [c.firstChild.textContent, c.querySelector('small')?.textContent ?? '']))"
    )
    for i, row in enumerate(rows):
        for j, (count, sure) in enumerate(row):
            cell = (given.labels == i) & (given.prediction == j)
            assert int(count.replace(",", "")) == cell.sum()
            assert sure == (f"{given.confidence[cell].mean() * 100:.0f} %" if cell.any() else "")


def test_many_classes_have_a_picture_of_the_commonest_confusions(
    show: Any, pages: dict[str, str]
) -> None:
    p = show(html=pages["many"])
    assert p.script("return document.querySelectorAll('.heat').length") == 0
    assert (
        p.script("return document.querySelectorAll('[data-picture=confusions] .dots').length") == 2
    )
    assert p.script("return document.querySelector('[data-picture=confusions]').checkVisibility()")


def test_two_classes_lead_with_the_class_that_is_looked_for(show: Any) -> None:
    """The slider on its probability starts at the threshold asked for, before what is automated."""
    given = biopsies()
    report = evaluate(given, thresholds=[0.12])
    p = show(html=report.to_html())
    assert called(p, "threshold") == "0.12"
    missed = round((1 - sensitivity(given, 0.12)) * int((given.labels == 1).sum()))
    assert f"({missed} of " in called(p, "missed")
    assert f"called from 12 % on, it misses {missed} of" in report.data["verdict"][0]
    tiles = p.script("return [...document.querySelectorAll('.tile dt')].map((e) => e.textContent)")
    assert tiles == [
        "AUC of malignant",
        "base rate",
        "calibration in the large",
        "calibration slope",
    ]
    sections = p.script("return [...document.querySelectorAll('main h2')].map((e) => e.id)")
    assert sections.index("positive") < sections.index("deciding")


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_a_short_page(show: Any, pages: dict[str, str], name: str) -> None:
    p = show(html=pages[name], width=390)
    assert p.script("return document.documentElement.scrollHeight") <= 6000


def test_calibration_begins_with_before_and_after_of_all(show: Any, pages: dict[str, str]) -> None:
    p = show(html=pages["calibration"])
    first = "return [...document.querySelectorAll('#changes ~ .pictures svg')].map((e) => e.dataset.picture)"
    assert p.script(first) == ["corp", "methods"]
    lines = "return document.querySelectorAll('[data-picture=methods] .line').length"
    assert p.script(lines) == 3  # before, the method that was asked for, and entropy
    assert p.script("return document.querySelectorAll('[data-picture=corp]').length") == 1


def test_images_lead_with_their_masks(show: Any) -> None:
    """Two classes of pixels are no cases of two classes."""
    rng = np.random.default_rng(0)
    y = (rng.random((6, 8, 8)) < 0.4).astype(int)
    p = np.clip(0.8 * y + 0.1 + 0.1 * rng.normal(size=y.shape), 0.01, 0.99)
    given = Predictions.from_probs(
        np.stack([1 - p, p], axis=-1).reshape(-1, 2), y.ravel(), group=np.repeat(np.arange(6), 64)
    )
    shown = show(html=evaluate(given, loss="dice").to_html())
    tiles = shown.script(
        "return [...document.querySelectorAll('.tile dt')].map((e) => e.textContent)"
    )
    assert not any(tile.startswith("AUC of") for tile in tiles)
    assert any("Dice" in tile for tile in tiles)


def test_suggestions_for_the_deferred(show: Any) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 6, 4000)
    z = rng.normal(size=(4000, 6)) + np.where(rng.random(4000) < 0.6, 9, 2)[:, None] * np.eye(6)[y]
    found = evaluate(Predictions.from_logits(z, y))
    shown = show(html=found.to_html())
    card = shown.script("return document.getElementById('suggested').innerText")
    assert found.data["suggestions"]["text"] in card
    assert "among the suggestions in 95 % of the deferred" in card
    risk = found.data["suggestions"]["risk"]
    assert f"howsure threshold FILE --risk {risk:g} --suggest 0.95 -o policy.json" in card
    assert shown.cut() == []
    del found.data["suggestions"]
    assert show(html=found.to_html()).script("return document.getElementById('suggested')") is None
