"""A number enters every output by one entry of the catalogue; what is missing is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import metrics
from howsure.report.catalogue import CATALOGUE, QUESTIONS, CatalogueItem
from howsure.report.gate import parse_requirement
from howsure.report.render.sentences import ARROWS, get_meaning

SETS = (
    "many classes",
    "clusters",
    "few groups",
    "weights",
    "two classes",
    "two classes, clusters",
    "two classes, few groups",
    "two classes, weights",
    "a confidence",
    "no error",
    "all wrong",
    "one confidence",
    "labels",
    "images",
    "pixels",
)
COUNTS_SAMPLES = ("aece", "debiased_ece")
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
each = pytest.mark.parametrize("item", CATALOGUE, ids=lambda item: item.name)


@pytest.fixture(scope="module")
def report() -> hs.Report:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, 300)
    return hs.evaluate(
        hs.Predictions.from_logits(
            3 * np.eye(7)[labels] + 2 * rng.standard_normal((300, 7)), labels
        )
    )


@pytest.fixture(scope="module")
def tags() -> hs.Report:
    rng = np.random.default_rng(1)
    p = rng.random((60, 3))
    return hs.evaluate(hs.Predictions.from_multilabel(p, rng.random((60, 3)) < p))


@pytest.fixture(scope="module")
def masks() -> hs.Report:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 400)
    preds = hs.Predictions.from_logits(
        np.eye(2)[labels] + rng.standard_normal((400, 2)), labels, group=np.arange(400) // 20
    )
    return hs.evaluate(preds, loss="dice")


@pytest.fixture(scope="module")
def pixels() -> hs.Report:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 400)
    preds = hs.Predictions.from_logits(np.eye(2)[labels] + rng.standard_normal((400, 2)), labels)
    return hs.evaluate(preds, loss="dice-pixels")


def test_names_and_titles_are_unique() -> None:
    assert (
        len({item.name for item in CATALOGUE})
        == len({item.title for item in CATALOGUE})
        == len(CATALOGUE)
    )


@each
def test_the_function_is_a_public_metric(item: CatalogueItem) -> None:
    name = getattr(item.metric, "__name__", "")
    assert name in metrics.__all__, f"{item.name}: export {name} from howsure.metrics"
    assert item.better == getattr(item.metric, "better", None)


@each
def test_it_has_a_place_and_a_meaning(item: CatalogueItem) -> None:
    assert QUESTIONS[item.place]
    assert item.says, f"{item.name}: say in one line what it says"
    assert len(item.says) <= 50, (
        f"{item.name}: its meaning has {len(item.says)} letters, a line of a table holds 50"
    )
    assert get_meaning(item.name) == (item.place, item.title, item.says)


@each
def test_it_is_in_reports_of_every_form(
    item: CatalogueItem, report: hs.Report, tags: hs.Report, masks: hs.Report, pixels: hs.Report
) -> None:
    report = {"labels": tags, "images": masks, "pixels": pixels}.get(item.needs, report)
    assert item.name in report.data["metrics"]
    title = re.sub(r"\s+", " ", item.title)
    for form in (
        report.to_text(width=160, full=True),
        report.to_markdown(full=True),
        report.to_html(),
    ):
        assert title in form.replace("\N{NO-BREAK SPACE}", " "), f"{item.title} is not shown"


@each
def test_the_gate_knows_it(item: CatalogueItem) -> None:
    sign = "<=" if item.better == "lower" else ">="
    assert parse_requirement(f"{item.name}{sign}0.5").key == item.name


@each
def test_the_docs_list_it(item: CatalogueItem) -> None:
    line = f"| `{item.name}` | {item.title} | {ARROWS[item.better]} | {QUESTIONS[item.place]} | {item.says} |"
    assert line in DOCS.read_text(encoding="utf-8").splitlines(), (
        f"docs/metrics.md lacks the line\n{line}"
    )


def test_the_docs_list_nothing_else() -> None:
    section = DOCS.read_text(encoding="utf-8").split("## In a report\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)`", section, flags=re.M) == [item.name for item in CATALOGUE]


def make_set(name: str) -> hs.Predictions:
    """One of `SETS`."""
    rng = np.random.default_rng(len(name))
    n = 300
    columns: dict[str, Any] = {}
    if "clusters" in name:
        columns["group"] = np.arange(n) // 10
    if "few groups" in name:
        columns["group"] = np.arange(n) % 4
    if "weights" in name:
        columns["weight"] = rng.uniform(0.5, 2, n)
    if name in ("images", "pixels"):
        columns["group"] = np.arange(n) // 20
    claim = rng.beta(5, 1, n)
    if name == "a confidence":
        return hs.Predictions.from_confidence(claim, rng.random(n) < claim)
    if name == "no error":
        return hs.Predictions.from_confidence(claim, np.ones(n))
    if name == "all wrong":
        return hs.Predictions.from_confidence(claim, np.zeros(n))
    if name == "one confidence":
        return hs.Predictions.from_confidence(np.full(n, 0.8), np.arange(n) % 5 > 0)
    if name == "labels":
        p = rng.random((60, 3))
        return hs.Predictions.from_multilabel(p, rng.random((60, 3)) < p)
    k = 2 if name in ("images", "pixels") or name.startswith("two") else 7
    labels = rng.integers(0, k, n)
    logits = 3 * np.eye(k)[labels] + 2 * rng.standard_normal((n, k))
    return hs.Predictions.from_logits(logits, labels, **columns)


@cache
def evaluate_set(name: str) -> tuple[hs.Predictions, Any]:
    preds = make_set(name)
    loss: Any = {"images": "dice", "pixels": "dice-pixels"}.get(name)
    return preds, hs.evaluate(preds, loss=loss).data["metrics"]


def get_public_metric(item: CatalogueItem) -> Callable[..., float]:
    """The metric as a user calls it for the number of this entry."""
    if item.metric is hs.top_k_accuracy:
        return partial(item.metric, k=int(item.name.split("_")[1]))
    if isinstance(item.measure, partial) and item.measure.func is item.metric:
        return item.measure
    return item.metric


@pytest.mark.parametrize("name", SETS)
def test_limits_in_a_report_are_those_of_interval(name: str) -> None:
    preds, entries = evaluate_set(name)
    for item in CATALOGUE:
        # The Dice of all kept pixels together has no public function of predictions.
        if item.name in entries and item.name != "dice_pixels_aurc":
            check_limits(item, preds, entries[item.name])


def check_limits(item: CatalogueItem, preds: hs.Predictions, entry: Any) -> None:
    metric = get_public_metric(item)
    if preds.weight is not None and item.name in COUNTS_SAMPLES:
        # What weights do not allow has neither a number nor limits, for the same reason.
        with pytest.raises(hs.InputError, match=re.escape(entry["why"])):
            hs.interval(metric, preds)
        return
    limits = hs.interval(metric, preds)
    shown = [np.nan if entry.get(end) is None else entry[end] for end in ("low", "high")]
    assert shown == pytest.approx(limits, rel=1e-12, abs=1e-15, nan_ok=True), item.name


def test_every_entry_has_limits_somewhere_unless_it_jumps() -> None:
    for item in CATALOGUE:
        limited = any(
            entries[item.name].get("low") is not None
            for _, entries in map(evaluate_set, SETS)
            if item.name in entries
        )
        jumps = not getattr(item.metric, "smooth", True) or item.name == "dice_pixels_aurc"
        assert limited != jumps, item.name


@pytest.mark.parametrize("name", [name for name in SETS if name.startswith("two classes")])
def test_limits_of_the_positive_class_are_those_of_interval(name: str) -> None:
    preds = make_set(name)
    section: Any = hs.evaluate(preds).data["binary"]
    for metric in (
        hs.class_auroc,
        hs.observed_expected,
        hs.calibration_in_the_large,
        hs.calibration_slope,
        hs.calibration_intercept,
    ):
        number = (section["numbers"] | section)[metric.__name__]
        assert (number["low"], number["high"]) == hs.interval(metric, preds)
