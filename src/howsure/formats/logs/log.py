"""What the log of an evaluation tool says, whichever tool wrote it, and the same as a file of
predictions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Literal

import numpy as np

from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.file_access import Budget
from howsure._core.frozen import frozen
from howsure._core.text import make_text_array
from howsure.formats.contents import Contents, make_array_entry
from howsure.formats.logs.json_tree import Json, as_number, as_text, get_at
from howsure.predictions import Outcomes
from howsure.predictions.read_options import ReadOptions

CLAIM_TOLERANCE = 1e-9
FLOAT_BYTES = 8
PREFERRED_CONFIDENCES = ("sequence_probability", "confidence")


class Outcome(IntEnum):
    """What became of a question. From UNPARSEABLE on there is no answer."""

    WRONG = 0
    RIGHT = 1
    GRADED = 2
    UNPARSEABLE = 3
    REFUSED = 4
    MISSING = 5


class Kind(StrEnum):
    """What a confidence is."""

    OPTIONS = "option probabilities"
    SEQUENCE = "sequence probability"
    VERBALISED = "verbalised"
    AGREEMENT = "agreement of samples"
    JUDGE = "judge score"
    STATED = "confidence"
    SCORE = "score"


@frozen(eq=False)
class Confidence:
    """One number per question that says how sure the model is; nan where the log gives none."""

    name: str
    kind: Kind
    value: Floats

    @property
    def missing(self) -> int:
        """Questions without this number."""
        return int(np.isnan(self.value).sum())


@frozen
class Claim:
    """A number that the log itself gives, beside the one that its rows give."""

    name: str
    theirs: float
    ours: float
    source: str


@frozen(eq=False)
class Log:
    """One row per answer.

    `grade` is 1 for right, 0 for wrong and for no answer, anything between for a graded answer.
    `options` are the log-likelihoods of the answer options, minus infinity where a question has
    fewer; `option_names` are their texts where every question has the same; `gold` is the number of
    the right option. `group` holds the question of each answer where there are several answers to
    one. `notes` say what the log lacks, `doubts` what to be careful about.
    """

    tool: str
    ids: Array
    outcome: Ints
    grade: Floats
    confidences: tuple[Confidence, ...] = ()
    options: Floats | None = None
    option_names: tuple[str, ...] | None = None
    gold: Ints | None = None
    answer: Array | None = None
    group: Array | None = None
    split: Array | None = None
    slices: dict[str, Array] = field(default_factory=dict[str, Array])
    beside: dict[str, Array] = field(default_factory=dict[str, Array])
    lines: Ints | None = None
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of answers, those that are no answer included."""
        return len(self.grade)

    @property
    def questions(self) -> int:
        """Number of distinct questions."""
        return self.n if self.group is None else len(set(self.group.tolist()))

    @property
    def answered(self) -> Bools:
        """Which rows hold an answer."""
        return self.outcome < Outcome.UNPARSEABLE

    @property
    def counts(self) -> dict[str, int]:
        """How often each outcome occurs, right ones first.

        >>> Log("a tool", np.arange(3), np.array([1, 0, 3]), np.array([1.0, 0.0, 0.0])).counts
        {'right': 1, 'wrong': 1, 'unparseable': 1}
        """
        outcomes: list[int] = self.outcome.tolist()
        count = Counter(outcomes)
        order = [Outcome.RIGHT, *(o for o in Outcome if o != Outcome.RIGHT)]
        return {o.name.lower(): count[o] for o in order if count[o]}

    @property
    def accuracy(self) -> float:
        """Mean grade of the answers that were given; nan where none was."""
        given = self.grade[self.answered]
        return float(given.mean()) if len(given) else float("nan")

    @property
    def accuracy_of_all(self) -> float:
        """Mean grade with no answer counted as wrong."""
        return float(self.grade.mean())

    @property
    def title(self) -> str:
        """The log in one line.

        >>> Log("a tool", np.arange(3), np.array([1, 0, 3]), np.array([1.0, 0.0, 0.0])).title
        'a tool, 3 questions, 1 unparseable'
        """
        parts = [self.tool, _count_things(self.questions, "question")]
        if self.n != self.questions:
            parts.append(_count_things(self.n, "answer"))
        if self.options is not None:
            sizes = np.isfinite(self.options).sum(axis=1)
            low, high = int(sizes.min()), int(sizes.max())
            parts.append(f"{high} options" if low == high else f"{low} to {high} options")
        for name, count in self.counts.items():
            if name not in ("right", "wrong"):
                parts.append(f"{count:,} {name}")
        if len(self.confidences) > 1:
            parts.append(f"{len(self.confidences)} confidences")
        return ", ".join(parts)

    def outcomes(
        self, confidence: str | None = None, *, no_answer: Literal["apart", "wrong"] = "apart"
    ) -> Outcomes:
        """Score and outcome of each answer by one of the confidences, which may be any number, such
        as a logit.

        Questions without an answer are left out, or with `no_answer="wrong"` kept as wrong where
        they have a score.

        >>> scores = (Confidence("logit", Kind.SCORE, np.array([45.2, 21.4, 0.0])),)
        >>> log = Log("a tool", np.arange(3), np.array([1, 0, 3]), np.array([1.0, 0.0, 0.0]), scores)
        >>> len(log.outcomes()), len(log.outcomes("logit", no_answer="wrong"))
        (2, 3)
        """
        by_name = {c.name: c for c in self.confidences}
        name = confidence if confidence is not None else next(iter(by_name), "")
        if name not in by_name or (confidence is None and len(by_name) > 1):
            raise InputError(
                f"the log has {len(by_name)} confidences ({', '.join(by_name) or 'none'}); "
                "name one of them."
            )
        score = by_name[name].value
        rows = ~np.isnan(score) & (self.answered | (no_answer == "wrong"))
        ids = self.ids[rows]
        group = None if self.group is None else self.group[rows]
        if (self.outcome == Outcome.GRADED).any():
            return Outcomes(score[rows], loss=1 - self.grade[rows], id=ids, group=group)
        return Outcomes(score[rows], correct=self.grade[rows] == 1, id=ids, group=group)

    def __getitem__(self, rows: Bools) -> Log:
        """The chosen rows; claims and notes are those of the whole log."""

        def select(column: Array | None) -> Array | None:
            return None if column is None else column[rows]

        return replace(
            self,
            ids=self.ids[rows],
            outcome=self.outcome[rows],
            grade=self.grade[rows],
            confidences=tuple(replace(c, value=c.value[rows]) for c in self.confidences),
            options=select(self.options),
            gold=select(self.gold),
            answer=select(self.answer),
            group=select(self.group),
            split=select(self.split),
            slices={name: column[rows] for name, column in self.slices.items()},
            lines=select(self.lines),
        )


