"""A log as the columns of a table, so that it is read like any other file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.check import InputError
from howsure.formats.contents import Contents, make_array_entry
from howsure.formats.logs.log import Log, Outcome
from howsure.predictions.read_options import ReadOptions

PREFERRED_CONFIDENCES = ("sequence_probability", "confidence")


class NoConfidence(InputError):
    """A log that tells right from wrong and nothing else; `log` holds its counts."""

    log: Log

    @classmethod
    def of(cls, log: Log, path: Path) -> NoConfidence:
        """The refusal of this log: why there is no confidence, and what is known all the same."""
        why = f" ({log.notes[-1]})" if log.notes else ""
        error = cls(
            f"{path.name} ({log.title}) tells right from wrong, accuracy "
            f"{log.accuracy_of_all:.6g}, but holds no confidence{why}; "
            "log option or token log-probabilities, or ask the model how sure it is."
        )
        error.log = log
        return error


def build_contents(log: Log, path: Path) -> Contents:
    """The columns: id, what came of each question, every confidence by its name, and what to slice
    by.
    """
    entries = {"id": make_array_entry(log.ids)}
    for c in log.confidences:
        entries[c.name] = make_array_entry(c.value)
    graded = bool((log.outcome == Outcome.GRADED).any())
    entries["grade" if graded else "correct"] = make_array_entry(log.grade)
    # Why there is no answer matters only where an answer or a confidence is missing.
    if not log.answered.all() or any(c.missing for c in log.confidences):
        reasons = ["" if o < Outcome.UNPARSEABLE else o.name.lower() for o in Outcome]
        entries["no_answer"] = make_array_entry(np.array(reasons)[log.outcome])
    if log.options is not None and log.gold is not None and has_options(log):
        entries["option_logprobs"] = make_array_entry(log.options)
        entries["label"] = make_array_entry(log.gold)
    beside = {"answer": log.answer, "group": log.group, "split": log.split, **log.slices}
    for name, values in beside.items():
        if values is not None:
            entries[name] = make_array_entry(values)
    return Contents(
        path,
        entries,
        table=True,
        lines=log.lines,
        numbered=False,
        class_names=log.option_names,
    )


def has_options(log: Log) -> bool:
    """Whether every question has the same number of options and a right one that is known."""
    return log.options is not None and log.gold is not None and bool(np.isfinite(log.options).all())


def choose_names(log: Log, wanted: ReadOptions, path: Path) -> ReadOptions:
    """What was asked for, with the confidence that is meant; which metric counts was settled when
    the log was read.
    """
    names = {part: name for part, name in wanted.names.items() if part != "correct"}
    asked = names.get("confidence")
    confidence = choose_confidence(log, asked if isinstance(asked, str) else None, path)
    if confidence is not None:
        names["confidence"] = confidence
    return replace(wanted, names=names)


def choose_confidence(log: Log, asked: str | None, path: Path) -> str | None:
    """The confidence to use: the one asked for, or the only one; None where the options of each
    question are known.
    """
    if asked is not None or has_options(log):
        return asked
    names = [c.name for c in log.confidences]
    if not names:
        raise NoConfidence.of(log, path)
    for preferred in PREFERRED_CONFIDENCES:
        if preferred in names:
            return preferred
    if len(names) > 1:
        listed = ", ".join(f"{c.name} ({c.kind})" for c in log.confidences)
        raise InputError(
            f"{path.name} has {len(names)} confidences: {listed}; choose one with "
            f"names={{'confidence': '{names[0]}'}} (--name confidence={names[0]}), "
            f"or compare them: howsure compare {path.name}."
        )
    return names[0]
