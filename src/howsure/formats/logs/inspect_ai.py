"""Inspect: `.eval` (a zip of samples and a header) and `.json` logs."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.budget import Budget
from howsure._core.check import Array, InputError
from howsure.formats import zipped
from howsure.formats.logs.document import parsed
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Log,
    Outcome,
    categories,
    claimed,
    column,
    outcomes,
)
from howsure.formats.logs.tokens import sequence
from howsure.formats.logs.tree import Json, Record, at, items, number, record, records, text

TOOL = "Inspect log"
VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
VERSION = 2
NO_TOKENS = "the log holds no log-probabilities; generate with logprobs=True to get a confidence"
CATEGORIES = ("category", "subject", "topic")


def recognised(document: Json) -> bool:
    """Whether this is a log with its header."""
    top = record(document)
    return "eval" in top and "status" in top and "task" in record(top["eval"])


def document(path: Path) -> Json:
    """An `.eval` file as the object that a `.json` log holds, its samples in the order of their ids
    and epochs.
    """
    with zipped.reading(path):  # looking for the end of an archive may fail too
        if not zipfile.is_zipfile(path):
            raise InputError(
                f"{path.name} is no zip archive, so no Inspect log; copy it again or export it as .json."
            )
    with zipped.reading(path), zipfile.ZipFile(path) as archive:
        members = zipped.members(archive, path)
        budget = Budget(path.name, path.stat().st_size)
        budget.spend(sum(info.file_size for info in members.values()))
        wanted = filter(_wanted, members)
        return _joined(
            {name: parsed(archive.read(name), f"{path.name}, {name}", budget) for name in wanted},
            path,
        )


def _wanted(name: str) -> bool:
    return name in ("header.json", "_journal/start.json") or (
        name.startswith("samples/") and name.endswith(".json")
    )


def _joined(members: dict[str, Json], path: Path) -> Json:
    header = members.pop("header.json", None)
    start = members.pop("_journal/start.json", None)
    if header is None and start is None:
        raise InputError(
            f"{path.name} has no header.json, so it is no Inspect log; name a log that Inspect wrote."
        )
    top = record(header) or {**record(start), "status": "started"}
    samples = sorted((record(m) for m in members.values()), key=_order)
    return {**top, "samples": list[Json](samples)}


def _order(sample: Record) -> tuple[bool, float, str, float]:
    """By id, numbers by value, and by epoch."""
    found = sample.get("id")
    value = 0.0 if isinstance(found, str) else number(found) or 0.0
    return isinstance(found, str), value, text(found), number(sample.get("epoch")) or 0.0


def log(document: Json, path: Path, *, metric: str | None = None) -> Log:
    """The samples of a log; `metric` names the scorer where there are several."""
    top = record(document)
    version = number(top.get("version"))
    if version is not None and version > VERSION:
        raise InputError(
            f"{path.name} is an Inspect log of version {version:g}; up to {VERSION} are read."
        )
    samples = records(top.get("samples"))
    if not samples:
        raise InputError(_empty(top, path))
    scorer = _scorer(samples, metric, path)
    values = [_value(at(s, "scores", scorer, "value"), path, s, scorer) for s in samples]
    grades = np.array([0.0 if v is None else v for v in values])
    several = len({text(s.get("id")) for s in samples}) < len(samples)
    found = _sequence(samples)
    return Log(
        TOOL,
        column([_id(s, several) for s in samples]),
        outcomes(
            grades.tolist(),
            [_unanswered(s, scorer, v) for s, v in zip(samples, values, strict=True)],
        ),
        grades,
        found,
        answer=column([text(at(s, "scores", scorer, "answer")) for s in samples]),
        group=column([text(s.get("id")) for s in samples]) if several else None,
        slices=_slices(samples),
        claims=_claims(top, scorer, samples, values, path),
        notes=() if found else (NO_TOKENS,),
        doubts=_stopped_early(top),
    )


def _empty(top: Record, path: Path) -> str:
    own = at(top, "results", "scores", 0, "metrics", "accuracy", "value")
    said = f" (its header gives accuracy {own})" if number(own) is not None else ""
    status = text(top.get("status"))
    what = (
        f"was {status} before a sample was finished"
        if status in ("cancelled", "error", "started")
        else "holds no samples"
    )
    return f"{path.name} is an Inspect log that {what}{said}; single answers are needed, so log with log_samples=True."


def _scorer(samples: Sequence[Record], asked: str | None, path: Path) -> str:
    there = list(dict.fromkeys(name for s in samples for name in record(s.get("scores"))))
    if not there:
        raise InputError(
            f"{path.name} is an Inspect log of {len(samples):,} answers without scores; "
            "score it first: inspect score LOG --scorer match."
        )
    if asked is not None and asked not in there:
        raise InputError(
            f"{path.name} has no scorer {asked!r}; its scorers are: {', '.join(there)}."
        )
    if asked is None and len(there) > 1:
        shown = ", ".join(there)
        raise InputError(
            f"{path.name} has {len(there)} scorers ({shown}); choose one with names={{'correct': '{there[0]}'}} "
            f"(--name correct={there[0]})."
        )
    return asked or there[0]


def _value(value: Json, path: Path, sample: Record, scorer: str) -> float | None:
    """The grade; None where the sample was not scored."""
    if value is None:
        return None
    found = (
        VALUES.get(value.strip(), VALUES.get(value.strip().lower()))
        if isinstance(value, str)
        else None
    )
    found = number(value) if found is None else found
    if found is None or not 0 <= found <= 1:
        raise InputError(
            f"{path.name}, sample {text(sample.get('id'))!r}: {scorer} gives {str(value)[:40]!r}; "
            "C, I, P, N or a number from 0 to 1 is needed."
        )
    return found


def _unanswered(sample: Record, scorer: str, value: float | None) -> Outcome | None:
    if value is None:
        return Outcome.MISSING
    if at(sample, "scores", scorer, "value") == "N" or _stopped(sample) == "content_filter":
        return Outcome.REFUSED
    return Outcome.UNPARSEABLE if at(sample, "scores", scorer, "answer") == "" else None


def _stopped(sample: Record) -> str:
    return text(at(sample, "output", "choices", 0, "stop_reason"))


def _id(sample: Record, several: bool) -> str:
    return text(sample.get("id")) + (f"/{text(sample.get('epoch'))}" if several else "")


def _sequence(samples: Sequence[Record]) -> tuple[Confidence, ...]:
    return sequence([items(at(s, "output", "choices", 0, "logprobs", "content")) for s in samples])


def _slices(samples: Sequence[Record]) -> dict[str, Array]:
    return categories({name: [at(s, "metadata", name) for s in samples] for name in CATEGORIES})


def _claims(
    top: Record, scorer: str, samples: Sequence[Record], values: Sequence[float | None], path: Path
) -> tuple[Claim, ...]:
    """The header's accuracy, where it is the mean over samples of the mean over epochs."""
    reducers = items(at(top, "eval", "config", "epochs_reducer")) or ["mean"]
    scores = [s for s in records(at(top, "results", "scores")) if s.get("name") == scorer]
    own = number(at(scores[0], "metrics", "accuracy", "value")) if scores else None
    by_question: dict[str, list[float]] = {}
    for sample, value in zip(samples, values, strict=True):
        if value is not None:
            by_question.setdefault(text(sample.get("id")), []).append(value)
    if (
        own is None
        or not by_question
        or (reducers != ["mean"] and max(map(len, by_question.values())) > 1)
    ):
        return ()
    mean = float(np.mean([float(np.mean(v)) for v in by_question.values()]))
    return (claimed("accuracy", own, mean, source="its header", where=path.name),)


def _stopped_early(top: Record) -> tuple[str, ...]:
    status = text(top.get("status"))
    how = "stopped by an error" if status == "error" else status
    return () if status == "success" else (f"the run was {how}: only what was finished is there",)
