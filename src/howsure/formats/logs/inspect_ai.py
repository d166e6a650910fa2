"""Inspect: `.eval` (a zip of samples and a header) and `.json` logs."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.checks import InputError
from howsure._core.file_access import Budget
from howsure.formats import unpacked_sizes
from howsure.formats.logs.json_tree import (
    Json,
    Record,
    as_list,
    as_number,
    as_record,
    as_records,
    as_text,
    get_at,
    parse_document,
)
from howsure.formats.logs.log import (
    Claim,
    Log,
    Outcome,
    check_claim,
    compute_token_confidences,
    judge_grades,
    make_column,
    select_text_columns,
)

INSPECT_TITLE = "Inspect log"
GRADE_OF_VALUE = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "true": 1.0,
    "false": 0.0,
}
NEWEST_VERSION_READ = 2
NO_TOKENS_NOTE = (
    "the log holds no log-probabilities; generate with logprobs=True to get a confidence"
)
METADATA_SLICES = ("category", "subject", "topic")


def recognise(document: Json) -> bool:
    """Whether this is a log with its header."""
    top = as_record(document)
    return "eval" in top and "status" in top and "task" in as_record(top["eval"])


def read_archive(path: Path) -> Json:
    """An `.eval` file as the object that a `.json` log holds, its samples in the order of their ids
    and epochs.
    """
    with unpacked_sizes.refuse_damaged_zip(path):  # looking for the end of an archive may fail too
        if not zipfile.is_zipfile(path):
            raise InputError(
                f"{path.name} is no zip archive, so no Inspect log; "
                "copy it again or export it as .json."
            )
    members: dict[str, Json] = {}
    with unpacked_sizes.refuse_damaged_zip(path), zipfile.ZipFile(path) as archive:
        infos = unpacked_sizes.check_members(archive, path, zstandard=True)
        budget = Budget(path.name, path.stat().st_size)
        budget.spend(sum(info.file_size for info in infos.values()))
        for name, info in infos.items():
            is_sample = name.startswith("samples/") and name.endswith(".json")
            if is_sample or name in ("header.json", "_journal/start.json"):
                data = unpacked_sizes.read_member(archive, info, path)
                members[name] = parse_document(data, f"{path.name}, {name}", budget)
    header = members.pop("header.json", None)
    start = members.pop("_journal/start.json", None)
    if header is None and start is None:
        raise InputError(
            f"{path.name} has no header.json, so it is no Inspect log; "
            "name a log that Inspect wrote."
        )
    # A run that was cut off has no header yet; its journal says how it began.
    top = as_record(header) or {**as_record(start), "status": "started"}

    def get_order(sample: Record) -> tuple[bool, float, str, float]:
        """By id, numbers by value before texts, and by epoch."""
        name = sample.get("id")
        is_text = isinstance(name, str)
        value = 0.0 if is_text else as_number(name) or 0.0
        return is_text, value, as_text(name), as_number(sample.get("epoch")) or 0.0

    samples = sorted(map(as_record, members.values()), key=get_order)
    return {**top, "samples": list[Json](samples)}


def read(document: Json, path: Path, metric: str | None = None) -> Log:
    """The samples of a log; `metric` names the scorer where there are several."""
    top = as_record(document)
    version = as_number(top.get("version"))
    if version is not None and version > NEWEST_VERSION_READ:
        raise InputError(
            f"{path.name} is an Inspect log of version {version:g}; "
            f"up to {NEWEST_VERSION_READ} are read."
        )
    samples = as_records(top.get("samples"))
    if not samples:
        raise InputError(_describe_empty_log(top, path))
    scorer = _choose_scorer(samples, metric, path)
    values = [_read_grade(sample, scorer, path) for sample in samples]
    grades = np.array([0.0 if value is None else value for value in values])
    unanswered: list[Outcome | None] = []
    for sample, value in zip(samples, values, strict=True):
        unanswered.append(_find_reason_unanswered(sample, scorer, value))
    questions = [as_text(sample.get("id")) for sample in samples]
    ids = questions
    several_epochs = len(set(questions)) < len(questions)
    if several_epochs:
        epochs = [as_text(sample.get("epoch")) for sample in samples]
        ids = [f"{name}/{epoch}" for name, epoch in zip(questions, epochs, strict=True)]
    tokens: list[list[Json]] = []
    for sample in samples:
        choice = get_at(sample, "output", "choices", 0)
        tokens.append(as_list(get_at(choice, "logprobs", "content")))
    confidences = compute_token_confidences(tokens)
    slices: dict[str, list[Json]] = {}
    for name in METADATA_SLICES:
        slices[name] = [get_at(sample, "metadata", name) for sample in samples]
    status = as_text(top.get("status"))
    doubts: tuple[str, ...] = ()
    if status != "success":
        how = "stopped by an error" if status == "error" else status
        doubts = (f"the run was {how}: only what was finished is there",)
    return Log(
        tool=INSPECT_TITLE,
        ids=make_column(ids),
        outcome=judge_grades(grades.tolist(), unanswered),
        grade=grades,
        confidences=confidences,
        answer=make_column([as_text(get_at(s, "scores", scorer, "answer")) for s in samples]),
        group=make_column(questions) if several_epochs else None,
        slices=select_text_columns(slices),
        claims=_check_accuracy(top, scorer, questions, values=values, path=path),
        notes=() if confidences else (NO_TOKENS_NOTE,),
        doubts=doubts,
    )


def _describe_empty_log(top: Record, path: Path) -> str:
    first_score = get_at(top, "results", "scores", 0)
    accuracy = get_at(first_score, "metrics", "accuracy", "value")
    aside = "" if as_number(accuracy) is None else f" (its header gives accuracy {accuracy})"
    status = as_text(top.get("status"))
    what = "holds no samples"
    if status in ("cancelled", "error", "started"):
        what = f"was {status} before a sample was finished"
    return (
        f"{path.name} is an Inspect log that {what}{aside}; "
        "single answers are needed, so log with log_samples=True."
    )


def _choose_scorer(samples: Sequence[Record], asked: str | None, path: Path) -> str:
    scorers: dict[str, None] = {}  # an ordered set
    for sample in samples:
        scorers |= dict.fromkeys(as_record(sample.get("scores")))
    names = list(scorers)
    if not names:
        raise InputError(
            f"{path.name} is an Inspect log of {len(samples):,} answers without scores; "
            "score it first: inspect score LOG --scorer match."
        )
    if asked is not None and asked not in names:
        raise InputError(
            f"{path.name} has no scorer {asked!r}; its scorers are: {', '.join(names)}."
        )
    if asked is None and len(names) > 1:
        raise InputError(
            f"{path.name} has {len(names)} scorers ({', '.join(names)}); choose one with "
            f"names={{'correct': '{names[0]}'}} (--name correct={names[0]})."
        )
    return asked or names[0]


def _read_grade(sample: Record, scorer: str, path: Path) -> float | None:
    """The grade; None where the sample was not scored."""
    value = get_at(sample, "scores", scorer, "value")
    if value is None:
        return None
    grade = None
    if isinstance(value, str):
        grade = GRADE_OF_VALUE.get(value.strip(), GRADE_OF_VALUE.get(value.strip().lower()))
    if grade is None:
        grade = as_number(value)
    if grade is None or not 0 <= grade <= 1:
        raise InputError(
            f"{path.name}, sample {as_text(sample.get('id'))!r}: {scorer} gives "
            f"{str(value)[:40]!r}; C, I, P, N or a number from 0 to 1 is needed."
        )
    return grade


def _find_reason_unanswered(sample: Record, scorer: str, value: float | None) -> Outcome | None:
    if value is None:
        return Outcome.MISSING
    stop_reason = get_at(sample, "output", "choices", 0, "stop_reason")
    if get_at(sample, "scores", scorer, "value") == "N" or stop_reason == "content_filter":
        return Outcome.REFUSED
    if get_at(sample, "scores", scorer, "answer") == "":
        return Outcome.UNPARSEABLE
    return None


def _check_accuracy(
    top: Record,
    scorer: str,
    questions: Sequence[str],
    *,
    values: Sequence[float | None],
    path: Path,
) -> tuple[Claim, ...]:
    """The header's accuracy, where it is the mean over samples of the mean over epochs."""
    scores = [s for s in as_records(get_at(top, "results", "scores")) if s.get("name") == scorer]
    theirs = None
    if scores:
        theirs = as_number(get_at(scores[0], "metrics", "accuracy", "value"))
    by_question: dict[str, list[float]] = {}
    for question, value in zip(questions, values, strict=True):
        if value is not None:
            by_question.setdefault(question, []).append(value)
    if theirs is None or not by_question:
        return ()
    reducers = as_list(get_at(top, "eval", "config", "epochs_reducer")) or ["mean"]
    if reducers != ["mean"] and max(map(len, by_question.values())) > 1:
        return ()  # another reducer, such as the mode: its accuracy is not the mean of the rows
    ours = float(np.mean([float(np.mean(values)) for values in by_question.values()]))
    return (
        check_claim("accuracy", theirs=theirs, ours=ours, source="its header", where=path.name),
    )