def _count_things(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


# What the readers of all tools need


def judge_grades(
    grades: Sequence[float], unanswered: Sequence[Outcome | None] | None = None
) -> Ints:
    """Right, wrong or graded by the grade; where `unanswered` names a reason and the grade is 0,
    that.

    >>> judge_grades([1.0, 0.0, 0.5, 0.0], [None, None, None, Outcome.REFUSED]).tolist()
    [1, 0, 2, 4]
    """
    outcomes: list[Outcome] = []
    for i, grade in enumerate(grades):
        why = unanswered[i] if unanswered else None
        if grade == 0 and why is not None:
            outcomes.append(why)
        elif grade in (0, 1):
            outcomes.append(Outcome(int(grade)))
        else:
            outcomes.append(Outcome.GRADED)
    return np.array(outcomes, dtype=np.int64)


def check_claim(
    name: str,
    *,
    theirs: float,
    ours: float,
    source: str,
    where: str,
    tolerance: float = CLAIM_TOLERANCE,
) -> Claim:
    """The claim; raise where the log's own number is not the one that its rows give."""
    if not abs(theirs - ours) <= tolerance:
        raise InputError(
            f"{where}: {source} says {name} {theirs:.10g}, its rows give {ours:.10g}; "
            "the file is incomplete or does not belong to it, so save both again."
        )
    return Claim(name=name, theirs=theirs, ours=ours, source=source)


def check_table_size(rows: int, columns: int, there: int, where: str) -> None:
    """Raise where a table with a place for every number would be far larger than the numbers that
    are there.
    """
    what = f"{where}, as a table of {rows:,} rows and {columns:,} columns,"
    Budget(what, FLOAT_BYTES * there).spend(FLOAT_BYTES * rows * columns)


def find_kind(name: str, patterns: Sequence[tuple[re.Pattern[str], Kind]]) -> Kind:
    """What a confidence is by its name: the kind of the first pattern that is in it.

    >>> find_kind("judge_a", [(re.compile("judge"), Kind.JUDGE)])
    <Kind.JUDGE: 'judge score'>
    """
    for pattern, kind in patterns:
        if pattern.search(name):
            return kind
    return Kind.STATED


def describe_constants(confidences: Sequence[Confidence]) -> tuple[str, ...]:
    """A remark for each confidence that is the same for every question and so cannot rank them."""
    remarks: list[str] = []
    for c in confidences:
        known = c.value[~np.isnan(c.value)]
        if len(known) > 1 and (known == known[0]).all():
            remarks.append(
                f"{c.name} is {known[0]:g} for all {len(known):,} answers, so it cannot rank them; "
                "the model's interface probably gave no log-probabilities"
            )
    return tuple(remarks)


def make_column(texts: Sequence[str]) -> Array:
    """Texts as an array, as objects where a fixed width would be wasteful."""
    return make_text_array(texts)


def select_text_columns(columns: Mapping[str, Sequence[Json]]) -> dict[str, Array]:
    """The columns that hold a text in every row: those are what to slice by.

    >>> list(select_text_columns({"subject": ["law", "art"], "topic": [None, None]}))
    ['subject']
    """
    selected: dict[str, Array] = {}
    for name, cells in columns.items():
        if all(isinstance(cell, str) for cell in cells):
            selected[name] = make_column([as_text(cell) for cell in cells])
    return selected


def compute_token_confidences(answers: Sequence[list[Json]]) -> tuple[Confidence, ...]:
    r"""Two confidences from the token log-probabilities :math:`\ell_t` of each answer; none where
    no answer has any.

    `sequence_probability` is :math:`e^{\sum \ell_t}`, `mean_token_probability` the mean of
    :math:`e^{\ell_t}`. A token is a number or an object with `logprob`.

    >>> answers = [[{"logprob": -0.1}, {"logprob": -0.2}]]
    >>> [float(c.value[0].round(3)) for c in compute_token_confidences(answers)]
    [0.741, 0.862]
    """
    products: list[float] = []
    means: list[float] = []
    any_token = False
    for answer in answers:
        logprobs: list[float] = []
        for token in answer:
            value = as_number(get_at(token, "logprob") if isinstance(token, dict) else token)
            if value is not None:
                logprobs.append(value)
        any_token = any_token or bool(logprobs)
        products.append(float(np.exp(sum(logprobs))) if logprobs else np.nan)
        means.append(float(np.exp(logprobs).mean()) if logprobs else np.nan)
    if not any_token:
        return ()
    return (
        Confidence("sequence_probability", Kind.SEQUENCE, np.array(products)),
        Confidence("mean_token_probability", Kind.SEQUENCE, np.array(means)),
    )


# A log as a file of predictions


def build_contents(log: Log, path: Path) -> Contents:
    """The columns: id, what came of each question, every confidence by its name, and what to slice
    by.
    """
    entries = {"id": make_array_entry(log.ids)}
    for c in log.confidences:
        entries[c.name] = make_array_entry(c.value)
    graded = bool((log.outcome == Outcome.GRADED).any())
    entries["grade" if graded else "correct"] = make_array_entry(log.grade)
    # Why there is no answer matters only where an answer or a confidence is missing.
    if not log.answered.all() or any(c.missing for c in log.confidences):
        reasons = ["" if o < Outcome.UNPARSEABLE else o.name.lower() for o in Outcome]
        entries["no_answer"] = make_array_entry(np.array(reasons)[log.outcome])
    if log.options is not None and log.gold is not None and has_options(log):
        entries["option_logprobs"] = make_array_entry(log.options)
        entries["label"] = make_array_entry(log.gold)
    beside = {
        "answer": log.answer,
        "group": log.group,
        "split": log.split,
        **log.slices,
        **log.beside,
    }
    for name, values in beside.items():
        if values is not None:
            entries[name] = make_array_entry(values)
    return Contents(
        path,
        entries,
        table=True,
        lines=log.lines,
        numbered=False,
        class_names=log.option_names,
    )


def has_options(log: Log) -> bool:
    """Whether every question has the same number of options and a right one that is known."""
    return log.options is not None and log.gold is not None and bool(np.isfinite(log.options).all())


def choose_names(log: Log, wanted: ReadOptions, path: Path) -> ReadOptions:
    """What was asked for, with the confidence that is meant; which metric counts was settled when
    the log was read.
    """
    names = {part: name for part, name in wanted.names.items() if part != "correct"}
    asked = names.get("confidence")
    confidence = choose_confidence(log, asked if isinstance(asked, str) else None, path)
    if confidence is not None:
        names["confidence"] = confidence
    return replace(wanted, names=names)


def choose_confidence(log: Log, asked: str | None, path: Path) -> str | None:
    """The confidence to use: the one asked for, or the only one; None where the options of each
    question are known.
    """
    if asked is not None or has_options(log):
        return asked
    names = [c.name for c in log.confidences]
    if not names:
        raise NoConfidence.of(log, path)
    for preferred in PREFERRED_CONFIDENCES:
        if preferred in names:
            return preferred
    if len(names) > 1:
        listed = ", ".join(f"{c.name} ({c.kind})" for c in log.confidences)
        raise InputError(
            f"{path.name} has {len(names)} confidences: {listed}; choose one with "
            f"names={{'confidence': '{names[0]}'}} (--name confidence={names[0]}), "
            f"or compare them: howsure compare {path.name}."
        )
    return names[0]


class NoConfidence(InputError):
    """A log that tells right from wrong and nothing else; `log` holds its counts."""

    log: Log

    @classmethod
    def of(cls, log: Log, path: Path) -> NoConfidence:
        """The refusal of this log: why there is no confidence, and what is known all the same."""
        why = f" ({log.notes[-1]})" if log.notes else ""
        error = cls(
            f"{path.name} ({log.title}) tells right from wrong, accuracy "
            f"{log.accuracy_of_all:.6g}, but holds no confidence{why}; "
            "log option or token log-probabilities, or ask the model how sure it is."
        )
        error.log = log
        return error
