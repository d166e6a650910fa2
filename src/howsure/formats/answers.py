"""Rows without an answer: told apart, counted, and left out or counted as wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError
from howsure.formats.fields import Fields
from howsure.formats.names import NoAnswer
from howsure.predictions.predictions import outside
from howsure.predictions.unanswered import Unanswered

REASONS = ("unparseable", "refused", "missing")


def answered(data: Fields, no_answer: NoAnswer = "apart") -> Fields:
    """The rows with an answer and a confidence, and the count of the others by reason.

    `no_answer="wrong"` keeps rows without an answer that have a confidence, and counts them as
    wrong.
    """
    reasons = data.arrays.get("no_answer")
    if reasons is None:
        return data
    value = data.arrays[data.kind]
    arrays = {part: a for part, a in data.arrays.items() if part != "no_answer"}
    if value.ndim != 1 or len(reasons) != len(value):
        return replace(data, arrays=arrays)
    silent: Bools = reasons != ""
    unstated: Bools = np.isnan(value.astype(np.float64))
    if data.kind == "confidence":
        _check_range(value, data)
    keep = ~unstated if no_answer == "wrong" else ~unstated & ~silent
    arrays = _wrong(arrays, silent)
    counted = _counted(arrays, reasons, unstated & ~silent, keep)
    lines = None if data.lines is None else data.lines[keep]
    return replace(
        data, arrays={p: a[keep] for p, a in arrays.items()}, lines=lines, unanswered=counted
    )


def in_runs(runs: Iterable[Fields]) -> Iterator[Fields]:
    """Runs that hold an answer; the counts of those that hold none go to the one before, or to the
    first that does.
    """
    held: Fields | None = None
    before: Unanswered | None = None
    path: Path | None = None
    for run in runs:
        path = run.path
        if run.arrays[run.kind].size:
            if held is not None:
                yield held
            held, before = replace(run, unanswered=_sum(before, run.unanswered)), None
        elif held is not None:
            held = replace(held, unanswered=_sum(held.unanswered, run.unanswered))
        else:
            before = _sum(before, run.unanswered)
    if held is not None:
        yield held
    elif path is not None:
        got = "is empty" if before is None else "has no answer with a confidence"
        raise InputError(path.name, got=got, need="at least one is needed")


def _sum(a: Unanswered | None, b: Unanswered | None) -> Unanswered | None:
    return a + b if a is not None and b is not None else a or b


def _check_range(value: Array, data: Fields) -> None:
    """Refuse confidences that are none while rows are still numbered as in the file."""
    bad = (value < 0) | (value > 1)
    if bad.any():
        error = outside(np.where(np.isnan(value), 0, value), bad)
        raise error.at(
            data.path.name, None if data.lines is None else int(data.lines[check.first(bad)])
        )


def _wrong(arrays: dict[str, Array], silent: Bools) -> dict[str, Array]:
    """No answer is not a right one."""
    return {
        part: np.where(silent, 0, a) if part in ("correct", "grade") else a
        for part, a in arrays.items()
    }


def _counted(arrays: dict[str, Array], reasons: Array, unstated: Bools, keep: Bools) -> Unanswered:
    by_reason = {name: int(((reasons == name) & ~keep).sum()) for name in REASONS}
    right = arrays.get("correct", arrays.get("grade"))
    found = 0.0 if right is None else float(np.asarray(right, dtype=np.float64)[unstated].sum())
    return Unanswered(**by_reason, unstated=int(unstated.sum()), unstated_right=found)


def in_percent(data: Fields) -> Fields:
    """A confidence given in percent, as a share."""
    if data.kind != "confidence":
        need = "only a confidence can be given in percent"
        raise InputError(data.path.name, got=f"holds {data.kind}", need=need)
    return replace(data, arrays={**data.arrays, "confidence": data.arrays["confidence"] / 100})


def without_outside(data: Fields) -> Fields:
    """Confidences outside [0, 1] as missing ones."""
    if data.kind != "confidence":
        return data
    value: Floats = data.arrays["confidence"].astype(np.float64)
    outside = ~((value >= 0) & (value <= 1))
    reasons = data.arrays.get("no_answer", np.full(len(value), "", dtype=np.str_))
    return replace(
        data,
        arrays={
            **data.arrays,
            "confidence": np.where(outside, np.nan, value),
            "no_answer": reasons,
        },
    )
