"""promptfoo, deepeval and uqlm: one JSON document per run."""

from __future__ import annotations

import json
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
    as_records,
    as_text,
    get_at,
    require_records,
)
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    check_claim,
    check_table_size,
    compute_token_confidences,
    find_kind,
    judge_grades,
    make_column,
)

# promptfoo: what `promptfoo eval -o output.json` writes, versions 1 to 4, or `-o output.jsonl`

PROMPTFOO_TITLE = "promptfoo output"
VERSIONS_READ = (1, 2, 3, 4)
REQUEST_FAILED = 2  # failureReason of a request that gave no answer
LINE_KEYS = {"promptIdx", "testIdx", "success"}  # of a result on a line of its own


def recognise_promptfoo(document: Json) -> bool:
    """Whether this is an output file: results beside their counts, or one on each line."""
    if as_list(document):
        return as_record(get_at(document, 0)).keys() >= LINE_KEYS
    top = _get_top(document)
    return "results" in top and "successes" in as_record(top.get("stats"))


def _get_top(document: Json) -> Record:
    """Version 1 has its results at the top, later ones a level deeper."""
    top = as_record(document)
    return as_record(top.get("results")) or top


def read_promptfoo(document: Json, path: Path, metric: str | None = None) -> Log:
    """The results of a file; right is what passed its assertions, or by `metric` a named score from
    0 to 1.
    """
    top = _get_top(document)
    lines = as_list(document)
    rows = require_records(lines, path.name) if lines else as_records(top.get("results"))
    if not lines and as_number(top.get("version")) not in VERSIONS_READ:
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


# deepeval: the JSON of a test run

DEEPEVAL_TITLE = "deepeval test run"
CIRCULAR_GRADES = (
    "a case passes where the judge's scores reach their thresholds, "
    "so they tell right from wrong by construction"
)


def recognise_deepeval(document: Json) -> bool:
    """Whether this is a test run; since version 4 one level deeper."""
    top = as_record(document)
    run = as_record(top.get("testRunData")) or top
    return {"testCases", "metricsScores"} <= run.keys()


def read_deepeval(document: Json, path: Path, metric: str | None = None) -> Log:
    """The test cases; right is a case that passed, or by `metric` one whose metric of that name
    succeeded.
    """
    top = as_record(document)
    top = as_record(top.get("testRunData")) or top
    cases = as_records(top.get("testCases"))
    if not cases:
        raise InputError(
            f"{path.name} is a deepeval run without test cases; save one with at least one."
        )
    names = [as_text(case.get("name")) or str(i) for i, case in enumerate(cases)]
    if len(set(names)) < len(names):
        names = [f"{name}/{i}" for i, name in enumerate(names)]
    unanswered = [None if case.get("actualOutput") else Outcome.MISSING for case in cases]
    grades: list[float] = []
    metrics_of_cases: list[Record] = []
    judges: dict[str, None] = {}  # an ordered set
    for case in cases:
        metrics: Record = {as_text(m.get("name")): m for m in as_records(case.get("metricsData"))}
        metrics_of_cases.append(metrics)
        judges |= dict.fromkeys(metrics)
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
        grades.append(grade)
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


# uqlm: tables of prompts, responses and scores as lists of equal length

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


def recognise_uqlm(document: Json) -> bool:
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


def read_uqlm(document: Json, path: Path, metric: str | None = None) -> Log:
    """The answers of a table; several tables are splits. `metric` names the list that says right or
    wrong.
    """
    tables = _find_tables(document)
    rows: list[ResponseRow] = []
    # An ordered set of scores: lists of numbers that are as long as the responses.
    names: dict[str, None] = {}
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
        held = "no confidence"
        if names:
            plural = "" if len(names) == 1 else "s"
            held = f"{len(names)} confidence{plural} ({', '.join(names)})"
        raise InputError(
            f"{path.name} is a {UQLM_TITLE} of {len(rows):,} answers with {held}, but nothing says "
            "which answers are right; add a list 'correct' of 0 and 1, one for each response."
        )
    confidences: list[Confidence] = []
    for name in names:
        values = [as_number(get_at(row.table.get(name), row.place)) for row in rows]
        kind = find_kind(name, SCORE_KIND_PATTERNS)
        confidences.append(Confidence(name, kind, np.array(values, dtype=np.float64)))
    answers = [as_text(get_at(row.table["responses"], row.place)) for row in rows]
    unanswered = [None if answer.strip() else Outcome.MISSING for answer in answers]
    ids = [f"{row.name}/{row.place}" if row.name else str(row.place) for row in rows]
    return Log(
        tool=UQLM_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(grades, unanswered),
        grade=np.array(grades),
        confidences=tuple(confidences),
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
