"""The page in a real browser: nothing leaves it, nothing breaks, everything moves together and can
be read.
"""

import base64
import copy
from pathlib import Path
from typing import Any

import pytest

from browser.payloads import PAYLOADS
from howsure._core.text import escape_page
from howsure.report.render.page import render_page
from howsure.report.render.sections import format_cases
from howsure.report.render.sentences import format_metric

HERE = Path(__file__).parent
TEXTS = (HERE / "texts.js").read_text()
LINKED = (HERE / "linked.js").read_text()
WIDTHS = [1280, 820, 390, 360]
PAPER = 718  # pixels between the margins of A4


def test_nothing_is_requested_and_the_console_is_silent(show: Any) -> None:
    p = show()
    assert p.requests() == [p.path.as_uri()]
    assert p.console() == []


def test_the_policy_blocks_what_is_added_later(show: Any) -> None:
    p = show()
    p.script(
        "const s = document.createElement('script'); s.textContent = 'window.hurt = 1'; document.body.append(s)"
    )
    p.script(
        "const i = new Image(); i.src = 'https://example.invalid/x.png'; document.body.append(i)"
    )
    assert p.script("return window.hurt") is None
    refused = [text for text in p.console() if "Content Security Policy" in text]
    assert len(refused) == 2


def linked(p: Any) -> dict[str, Any]:
    """Everything that follows the operating point."""
    return p.script(LINKED)


def test_the_keyboard_moves_every_linked_view(show: Any) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    p = show()
    before = linked(p)
    slider = p.browser.find_element("id", "operating")
    slider.send_keys(*[keys.ARROW_LEFT] * 40)
    after = linked(p)
    assert [name for name in before if before[name] == after[name]] == []


@pytest.mark.parametrize("where", ["#operating", "[data-picture=risk]", "[data-picture=threshold]"])
def test_the_mouse_moves_every_linked_view(show: Any, where: str) -> None:
    chains = pytest.importorskip("selenium.webdriver").ActionChains
    p = show()
    before = linked(p)
    e = p.browser.find_element("css selector", where)
    p.script("arguments[0].scrollIntoView({block: 'center'})", e)
    chains(p.browser).move_to_element(e).click_and_hold().move_by_offset(-60, 0).move_by_offset(
        10, 0
    ).release().perform()
    after = linked(p)
    assert [name for name in before if before[name] == after[name]] == []


def test_the_numbers_at_every_operating_point_are_those_of_the_json(
    show: Any, report: dict[str, Any]
) -> None:
    p = show()
    o = report["views"]["operating"]
    for i in range(0, len(o["coverage"]), 25):
        p.script(
            "const s = document.getElementById('operating');"
            "s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
            i,
        )
        assert p.shown("coverage") == f"{o['coverage'][i] * 100:.1f} %"
        assert p.shown("accuracy") == f"{o['accuracy'][i] * 100:.2f} %"
        assert p.shown("wrong") == f"{o['wrong'][i]:,.0f} of {o['kept'][i]:,.0f}"
        assert p.shown("errors") == format_cases(o["errors"][i])
        assert p.shown("deferred") == format_cases(o["deferred"][i])
        shares = p.script(
            "return [...document.querySelectorAll('[data-class] progress')].map((e) => e.value)"
        )
        assert shares == [c["deferred"][i] for c in o["classes"]]


def test_the_metrics_are_those_of_the_json(show: Any, report: dict[str, Any]) -> None:
    p = show()
    cells = p.script(
        "return [...document.querySelectorAll('[data-metric]')].map((r) => [r.dataset.metric, r.cells[1].textContent])"
    )
    assert dict(cells) == {name: format_metric(name, e) for name, e in report["metrics"].items()}


def test_bins_are_switched_in_place(show: Any) -> None:
    p = show()
    visible = "return [...document.querySelectorAll('.bins')].filter((e) => e.checkVisibility()).map((e) => e.className)"
    assert p.script(visible) == ["bins bins-equal_range"]
    p.browser.find_element("css selector", "label[for=bins-adaptive]").click()
    assert p.script(visible) == ["bins bins-adaptive"]


def test_dark_and_light(show: Any) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    light, dark = show().script(background), show(dark=True).script(background)
    p = show()
    p.browser.find_element("id", "theme").click()
    assert light != dark
    assert p.script(background) == dark


