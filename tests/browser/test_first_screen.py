"""One question, one number; a phone's page is short; no address stops the script."""

from importlib.resources import files
from typing import Any

import pytest

import howsure as hs

DEMO = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")


@pytest.fixture(scope="module")
def demo() -> hs.Report:
    return hs.evaluate(hs.read(DEMO, split="test"))


def test_the_slider_starts_at_the_guarantee_of_the_verdict(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html())
    share = p.shown("coverage").split(" ")[0]
    assert f"Automate the most confident {float(share):g} %" in demo.data["verdict"][1]
    assert "right among these, observed" in p.script("return document.body.textContent")


def test_a_phone_shows_two_sections_and_opens_the_others(show: Any, demo: hs.Report) -> None:
    p = show(html=demo.to_html(), width=390)
    height = p.script("return document.documentElement.scrollHeight")
    assert height <= 6000
    p.script("document.querySelector('#numbers .fold').click()")
    assert p.script("return document.documentElement.scrollHeight") > height
    assert p.script("return document.querySelector('[data-metric=aurc]').checkVisibility()")


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
