"""promptfoo: the JSON that `promptfoo eval -o output.json` writes, versions 1 to 4."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.checks import InputError
from howsure.formats.logs.json_tree import (
    Json,
    Record,
    as_list,
    as_number,
    as_record,
    as_records,
    as_text,
    get_at,
)
from howsure.formats.logs.log import (
    Claim,
    Log,
    Outcome,
    check_claim,
    compute_token_confidences,
    judge_grades,
    make_column,
)

PROMPTFOO_TITLE = "promptfoo output"
VERSIONS_READ = (1, 2, 3, 4)
REQUEST_FAILED = 2  # failureReason of a request that gave no answer


def recognise(document: Json) -> bool:
    """Whether this is an output file: results beside their counts."""
    top = _get_top(document)
    return "results" in top and "successes" in as_record(top.get("stats"))


def _get_top(document: Json) -> Record:
    """Version 1 has its results at the top, later ones a level deeper."""
    top = as_record(document)
    return as_record(top.get("results")) or top


def read(document: Json, path: Path, metric: str | None = None) -> Log:
    """The results of a file; right is what passed its assertions, or by `metric` a named score from
    0 to 1.
    """
    top = _get_top(document)
    rows = as_records(top.get("results"))
    if as_number(top.get("version")) not in VERSIONS_READ:
        raise InputError(
            f"{path.name} is promptfoo output of version {top.get('version')}; "
            f"1 to {VERSIONS_READ[-1]} are read."
        )
    if not rows:
        raise InputError(
            f"{path.name} is promptfoo output without results; run promptfoo eval first."
        )
    grades = [_read_grade(row, metric, path) for row in rows]
    tests: list[str] = []
    prompts: list[str] = []
    for row in rows:
        # What makes a test: its number where there is one, else its variables.
        if "testIdx" in row:
            tests.append(as_text(row["testIdx"]))
        else:
            tests.append(json.dumps(row.get("vars"), sort_keys=True))
        prompt = as_record(row.get("prompt"))
        name = as_text(row.get("promptId"))
        for key in ("label", "display", "raw"):
            name = name or as_text(prompt.get(key))
        prompts.append(name)
    tests = _number_texts(tests)
    ids = tests
    repeated = len(set(tests)) < len(tests)
    if repeated:  # the same test under several prompts or models
        ids = [f"{test}/{i}" for i, test in enumerate(tests)]
    tokens = [as_list(get_at(row, "response", "logProbs")) for row in rows]
    notes: tuple[str, ...] = ()
    if not any(get_at(row, "response", "logProbs") for row in rows):
        notes = ("the log holds no log-probabilities",)
    return Log(
        tool=PROMPTFOO_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(grades, [_find_reason_unanswered(row) for row in rows]),
        grade=np.array(grades),
        confidences=compute_token_confidences(tokens),
        answer=make_column([as_text(get_at(row, "response", "output")) for row in rows]),
        group=make_column(tests) if repeated else None,
        slices={"prompt": make_column(_number_texts(prompts))},
        claims=_check_counts(top, rows, path),
        notes=notes,
    )


def _read_grade(row: Record, metric: str | None, path: Path) -> float:
    what = "success"
    grade = as_number(row.get("success"))
    if metric is not None:
        what = f"the named score {metric!r}"
        grade = as_number(get_at(row, "namedScores", metric))
    if grade is None or not 0 <= grade <= 1:
        raise InputError(
            f"{path.name}: {what} of a result is {grade}; a number from 0 to 1 is needed."
        )
    return grade


def _find_reason_unanswered(row: Record) -> Outcome | None:
    if as_number(row.get("failureReason")) == REQUEST_FAILED or row.get("response") is None:
        return Outcome.MISSING
    if get_at(row, "response", "isRefusal") is True:
        return Outcome.REFUSED
    return None


def _number_texts(texts: Sequence[str]) -> list[str]:
    """Long texts by the number of their first occurrence."""
    numbers = {text: str(i) for i, text in enumerate(dict.fromkeys(texts))}
    return [numbers[text] for text in texts]


def _check_counts(top: Record, rows: Sequence[Record], path: Path) -> tuple[Claim, ...]:
    stats = as_record(top.get("stats"))
    errors = sum(as_number(row.get("failureReason")) == REQUEST_FAILED for row in rows)
    passed = sum(as_number(row.get("success")) == 1 for row in rows)
    counts = {"successes": passed, "failures": len(rows) - passed - errors, "errors": errors}
    claims: list[Claim] = []
    for name, ours in counts.items():
        theirs = as_number(stats.get(name))
        if theirs is not None:
            claim = check_claim(
                name, theirs=theirs, ours=ours, source="its table of counts", where=path.name
            )
            claims.append(claim)
    return tuple(claims)
