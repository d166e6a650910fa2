"""The page of a comparison in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.payloads import PAYLOADS
from browser.test_page import TEXTS, overlaps
from howsure import Predictions, compare


@pytest.fixture(scope="module")
def html() -> str:
    """Three models, one with a hostile name, with costs, groups and an outside set."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    group = np.array(PAYLOADS)[np.arange(300) % 6]
    made = {
        name: Predictions.from_logits(signal * np.eye(4)[y] + rng.normal(size=(300, 4)), y, group=group)
        for name, signal in (("large", 4.0), ("small", 2.0), (PAYLOADS[6], 1.0))
    }
    cost = {"large": 25e6, "small": 1e6, PAYLOADS[6]: 2e6}
    out = {PAYLOADS[1]: {"large": Predictions.from_logits(rng.normal(size=(50, 4)))}}
    return compare(made, by=True, cost=cost, cost_name="parameters", outside=out).to_html()


def test_it_is_silent_and_alone(show: Any, html: str) -> None:
    p = show(html=html)
    assert p.requests() == [p.path.as_uri()]
    assert p.console() == []
    assert p.script("return window.hurt") is None


@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read(show: Any, html: str, width: int) -> None:
    p = show(html=html, width=width)
    texts = p.script(TEXTS)
    assert [t for t in texts if t["size"] < 12] == []
    assert overlaps(texts) == []
    assert p.script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(show: Any, html: str, dark: bool) -> None:
    axe = pytest.importorskip("axe_core_python", reason="left out: axe-core-python is not installed")
    p = show(html=html, dark=dark)
    p.script((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = p.browser.execute_async_script("const done = arguments[0]; axe.run().then((r) => done(r.violations))")
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
