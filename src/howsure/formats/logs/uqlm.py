"""uqlm: tables of prompts, responses and scores as lists of equal length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.check import Array, InputError
from howsure.formats.logs.log import Confidence, Kind, Log, Outcome, column, fits, outcomes
from howsure.formats.logs.tree import Json, Record, at, items, number, record, text

TOOL = "uqlm table"
CORRECT = ("correct_indicators", "response_correct", "is_correct", "correct", "grade")
KINDS = (
    (re.compile(r"judge|self_reflection|^sr_"), Kind.JUDGE),
    (re.compile(r"probability|perplexity|logprob"), Kind.SEQUENCE),
    (
        re.compile(
            r"exact_match|noncontradiction|negentropy|semantic|cosine|bert|bleurt|oc_scores|density"
        ),
        Kind.AGREEMENT,
    ),
)
NOT_SCORES = ("indicator_scores", "entropy_values")  # an uncertainty, and a vote


def recognised(document: Json) -> bool:
    """Whether this is a table with prompts and responses, or several of them by name."""
    return bool(_tables(document))


def _tables(document: Json) -> dict[str, Record]:
    top = record(document)
    if _is_table(record(top.get("data")) or top):
        return {"": record(top.get("data")) or top}
    named = {name: record(at(value, "data")) for name, value in top.items()}
    return named if named and all(map(_is_table, named.values())) else {}


def _is_table(table: Record) -> bool:
    sizes = {len(items(table.get(name))) for name in ("prompts", "responses")}
    return len(sizes) == 1 and 0 not in sizes


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The answers of a table; several tables are splits. `metric` names the list that says right or
    wrong.
    """
    tables = _tables(document)
    there = {name: _scores(table, metric) for name, table in tables.items()}
    names = list(dict.fromkeys(name for scores in there.values() for name in scores))
    sizes = {name: len(items(table["responses"])) for name, table in tables.items()}
    fits(
        sum(sizes.values()),
        len(names),
        sum(sizes[name] * len(scores) for name, scores in there.items()),
        path.name,
    )
    right = [grade for table in tables.values() for grade in _grades(table, metric)]
    if None in right or not right:
        raise InputError(_no_outcome(tables, names, path))
    grades = [g for g in right if g is not None]
    rows = [
        (name, table, i)
        for name, table in tables.items()
        for i in range(len(items(table["responses"])))
    ]
    answers = [text(at(table["responses"], i)) for _, table, i in rows]
    return Log(
        TOOL,
        column([f"{name}/{i}" if name else str(i) for name, _, i in rows]),
        outcomes(grades, [None if a.strip() else Outcome.MISSING for a in answers]),
        np.array(grades),
        tuple(_confidence(name, rows) for name in names),
        answer=column(answers),
        split=_split([name for name, _, _ in rows]),
    )


def _split(names: Sequence[str]) -> Array | None:
    return column(names) if len(set(names)) > 1 else None


def _grades(table: Record, metric: str | None) -> list[float | None]:
    size = len(items(table["responses"]))
    names = CORRECT if metric is None else (metric,)
    found = next((table[n] for n in names if len(items(table.get(n))) == size), None)
    grades = [number(v) for v in items(found)]
    return [g if g is not None and 0 <= g <= 1 else None for g in grades] or [None] * size


def _scores(table: Record, metric: str | None) -> list[str]:
    """The lists of numbers that are as long as the responses."""
    size = len(items(table["responses"]))
    known = {
        n: [number(v) for v in items(cells)]
        for n, cells in table.items()
        if n not in (*CORRECT, *NOT_SCORES, metric)
    }
    return [
        n
        for n, found in known.items()
        if len(found) == size
        and any(v is not None for v in found)
        and n not in ("prompts", "responses")
    ]


def _confidence(name: str, rows: Sequence[tuple[str, Record, int]]) -> Confidence:
    values = [number(at(table.get(name), i)) for _, table, i in rows]
    kind = next((k for pattern, k in KINDS if pattern.search(name)), Kind.STATED)
    return Confidence(name, kind, np.array([np.nan if v is None else v for v in values]))


def _no_outcome(tables: dict[str, Record], names: Sequence[str], path: Path) -> str:
    size = sum(len(items(table["responses"])) for table in tables.values())
    held = (
        f"{len(names)} confidence{'s' if len(names) != 1 else ''} ({', '.join(names)})"
        if names
        else "no confidence"
    )
    return (
        f"{path.name} is a {TOOL} of {size:,} answers with {held}, "
        "but nothing says which answers are right; add a list 'correct' of 0 and 1, one for each response."
    )
