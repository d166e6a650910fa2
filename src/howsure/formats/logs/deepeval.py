"""deepeval: the JSON of a test run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from howsure._core.checks import InputError
from howsure.formats.logs.json_tree import (
    Json,
    Record,
    as_number,
    as_record,
    as_records,
    as_text,
    get_at,
)
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    check_claim,
    check_table_size,
    judge_grades,
    make_column,
)

DEEPEVAL_TITLE = "deepeval test run"
CIRCULAR_GRADES = (
    "a case passes where the judge's scores reach their thresholds, "
    "so they tell right from wrong by construction"
)


def recognise(document: Json) -> bool:
    """Whether this is a test run."""
    return {"testCases", "metricsScores"} <= as_record(document).keys()


def read(document: Json, path: Path, metric: str | None = None) -> Log:
    """The test cases; right is a case that passed, or by `metric` one whose metric of that name
    succeeded.
    """
    top = as_record(document)
    cases = as_records(top.get("testCases"))
    if not cases:
        raise InputError(
            f"{path.name} is a deepeval run without test cases; save one with at least one."
        )
    grades = [_read_grade(case, metric, path) for case in cases]
    names = [as_text(case.get("name")) or str(i) for i, case in enumerate(cases)]
    if len(set(names)) < len(names):
        names = [f"{name}/{i}" for i, name in enumerate(names)]
    unanswered = [None if case.get("actualOutput") else Outcome.MISSING for case in cases]
    metrics_of_cases = [_index_metrics(case) for case in cases]
    judges: dict[str, None] = {}  # an ordered set
    for metrics in metrics_of_cases:
        judges |= dict.fromkeys(metrics)
    check_table_size(len(cases), len(judges), sum(map(len, metrics_of_cases)), path.name)
    confidences: list[Confidence] = []
    for judge in judges:  # nan where a case has no such judge
        scores = [as_number(get_at(m, judge, "score")) for m in metrics_of_cases]
        confidences.append(Confidence(judge, Kind.JUDGE, np.array(scores, dtype=np.float64)))
    passed = sum(as_number(case.get("success")) == 1 for case in cases)
    totals = {"testPassed": passed, "testFailed": len(cases) - passed}
    if as_records(top.get("conversationalTestCases")):  # those count in the totals as well
        totals = {}
    claims: list[Claim] = []
    for name, ours in totals.items():
        theirs = as_number(top.get(name))
        if theirs is not None:
            source = "its total"
            claim = check_claim(name, theirs=theirs, ours=ours, source=source, where=path.name)
            claims.append(claim)
    return Log(
        tool=DEEPEVAL_TITLE,
        ids=make_column(names),
        outcome=judge_grades(grades, unanswered),
        grade=np.array(grades),
        confidences=tuple(confidences),
        answer=make_column([as_text(case.get("actualOutput")) for case in cases]),
        claims=tuple(claims),
        doubts=(CIRCULAR_GRADES,),
    )


def _index_metrics(case: Record) -> Record:
    return {as_text(m.get("name")): m for m in as_records(case.get("metricsData"))}


def _read_grade(case: Record, metric: str | None, path: Path) -> float:
    metrics = _index_metrics(case)
    if metric is not None and metric not in metrics:
        raise InputError(
            f"{path.name} has no metric {metric!r}; its metrics are: {', '.join(metrics)}."
        )
    judged = case if metric is None else as_record(metrics[metric])
    grade = as_number(judged.get("success"))
    if grade is None:
        raise InputError(
            f"{path.name}: a test case does not say whether it passed; run deepeval test again."
        )
    return grade
