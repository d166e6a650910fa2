"""Reports of every kind of predictions: each is read back, and rendered in every form."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.predictions import Predictions
from howsure.report.comparing import Comparison
from howsure.report.report import Report

N, NAMES = 60, ["ant", "bée", "cat"]
LABELS = np.arange(N) % 3
LOGITS = 2 * np.eye(3)[LABELS] + 1.5 * np.random.default_rng(0).standard_normal((N, 3))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
SURE, ANSWER = PROBS.max(1), PROBS.argmax(1)


def named(logits: Any = LOGITS) -> Predictions:
    return Predictions.from_logits(logits, LABELS, class_names=NAMES, ids=np.arange(N).astype(str))


def two_classes() -> Predictions:
    yes = PROBS[:, :1]
    return Predictions.from_probs(np.hstack([1 - yes, yes]), LABELS == 0, class_names=["no", "yes"])


KINDS: dict[str, Callable[[], Report]] = {
    "images": lambda: hs.evaluate(named(), images=np.linspace(0, 1, N * 9).reshape(N, 3, 3)),
    "another level": lambda: hs.evaluate(Predictions.from_probs(PROBS, LABELS), level=0.9),
    "right or wrong": lambda: hs.evaluate(Predictions.from_confidence(SURE, ANSWER == LABELS)),
    "top label": lambda: hs.evaluate(
        Predictions.from_confidence(SURE, prediction=ANSWER, labels=LABELS)
    ),
    "two classes": lambda: hs.evaluate(two_classes()),
    "groups": lambda: hs.evaluate(Predictions.from_logits(LOGITS, LABELS, group=np.arange(N) // 4)),
    "weights": lambda: hs.evaluate(
        Predictions.from_confidence(SURE, ANSWER == LABELS, weight=1.0 + LABELS)
    ),
    "samples": lambda: hs.evaluate(
        Predictions.from_samples(LOGITS + np.random.default_rng(1).normal(size=(4, N, 3)), LABELS)
    ),
    "scores that are no claims": lambda: hs.evaluate(named(), ["energy", "max_logit"]),
    "calibrated": lambda: hs.evaluate(
        hs.calibrators.Temperature.fit(named())(named()), before=named()
    ),
    "two right answers": lambda: hs.evaluate(
        Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    ),
}


@cache
def made(kind: str) -> Report:
    return KINDS[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_read_back_and_rendered_in_every_form(kind: str) -> None:
    text = made(kind).to_json()
    report = Report.from_json(text)
    assert report.to_json() == text
    assert f"{report.data['n']:,} predictions" in report.to_text()
    assert "### The numbers that matter" in report.to_markdown()
    assert "### Can I rank by it?" in report.to_markdown(full=True)
    assert report.to_html().startswith("<!doctype html>")
    assert report._repr_html_().startswith("<iframe")


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_drawn(kind: str) -> None:
    pytest.importorskip("matplotlib", reason="left out: matplotlib is not installed").use("Agg")
    from matplotlib import pyplot as plt

    assert len(made(kind).figure().axes) in (4, 5)  # the histogram has two panels
    plt.close("all")


@pytest.mark.parametrize(
    "models",
    [
        {"a": named(), "b": named(LOGITS[:, [1, 0, 2]])},
        {"max_prob": (named(), "max_prob"), "energy": (named(), "energy")},
    ],
    ids=["models", "scores"],
)
def test_a_comparison_is_read_back_and_rendered_in_every_form(models: Any) -> None:
    found = Comparison.from_json(hs.compare(models).to_json())
    assert "Leaderboard" in found.to_text()
    assert "### Leaderboard" in found.to_markdown()
    assert found.to_html().startswith("<!doctype html>")
    assert found._repr_html_().startswith("<iframe")
