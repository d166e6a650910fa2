"""Text and CSV logs: one answer per line, with what came of it and one or several confidences."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core.check import InputError, Ints
from howsure.formats.cells import with_points
from howsure.formats.delimited import separator
from howsure.formats.llm import same_answer
from howsure.formats.logs.log import Confidence, Kind, Log, Outcome, column, constant, outcomes
from howsure.formats.logs.tree import number

Columns: TypeAlias = dict[str, list[str]]
TITLES = {".csv": "CSV log", ".tsv": "TSV log", ".txt": "text log"}
GRADES = ("grade", "is_correct", "correctness", "correct", "acc", "verdict")
GOLD = ("correct_answer", "gold_answer", "gold", "ground_truth", "expected", "reference")
ANSWER = (
    "extracted_answer",
    "parsed_answer",
    "model_answer",
    "predicted_answer",
    "answer",
    "prediction",
)
CATEGORIES = ("category", "subject", "topic", "task")
IDS = ("id", "question_id", "doc_id")
CONFIDENCE = re.compile(
    r"(^|_)conf(idence)?(_|$)|logprob|perplexity|probability$|^judge", re.IGNORECASE
)
KINDS = (
    (re.compile(r"verbal|stated|self_report"), Kind.VERBALISED),
    (re.compile(r"perplexity|logprob|token|sequence|probability"), Kind.SEQUENCE),
    (re.compile(r"agree|consisten|sampl|vote"), Kind.AGREEMENT),
    (re.compile(r"judge"), Kind.JUDGE),
    (re.compile(r"raw|logit"), Kind.SCORE),
)
WORDS = {
    Outcome.RIGHT: ("correct", "right", "true", "yes", "c", "pass", "1", "1.0"),
    Outcome.WRONG: ("wrong", "incorrect", "false", "no", "i", "fail", "0", "0.0"),
    Outcome.UNPARSEABLE: ("unparseable", "unparsable", "unparsed", "invalid", "[invalid]"),
    Outcome.REFUSED: ("refused", "refusal", "abstain", "abstained", "abstention", "n", "idk"),
    Outcome.MISSING: ("missing", "", "none", "nan", "null", "error", "timeout"),
}
BY_WORD = {word: outcome for outcome, words in WORDS.items() for word in words}


def recognised(header: Sequence[str]) -> bool:
    """Whether these columns hold an outcome and a confidence.

    >>> recognised(["grade", "confidence_level"]), recognised(["prob_0", "prob_1", "label"])
    (True, False)
    """
    names = _plain(header)
    graded = (
        any(name in names for name in GRADES)
        or (_first(GOLD, names) and _first(ANSWER, names)) is not None
    )
    return graded and any(CONFIDENCE.search(name) for name in names)


def header(path: Path) -> list[str]:
    """The names of the columns."""
    with path.open("rb") as file:
        first = _decoded(file.readline(1 << 16), path).splitlines()[:1]
    return _split(first, path)[0] if first and first[0].strip() else []


def log(path: Path, *, metric: str | None = None) -> Log:
    """The rows of a file; `metric` names the column that says right or wrong."""
    found, lines = _columns(path)
    names = _plain(list(found))
    grades, unanswered, answers = _outcomes(found, names, metric, path)
    confidences = tuple(
        _confidence(name, found[name], path) for name in found if CONFIDENCE.search(name)
    )
    n = len(grades)
    ids = _first(IDS, names)
    return Log(
        TITLES.get(path.suffix.lower(), "text log"),
        column([str(i) for i in range(n)] if ids is None else found[ids]),
        outcomes(grades, unanswered),
        np.array(grades),
        tuple(c for c in confidences if c.missing < n),
        answer=None if answers is None else column(answers),
        slices={
            name: column(found[where])
            for name in CATEGORIES
            if (where := names.get(name)) is not None
        },
        lines=lines,
        doubts=(*_absent(confidences, n), *constant(confidences)),
    )


def _plain(header: Sequence[str]) -> dict[str, str]:
    """The columns by their names in lower case."""
    return {name.strip().lower(): name for name in header}


def _first(names: Sequence[str], there: dict[str, str]) -> str | None:
    return next((there[name] for name in names if name in there), None)


def _absent(confidences: Sequence[Confidence], n: int) -> tuple[str, ...]:
    return tuple(
        f"{c.name} is empty in all rows and left out" for c in confidences if c.missing == n
    )


def _columns(path: Path) -> tuple[Columns, Ints]:
    """The cells by column, and the line of each row."""
    lines = _decoded(path.read_bytes(), path).splitlines()
    numbers = [i for i, line in enumerate(lines, start=1) if line.strip()]
    full = [lines[i - 1] for i in numbers]
    rows = _split(full, path)
    if len(rows) < 2:
        raise InputError(f"{path.name} has no answers; a header and at least one line are needed.")
    width = len(rows[0])
    for i, row in zip(
        numbers, rows, strict=False
    ):  # a quoted line break joins lines, which is found by its width
        if len(row) != width:
            raise InputError(
                f"{path.name}, line {i} has {len(row)} values, the header {width}; repair the line."
            )
    where = np.array(numbers[1 : len(rows)], dtype=np.int64)
    twice = next((name for name, times in Counter(rows[0]).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{path.name}: column {twice[:60]!r} stands there twice; rename one.")
    found = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    return (_with_points(found) if _mark(full, path) == ";" else found), where


def _with_points(found: Columns) -> Columns:
    """The columns of a spreadsheet: its numbers may have commas."""
    numbers = [name for name in found if CONFIDENCE.search(name) or name.strip().lower() in GRADES]
    return found | {name: list(with_points(found[name])) for name in numbers}


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from None


def _split(lines: Sequence[str], path: Path) -> list[list[str]]:
    """Fields by what separates the header; in plain text by white space."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv"):
        return [line.split() for line in lines]
    try:
        return list(csv.reader(StringIO("\n".join(lines)), delimiter=_mark(lines, path)))
    except csv.Error as e:
        raise InputError(f"{path.name} is not a table ({e}); save it again.") from None


