"""Answers that have a grade in [0, 1] instead of right and wrong: every number of the catalogue that
allows them, with its limits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypedDict

from howsure._core.checks import InputError
from howsure._core.version import __version__
from howsure.formats.count_tables import MAX_REPEATED_ROWS, CountTable
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import CATALOGUE
from howsure.report.measurement import Measurable, Sureness, TallyData, measure_items
from howsure.report.render.sections import build_metrics_table
from howsure.report.render.sentences import (
    explain_limits,
    find_shared_notes,
    format_level,
    group_by_question,
)
from howsure.report.render.text_tables import Sheet
from howsure.report.report_types import SCHEMA, Metrics
from howsure.report.verdict_text import format_between, format_points, is_above, is_below
from howsure.tallies.tally import Tally

GRADES_NOTE = "Accuracy is the mean grade here, and an error is what a grade is short of 1."


class GradedData(TypedDict):
    """Numbers of graded answers; `accuracy` is the mean grade."""

    howsure: str
    schema: int
    graded: bool
    n: int
    level: float
    metrics: Metrics
    verdict: list[str]


class GradedSamples(NamedTuple):
    """A data set of graded answers."""

    outcomes: Outcomes

    def data(self, *_: str) -> Tally:
        """Their tally, whatever is asked."""
        return self.outcomes.tally()

    def source(self, *_: str) -> Outcomes:
        """The answers, whose grades vary."""
        return self.outcomes


def measure_graded(
    answers: Predictions | CountTable, level: float = 0.95, seed: int = 0
) -> GradedData:
    """The numbers that graded answers allow. What needs right or wrong is left out. Counts of many
    answers are not repeated; limits that need single answers are then null, with why.

    >>> preds = Predictions.from_confidence([0.9, 0.6, 0.4] * 20, loss=[0, 0.5, 1] * 20)
    >>> data = measure_graded(preds)
    >>> data["metrics"]["accuracy"]["value"], data["verdict"][0]
    (0.5, 'The mean grade of 60 answers is 0.50 (0.39–0.61).')
    """
    samples: Measurable
    if isinstance(answers, Predictions):
        samples = GradedSamples(Outcomes.of(answers))
    elif answers.n <= MAX_REPEATED_ROWS:
        samples = GradedSamples(Outcomes.of(answers.repeat_rows()))
    else:
        samples = TallyData(answers.tally())
    worst = float(answers.loss.max())
    if worst > 1:
        raise InputError(
            f"a loss is {worst:g}; numbers of graded answers need losses in [0, 1], which are 1 − grade."
        )
    needs = {"answers", "order"}
    if answers.kind != "score":
        needs.add("claim")
    items = [item for item in CATALOGUE if item.needs in needs]
    measured = measure_items(items, samples, "score", Sureness(level, seed).check())
    metrics = {name: entry for name, entry in measured.items() if entry["value"] is not None}
    return {
        "howsure": __version__,
        "schema": SCHEMA,
        "graded": True,
        "n": answers.n,
        "level": level,
        "metrics": metrics,
        "verdict": describe_graded(metrics, answers.n),
    }


def describe_graded(metrics: Metrics, n: int) -> list[str]:
    """The mean grade, and whether the confidence lies above or below it."""
    said = [f"The mean grade of {n:,} answers is {format_between(metrics['accuracy'])}."]
    signed, ece = metrics.get("signed_calibration_error"), metrics.get("ece")
    if signed is None or ece is None:
        return said
    error = f"ECE {ece['value']:.3f}"
    if "floor" in ece:
        error += f"; {ece['floor']:.3f} would be chance"
    points = format_points(abs(signed["value"] or 0.0))
    if is_above(signed, 0):
        said.append(f"Its confidence is {points} points above the grades on average ({error}).")
    elif is_below(signed, 0):
        said.append(f"Its confidence is {points} points below the grades on average ({error}).")
    else:
        said.append(f"On average its confidence is not clearly off the grades ({error}).")
    return said


def build_graded_sheet(data: GradedData) -> Sheet:
    """What is printed of them."""
    metrics = data["metrics"]
    shared = find_shared_notes(metrics)
    tables = [
        build_metrics_table(title, some, shared) for title, some in group_by_question(metrics)
    ]
    tables[0] = replace(tables[0], note=GRADES_NOTE)
    tables[-1] = replace(tables[-1], note=explain_limits(metrics))
    return Sheet(
        headline=f"{data['n']:,} graded answers · {format_level(data['level'])} intervals",
        sentences=["", *data["verdict"]],
        tables=tables,
    )
