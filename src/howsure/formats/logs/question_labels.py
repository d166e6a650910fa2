"""A log of a decision model with its labels, which may stand in a file of their own: a column per
question, or a line per question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from howsure._core.checks import InputError
from howsure.formats.contents import Contents
from howsure.formats.logs.decisions import (
    QUESTION,
    DecisionLog,
    Truth,
    build_decision_contents,
    choose_ids,
    choose_records,
    read_decision_log,
)
from howsure.predictions.class_labels import COLUMN_ALIASES
from howsure.predictions.read_options import ReadOptions

MODEL_LABEL_WORDS = ("fallback", "teacher", "judge", "llm", "gpt")  # of who may have labelled


def load_log(path: Path, options: ReadOptions, join: str | None = None) -> DecisionLog:
    """The log with the columns of its records that these options name."""
    columns = [*options.where, *options.attributes]
    for part in ("ids", "labels"):
        columns += [options.get_column(part) or ""]
    columns += [join or "", options.case or ""]
    return read_decision_log(path, [name for name in columns if name])


def open_decision_log(
    path: Path, options: ReadOptions, labels: tuple[str | os.PathLike[str], str] | None = None
) -> tuple[str, Contents]:
    """What a log is called, and its answers as a table."""
    if labels is None:
        log = choose_records(load_log(path, options), options.where)
        contents = build_decision_contents(log, options)
        doubts = doubt_labels([options.get_column("labels") or ""])
        return log.title, replace(contents, notes=(*contents.notes, *doubts))
    ours, sign, theirs = (word.strip() for word in labels[1].partition("="))
    log = choose_records(load_log(path, options, ours), options.where)
    if ours == "id" and not sign and "id" not in log.envelope:
        ours, theirs = choose_ids(log)[0], "id"
    truth = read_question_labels(Path(labels[0]), theirs or ours, log, options)
    contents = build_decision_contents(log, options, truth, ours if ours != "line" else None)
    doubts = doubt_labels([Path(labels[0]).stem, options.get_column("labels") or ""])
    return log.title, replace(contents, notes=(*contents.notes, *doubts))


def doubt_labels(names: Sequence[str]) -> list[str]:
    """What to say where labels are called as if another model had given them.

    >>> doubt_labels(["fallback_labels", ""])
    ["labels called 'fallback_labels' may be a model's: then agreement with it is counted, not truth"]
    """
    doubts: list[str] = []
    for name in names:
        words = re.split(r"[^a-z]+", name.lower())
        if any(word in MODEL_LABEL_WORDS for word in words):
            doubts.append(
                f"labels called {name!r} may be a model's: then agreement with it is counted, not truth"
            )
    return doubts


def read_question_labels(path: Path, ids: str, log: DecisionLog, options: ReadOptions) -> Truth:
    """The labels by id and question; "" stands for the only question.

    A column that is called as a question has its labels; a column `question` makes a table with a
    line per question; else the one column of labels is about the one question.
    """
    from howsure.formats.files import list_columns, read_column

    columns = list_columns(path)
    if ids not in columns:
        ids = next((name for name in columns if name in COLUMN_ALIASES["ids"]), ids)
    listed = ", ".join(map(repr, columns[:12])) or "nothing"
    if ids not in columns:
        got = f"has no column {ids!r} of ids (it has {listed})"
        raise InputError(path.name, got=got, hint="say --join OURS=THEIRS (join=)")
    keys = [cell.strip() for cell in read_column(path, ids)]
    names = [question.name for question in log.questions]
    single = options.question or (names[0] if len(names) == 1 else None)
    wanted: dict[str, str] = {name: name for name in names if name in columns}
    if QUESTION in columns:
        wanted = {}
    label = options.get_column("labels")
    if label is None:
        known = [name for name in columns if name.strip().lower() in COLUMN_ALIASES["labels"]]
        rest = [name for name in columns if name not in (ids, QUESTION)]
        label = next(iter(known or (rest if len(rest) == 1 else [])), None)
    truth: Truth = {}
    if not wanted and QUESTION not in columns and single is not None:
        wanted = {single: label or ""}
    if wanted:
        missing = [column for column in wanted.values() if column not in columns]
        if missing:
            got = f"has no column of labels for {single!r} (it has {listed})"
            raise InputError(path.name, got=got, hint="name it with --name labels=COLUMN")
        for name, column in wanted.items():
            for key, cell in zip(keys, read_column(path, column), strict=True):
                add_label(truth, (key, name), cell, path)
        return truth
    if QUESTION not in columns or label is None:
        got = f"has no column called as a question ({', '.join(map(repr, names[:6]))}; it has {listed})"
        raise InputError(path.name, got=got, need="or the columns question and label are needed")
    asked = read_column(path, QUESTION)
    cells = read_column(path, label)
    for key, name, cell in zip(keys, asked, cells, strict=True):
        add_label(truth, (key, name.strip()), cell, path)
    return truth


def add_label(truth: Truth, key: tuple[str, str], cell: str, path: Path) -> None:
    """One label; an empty cell is none."""
    text = cell.strip()
    if text in ("", "None", "nan"):
        return
    if truth.get(key, text) != text:
        got = f"has two labels for {key[0]!r}, {key[1]!r}"
        raise InputError(path.name, got=got, need="one for each is needed")
    truth[key] = text