def test_it_prints(show: Any) -> None:
    p = show()
    pdf = base64.b64decode(
        p.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    )
    assert pdf.startswith(b"%PDF")
    assert (
        2
        <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/")
        <= 20
    )


def test_paper_shows_every_number(show: Any) -> None:
    p = show(width=PAPER, media="print")
    p.script("dispatchEvent(new Event('beforeprint'))")
    assert p.cut() == []


def test_without_script_everything_can_be_read(
    show: Any, browser: Any, report: dict[str, Any]
) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    p = show()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    text = p.script("return document.body.innerText").replace("\u00a0%", " %")
    assert all(sentence in text for sentence in report["verdict"])
    assert all(finding["text"] in text for finding in report["findings"])
    assert not p.browser.find_element("id", "operating").is_displayed()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_is_small_or_lies_on_other_text(show: Any, width: int) -> None:
    p = show(width=width)
    p.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    texts = p.script(TEXTS)
    assert len(texts) > 300
    assert [t for t in texts if t["size"] < 12] == []
    assert overlaps(texts) == []


def overlaps(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than two pixels each way."""
    found: list[tuple[str, str]] = []
    rows = sorted(texts, key=lambda t: t["top"])
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            if b["top"] >= a["bottom"] - 2:
                break
            if (
                min(a["right"], b["right"]) - max(a["left"], b["left"]) > 2
                and min(a["bottom"], b["bottom"]) - b["top"] > 4
            ):
                found.append((a["text"], b["text"]))
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_not_wider_than_the_screen(show: Any, width: int) -> None:
    assert show(width=width).script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(show: Any, width: int, dark: bool) -> None:
    axe = pytest.importorskip(
        "axe_core_python", reason="left out: axe-core-python is not installed"
    )
    p = show(width=width, dark=dark)
    p.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    p.script((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = p.browser.execute_async_script(
        "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
    )
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []


def test_payloads_are_many() -> None:
    assert len(set(PAYLOADS)) >= 50


def test_hostile_names_execute_nothing(show: Any, report: dict[str, Any]) -> None:
    p = show(hostile(report))
    p.script(
        "document.querySelectorAll('*').forEach((e) => { e.dispatchEvent(new Event('mouseover')); })"
    )
    assert p.script("return window.hurt") is None
    assert p.requests() == [p.path.as_uri()]
    assert p.console() == []
    shown = p.script("return document.body.textContent")
    assert [text for text in PAYLOADS if escape_page(text) not in shown] == []


def hostile(report: dict[str, Any]) -> dict[str, Any]:
    """The report with every text that users give replaced by payloads."""
    data = copy.deepcopy(report)
    data["score"] = PAYLOADS[1]
    data["scores"] = {text: next(iter(report["scores"].values())) for text in PAYLOADS[:6]}
    data["provenance"]["inputs"] = [{"file": text, "sha256": PAYLOADS[0]} for text in PAYLOADS]
    data["provenance"]["command"] = PAYLOADS[2]
    data["class_names"] = PAYLOADS[:6]
    template = report["views"]["label_errors"][0]
    data["views"]["label_errors"] = [
        {**template, "id": t, "prediction": t, "label": t} for t in PAYLOADS
    ]
    template = report["views"]["classes"][0]
    data["views"]["classes"] = [{**template, "name": t} for t in PAYLOADS]
    template = report["views"]["operating"]["classes"][0]
    data["views"]["operating"]["classes"] = [{**template, "name": t} for t in PAYLOADS]
    data["findings"] = [{"name": t, "text": t, "evidence": {t: t}, "paper": t} for t in PAYLOADS]
    data["verdict"] = PAYLOADS[:3]
    for curve in data["curves"].values():
        curve["labels"] = [PAYLOADS[5], PAYLOADS[8]]
    return data


def test_a_page_is_the_same_every_time(report: dict[str, Any]) -> None:
    assert render_page(report) == render_page(copy.deepcopy(report))


@pytest.mark.parametrize("width", [700, 1088, 1280])
def test_every_section_can_be_seen_in_the_list_of_sections(show: Any, width: int):
    """The page inside the one that evaluates files is 1,088 pixels wide; a phone scrolls the list
    sideways.
    """
    found = show(width=width).script(
        "const e = document.querySelector('#contents ul'); return [e.scrollWidth - e.clientWidth, e.children.length]"
    )
    assert found[0] <= 1
    assert found[1] >= 5
