"""What only single samples tell once the tally of the score is known: in memory, or by reading the
parts again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure.predictions.outcomes import Outcomes
from howsure.render.catalogue import On
from howsure.report.samples import MANY_CLASSES, Columns, Samples, Shape, outcomes_of
from howsure.report.sums import class_number
from howsure.tallies.tally import Tally

POINTS = 200  # operating points: steps of half a percent
BARS = 50  # of the histogram
FOLLOWED = 20_000  # classes whose deferral can be followed: a table of classes and thresholds
LIMIT = (
    50_000_000  # numbers of single samples that are held for limits of groups or weights: 400 MB
)
ROUNDING = 1e-12  # of summed weights


@frozen(eq=False)
class Question:
    """What is asked of every sample: thresholds and bars of the first score, classes, and whether
    to hold it.
    """

    thresholds: Floats
    low: float
    high: float
    keys: Array | None
    hold: bool
    near: bool  # whether wrong answers near the truth are told apart

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask."""
        return self.hold or self.near or self.keys is not None


@frozen(eq=False)
class Held:
    """Columns of single samples that begin at a row of a file."""

    file: int
    row: int
    correct: Bools
    weight: Floats | None
    group: Array | None
    happened: Bools
    slices: Mapping[str, Array]
    values: Mapping[str, Floats]

    def value(self, on: On, score: str) -> Floats:
        """The score, the entropy or the loss of each sample."""
        return self.values[f"score {score}" if on == "score" else on]

    def outcomes(self, on: On, score: str) -> Outcomes:
        """The outcomes that numbers `on` them are measured on."""
        return outcomes_of(self, on, score)


@frozen(eq=False)
class Details:
    """The answers: wrong answers near the truth per bar, deferred samples per class and threshold,
    single samples.
    """

    near: Array
    deferred: Ints | None
    held: tuple[Held, ...] = ()
    samples: Samples | None = None  # while they are in memory

    def __add__(self, other: Details) -> Details:
        deferred = (
            None
            if self.deferred is None or other.deferred is None
            else self.deferred + other.deferred
        )
        return Details(self.near + other.near, deferred, (*self.held, *other.held))

    @property
    def size(self) -> int:
        """Numbers that take memory and become fewer by adding up."""
        return 0 if self.deferred is None else self.deferred.size

    @cached_property
    def columns(self) -> Columns | None:
        """Single samples in the order of the files, where they are known."""
        return joined(self.held) if self.held else self.samples


def question_of(t: Tally, shape: Shape, keys: Array | None, numbers: int) -> Question:
    """What must be asked for a report on this tally; `numbers` is how many columns of a sample the
    report reads.
    """
    hold = not shape.alike and numbers * float(t.n) <= LIMIT
    near = shape.vectors and (shape.k or 0) > MANY_CLASSES
    followed = None if keys is None or len(keys) > FOLLOWED else keys
    return Question(t.score[operating_rows(t)], *span(t), followed, hold, near)


def operating_rows(t: Tally) -> Ints:
    """Rows of at most 200 thresholds, spread evenly over coverage, most trusted first."""
    kept = t.ends
    at: Floats = np.linspace(0, float(kept[-1]), POINTS + 1)[1:] - (
        ROUNDING * float(t.n) if t.weighted else 0
    )
    rows: Ints = np.searchsorted(kept, at)
    return np.unique(rows.clip(max=len(kept) - 1))


def asked_coverages(t: Tally) -> Floats:
    """For each of these rows, the smallest of the 200 coverages that leads to it."""
    kept = t.ends
    at = np.arange(1, POINTS + 1) / POINTS
    found = np.searchsorted(kept, at * float(kept[-1]) - ROUNDING * float(t.n)).clip(
        max=len(kept) - 1
    )
    return at[np.unique(found, return_index=True)[1]]


def span(t: Tally) -> tuple[float, float]:
    """Where the bars of a histogram begin and end: [0, 1] for claims, else the range of the finite
    scores.
    """
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    finite = t.score[np.isfinite(t.score)]
    if not len(finite) or (finite[-1] >= 0 and finite[0] <= 1):
        return 0.0, 1.0
    low, high = float(finite[-1]), float(finite[0])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def details_of(samples: Samples, question: Question) -> Details:
    """The answers of samples in memory.

    >>> from howsure import Predictions
    >>> samples = Samples.of(Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0]))
    >>> details_of(samples, Question(np.array([0.9, 0.6]), 0.0, 1.0, np.arange(2), False, False)).deferred
    array([[1, 0],
           [0, 0]])
    """
    return Details(_near(samples, question), _deferred(samples, question), samples=samples)


def part_details(samples: Samples, question: Question, file: int, row: int) -> Details:
    """The answers of one part, without the part itself."""
    found = Details(_near(samples, question), _deferred(samples, question))
    if not question.hold:
        return found
    shape = samples.shape
    beside: list[On] = [*shape.losses, "uncertainty"] if shape.vectors else []
    if shape.positive is not None:
        beside.append("positive")
    values = {f"score {name}": score for name, score in samples.scores.items()}
    values |= {on: samples.value(on, "") for on in beside}
    happened = samples.correct if shape.positive is None else samples.happened
    held = Held(
        file, row, samples.correct, samples.weight, samples.group, happened, samples.slices, values
    )
    return Details(found.near, found.deferred, (held,))


def _near(samples: Samples, question: Question) -> Array:
    if not question.near:
        return np.zeros(BARS, np.int64)
    near = samples.fate == 1
    weight = None if samples.weight is None else samples.weight[near]
    return np.histogram(
        samples.scores[samples.first][near], BARS, (question.low, question.high), weights=weight
    )[0]


def _deferred(samples: Samples, question: Question) -> Ints | None:
    """How many samples of each class score less than each threshold."""
    keys, labels = question.keys, samples.preds.known_labels
    if keys is None or labels is None:
        return None
    ascending = question.thresholds[::-1]
    size = len(ascending) + 1
    below = np.searchsorted(ascending, samples.scores[samples.first], side="right")
    cells = np.bincount(class_number(keys, labels) * size + below, minlength=len(keys) * size)
    return np.cumsum(cells.reshape(len(keys), size), axis=1)[:, -2::-1]


def joined(held: tuple[Held, ...]) -> Held:
    """All columns, in the order of files and rows."""
    ordered = sorted(held, key=lambda h: (h.file, h.row))
    first = ordered[0]
    weights, groups = (
        [c for h in ordered if (c := getattr(h, name)) is not None] for name in ("weight", "group")
    )
    return Held(
        first.file,
        first.row,
        np.concatenate([h.correct for h in ordered]),
        np.concatenate(weights) if weights else None,
        np.concatenate(groups) if groups else None,
        np.concatenate([h.happened for h in ordered]),
        {column: np.concatenate([h.slices[column] for h in ordered]) for column in first.slices},
        {name: np.concatenate([h.values[name] for h in ordered]) for name in first.values},
    )
