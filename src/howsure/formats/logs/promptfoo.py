"""promptfoo: the JSON that `promptfoo eval -o output.json` writes, versions 1 to 3."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.check import InputError
from howsure.formats.logs.log import Claim, Log, Outcome, claimed, column, outcomes
from howsure.formats.logs.tokens import sequence
from howsure.formats.logs.tree import Json, Record, at, items, number, record, records, text

TOOL = "promptfoo output"
VERSIONS = (1, 2, 3, 4)
ERROR = 2  # failureReason of a request that gave no answer


def recognised(document: Json) -> bool:
    """Whether this is an output file: results beside their counts."""
    top = _top(document)
    return "results" in top and "successes" in record(top.get("stats"))


def _top(document: Json) -> Record:
    """Version 1 has its results at the top, later ones a level deeper."""
    top = record(document)
    return record(top.get("results")) or top


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The results of a file; right is what passed its assertions, or by `metric` a named score from
    0 to 1.
    """
    top = _top(document)
    version = number(top.get("version"))
    rows = records(top.get("results"))
    if version not in VERSIONS:
        raise InputError(
            f"{path.name} is promptfoo output of version {top.get('version')}; 1 to {VERSIONS[-1]} are read."
        )
    if not rows:
        raise InputError(
            f"{path.name} is promptfoo output without results; run promptfoo eval first."
        )
    grades = [_grade(row, metric, path) for row in rows]
    tests = [_test(row) for row in rows]
    repeated = len(set(tests)) < len(tests)
    return Log(
        TOOL,
        column(
            [f"{test}/{i}" for i, test in enumerate(_short(tests))] if repeated else _short(tests)
        ),
        outcomes(grades, [_unanswered(row) for row in rows]),
        np.array(grades),
        sequence([items(at(row, "response", "logProbs")) for row in rows]),
        answer=column([text(at(row, "response", "output")) for row in rows]),
        group=column(_short(tests)) if repeated else None,
        slices={"prompt": column(_short([_prompt(row) for row in rows]))},
        claims=_claims(top, rows, path),
        notes=()
        if any(at(row, "response", "logProbs") for row in rows)
        else ("the log holds no log-probabilities",),
    )


def _grade(row: Record, metric: str | None, path: Path) -> float:
    found = number(row.get("success") if metric is None else at(row, "namedScores", metric))
    if found is None or not 0 <= found <= 1:
        what = "success" if metric is None else f"the named score {metric!r}"
        raise InputError(
            f"{path.name}: {what} of a result is {found}; a number from 0 to 1 is needed."
        )
    return found


def _unanswered(row: Record) -> Outcome | None:
    if number(row.get("failureReason")) == ERROR or row.get("response") is None:
        return Outcome.MISSING
    return Outcome.REFUSED if at(row, "response", "isRefusal") is True else None


def _test(row: Record) -> str:
    """What makes a test: its number where there is one, else its variables."""
    return text(row["testIdx"]) if "testIdx" in row else json.dumps(row.get("vars"), sort_keys=True)


def _short(texts: Sequence[str]) -> list[str]:
    """Long texts by the number of their first occurrence."""
    known = {text: str(i) for i, text in enumerate(dict.fromkeys(texts))}
    return [known[text] for text in texts]


def _prompt(row: Record) -> str:
    prompt = record(row.get("prompt"))
    return (
        text(row.get("promptId"))
        or text(prompt.get("label"))
        or text(prompt.get("display"))
        or text(prompt.get("raw"))
    )


def _claims(top: Record, rows: Sequence[Record], path: Path) -> tuple[Claim, ...]:
    stats = record(top.get("stats"))
    errors = sum(number(row.get("failureReason")) == ERROR for row in rows)
    passed = sum(number(row.get("success")) == 1 for row in rows)
    ours = {"successes": passed, "failures": len(rows) - passed - errors, "errors": errors}
    return tuple(
        claimed(name, theirs, ours[name], source="its table of counts", where=path.name)
        for name in ours
        if (theirs := number(stats.get(name))) is not None
    )
