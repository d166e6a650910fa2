"""lm-evaluation-harness up to 0.3, `--write_out`: one object per document, its options as
`logit_0`, `logit_1`, …
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.formats.logs import options as of_options
from howsure.formats.logs.log import Confidence, Kind, Log, claimed, column, outcomes
from howsure.formats.logs.tree import Json, Record, at, number, record, rows_of, text

TOOL = "lm-evaluation-harness write_out"


def recognised(document: Json) -> bool:
    """Whether this is a list of documents with their requests."""
    return {"doc_id", "prompt_0", "logit_0", "truth"} <= record(at(document, 0)).keys()


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The documents of a file; `metric` is the field that says right or wrong, `acc` unless given."""
    rows = rows_of(document, path.name)
    name = metric or "acc"
    if metric is not None and metric not in rows[0]:
        raise InputError(
            f"{path.name} has no field {metric!r}; its fields are: {', '.join(rows[0])}."
        )
    values = _values(rows, path)
    grades = [number(row.get(name)) for row in rows]
    gold = of_options.gold(
        [row.get("truth") for row in rows], None, values, grades, where=path.name
    )
    best = np.argmax(values, axis=1)
    if gold is None:
        raise InputError(
            f"{path.name}: truth is not the number of an option; save the log of a multiple-choice task."
        )
    right = (gold == best).astype(np.float64)
    said = [g for g in grades if g is not None]
    claims = [
        claimed(
            name,
            float(np.mean(said)),
            float(right.mean()),
            source=f"its field {name}",
            where=path.name,
        )
    ]
    return Log(
        TOOL,
        column([text(row.get("doc_id")) for row in rows]),
        outcomes(right.tolist()),
        right,
        (Confidence("option_probability", Kind.OPTIONS, of_options.top(values)),),
        values,
        None,
        gold,
        column([str(b) for b in best.tolist()]),
        claims=tuple(claims) if len(said) == len(rows) else (),
    )


def _values(rows: Sequence[Record], path: Path) -> Floats:
    found = [[number(_first(row[key])) for key in _keys(row)] for row in rows]
    for i, row in enumerate(found):
        if len(row) < 2 or None in row:
            raise InputError(
                f"{path.name}, document {i} has no log-likelihood for each of at least 2 options; "
                "a log of a multiple-choice task is needed."
            )
    return of_options.matrix([[v for v in row if v is not None] for row in found], path.name)


def _keys(row: Record) -> list[str]:
    count = sum(key.startswith("logit_") for key in row)
    return [key for i in range(count) if (key := f"logit_{i}") in row]


def _first(value: Json) -> Json:
    """The log-likelihood of a pair [log-likelihood, greedy]."""
    return at(value, 0) if isinstance(value, list) else value
