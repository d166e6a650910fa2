"""Text and CSV logs: one answer per line, with what came of it and one or several confidences."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from howsure._core.checks import Array, InputError, Ints
from howsure.formats.cells import replace_commas
from howsure.formats.contents import ARM_NAMES
from howsure.formats.contents import ID_NAMES as RECORD_NAMES
from howsure.formats.delimited import find_separator
from howsure.formats.fields import same_answer
from howsure.formats.logs.json_tree import as_number
from howsure.formats.logs.log import (
    Confidence,
    Kind,
    Log,
    Outcome,
    describe_constants,
    find_kind,
    judge_grades,
    make_column,
)

TextColumns: TypeAlias = dict[str, list[str]]
TITLES = {".csv": "CSV log", ".tsv": "TSV log", ".txt": "text log"}
GRADE_NAMES = ("grade", "is_correct", "correctness", "correct", "acc", "verdict")
GOLD_NAMES = ("correct_answer", "gold_answer", "gold", "ground_truth", "expected", "reference")
ANSWER_NAMES = (
    "extracted_answer",
    "parsed_answer",
    "model_answer",
    "predicted_answer",
    "answer",
    "prediction",
)
CATEGORY_NAMES = ("category", "subject", "topic", "task")
ID_NAMES = ("id", "question_id", "doc_id")
HEADER_BYTES = 1 << 16
CONFIDENCE_PATTERN = re.compile(
    r"(^|_)conf(idence)?(_|$)|logprob|perplexity|probability$|^judge", re.IGNORECASE
)
KIND_PATTERNS = (
    (re.compile(r"verbal|stated|self_report"), Kind.VERBALISED),
    (re.compile(r"perplexity|logprob|token|sequence|probability"), Kind.SEQUENCE),
    (re.compile(r"agree|consisten|sampl|vote"), Kind.AGREEMENT),
    (re.compile(r"judge"), Kind.JUDGE),
    (re.compile(r"raw|logit"), Kind.SCORE),
)
OUTCOME_WORDS = {
    Outcome.RIGHT: ("correct", "right", "true", "yes", "c", "pass", "1", "1.0"),
    Outcome.WRONG: ("wrong", "incorrect", "false", "no", "i", "fail", "0", "0.0"),
    Outcome.UNPARSEABLE: ("unparseable", "unparsable", "unparsed", "invalid", "[invalid]"),
    Outcome.REFUSED: ("refused", "refusal", "abstain", "abstained", "abstention", "n", "idk"),
    Outcome.MISSING: ("missing", "", "none", "nan", "null", "error", "timeout"),
}
OUTCOME_BY_WORD = {word: outcome for outcome, words in OUTCOME_WORDS.items() for word in words}


def recognise(header: Sequence[str]) -> bool:
    """Whether these columns hold an outcome and a confidence.

    >>> recognise(["grade", "confidence_level"]), recognise(["prob_0", "prob_1", "label"])
    (True, False)
    """
    names = _index_by_lower_case(header)
    has_grade = _find_first(GRADE_NAMES, names) is not None
    has_gold = _find_first(GOLD_NAMES, names) is not None
    has_answer = _find_first(ANSWER_NAMES, names) is not None
    has_confidence = any(CONFIDENCE_PATTERN.search(name) for name in names)
    return has_confidence and (has_grade or (has_gold and has_answer))


def read_header(path: Path) -> list[str]:
    """The names of the columns."""
    with path.open("rb") as file:
        first = _decode(file.readline(HEADER_BYTES), path).splitlines()[:1]
    if not first or not first[0].strip():
        return []
    return _split_fields(first, path)[0]


def read(path: Path, metric: str | None = None) -> Log:
    """The rows of a file; `metric` names the column that says right or wrong."""
    columns, lines = _read_columns(path)
    names = _index_by_lower_case(list(columns))
    graded = _read_outcomes(columns, names, metric, path)
    n = len(graded.grades)
    confidences: list[Confidence] = []
    doubts: list[str] = []
    for name in columns:
        if CONFIDENCE_PATTERN.search(name):
            confidences.append(_read_confidence(name, columns[name], path))
    for c in confidences:
        if c.missing == n:
            doubts.append(f"{c.name} is empty in all rows and left out")
    id_column = _find_first(ID_NAMES, names)
    ids = [str(i) for i in range(n)] if id_column is None else columns[id_column]
    slices: dict[str, Array] = {}
    for category in CATEGORY_NAMES:
        if category in names:
            slices[category] = make_column(columns[names[category]])
    beside = [name for name in (*ARM_NAMES, *RECORD_NAMES) if name in columns and name != id_column]
    return Log(
        tool=TITLES.get(path.suffix.lower(), "text log"),
        ids=make_column(ids),
        outcome=judge_grades(graded.grades, graded.unanswered),
        grade=np.array(graded.grades),
        confidences=tuple(c for c in confidences if c.missing < n),
        answer=None if graded.answers is None else make_column(graded.answers),
        slices=slices,
        beside={name: make_column(columns[name]) for name in beside},
        lines=lines,
        doubts=(*doubts, *describe_constants(confidences)),
    )


def _index_by_lower_case(header: Sequence[str]) -> dict[str, str]:
    return {name.strip().lower(): name for name in header}


def _find_first(candidates: Sequence[str], names: dict[str, str]) -> str | None:
    for candidate in candidates:
        if candidate in names:
            return names[candidate]
    return None


def _read_columns(path: Path) -> tuple[TextColumns, Ints]:
    """The cells by column, and the line of each row."""
    lines = _decode(path.read_bytes(), path).splitlines()
    numbers = [i for i, line in enumerate(lines, start=1) if line.strip()]
    full = [lines[i - 1] for i in numbers]
    rows = _split_fields(full, path)
    if len(rows) < 2:
        raise InputError(f"{path.name} has no answers; a header and at least one line are needed.")
    header = rows[0]
    # A quoted line break joins lines, so there may be fewer rows than lines; widths show it.
    for i, row in zip(numbers, rows, strict=False):
        if len(row) != len(header):
            raise InputError(
                f"{path.name}, line {i} has {len(row)} values, the header {len(header)}; "
                "repair the line."
            )
    for name, times in Counter(header).items():
        if times > 1:
            raise InputError(f"{path.name}: column {name[:60]!r} stands there twice; rename one.")
    columns: TextColumns = {}
    for i, name in enumerate(header):
        columns[name] = [row[i] for row in rows[1:]]
    if _find_separator(full, path) == ";":  # a spreadsheet's numbers may have decimal commas
        for name, cells in columns.items():
            if CONFIDENCE_PATTERN.search(name) or name.strip().lower() in GRADE_NAMES:
                columns[name] = list(replace_commas(cells))
    return columns, np.array(numbers[1 : len(rows)], dtype=np.int64)


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from None


def _split_fields(lines: Sequence[str], path: Path) -> list[list[str]]:
    """Fields by what separates the header; in plain text by white space."""
    if path.suffix.lower() not in (".csv", ".tsv"):
        return [line.split() for line in lines]
    try:
        text = StringIO("\n".join(lines))
        return list(csv.reader(text, delimiter=_find_separator(lines, path)))
    except csv.Error as e:
        raise InputError(f"{path.name} is not a table ({e}); save it again.") from None


def _find_separator(lines: Sequence[str], path: Path) -> str:
    """What separates the columns of a table; nothing in plain text."""
    suffix = path.suffix.lower()
    if suffix == ".txt":
        return ""
    usual = "\t" if suffix == ".tsv" else ","
    return find_separator((line.encode() for line in lines), usual)


class GradedRows(NamedTuple):
    """What came of each row, and the answers where they are there."""

    grades: list[float]
    unanswered: list[Outcome | None]
    answers: list[str] | None


def _read_outcomes(
    columns: TextColumns, names: dict[str, str], metric: str | None, path: Path
) -> GradedRows:
    """By the column of grades, or by comparing the answer with the right one."""
    grade_column = names.get(metric.lower()) if metric else _find_first(GRADE_NAMES, names)
    if metric and grade_column is None:
        raise InputError(
            f"{path.name} has no column {metric!r}; its columns are: {', '.join(columns)}."
        )
    answer_column = _find_first(ANSWER_NAMES, names)
    answers = None if answer_column is None else columns[answer_column]
    grades: list[float] = []
    unanswered: list[Outcome | None] = []
    if grade_column is not None:
        for i, cell in enumerate(columns[grade_column]):
            grade, why = _read_grade(cell, i, grade_column, path)
            grades.append(grade)
            unanswered.append(why)
        return GradedRows(grades, unanswered, answers)
    gold_column = _find_first(GOLD_NAMES, names)
    if gold_column is None or answers is None:
        raise InputError(
            f"{path.name} says of no answer whether it is right; add a column 'correct' of 0 and 1."
        )
    right = same_answer(np.array(answers), np.array(columns[gold_column]))
    grades = right.astype(np.float64).tolist()
    unanswered = [None if cell.strip() else Outcome.UNPARSEABLE for cell in answers]
    return GradedRows(grades, unanswered, answers)


def _read_grade(cell: str, row: int, name: str, path: Path) -> tuple[float, Outcome | None]:
    outcome = OUTCOME_BY_WORD.get(cell.strip().lower())
    if outcome is not None and outcome < Outcome.GRADED:
        return float(outcome), None
    if outcome is not None:
        return 0.0, outcome
    value = as_number(cell)
    if value is None or not 0 <= value <= 1:
        raise InputError(
            f"{path.name}, line {row + 2}, column {name!r}: the value is {cell[:40]!r}; "
            "correct, wrong, unparseable, refused, missing or a grade from 0 to 1 is needed."
        )
    return value, None


def _read_confidence(name: str, cells: Sequence[str], path: Path) -> Confidence:
    kind = find_kind(name.lower(), KIND_PATTERNS)
    values: list[float] = []
    for i, cell in enumerate(cells):
        if cell.strip().lower() in OUTCOME_WORDS[Outcome.MISSING]:
            values.append(np.nan)
            continue
        value = as_number(cell)
        if value is None:
            raise InputError(
                f"{path.name}, line {i + 2}, column {name!r}: the value is {cell[:40]!r}; "
                "a number is needed."
            )
        values.append(value)
    return Confidence(name, kind, np.array(values, dtype=np.float64))