def _mark(lines: Sequence[str], path: Path) -> str:
    """What separates the columns of a table; nothing in plain text."""
    suffix = path.suffix.lower()
    return (
        separator((line.encode() for line in lines), "\t" if suffix == ".tsv" else ",")
        if suffix != ".txt"
        else ""
    )


def _outcomes(
    found: Columns, names: dict[str, str], metric: str | None, path: Path
) -> tuple[list[float], list[Outcome | None], list[str] | None]:
    """Grades, reasons for no answer, and the answers where they are there."""
    graded = names.get(metric.lower()) if metric else _first(GRADES, names)
    if metric and graded is None:
        raise InputError(
            f"{path.name} has no column {metric!r}; its columns are: {', '.join(found)}."
        )
    answer = _first(ANSWER, names)
    if graded is not None:
        read = [_graded(cell, i, graded, path) for i, cell in enumerate(found[graded])]
        return (
            [g for g, _ in read],
            [why for _, why in read],
            None if answer is None else found[answer],
        )
    gold = _first(GOLD, names)
    if gold is None or answer is None:
        raise InputError(
            f"{path.name} says of no answer whether it is right; add a column 'correct' of 0 and 1."
        )
    right = same_answer(np.array(found[answer]), np.array(found[gold]))
    unanswered = [None if cell.strip() else Outcome.UNPARSEABLE for cell in found[answer]]
    return right.astype(np.float64).tolist(), unanswered, found[answer]


def _graded(cell: str, row: int, name: str, path: Path) -> tuple[float, Outcome | None]:
    outcome = BY_WORD.get(cell.strip().lower())
    if outcome is not None:
        return (float(outcome), None) if outcome < Outcome.GRADED else (0.0, outcome)
    value = number(cell)
    if value is None or not 0 <= value <= 1:
        raise InputError(
            f"{path.name}, line {row + 2}, column {name!r}: the value is {cell[:40]!r}; "
            "correct, wrong, unparseable, refused, missing or a grade from 0 to 1 is needed."
        )
    return value, None


def _confidence(name: str, cells: Sequence[str], path: Path) -> Confidence:
    kind = next((k for pattern, k in KINDS if pattern.search(name.lower())), Kind.STATED)
    values = [
        np.nan if cell.strip().lower() in WORDS[Outcome.MISSING] else number(cell) for cell in cells
    ]
    for i, value in enumerate(values):
        if value is None:
            raise InputError(
                f"{path.name}, line {i + 2}, column {name!r}: the value is {cells[i][:40]!r}; a number is needed."
            )
    return Confidence(name, kind, np.array(values, dtype=np.float64))
