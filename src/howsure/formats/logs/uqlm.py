"""uqlm: tables of prompts, responses and scores as lists of equal length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from howsure._core.checks import InputError
from howsure.formats.logs.json_tree import (
    Json,
    Record,
    as_list,
    as_number,
    as_record,
    as_text,
    get_at,
)
from howsure.formats.logs.log import (
    Confidence,
    Kind,
    Log,
    Outcome,
    check_table_size,
    judge_grades,
    make_column,
)

UQLM_TITLE = "uqlm table"
CORRECT_NAMES = ("correct_indicators", "response_correct", "is_correct", "correct", "grade")
TEXT_NAMES = ("prompts", "responses")
NOT_SCORES = ("indicator_scores", "entropy_values")  # an uncertainty, and a vote
SCORE_KIND_PATTERNS = (
    (re.compile(r"judge|self_reflection|^sr_"), Kind.JUDGE),
    (re.compile(r"probability|perplexity|logprob"), Kind.SEQUENCE),
    (
        re.compile(
            r"exact_match|noncontradiction|negentropy|semantic|cosine|bert|bleurt|oc_scores|density"
        ),
        Kind.AGREEMENT,
    ),
)


class ResponseRow(NamedTuple):
    """One response: the name of its table, the table, and its place there."""

    name: str
    table: Record
    place: int


def recognise(document: Json) -> bool:
    """Whether this is a table with prompts and responses, or several of them by name."""
    return bool(_find_tables(document))


def _find_tables(document: Json) -> dict[str, Record]:
    top = as_record(document)
    only = as_record(top.get("data")) or top
    if _is_table(only):
        return {"": only}
    tables = {name: as_record(get_at(value, "data")) for name, value in top.items()}
    return tables if all(map(_is_table, tables.values())) else {}


def _is_table(table: Record) -> bool:
    sizes = {len(as_list(table.get(name))) for name in TEXT_NAMES}
    return len(sizes) == 1 and 0 not in sizes


def read(document: Json, path: Path, metric: str | None = None) -> Log:
    """The answers of a table; several tables are splits. `metric` names the list that says right or
    wrong.
    """
    tables = _find_tables(document)
    rows: list[ResponseRow] = []
    names: dict[
        str, None
    ] = {}  # an ordered set of scores: lists of numbers that are as long as the responses
    scores_there = 0
    grades: list[float] = []
    for name, table in tables.items():
        size = len(as_list(table["responses"]))
        rows += [ResponseRow(name, table, place) for place in range(size)]
        for key, value in table.items():
            cells = as_list(value)
            is_score = key not in (*CORRECT_NAMES, *NOT_SCORES, *TEXT_NAMES, metric)
            if is_score and len(cells) == size and any(as_number(c) is not None for c in cells):
                names[key] = None
                scores_there += size
        grades += _read_grades(table, metric)
    check_table_size(len(rows), len(names), scores_there, path.name)
    if len(grades) < len(rows) or not grades:
        raise InputError(_describe_missing_outcome(len(rows), list(names), path))
    answers = [as_text(get_at(row.table["responses"], row.place)) for row in rows]
    unanswered = [None if answer.strip() else Outcome.MISSING for answer in answers]
    ids = [f"{row.name}/{row.place}" if row.name else str(row.place) for row in rows]
    return Log(
        tool=UQLM_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(grades, unanswered),
        grade=np.array(grades),
        confidences=tuple(_read_confidence(name, rows) for name in names),
        answer=make_column(answers),
        split=make_column([row.name for row in rows]) if len(tables) > 1 else None,
    )


def _read_grades(table: Record, metric: str | None) -> list[float]:
    """The grades of a table; none of a response that has no grade from 0 to 1."""
    size = len(as_list(table["responses"]))
    names = CORRECT_NAMES if metric is None else (metric,)
    for name in names:
        cells = as_list(table.get(name))
        if len(cells) == size:
            numbers = [as_number(cell) for cell in cells]
            return [number for number in numbers if number is not None and 0 <= number <= 1]
    return []


def _read_confidence(name: str, rows: Sequence[ResponseRow]) -> Confidence:
    kind = Kind.STATED
    for pattern, candidate in SCORE_KIND_PATTERNS:
        if pattern.search(name):
            kind = candidate
            break
    values = [as_number(get_at(row.table.get(name), row.place)) for row in rows]
    return Confidence(name, kind, np.array(values, dtype=np.float64))


def _describe_missing_outcome(size: int, names: Sequence[str], path: Path) -> str:
    held = "no confidence"
    if names:
        plural = "" if len(names) == 1 else "s"
        held = f"{len(names)} confidence{plural} ({', '.join(names)})"
    return (
        f"{path.name} is a {UQLM_TITLE} of {size:,} answers with {held}, but nothing says which answers "
        "are right; add a list 'correct' of 0 and 1, one for each response."
    )
