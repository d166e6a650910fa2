"""lm-evaluation-harness 0.4 and later: `samples_*.json` (a list) and `samples_*.jsonl` (one object
per line).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.check import Array, Floats, InputError, Ints
from howsure.formats.logs import options as of_options
from howsure.formats.logs.document import document as load
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    categories,
    claimed,
    column,
    outcomes,
)
from howsure.formats.logs.tree import Json, Record, at, items, number, record, rows_of, text

TOOL = "lm-evaluation-harness samples"
METRICS = ("acc", "exact_match", "em", "acc_norm")
NORMALISED = "acc_norm"
INVALID = "[invalid]"  # what the harness writes where its filter finds no answer
CATEGORIES = ("category", "subject", "topic", "task")
NAMED = re.compile(r"samples_(?P<task>.+)_(?P<stamp>\d{4}-\d\d-\d\dT[\d\-.]+)")


def recognised(document: Json) -> bool:
    """Whether this is a list of samples."""
    first = record(at(document, 0))
    return {"doc_id", "target", "filtered_resps"} <= first.keys()


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The samples of a file.

    `metric` says which field tells right from wrong: `acc`, `exact_match`, or what else the task
    logs. `acc_norm` divides the log-likelihood of an option by its length, as the harness does.
    """
    rows = rows_of(document, path.name)
    chosen = _metric(rows, metric, path)
    grades = [number(row.get(chosen)) for row in rows]
    values = _likelihoods(rows, path)
    if values is None:
        found = _generated(rows, grades, chosen, path)
    elif values.shape[1] == 1:
        found = _targets_only(rows, grades, chosen, path)
    else:
        found = _multiple_choice(rows, values, grades, chosen, path)
    return replace(found, claims=tuple(_claims(found, chosen, path)))


def _metric(rows: Sequence[Record], asked: str | None, path: Path) -> str:
    """The field that says right or wrong."""
    there = [
        name for name, value in rows[0].items() if name != "doc_id" and number(value) is not None
    ]
    logged = [text(name) for name in items(rows[0].get("metrics"))]
    known = [
        *(name for name in METRICS if name in there),
        *(name for name in logged if name in there),
    ]
    if asked is not None and asked not in there:
        shown = ", ".join(known) or "none"
        raise InputError(
            f"{path.name} has no metric {asked!r} for each sample; its metrics are: {shown}."
        )
    if asked is None and not known:
        raise InputError(
            f"{path.name} says of no sample whether it is right; log a metric such as acc or exact_match."
        )
    return asked or known[0]


def _likelihoods(rows: Sequence[Record], path: Path) -> Floats | None:
    """The log-likelihoods of the options of each sample; None where answers were generated."""
    pairs = [items(row.get("filtered_resps")) for row in rows]
    if not all(
        pair and all(isinstance(one, list) and len(one) == 2 for one in pair) for pair in pairs
    ):
        return None
    values = [[number(at(one, 0)) for one in pair] for pair in pairs]
    numbers = [[v for v in row if v is not None] for row in values]
    return (
        of_options.matrix(numbers, path.name)
        if list(map(len, numbers)) == list(map(len, values))
        else None
    )


def _texts(rows: Sequence[Record], sizes: Ints) -> list[list[str]] | None:
    """The texts of the options, where the log has the arguments of every request."""
    found = [
        [text(at(args, "arg_1")) for args in record(row.get("arguments")).values()] for row in rows
    ]
    return found if [len(f) for f in found] == sizes.tolist() else None


def _multiple_choice(
    rows: Sequence[Record], values: Floats, grades: Sequence[float | None], metric: str, path: Path
) -> Log:
    sizes = np.isfinite(values).sum(axis=1)
    texts = _texts(rows, sizes)
    if metric == NORMALISED:
        if texts is None:
            raise InputError(
                f"{path.name} does not hold the texts of its options, whose lengths acc_norm needs; use acc."
            )
        values = of_options.by_length(values, texts, path.name)
    gold = of_options.gold(
        [row.get("target") for row in rows], texts, values, grades, where=path.name
    )
    best = np.argmax(values, axis=1)
    known = _known(grades, path, metric) if gold is None else (gold == best).astype(np.float64)
    note = () if gold is not None else ("the right option is not known, only right or wrong",)
    chosen = column([str(b) for b in best.tolist()] if texts is None else _chosen(texts, best))
    return Log(
        TOOL,
        _ids(rows),
        outcomes(known.tolist()),
        known,
        (Confidence("option_probability", Kind.OPTIONS, of_options.top(values)),),
        values,
        _same(texts),
        gold,
        chosen,
        split=_filters(rows),
        slices=_slices(rows),
        notes=note,
    )


