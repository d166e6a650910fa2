"""OpenAI: logs of the `evals` tool, and stored responses with `logprobs`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
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

EVALS_TITLE = "OpenAI evals log"
RESPONSES_TITLE = "OpenAI responses"
RESPONSE_OBJECTS = ("response", "chat.completion")
SCORE_NAMES = ("correct", "score", "accuracy")


def recognise(document: Json) -> bool:
    """Whether this is an evals log, or one response or a list of them."""
    return _is_evals(document) or any(_find_body(row) for row in _list_rows(document)[:1])


def _is_evals(document: Json) -> bool:
    """Whether this begins with the specification of a run."""
    return {"completion_fns", "eval_name"} <= as_record(get_at(document, 0, "spec")).keys()


def _list_rows(document: Json) -> list[Record]:
    return [document] if isinstance(document, dict) else as_records(document)


def read(document: Json, path: Path, metric: str | None = None) -> Log:
    """The samples of a run, or the responses of a file."""
    if _is_evals(document):
        return _read_evals(as_records(document), path, metric)
    return _read_responses(_list_rows(document), path, metric)


def _read_evals(rows: Sequence[Record], path: Path, metric: str | None) -> Log:
    """One `match` or `metrics` event per sample says right or wrong."""
    ids: list[str] = []
    grades: list[float] = []
    answers: list[str] = []
    names = SCORE_NAMES if metric is None else (metric,)
    for row in rows:
        if row.get("type") not in ("match", "metrics"):
            continue
        scores = [as_number(get_at(row, "data", name)) for name in names]
        grade = next((score for score in scores if score is not None), None)
        if grade is not None and 0 <= grade <= 1:
            ids.append(as_text(row.get("sample_id")))
            grades.append(grade)
            answers.append(as_text(get_at(row, "data", "sampled")))
    if not grades:
        sampled = {as_text(row.get("sample_id")) for row in rows if row.get("type") == "sampling"}
        raise InputError(
            f"{path.name} is an {EVALS_TITLE} of {len(sampled):,} samples in which no match or "
            "metrics line gives right, wrong or a score; run an eval that records them."
        )
    claims: list[Claim] = []
    for row in rows:
        theirs = as_number(get_at(row, "final_report", "accuracy"))
        if theirs is not None:
            claim = check_claim(
                "accuracy",
                theirs=theirs,
                ours=float(np.mean(grades)),
                source="its final report",
                where=path.name,
            )
            claims.append(claim)
    repeated = len(set(ids)) < len(ids)
    unique_ids = [f"{name}/{i}" for i, name in enumerate(ids)] if repeated else ids
    return Log(
        tool=EVALS_TITLE,
        ids=make_column(unique_ids),
        outcome=judge_grades(grades),
        grade=np.array(grades),
        answer=make_column(answers),
        group=make_column(ids) if repeated else None,
        claims=tuple(claims),
        notes=("an evals log holds no confidence",),
    )


def _read_responses(rows: Sequence[Record], path: Path, metric: str | None) -> Log:
    name = metric or "correct"
    bodies = [_find_body(row) for row in rows]
    tokens: list[list[Json]] = []
    for body in bodies:
        if body.get("object") == "chat.completion":
            tokens.append(as_list(get_at(body, "choices", 0, "logprobs", "content")))
        else:
            lists = [as_list(part.get("logprobs")) for part in _list_parts(body)]
            tokens.append(list(chain.from_iterable(lists)))
    confidences = compute_token_confidences(tokens)
    grades = [as_number(row.get(name)) for row in rows]
    known = [grade for grade in grades if grade is not None and 0 <= grade <= 1]
    if len(known) < len(rows):
        first = " without logprobs"
        if confidences:
            shown = ", ".join(f"{c.name} {c.value[0]:.6g}" for c in confidences)
            first = f" (the first: {shown})"
        raise InputError(
            f"{path.name} holds {len(rows):,} {RESPONSES_TITLE}{first}, but nothing says which are "
            f'right; put each beside its outcome, as in {{"{name}": 1, "response": {{…}}}}.'
        )
    ids: list[str] = []
    for row, body in zip(rows, bodies, strict=True):
        ids.append(as_text(row.get("custom_id")) or as_text(body.get("id")))
    notes: tuple[str, ...] = ()
    if not confidences:
        notes = ("the responses hold no logprobs; ask for them",)
    return Log(
        tool=RESPONSES_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(known, [_find_reason_unanswered(body) for body in bodies]),
        grade=np.array(known),
        confidences=confidences,
        answer=make_column([_get_answer(body) for body in bodies]),
        notes=notes,
    )


def _find_body(row: Record) -> Record:
    """The response itself: the row, or what a batch file or a table of results holds in it."""
    for candidate in (
        row,
        as_record(row.get("response")),
        as_record(get_at(row, "response", "body")),
    ):
        if candidate.get("object") in RESPONSE_OBJECTS:
            return candidate
    return {}


def _list_parts(body: Record) -> list[Record]:
    """The parts of the message, in either interface."""
    if body.get("object") == "chat.completion":
        message = get_at(body, "choices", 0, "message")
        return as_records([message]) if message else []
    parts: list[Record] = []
    for message in as_records(body.get("output")):
        parts += as_records(message.get("content"))
    return parts


def _get_answer(body: Record) -> str:
    texts = [
        as_text(part.get("text")) or as_text(part.get("content")) for part in _list_parts(body)
    ]
    return "".join(texts)


def _find_reason_unanswered(body: Record) -> Outcome | None:
    for part in _list_parts(body):
        if part.get("type") == "refusal" or part.get("refusal"):
            return Outcome.REFUSED
    return None if _get_answer(body).strip() else Outcome.MISSING
