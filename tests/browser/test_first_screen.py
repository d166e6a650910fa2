"""One question, one number; a phone's page is short; no address stops the script."""

import json
from importlib.resources import files
from typing import Any

import pytest

import howsure as hs
from howsure.report.render import page

DEMO = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")


@pytest.fixture(scope="module")
def demo() -> hs.Report:
    return hs.evaluate(hs.read(DEMO, split="test"))


def test_the_slider_starts_at_the_guarantee_of_the_verdict(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    share = p.shown("coverage").split(" ")[0]
    assert f"Automate the most confident {float(share):g} %" in demo.data["verdict"][1]
    assert "right among these, observed" in p.script("return document.body.textContent")


def test_both_curves_mark_the_guarantee_wherever_the_slider_is(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    place = "return document.querySelector('[data-picture=%s] .guaranteed').getAttribute('d')"
    before = [p.script(place % name) for name in ("risk", "threshold")]
    p.script(
        "const s = document.getElementById('operating'); s.value = 40; s.dispatchEvent(new Event('input'))"
    )
    assert [p.script(place % name) for name in ("risk", "threshold")] == before
    said = "return document.querySelector('[data-picture=%s] .promised').textContent"
    assert {p.script(said % name) for name in ("risk", "threshold")} == {"guaranteed ≤ 1 %"}
    # The mark lies where the slider starts: the same coverage, to the row of the table.
    share = demo.data["guarantees"][0]["coverage"]
    at = "const p = howsure.pictures.find((p) => p.name === 'risk'); return p.x(arguments[0])"
    assert float(before[0][1:].split(" ")[0]) == pytest.approx(p.script(at, share), abs=0.1)


def test_shading_leaves_the_pictures_as_they_are(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    heights = "return [...document.querySelectorAll('.deferred')].map((e) => Number(e.getAttribute('height')))"
    assert set(p.script(heights)) == {4}


def test_a_histogram_of_one_bar_has_a_square_root_axis(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    svg = "document.querySelector('[data-picture=histogram]')"
    assert p.script(f"return {svg}.dataset.kinds") == "linear root"
    assert "square-root scale" in p.script(f"return {svg}.textContent")
    # The pointer reads the same scale: a quarter of the highest bar stands at half the height.
    place = (
        "const q = howsure.pictures.find((p) => p.name === 'histogram'); return q.y(arguments[0])"
    )
    most = max(demo.data["views"]["histogram"]["right"])
    low, half, high = (p.script(place, most * share) for share in (0, 0.25, 1))
    assert half == pytest.approx((low + high) / 2)


def test_the_page_says_when_it_was_made_and_of_what(
    show: Any, demo: hs.Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setattr(page, "find_docs_address", lambda: "https://howsure.example/docs")
    data = json.loads(demo.to_json())
    data["provenance"]["inputs"] = [{"file": "shop.npz", "sha256": "0" * 64}]
    p = show(data)
    header = p.script("return document.querySelector('header').innerText")
    assert "14 November 2023" in header
    assert "shop.npz" in header
    assert p.script("return document.querySelector('.made a').href").startswith("https://howsure")


def test_a_phone_shows_two_sections_and_opens_the_others(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html(), width=390)
    height = p.script("return document.documentElement.scrollHeight")
    assert height <= 6000
    p.script("document.querySelector('#numbers .fold').click()")
    assert p.script("return document.documentElement.scrollHeight") > height
    assert p.script("return document.querySelector('[data-metric=aurc]').checkVisibility()")


def test_the_button_that_folds_stays_in_its_heading(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html(), width=390)
    outside = p.script(
        "return [...document.querySelectorAll('h2 .fold')].filter((b) => "
        "b.getBoundingClientRect().bottom > b.parentElement.getBoundingClientRect().bottom + 1).length"
    )
    assert outside == 0


def test_a_link_opens_its_section(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html(), width=390)
    p.script("document.querySelector(\"#contents a[href='#pictures']\").click()")
    assert p.script("return document.querySelector('[data-picture=odds]').checkVisibility()")


def test_a_wide_page_folds_nothing(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    assert p.script("return document.querySelector('[data-metric=aurc]').checkVisibility()")
    assert not p.script("return document.querySelector('.fold').checkVisibility()")


@pytest.mark.parametrize(
    "fragment", ["%", "t0=999", "way=promise&delta=.5", "at=x", "&&=", "%E0%A4"]
)
def test_no_address_stops_the_script(show: Any, demo: hs.Report, fragment: str) -> None:
    p = show(html=demo.to_html())
    p.browser.get(f"{p.path.as_uri()}?{len(fragment)}#{fragment}")
    p.script(
        "const s = document.getElementById('operating'); s.value = 40; s.dispatchEvent(new Event('input'))"
    )
    assert p.shown("coverage").startswith("20.5")
    assert [line for line in p.console() if "SEVERE" in line or "Uncaught" in line] == []