def _same(texts: list[list[str]] | None) -> tuple[str, ...] | None:
    """The options, where they are the same for every question."""
    if texts is None or any(row != texts[0] for row in texts):
        return None
    return tuple(option.strip() for option in texts[0])


def _chosen(texts: list[list[str]], best: Ints) -> list[str]:
    chosen: list[int] = best.tolist()
    return [row[b].strip() for row, b in zip(texts, chosen, strict=True)]


def _known(grades: Sequence[float | None], path: Path, metric: str) -> Floats:
    missing = next((i for i, g in enumerate(grades) if g is None or not 0 <= g <= 1), None)
    if missing is not None:
        raise InputError(
            f"{path.name}, sample {missing}: {metric} is {grades[missing]}; a number from 0 to 1 is needed."
        )
    return np.array(grades, dtype=np.float64)


def _targets_only(
    rows: Sequence[Record], grades: Sequence[float | None], metric: str, path: Path
) -> Log:
    """One request per sample: the likelihood of the right answer, which is no confidence of the
    model's own answer.
    """
    known = _known(grades, path, metric)
    note = "the log-probabilities are those of the right answer, not of the model's: they are no confidence"
    return Log(
        TOOL,
        _ids(rows),
        outcomes(known.tolist()),
        known,
        split=_filters(rows),
        slices=_slices(rows),
        notes=(note,),
    )


def _generated(
    rows: Sequence[Record], grades: Sequence[float | None], metric: str, path: Path
) -> Log:
    known = _known(grades, path, metric)
    answers = [_answer(row) for row in rows]
    unanswered = [_unanswered(answer) for answer in answers]
    return Log(
        TOOL,
        _ids(rows),
        outcomes(known.tolist(), unanswered),
        known,
        answer=column(answers),
        split=_filters(rows),
        slices=_slices(rows),
        notes=("the answers are generated text without log-probabilities",),
    )


def _answer(row: Record) -> str:
    first = at(row.get("filtered_resps"), 0)
    return text(at(first, 0) if isinstance(first, list) else first).strip()


def _unanswered(answer: str) -> Outcome | None:
    return Outcome.UNPARSEABLE if answer == INVALID else None if answer else Outcome.MISSING


def _ids(rows: Sequence[Record]) -> Array:
    return column([text(row.get("doc_id")) for row in rows])


def _filters(rows: Sequence[Record]) -> Array | None:
    """The answer filter of each row, where a file holds the same samples under several."""
    found = [text(row.get("filter")) for row in rows]
    return column(found) if len(set(found)) > 1 else None


def _slices(rows: Sequence[Record]) -> dict[str, Array]:
    """Columns of the documents that sort them by subject."""
    return categories({name: [at(row.get("doc"), name) for row in rows] for name in CATEGORIES})


def _claims(found: Log, metric: str, path: Path) -> list[Claim]:
    """The log's means, compared with the results file that the harness wrote beside it."""
    named = NAMED.fullmatch(path.stem)
    beside = path.with_name(f"results_{named['stamp']}.json") if named else None
    if named is None or beside is None or not beside.is_file():
        return []
    results = record(at(load(beside), "results", named["task"]))
    filters = [""] if found.split is None else sorted(set(found.split.tolist()))
    claims: list[Claim] = []
    for name in filters:
        rows = np.ones(found.n, dtype=np.bool_) if found.split is None else found.split == name
        values = [
            number(v)
            for key, v in results.items()
            if key == f"{metric},{name or key.partition(',')[2]}"
        ]
        ours = float(found.grade[rows].mean())
        claims += [
            claimed(metric, theirs, ours, source=beside.name, where=path.name)
            for theirs in values
            if theirs is not None
        ]
    return claims
