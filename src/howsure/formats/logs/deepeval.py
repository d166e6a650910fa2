"""deepeval: the JSON of a test run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.check import InputError
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    claimed,
    column,
    fits,
    outcomes,
)
from howsure.formats.logs.tree import Json, Record, number, record, records, text

TOOL = "deepeval test run"
CIRCULAR = "a case passes where the judge's scores reach their thresholds, so they tell right from wrong by construction"


def recognised(document: Json) -> bool:
    """Whether this is a test run."""
    return {"testCases", "metricsScores"} <= record(document).keys()


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The test cases; right is a case that passed, or by `metric` one whose metric of that name
    succeeded.
    """
    top = record(document)
    cases = records(top.get("testCases"))
    if not cases:
        raise InputError(
            f"{path.name} is a deepeval run without test cases; save one with at least one."
        )
    grades = [_grade(case, metric, path) for case in cases]
    names = [text(case.get("name")) or str(i) for i, case in enumerate(cases)]
    return Log(
        TOOL,
        column(
            names
            if len(set(names)) == len(names)
            else [f"{name}/{i}" for i, name in enumerate(names)]
        ),
        outcomes(grades, [None if case.get("actualOutput") else Outcome.MISSING for case in cases]),
        np.array(grades),
        _judges(cases, path),
        answer=column([text(case.get("actualOutput")) for case in cases]),
        claims=_claims(top, cases, path),
        doubts=(CIRCULAR,),
    )


def _metrics(case: Record) -> dict[str, Record]:
    return {text(m.get("name")): m for m in records(case.get("metricsData"))}


def _grade(case: Record, metric: str | None, path: Path) -> float:
    metrics = _metrics(case)
    if metric is not None and metric not in metrics:
        raise InputError(
            f"{path.name} has no metric {metric!r}; its metrics are: {', '.join(metrics)}."
        )
    found = number(case.get("success") if metric is None else metrics[metric].get("success"))
    if found is None:
        raise InputError(
            f"{path.name}: a test case does not say whether it passed; run deepeval test again."
        )
    return found


def _judges(cases: Sequence[Record], path: Path) -> tuple[Confidence, ...]:
    each = [_metrics(case) for case in cases]
    names = dict.fromkeys(name for metrics in each for name in metrics)
    fits(len(cases), len(names), sum(map(len, each)), path.name)
    scores = {
        n: [number(metrics[n].get("score")) if n in metrics else None for metrics in each]
        for n in names
    }
    return tuple(
        Confidence(n, Kind.JUDGE, np.array([np.nan if s is None else s for s in found]))
        for n, found in scores.items()
    )


def _claims(top: Record, cases: Sequence[Record], path: Path) -> tuple[Claim, ...]:
    passed = sum(number(case.get("success")) == 1 for case in cases)
    ours = {"testPassed": passed, "testFailed": len(cases) - passed}
    others = len(records(top.get("conversationalTestCases")))
    return tuple(
        claimed(name, theirs, count, source="its total", where=path.name)
        for name, count in ours.items()
        if not others and (theirs := number(top.get(name))) is not None
    )
