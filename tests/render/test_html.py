"""The page of reports that lack something, and its size."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure import Predictions
from howsure._core.text import count_decimals
from howsure.report.evaluation import evaluate
from howsure.report.render.page import build_policy, escape_json, render_page, wrap_in_iframe
from howsure.report.render.svg import Scale, find_log_ticks, find_ticks
from howsure.report.report import Report

GOLDEN = Path(__file__).parents[1] / "golden"
LIMIT = 300_000
VOID = {"meta", "input", "img", "path", "circle", "rect", "link", "br"}


class Balance(HTMLParser):
    """Fails where an element is not closed in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


def balanced(html: str) -> None:
    parser = Balance()
    parser.feed(html)
    assert parser.open == []


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return json.loads((GOLDEN / "report.json").read_text(encoding="utf-8"))


def test_the_stored_page_is_well_formed_small_and_self_contained(stored: dict[str, Any]) -> None:
    html = render_page(stored)
    balanced(html)
    assert len(html.encode()) < LIMIT
    assert re.findall(r'(?:src|href|action)="(?!data:|#)', html) == []
    assert "style=" not in html.replace("</style", "")  # the policy would block it
    assert (
        html.count('<g class="point" transform="translate(') == 2
    )  # in its place before any script runs


CASES = {
    "one sample": Predictions.from_probs([[0.9, 0.1]], [0]),
    "all right": Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1]),
    "all wrong": Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [1, 0]),
    "top label": Predictions.from_confidence([0.9, 0.8, 0.7, 0.7], [1, 1, 0, 1]),
    "top label with names": Predictions.from_confidence(
        [0.9, 0.8], prediction=["a", "b"], labels=["a", "a"]
    ),
    "constant": Predictions.from_confidence([0.5] * 6, [1, 0] * 3),
    "weights": Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0], weight=[1, 2, 3]),
    "samples": Predictions.from_samples(
        np.random.default_rng(0).normal(size=(3, 40, 4)), [0, 1, 2, 3] * 10
    ),
    "impossible label": Predictions.from_probs([[1.0, 0.0], [0.3, 0.7]], [1, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_predictions_has_a_page(name: str) -> None:
    report = evaluate(CASES[name], ["max_prob"])
    balanced(report.to_html())
    assert Report.from_json(report.to_json()).to_html() == report.to_html()


def test_a_score_beyond_one_has_no_reliability() -> None:
    rng = np.random.default_rng(0)
    report = evaluate(
        Predictions.from_logits(rng.normal(size=(60, 3)), rng.integers(0, 3, 60)), ["energy"]
    )
    html = report.to_html()
    balanced(html)
    assert 'data-picture="reliability"' not in html
    assert "not a probability" in report.data["verdict"][2]


def test_a_notebook_shows_the_page_in_a_frame(stored: dict[str, Any]) -> None:
    html = wrap_in_iframe(render_page(stored))
    assert html.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts allow-downloads"' in html
    assert "<script" not in html  # all of it is escaped inside the attribute
    assert Report(stored)._repr_html_() == html


def test_the_policy_names_the_very_script() -> None:
    allowed = build_policy("a", "b")
    assert allowed.startswith("default-src 'none';")
    assert "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='" in allowed  # sha256 of "a"
    assert "unsafe" not in allowed


def test_json_in_the_page_cannot_end_its_element() -> None:
    text = str(escape_json({"x": "</script><!--&'\u2028"}))
    assert not set("<>&'\u2028") & set(text)
    assert json.loads(text) == {"x": "</script><!--&'\u2028"}


def test_ticks_are_round() -> None:
    assert find_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert find_ticks(0.88, 1, 4) == [0.9, 0.95, 1]
    assert find_ticks(2, 2) == [2]
    assert find_log_ticks(0.5, 300) == [1, 3, 10, 30, 100, 300]
    assert (
        find_log_ticks(1e5, 1e12) == [1e6, 1e8, 1e10, 1e12] or len(find_log_ticks(1e5, 1e12)) <= 6
    )


def test_a_scale_maps_its_ends() -> None:
    s = Scale(0, 4, 100, 20)
    assert (s(0), s(4), s(1)) == (100, 20, 80)
    assert Scale(1, 100, 100, 20, log=True)(10) == 60
    assert s(99) == 20


def test_before_and_after_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    z = 2 * np.eye(3)[y] + rng.normal(size=(300, 3))
    before, after = Predictions.from_logits(8 * z, y), Predictions.from_logits(2 * z, y)
    report = evaluate(after, ["max_prob"], before=before)
    html = report.to_html()
    balanced(html)
    change = report.data["calibration"]["metrics"]["nll"]
    assert change["verdict"] == "better"
    plain = re.sub(r"<td[^>]*>", "<td>", html)
    # Both with the decimals that the limits of their difference allow.
    decimals = count_decimals(change["difference"]["low"], change["difference"]["high"])
    sides = [f"<td>{change[side]['value']:.{decimals}f}</td>" for side in ("before", "after")]
    assert "".join(sides) in plain
    assert '<path class="line before"' in html
    assert "What calibration changed" in report.to_text()
