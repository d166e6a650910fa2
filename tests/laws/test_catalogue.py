"""A number enters every output by one entry of the catalogue; what is missing is said."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import metrics
from howsure.report.catalogue import CATALOGUE, QUESTIONS, CatalogueItem
from howsure.report.gate import parse_requirement
from howsure.report.render.sentences import ARROWS, get_meaning

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
