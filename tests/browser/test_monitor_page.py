"""The page of a monitor in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.payloads import PAYLOADS
from browser.test_page import PAPER, TEXTS, overlaps
from howsure import Predictions, monitor
from howsure.policies import Policy

MONTHS = ("2024-01", "2024-02", "2024-03", PAYLOADS[2])
# texts of a drawing that reach beyond it, and so are cut
BEYOND = """return [...document.querySelectorAll('figure svg')].flatMap((s) => {
  const box = s.getBoundingClientRect();
  return [...s.querySelectorAll('text')].filter((t) => {
    const b = t.getBoundingClientRect();
    return b.left < box.left - 0.5 || b.right > box.right + 0.5 || b.top < box.top - 0.5 || b.bottom > box.bottom + 0.5;
  }).map((t) => t.textContent);
})"""
AXIS = """return [...document.querySelector('figure svg').querySelectorAll('text[text-anchor=middle]')]
  .map((t) => t.textContent).filter((t) => t)"""


@pytest.fixture(scope="module")
def html() -> str:
    """Four months, the last with a hostile name and harder; labels of the third, a policy, groups
    and a limit.
    """
    rng = np.random.default_rng(0)
    names = ["cat", "dog", PAYLOADS[0]]

    def drawn(n: int, signal: float, first: int, *, labelled: bool) -> Predictions:
        y = rng.integers(0, 3, n)
        logits = signal * np.eye(3)[y] + rng.normal(size=(n, 3))
        return Predictions.from_logits(
            logits, y if labelled else None, ids=first + np.arange(n), class_names=names
        )

    past = drawn(2000, 2.5, 0, labelled=True)
    months = {
        name: drawn(600, 2.5 - 0.5 * i, 10_000 * (i + 1), labelled=False)
        for i, name in enumerate(MONTHS)
    }
    ward = np.array(PAYLOADS)[np.arange(2000) % 4]
    come = {str(i): names[0] for i in range(30_000, 30_200)}
    return monitor(
        past, months, policy=Policy("max_prob", 0.8), labels=come, by=dict.fromkeys(MONTHS, ward[:600]),
        reference_by=ward, max_drop=0.05,
    ).to_html()  # fmt: skip


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
    assert p.script(BEYOND) == []
    assert p.script("return document.documentElement.scrollWidth") <= width
    assert p.cut() == []


@pytest.mark.parametrize(
    "names", [("May", "June", "July"), ("2024-01", "2024-02", "2024-03", "2024-04")]
)
def test_the_time_line_is_marked_by_its_months(show: Any, names: tuple[str, ...]) -> None:
    past = Predictions.from_confidence(np.linspace(0.3, 1, 400), np.arange(400) % 4 > 0)
    p = show(
        html=monitor(
            past, {name: Predictions.from_confidence(np.linspace(0.3, 1, 100)) for name in names}
        ).to_html()
    )
    assert p.script(AXIS) == list(names)
    assert p.script(BEYOND) == []


def test_of_many_months_some_are_marked(show: Any) -> None:
    past = Predictions.from_confidence(np.linspace(0.3, 1, 400), np.arange(400) % 4 > 0)
    new = Predictions.from_confidence(np.linspace(0.3, 1, 100))
    p = show(html=monitor(past, {f"rows {1000 * i + 1:,}": new for i in range(12)}).to_html())
    found = p.script(AXIS)
    assert found[0] == "rows 1"
    assert set(found) < {f"rows {1000 * i + 1:,}" for i in range(12)}
    assert overlaps(p.script(TEXTS)) == []
    assert p.script(BEYOND) == []


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
