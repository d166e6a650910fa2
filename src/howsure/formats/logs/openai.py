"""OpenAI: logs of the `evals` tool, and stored responses with `logprobs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.check import InputError
from howsure.formats.logs.log import Claim, Confidence, Log, Outcome, claimed, column, outcomes
from howsure.formats.logs.tokens import sequence
from howsure.formats.logs.tree import Json, Record, at, items, number, record, records, text

EVALS, RESPONSES = "OpenAI evals log", "OpenAI responses"
OBJECTS = ("response", "chat.completion")
SCORES = ("correct", "score", "accuracy")


def recognised(document: Json) -> bool:
    """Whether this is an evals log, or one response or a list of them."""
    return is_evals(document) or any(_body(row) for row in _listed(document)[:1])


def is_evals(document: Json) -> bool:
    """Whether this begins with the specification of a run."""
    return {"completion_fns", "eval_name"} <= record(at(document, 0, "spec")).keys()


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The samples of a run, or the responses of a file."""
    return (
        _evals(document, path, metric)
        if is_evals(document)
        else _responses(_listed(document), path, metric)
    )


def _evals(document: Json, path: Path, metric: str | None) -> Log:
    """One `match` or `metrics` event per sample says right or wrong."""
    rows = records(document)
    events = [(row, grade) for row in rows if (grade := _event(row, metric)) is not None]
    if not events:
        count = len({text(r.get("sample_id")) for r in rows if r.get("type") == "sampling"})
        raise InputError(
            f"{path.name} is an {EVALS} of {count:,} samples in which no match or metrics line gives right, wrong or "
            "a score; run an eval that records them."
        )
    ids = [text(row.get("sample_id")) for row, _ in events]
    repeated = len(set(ids)) < len(ids)
    grades = [grade for _, grade in events]
    return Log(
        EVALS,
        column([f"{name}/{i}" for i, name in enumerate(ids)] if repeated else ids),
        outcomes(grades),
        np.array(grades),
        answer=column([text(at(row, "data", "sampled")) for row, _ in events]),
        group=column(ids) if repeated else None,
        claims=_claims(rows, grades, path),
        notes=("an evals log holds no confidence",),
    )


def _event(row: Record, metric: str | None) -> float | None:
    if row.get("type") not in ("match", "metrics"):
        return None
    names = SCORES if metric is None else (metric,)
    found = next((v for name in names if (v := number(at(row, "data", name))) is not None), None)
    return found if found is not None and 0 <= found <= 1 else None


def _claims(rows: Sequence[Record], grades: Sequence[float], path: Path) -> tuple[Claim, ...]:
    own = [number(at(row, "final_report", "accuracy")) for row in rows if "final_report" in row]
    ours = float(np.mean(grades))
    return tuple(
        claimed("accuracy", theirs, ours, source="its final report", where=path.name)
        for theirs in own
        if theirs is not None
    )


def _listed(document: Json) -> list[Record]:
    return [document] if isinstance(document, dict) else records(document)


def _body(row: Record) -> Record:
    """The response itself: the row, or what a batch file or a table of results holds in it."""
    for candidate in (row, record(row.get("response")), record(at(row, "response", "body"))):
        if candidate.get("object") in OBJECTS:
            return candidate
    return {}


def _responses(rows: Sequence[Record], path: Path, metric: str | None) -> Log:
    name = metric or "correct"
    bodies = [_body(row) for row in rows]
    found = sequence([_tokens(body) for body in bodies])
    grades = [number(row.get(name)) for row in rows]
    known = [g for g in grades if g is not None and 0 <= g <= 1]
    if len(known) < len(rows):
        raise InputError(_no_outcome(rows, found, path, name))
    ids = [
        text(row.get("custom_id")) or text(body.get("id"))
        for row, body in zip(rows, bodies, strict=True)
    ]
    return Log(
        RESPONSES,
        column(ids),
        outcomes(known, [_unanswered(body) for body in bodies]),
        np.array(known),
        found,
        answer=column([_said(body) for body in bodies]),
        notes=() if found else ("the responses hold no logprobs; ask for them",),
    )


def _no_outcome(
    rows: Sequence[Record], found: tuple[Confidence, ...], path: Path, name: str
) -> str:
    shown = ", ".join(f"{c.name} {c.value[0]:.6g}" for c in found)
    first = f" (the first: {shown})" if found else " without logprobs"
    return (
        f"{path.name} holds {len(rows):,} {RESPONSES}{first}, but nothing says which are right; put each beside its "
        f'outcome, as in {{"{name}": 1, "response": {{…}}}}.'
    )


def _content(body: Record) -> list[Record]:
    """The parts of the message, in either interface."""
    if body.get("object") == "chat.completion":
        return (
            records([at(body, "choices", 0, "message")])
            if at(body, "choices", 0, "message")
            else []
        )
    return [
        part for message in records(body.get("output")) for part in records(message.get("content"))
    ]


def _tokens(body: Record) -> list[Json]:
    if body.get("object") == "chat.completion":
        return items(at(body, "choices", 0, "logprobs", "content"))
    return [token for part in _content(body) for token in items(part.get("logprobs"))]


def _said(body: Record) -> str:
    return "".join(text(part.get("text")) or text(part.get("content")) for part in _content(body))


def _unanswered(body: Record) -> Outcome | None:
    parts = _content(body)
    if any(part.get("type") == "refusal" or part.get("refusal") for part in parts):
        return Outcome.REFUSED
    return None if _said(body).strip() else Outcome.MISSING
