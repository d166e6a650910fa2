"""What a log of a decision model holds: what `howsure doctor` prints of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.formats.contents import ARM_NAMES, FileProblem
from howsure.formats.fields import load_cells
from howsure.formats.logs.decision_bodies import ANSWERED, MISSING, REFUSED
from howsure.formats.logs.decisions import (
    DecisionLog,
    build_decision_contents,
    choose_records,
    count_digits,
)
from howsure.formats.logs.question_labels import load_log, open_decision_log
from howsure.predictions.read_options import ReadOptions


@frozen
class QuestionSurvey:
    """One question: its answers, how many have a label (None: not known), and how its confidence is
    written. `tied` answers share their confidence with others, `highest` stand at the highest.
    """

    name: str
    type: str
    answers: int
    refused: int
    missing: int
    labels: int | None
    no_confidence: int
    tied: float
    top: float | None
    highest: float
    digits: int | None


@frozen
class LogSurvey:
    """A log: its questions, the models, runs and variants found in it, and what is wrong."""

    title: str
    questions: tuple[QuestionSurvey, ...]
    found: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    problems: tuple[FileProblem, ...]


def survey_log(
    path: Path, options: ReadOptions, labels: tuple[str | os.PathLike[str], str] | None = None
) -> LogSurvey:
    """Questions, labels, models and ties of a log, and what keeps it from being judged."""
    log = choose_records(load_log(path, options), options.where)
    problems: list[FileProblem] = []
    labelled: dict[str, int] = {}
    try:
        # The field is looked at by a threshold, so it is asked for here too.
        contents = open_decision_log(path, options, labels)[1]
        truth = {"label", "grade", "correct"} & set(contents.entries)
        if truth:
            for name in load_cells(contents, "question"):
                labelled[name] = labelled.get(name, 0) + 1
        else:
            problems.append(
                FileProblem(
                    where=path.name,
                    what="has no labels, so it can be described, not judged",
                    fix="give them: --labels FILE --join COLUMN",
                    anyway="howsure monitor, beside a labelled log",
                )
            )
    except InputError as e:
        problems.append(FileProblem.of(e, path))
    try:
        field = ReadOptions(kind="confidence", where=options.where, beside=())
        build_decision_contents(load_log(path, options), field)
    except InputError as e:
        if not problems:
            problem = FileProblem.of(e, path)
            problems.append(FileProblem(problem.where, problem.what, problem.fix, stops=False))
    found: dict[str, tuple[str, ...]] = {}
    for name in ARM_NAMES:
        values = sorted({str(cell) for cell in log.envelope.get(name, []) if cell is not None})
        if values:
            found[name] = tuple(values)
    questions = [survey_question(log, i, labelled) for i in range(len(log.questions))]
    return LogSurvey(
        title=log.title,
        questions=tuple(questions),
        found=found,
        notes=log.notes,
        problems=tuple(problems),
    )


def survey_question(log: DecisionLog, number: int, labelled: dict[str, int]) -> QuestionSurvey:
    """One row of the table."""
    mine = log.question == number
    answered = mine & (log.reason == ANSWERED)
    confidence = log.confidence[answered]
    known = confidence[~np.isnan(confidence)]
    tied = highest = 0.0
    top = None
    if len(known):
        values, counts = np.unique(known, return_counts=True)
        tied = float(counts[counts > 1].sum() / len(known))
        top, highest = float(values[-1]), float(counts[-1] / len(known))
    question = log.questions[number]
    return QuestionSurvey(
        name=question.name,
        type=question.title,
        answers=int(answered.sum()),
        refused=int((mine & (log.reason == REFUSED)).sum()),
        missing=int((mine & (log.reason == MISSING)).sum()),
        labels=labelled.get(question.name, 0) if labelled else None,
        no_confidence=int(np.isnan(confidence).sum()),
        tied=tied,
        top=top,
        highest=highest,
        digits=count_digits(known) if len(known) else None,
    )
