"""What is missing is said in words: no bare dash, each reason once, and notes that all limits share
once.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from howsure import Predictions, compare, evaluate, monitor

DASH = re.compile(r"(?<!\S)–(?!\S)")
FEW = "for these 5 groups in this mix; rows inside a group taken as independent"


def made(n: int = 300, k: int = 3, group: np.ndarray | None = None) -> Predictions:
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    return Predictions.from_logits(2 * np.eye(k)[y] + rng.normal(size=(n, k)), y, group=group)


def words(html: str) -> str:
    return re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", html, flags=re.S)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_note_that_all_limits_share_is_not_said_in_every_row(width: int) -> None:
    report = evaluate(made(group=np.arange(300) % 5))
    text = " ".join(report.to_text(width=width).split())
    assert sum("note" in e and FEW in e["note"] for e in report.data["metrics"].values()) > 5
    assert text.lower().count(FEW) == 1
    assert (
        words(report.to_html()).lower().count(FEW) == 2
    )  # at the top, and where all numbers stand
    assert all(len(line) <= width for line in report.to_text(width=width).splitlines())


def test_nobody_called_is_a_reason_below_the_table() -> None:
    p = np.linspace(0.01, 0.4, 200)
    report = evaluate(
        Predictions.from_probs(p, (np.arange(200) % 5 == 0).astype(int)), thresholds=[0.1, 0.9]
    )
    text, page = report.to_text(full=True), words(report.to_html())
    for shown in (text, page):
        assert "no case is called positive" in " ".join(shown.split())
        assert DASH.findall(shown) == []


def test_comparisons_and_monitors_have_no_bare_dash() -> None:
    a = made()
    b = Predictions.from_logits(1.3 * a.logits[0], a.labels)
    odd = Predictions.from_confidence(a.confidence, a.correct)
    for shown in (
        compare({"a": a, "b": b}).to_text(),
        words(compare({"a": a, "b": b}).to_html()),
        compare({"a": a, "top": odd}).to_text(),
        monitor(a[:150], {"May": a[150:]}).to_text(),
        words(monitor(a[:150], {"May": a[150:]}).to_html()),
    ):
        assert DASH.findall(shown) == []
