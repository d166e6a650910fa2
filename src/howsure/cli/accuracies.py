"""What a log without a confidence says: how many questions, how many answered, how many right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict

import click

from howsure._core import json
from howsure._core.text import printable
from howsure.cli.common import note, say

if TYPE_CHECKING:
    from howsure._core.check import Bools
    from howsure.formats.logs import Log

NAMES = {"accuracy": "when answering", "accuracy_of_all": "no answer counted as wrong"}
MOST = 20  # values of a category that are listed


class Accuracy(TypedDict):
    """A mean grade with its limits, null where there are none, and the number of answers behind it."""

    value: float
    low: float | None
    high: float | None
    n: int


def show(log: Log, *, level: float, seed: int, as_json: bool, quiet: bool) -> None:
    """Print the accuracies with their intervals, and say why there is no more."""
    why = log.notes[-1] if log.notes else "there is no number that says how sure the model was"
    note(f"howsure: no confidence, so only accuracies are given: {why}.", quiet)
    everything = log.outcome >= 0
    metrics = {
        name: _accuracy(log, rows, level, seed)
        for name, rows in (("accuracy", log.answered), ("accuracy_of_all", everything))
        if rows.any()
    }
    slices = {name: dict(_by(log, name, level, seed)) for name in log.slices}
    if as_json:
        counts = {"n": log.n, "questions": log.questions, "outcomes": log.counts}
        click.echo(json.line({**counts, "metrics": metrics, "slices": slices, "why": why}))
    elif not quiet:
        say(_table(metrics, slices, level))


def _by(log: Log, name: str, level: float, seed: int) -> Iterator[tuple[str, Accuracy]]:
    """The accuracy of each value of a category, commonest first."""
    from collections import Counter

    import numpy as np

    column = log.slices[name]
    values: list[object] = column.tolist()
    for value, _ in Counter(values).most_common(MOST):
        yield str(value), _accuracy(log, np.array([v == value for v in values]), level, seed)


def _accuracy(log: Log, rows: Bools, level: float, seed: int) -> Accuracy:
    """The mean grade; answers to the same question are drawn together."""
    import numpy as np

    from howsure.metrics import accuracy
    from howsure.metrics.mean_loss import mean_loss
    from howsure.predictions import Outcomes
    from howsure.uncertainty import interval

    grade, group = log.grade[rows], None if log.group is None else log.group[rows]
    if np.isin(grade, (0, 1)).all():
        limits = interval(
            accuracy, Outcomes(np.zeros(len(grade)), correct=grade == 1, group=group), level, seed
        )
    else:
        worst, best = interval(
            mean_loss, Outcomes(np.zeros(len(grade)), loss=1 - grade, group=group), level, seed
        )
        limits = 1 - best, 1 - worst
    low, high = (float(x) if np.isfinite(x) else None for x in limits)
    return {"value": float(grade.mean()), "low": low, "high": high, "n": len(grade)}


def _table(
    metrics: dict[str, Accuracy], slices: dict[str, dict[str, Accuracy]], level: float
) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for column in ("accuracy", "value", f"{level:.0%} interval", "answers"):
        table.add_column(column, justify="left" if column == "accuracy" else "right")
    parts = {
        f"{name} {value}": one for name, values in slices.items() for value, one in values.items()
    }
    for name, one in {**{NAMES[name]: one for name, one in metrics.items()}, **parts}.items():
        limits = "–" if one["low"] is None else f"{one['low']:.4g} … {one['high']:.4g}"
        table.add_row(Text(printable(name)), f"{one['value']:.4g}", limits, f"{one['n']:,}")
    return table
