"""What the log of an evaluation tool says, whichever tool wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum, StrEnum
from typing import Any, Literal

import numpy as np

from howsure._core.budget import Budget
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import array_of
from howsure.formats.logs.tree import Json, text
from howsure.predictions import Outcomes

TOLERANCE = 1e-9
NUMBER = 8  # bytes


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
        """How often each outcome occurs.

        >>> Log("a tool", np.arange(3), np.array([1, 0, 3]), np.array([1.0, 0.0, 0.0])).counts
        {'right': 1, 'wrong': 1, 'unparseable': 1}
        """
        outcomes: list[int] = self.outcome.tolist()
        found = Counter(outcomes)
        order = (Outcome.RIGHT, *(o for o in Outcome if o != Outcome.RIGHT))
        return {o.name.lower(): found[o] for o in order if found[o]}

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
        parts = [self.tool, _counted(self.questions, "question")]
        if self.n != self.questions:
            parts.append(_counted(self.n, "answer"))
        if self.options is not None:
            parts.append(_options(self.options))
        parts += [
            f"{count:,} {name}"
            for name, count in self.counts.items()
            if name not in ("right", "wrong")
        ]
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
        there = {c.name: c for c in self.confidences}
        name = confidence if confidence is not None else next(iter(there), "")
        if name not in there or (confidence is None and len(there) > 1):
            raise InputError(
                f"the log has {len(there)} confidences ({', '.join(there) or 'none'}); name one of them."
            )
        score = there[name].value
        rows = ~np.isnan(score) & (self.answered | (no_answer == "wrong"))
        graded = bool((self.outcome == Outcome.GRADED).any())
        given = {"loss": 1 - self.grade[rows]} if graded else {"correct": self.grade[rows] == 1}
        group = None if self.group is None else self.group[rows]
        return Outcomes(score[rows], **given, id=self.ids[rows], group=group)

    def __getitem__(self, rows: Bools) -> Log:
        """The chosen rows; claims and notes are those of the whole log."""
        pick: Callable[[Array | None], Any] = lambda a: None if a is None else a[rows]
        names = ("ids", "outcome", "grade", "options", "gold", "answer", "group", "split", "lines")
        confidences = tuple(replace(c, value=c.value[rows]) for c in self.confidences)
        slices = {name: column[rows] for name, column in self.slices.items()}
        return replace(
            self,
            confidences=confidences,
            slices=slices,
            **{n: pick(getattr(self, n)) for n in names},
        )


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _options(values: Floats) -> str:
    sizes = np.isfinite(values).sum(axis=1)
    low, high = int(sizes.min()), int(sizes.max())
    return f"{high} options" if low == high else f"{low} to {high} options"


def outcomes(grades: Sequence[float], unanswered: Sequence[Outcome | None] | None = None) -> Ints:
    """Right, wrong or graded by the grade; where `unanswered` names a reason and the grade is 0,
    that.

    >>> outcomes([1.0, 0.0, 0.5, 0.0], [None, None, None, Outcome.REFUSED]).tolist()
    [1, 0, 2, 4]
    """
    out = [Outcome(int(g)) if g in (0, 1) else Outcome.GRADED for g in grades]
    for i, why in enumerate(unanswered or ()):
        if why is not None and grades[i] == 0:
            out[i] = why
    return np.array(out, dtype=np.int64)


def claimed(
    name: str, theirs: float, ours: float, *, source: str, where: str, tolerance: float = TOLERANCE
) -> Claim:
    """The claim, unless the log's own number is not the one that its rows give."""
    if not abs(theirs - ours) <= tolerance:
        raise InputError(
            f"{where}: {source} says {name} {theirs:.10g}, its rows give {ours:.10g}; "
            "the file is incomplete or does not belong to it, so save both again."
        )
    return Claim(name, theirs, ours, source)


def fits(rows: int, columns: int, there: int, where: str) -> None:
    """Raise where a table with a place for every number would be far larger than the numbers that
    are there.
    """
    Budget(f"{where}, as a table of {rows:,} rows and {columns:,} columns,", NUMBER * there).spend(
        NUMBER * rows * columns
    )


def constant(confidences: Sequence[Confidence]) -> tuple[str, ...]:
    """A remark for each confidence that is the same for every question and so ranks nothing."""
    found: list[str] = []
    for c in confidences:
        known = c.value[~np.isnan(c.value)]
        if len(known) > 1 and (known == known[0]).all():
            found.append(
                f"{c.name} is {known[0]:g} for all {len(known):,} answers, so it ranks nothing; "
                "the model's interface probably gave no log-probabilities"
            )
    return tuple(found)


def column(texts: Sequence[str]) -> Array:
    """Texts as an array, as objects where a fixed width would be wasteful."""
    return array_of(texts)


def categories(found: Mapping[str, Sequence[Json]]) -> dict[str, Array]:
    """The columns that hold a text in every row: those are what to slice by.

    >>> list(categories({"subject": ["law", "art"], "topic": [None, None]}))
    ['subject']
    """
    full = {
        name: cells for name, cells in found.items() if all(isinstance(cell, str) for cell in cells)
    }
    return {name: column([text(cell) for cell in cells]) for name, cells in full.items()}
