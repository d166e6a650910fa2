"""What a log without a confidence says: how many questions, how many answered, how many right."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

import click

from howsure._core import strict_json
from howsure._core.text import make_printable
from howsure.cli.common import note, say

if TYPE_CHECKING:
    from howsure._core.check import Bools
    from howsure.formats.logs import Log

ACCURACY_NAMES = {"accuracy": "when answering", "accuracy_of_all": "no answer counted as wrong"}
LISTED_VALUES = 20  # of a category


class MeanGrade(TypedDict):
    """A mean grade with its limits, null where there are none, and the number of answers behind it."""

    value: float
    low: float | None
    high: float | None
    n: int


def show(log: Log, *, level: float, seed: int, as_json: bool, quiet: bool) -> None:
    """Print the accuracies with their intervals, and say why there is no more."""
    import numpy as np

    why = log.notes[-1] if log.notes else "there is no number that says how sure the model was"
    note(f"howsure: no confidence, so only accuracies are given: {why}.", quiet)
    metrics: dict[str, MeanGrade] = {}
    for name, rows in (("accuracy", log.answered), ("accuracy_of_all", log.outcome >= 0)):
        if rows.any():
            metrics[name] = _measure_grade(log, rows, level, seed)
    slices: dict[str, dict[str, MeanGrade]] = {}
    for name, column in log.slices.items():
        values: list[object] = column.tolist()
        slices[name] = {}
        for value, _ in Counter(values).most_common(LISTED_VALUES):
            rows = np.array([v == value for v in values])
            slices[name][str(value)] = _measure_grade(log, rows, level, seed)
    if as_json:
        counts = {"n": log.n, "questions": log.questions, "outcomes": log.counts}
        click.echo(
            strict_json.dump_line({**counts, "metrics": metrics, "slices": slices, "why": why})
        )
    elif not quiet:
        say(_draw_accuracies(metrics, slices, level))


def _measure_grade(log: Log, rows: Bools, level: float, seed: int) -> MeanGrade:
    """The mean grade; answers to the same question are drawn together."""
    import numpy as np

    from howsure.metrics import accuracy
    from howsure.metrics.proper_scores import mean_loss
    from howsure.predictions import Outcomes
    from howsure.uncertainty import interval

    grade, score = log.grade[rows], np.zeros(int(rows.sum()))
    group = None if log.group is None else log.group[rows]
    if np.isin(grade, (0, 1)).all():
        low, high = interval(
            accuracy, Outcomes(score, correct=grade == 1, group=group), level, seed
        )
    else:
        best, worst = interval(mean_loss, Outcomes(score, loss=1 - grade, group=group), level, seed)
        low, high = 1 - worst, 1 - best
    return {
        "value": float(grade.mean()),
        "low": float(low) if np.isfinite(low) else None,
        "high": float(high) if np.isfinite(high) else None,
        "n": len(grade),
    }


def _draw_accuracies(
    metrics: dict[str, MeanGrade], slices: dict[str, dict[str, MeanGrade]], level: float
) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for column in ("accuracy", "value", f"{level:.0%} interval", "answers"):
        table.add_column(column, justify="left" if column == "accuracy" else "right")
    rows = {ACCURACY_NAMES[name]: grade for name, grade in metrics.items()}
    for name, values in slices.items():
        rows |= {f"{name} {value}": grade for value, grade in values.items()}
    for name, grade in rows.items():
        limits = "–"
        if grade["low"] is not None:
            limits = f"{grade['low']:.4g} … {grade['high']:.4g}"
        table.add_row(
            Text(make_printable(name)), f"{grade['value']:.4g}", limits, f"{grade['n']:,}"
        )
    return table
