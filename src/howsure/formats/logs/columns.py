"""A log as the columns of a table, so that it is read like any other file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.check import InputError
from howsure.formats.contents import Contents, Entry, in_memory
from howsure.formats.logs.log import Log, Outcome
from howsure.formats.names import Wanted

PREFERRED = "sequence_probability"


class NoConfidence(InputError):
    """A log that tells right from wrong and nothing else; `log` holds its counts."""

    log: Log

    @classmethod
    def of(cls, log: Log, path: Path) -> NoConfidence:
        """The refusal of this log."""
        error = cls(_nothing(log, path))
        error.log = log
        return error


def contents(log: Log, path: Path) -> Contents:
    """The columns: id, what came of each question, every confidence by its name, and what to slice
    by.
    """
    entries = {"id": in_memory(log.ids), **{c.name: in_memory(c.value) for c in log.confidences}}
    entries |= _outcomes(log)
    if log.options is not None and log.gold is not None and has_options(log):
        entries |= {"option_logprobs": in_memory(log.options), "label": in_memory(log.gold)}
    beside = {"answer": log.answer, "group": log.group, "split": log.split, **log.slices}
    entries |= {name: in_memory(values) for name, values in beside.items() if values is not None}
    return Contents(
        path, entries, table=True, lines=log.lines, numbered=False, class_names=log.option_names
    )


def has_options(log: Log) -> bool:
    """Whether every question has the same number of options and a right one that is known."""
    return log.options is not None and log.gold is not None and bool(np.isfinite(log.options).all())


def _outcomes(log: Log) -> dict[str, Entry]:
    """Right or wrong, or the grade; and why there is no answer, where an answer or a confidence is
    missing.
    """
    graded = bool((log.outcome == Outcome.GRADED).any())
    found = {"grade" if graded else "correct": in_memory(log.grade)}
    if not log.answered.all() or any(c.missing for c in log.confidences):
        words = np.array(["" if o < Outcome.UNPARSEABLE else o.name.lower() for o in Outcome])
        found["no_answer"] = in_memory(words[log.outcome])
    return found


def wanted_of(log: Log, wanted: Wanted, path: Path) -> Wanted:
    """What was asked for, with the confidence that is meant; which metric counts was settled when
    the log was read.
    """
    names = {part: name for part, name in wanted.names.items() if part != "correct"}
    asked = names.get("confidence")
    confidence = chosen(log, asked if isinstance(asked, str) else None, path)
    return replace(
        wanted, names=names if confidence is None else {**names, "confidence": confidence}
    )


def chosen(log: Log, asked: str | None, path: Path) -> str | None:
    """The confidence to use: the one asked for, or the only one; None where the options of each
    question are known.
    """
    names = [c.name for c in log.confidences]
    if asked is not None or has_options(log):
        return asked
    if not names:
        raise NoConfidence.of(log, path)
    if len(names) > 1 and PREFERRED not in names and "confidence" not in names:
        listed = ", ".join(f"{c.name} ({c.kind})" for c in log.confidences)
        raise InputError(
            f"{path.name} has {len(names)} confidences: {listed}; choose one with names={{'confidence': '{names[0]}'}} "
            f"(--name confidence={names[0]}), or compare them: howsure compare {path.name}."
        )
    return next((name for name in (PREFERRED, "confidence") if name in names), names[0])


def _nothing(log: Log, path: Path) -> str:
    """Why there is no confidence, and what is known all the same."""
    why = f" ({log.notes[-1]})" if log.notes else ""
    return (
        f"{path.name} ({log.title}) tells right from wrong, accuracy {log.accuracy_of_all:.6g}, but holds no "
        f"confidence{why}; log option or token log-probabilities, or ask the model how sure it is."
    )
