"""HELM: a run folder with `scenario_state.json`, `per_instance_stats.json` and `stats.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core.check import InputError
from howsure.formats.logs.document import document as load
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    claimed,
    column,
    constant,
    outcomes,
)
from howsure.formats.logs.tokens import sequence
from howsure.formats.logs.tree import Json, Record, at, items, number, record, records, text

TOOL = "HELM run"
METRIC = "exact_match"
STATE, PER_INSTANCE, STATS = "scenario_state.json", "per_instance_stats.json", "stats.json"
Key: TypeAlias = tuple[str, str, str]  # instance, trial, perturbation


def folder_of(path: Path) -> Path | None:
    """The run folder that a path names, by itself or by one of its files; None where it is no run."""
    folder = path if path.is_dir() else path.parent
    named = path.is_dir() or path.name in (STATE, PER_INSTANCE, STATS)
    return folder if named and (folder / STATE).is_file() else None


def log(folder: Path, *, metric: str | None = None) -> Log:
    """The requests of a run; `metric` is the statistic that says right or wrong, `exact_match`
    unless given.
    """
    name = metric or METRIC
    states = _requests(folder)
    grades = _grades(folder, name)
    rows = [(state, grades[key]) for state in states if (key := _key(state)) in grades]
    if not rows:
        raise InputError(
            f"{folder.name} has no {name!r} for any request; name a statistic of {PER_INSTANCE}."
        )
    kept = [state for state, _ in rows]
    found = _confidences(kept)
    grade = np.array([g for _, g in rows])
    repeated = len({text(at(s, "instance", "id")) for s in kept}) < len(kept)
    split = column([text(at(s, "instance", "split")) for s in kept])
    log = Log(
        TOOL,
        column(["/".join(filter(None, _key(s) if repeated else _key(s)[:1])) for s in kept]),
        outcomes(grade.tolist(), [_unanswered(s) for s in kept]),
        grade,
        found,
        answer=column([_answer(s) for s in kept]),
        group=column([text(at(s, "instance", "id")) for s in kept]) if repeated else None,
        split=split if len(set(split.tolist())) > 1 else None,
        notes=() if found else ("the run holds no log-probabilities of its answers",),
        doubts=constant(found),
    )
    return replace(log, claims=_claims(folder, name, log, split.tolist(), kept))


def _part(folder: Path, name: str) -> Json:
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"{folder.name} has no {name}, so it is no complete HELM run; copy the whole run folder."
        )
    return load(path)


def _requests(folder: Path) -> list[Record]:
    states = records(at(_part(folder, STATE), "request_states"))
    if not states:
        raise InputError(
            f"{folder.name}: {STATE} has no request_states; copy the whole run folder."
        )
    return [s for s in states if s.get("request_mode") in (None, "original")]


def _key(state: Record) -> Key:
    instance = record(state.get("instance"))
    return (
        text(instance.get("id")),
        text(state.get("train_trial_index")),
        text(at(instance, "perturbation", "name")),
    )


def _grades(folder: Path, metric: str) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for row in records(_part(folder, PER_INSTANCE)):
        key = (
            text(row.get("instance_id")),
            text(row.get("train_trial_index")),
            text(at(row, "perturbation", "name")),
        )
        for stat in records(row.get("stats")):
            if (
                at(stat, "name", "name") == metric
                and (value := number(stat.get("mean"))) is not None
            ):
                found[key] = _checked(value, metric, folder)
    return found


def _checked(value: float, metric: str, folder: Path) -> float:
    if not 0 <= value <= 1:
        raise InputError(
            f"{folder.name}: {metric} is {value:g} for an instance; a grade from 0 to 1 is needed."
        )
    return value


def _answer(state: Record) -> str:
    return text(at(state, "result", "completions", 0, "text")).strip()


def _unanswered(state: Record) -> Outcome | None:
    """An answer that is none of the letters is unparseable; a request that failed has no answer."""
    if at(state, "result", "success") is False or not items(at(state, "result", "completions")):
        return Outcome.MISSING
    letters = record(state.get("output_mapping"))
    return Outcome.UNPARSEABLE if letters and _answer(state) not in letters else None


def _confidences(states: Sequence[Record]) -> tuple[Confidence, ...]:
    """The log-probability of the answer; none where options were scored one request each."""
    if any("reference_index" in s for s in states):
        return ()
    values = [number(at(s, "result", "completions", 0, "logprob")) for s in states]
    tokens = sequence([[] if v is None else [v] for v in values])
    return tuple(Confidence(c.name, Kind.SEQUENCE, c.value) for c in tokens[:1])


def _claims(
    folder: Path, metric: str, log: Log, splits: Sequence[str], states: Sequence[Record]
) -> tuple[Claim, ...]:
    """The run's own mean per split, over unperturbed instances."""
    if not (folder / STATS).is_file():
        return ()
    own = [
        s
        for s in records(load(folder / STATS))
        if at(s, "name", "name") == metric and "perturbation" not in record(s.get("name"))
    ]
    plain = np.array([not _key(s)[2] for s in states])
    found: list[Claim] = []
    for stat in own:
        split = text(at(stat, "name", "split"))
        rows = plain & (np.array(splits) == split)
        theirs = number(stat.get("mean"))
        if theirs is not None and rows.any():
            ours = float(log.grade[rows].mean())
            found.append(
                claimed(f"{metric} of split {split}", theirs, ours, source=STATS, where=folder.name)
            )
    return tuple(found)
