"""The page of a comparison in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.payloads import PAYLOADS
from browser.test_page import PAPER, TEXTS, overlaps
from howsure import Predictions, compare

LONG = "wideresnet_16_4_cifar10_run_3"


@pytest.fixture(scope="module")
def html() -> str:
    """Three models, one with a long and one with a hostile name, with costs, groups, a shifted and
    an outside set.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    group = np.array(PAYLOADS)[np.arange(300) % 6]
    made = {
        name: Predictions.from_logits(
            signal * np.eye(4)[y] + rng.normal(size=(300, 4)), y, group=group
        )
        for name, signal in ((LONG, 4.0), ("small", 2.0), (PAYLOADS[6], 1.0))
    }
    cost = {LONG: 25e6, "small": 1e6, PAYLOADS[6]: 2e6}
    out = {PAYLOADS[1]: {LONG: Predictions.from_logits(rng.normal(size=(50, 4)))}}
    fog = {
        PAYLOADS[2]: {
            LONG: Predictions.from_logits(rng.normal(size=(50, 4)), rng.integers(0, 4, 50))
        }
    }
    return compare(
        made, by=True, cost=cost, cost_name=PAYLOADS[3], shifted=fog, outside=out
    ).to_html()


def test_it_is_silent_and_alone(show: Any, html: str) -> None:
    p = show(html=html)
    assert p.requests() == [p.path.as_uri()]
    assert p.console() == []
    assert p.script("return window.hurt") is None


@pytest.mark.parametrize("width", [1280, 390, 360])
def test_it_can_be_read(show: Any, html: str, width: int) -> None:
    p = show(html=html, width=width)
    texts = p.script(TEXTS)
    assert [t for t in texts if t["size"] < 12] == []
    assert overlaps(texts) == []
    assert p.script("return document.documentElement.scrollWidth") <= width
    assert p.cut() == []


def test_one_leaderboard_comes_first_and_pairs_are_folded(show: Any, html: str) -> None:
    p = show(html=html)
    first = "return document.querySelector('main table thead').innerText"
    heads = p.script(first)
    for title in ("accuracy", "AURC", "ECE", "coverage at 5 % risk", "EOR", "gap to the best"):
        assert title in heads
    folded = (
        "return document.querySelector(\"[aria-label='Paired differences']\").checkVisibility()"
    )
    assert not p.script(folded)
    p.script("document.querySelector('#matrix ~ details summary').click()")
    assert p.script(folded)


def test_names_stand_at_their_lines_in_their_colour(show: Any, html: str) -> None:
    p = show(html=html)
    of = "[data-picture=risk] [data-model='small']"
    name = p.script(f'return getComputedStyle(document.querySelector("{of} text")).fill')
    others = p.script(
        "return [...document.querySelectorAll('[data-picture=risk] text.name')].map((e) => getComputedStyle(e).fill)"
    )
    assert name in others
    assert len(set(others)) == 3


def test_a_phone_shows_a_short_page(show: Any, html: str) -> None:
    p = show(html=html, width=390)
    assert p.script("return document.documentElement.scrollHeight") <= 6000


def test_paper_shows_every_number(show: Any, html: str) -> None:
    assert show(html=html, width=PAPER, media="print").cut() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(show: Any, html: str, width: int, dark: bool) -> None:
    axe = pytest.importorskip(
        "axe_core_python", reason="left out: axe-core-python is not installed"
    )
    p = show(html=html, width=width, dark=dark)
    p.script((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = p.browser.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations))"
    )
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
