"""HELM: a run folder with `scenario_state.json`, `per_instance_stats.json` and `stats.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    read_document,
)
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Log,
    Outcome,
    check_claim,
    compute_token_confidences,
    describe_constants,
    judge_grades,
    make_column,
)

HELM_TITLE = "HELM run"
DEFAULT_METRIC = "exact_match"
STATE = "scenario_state.json"
PER_INSTANCE = "per_instance_stats.json"
STATS = "stats.json"


class RequestKey(NamedTuple):
    """What tells the requests of a run apart."""

    instance: str
    trial: str
    perturbation: str


def find_run_folder(path: Path) -> Path | None:
    """The run folder that a path names, by itself or by one of its files; None where it is no run."""
    folder = path if path.is_dir() else path.parent
    named = path.is_dir() or path.name in (STATE, PER_INSTANCE, STATS)
    return folder if named and (folder / STATE).is_file() else None


def read(folder: Path, metric: str | None = None) -> Log:
    """The requests of a run; `metric` is the statistic that says right or wrong, `exact_match`
    unless given.
    """
    metric = metric or DEFAULT_METRIC
    grade_by_key = _read_grades(folder, metric)
    requests = as_records(get_at(_read_part(folder, STATE), "request_states"))
    if not requests:
        raise InputError(
            f"{folder.name}: {STATE} has no request_states; copy the whole run folder."
        )
    states: list[Record] = []
    grades: list[float] = []
    for state in requests:
        key = _get_key(state)
        if state.get("request_mode") in (None, "original") and key in grade_by_key:
            states.append(state)
            grades.append(grade_by_key[key])
    if not states:
        raise InputError(
            f"{folder.name} has no {metric!r} for any request; name a statistic of {PER_INSTANCE}."
        )
    instances = [as_text(get_at(state, "instance", "id")) for state in states]
    splits = [as_text(get_at(state, "instance", "split")) for state in states]
    ids = instances
    repeated = len(set(instances)) < len(instances)
    if repeated:  # several trials or perturbations of one instance
        ids = ["/".join(filter(None, _get_key(state))) for state in states]
    confidences: tuple[Confidence, ...] = ()
    # Options that were scored one request each have no log-probability of the answer.
    if not any("reference_index" in state for state in states):
        answers: list[list[Json]] = []
        for state in states:
            logprob = as_number(get_at(state, "result", "completions", 0, "logprob"))
            answers.append([] if logprob is None else [logprob])
        # HELM gives one sum for the whole answer, so a mean over tokens would be the same again.
        confidences = compute_token_confidences(answers)[:1]
    notes: tuple[str, ...] = ()
    if not confidences:
        notes = ("the run holds no log-probabilities of its answers",)
    log = Log(
        tool=HELM_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(grades, [_find_reason_unanswered(state) for state in states]),
        grade=np.array(grades),
        confidences=confidences,
        answer=make_column([_get_answer(state) for state in states]),
        group=make_column(instances) if repeated else None,
        split=make_column(splits) if len(set(splits)) > 1 else None,
        notes=notes,
        doubts=describe_constants(confidences),
    )
    return replace(log, claims=_check_own_means(folder, metric, log, splits=splits, states=states))


def _read_part(folder: Path, name: str) -> Json:
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"{folder.name} has no {name}, so it is no complete HELM run; "
            "copy the whole run folder."
        )
    return read_document(path)


def _get_key(state: Record) -> RequestKey:
    instance = as_record(state.get("instance"))
    return RequestKey(
        instance=as_text(instance.get("id")),
        trial=as_text(state.get("train_trial_index")),
        perturbation=as_text(get_at(instance, "perturbation", "name")),
    )


def _read_grades(folder: Path, metric: str) -> dict[RequestKey, float]:
    grades: dict[RequestKey, float] = {}
    for row in as_records(_read_part(folder, PER_INSTANCE)):
        key = RequestKey(
            instance=as_text(row.get("instance_id")),
            trial=as_text(row.get("train_trial_index")),
            perturbation=as_text(get_at(row, "perturbation", "name")),
        )
        for stat in as_records(row.get("stats")):
            value = as_number(stat.get("mean"))
            if get_at(stat, "name", "name") != metric or value is None:
                continue
            if not 0 <= value <= 1:
                raise InputError(
                    f"{folder.name}: {metric} is {value:g} for an instance; "
                    "a grade from 0 to 1 is needed."
                )
            grades[key] = value
    return grades


def _get_answer(state: Record) -> str:
    return as_text(get_at(state, "result", "completions", 0, "text")).strip()


def _find_reason_unanswered(state: Record) -> Outcome | None:
    """An answer that is none of the letters is unparseable; a request that failed has no answer."""
    failed = get_at(state, "result", "success") is False
    if failed or not as_list(get_at(state, "result", "completions")):
        return Outcome.MISSING
    letters = as_record(state.get("output_mapping"))
    if letters and _get_answer(state) not in letters:
        return Outcome.UNPARSEABLE
    return None


def _check_own_means(
    folder: Path, metric: str, log: Log, *, splits: Sequence[str], states: Sequence[Record]
) -> tuple[Claim, ...]:
    """The run's own mean per split, over unperturbed instances."""
    if not (folder / STATS).is_file():
        return ()
    unperturbed = np.array([not _get_key(state).perturbation for state in states])
    claims: list[Claim] = []
    for stat in as_records(read_document(folder / STATS)):
        name = as_record(stat.get("name"))
        if name.get("name") != metric or "perturbation" in name:
            continue
        split = as_text(name.get("split"))
        rows = unperturbed & (np.array(splits) == split)
        theirs = as_number(stat.get("mean"))
        if theirs is not None and rows.any():
            claim = check_claim(
                f"{metric} of split {split}",
                theirs=theirs,
                ours=float(log.grade[rows].mean()),
                source=STATS,
                where=folder.name,
            )
            claims.append(claim)
    return tuple(claims)
