"""What only single samples tell once the tally of the score is known: in memory, or by reading the
parts again.

A stream is read twice. The first reading gives the tally; from it follows a `Question` (which
thresholds, which bars, which classes), and the second reading answers it with `Details`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import On
from howsure.report.samples import (
    NEAR_MISS_MIN_CLASSES,
    SampleColumns,
    Samples,
    Shape,
    build_outcomes,
)
from howsure.report.sums import find_class_numbers
from howsure.tallies.tally import Tally

OPERATING_POINTS = 200  # steps of half a percent
HISTOGRAM_BARS = 50
MAX_FOLLOWED_CLASSES = 20_000  # whose deferral can be followed: a table of classes and thresholds
# Numbers of single samples that are held for limits of groups or weights: 400 MB.
MAX_HELD_NUMBERS = 50_000_000
WEIGHT_ROUNDING = 1e-12  # relative error of summed weights


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
class HeldSamples:
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
        return build_outcomes(self, on, score)


@frozen(eq=False)
class Details:
    """The answers: wrong answers near the truth per bar, deferred samples per class and threshold,
    single samples.
    """

    near: Array
    deferred: Ints | None
    held: tuple[HeldSamples, ...] = ()
    samples: Samples | None = None  # while they are in memory

    def __add__(self, other: Details) -> Details:
        deferred = None
        if self.deferred is not None and other.deferred is not None:
            deferred = self.deferred + other.deferred
        return Details(
            near=self.near + other.near, deferred=deferred, held=(*self.held, *other.held)
        )

    @property
    def size(self) -> int:
        """Numbers that take memory and become fewer by adding up."""
        return 0 if self.deferred is None else self.deferred.size

    @cached_property
    def columns(self) -> SampleColumns | None:
        """Single samples in the order of the files, where they are known."""
        if self.held:
            return concat_held(self.held)
        return self.samples


def build_question(t: Tally, shape: Shape, keys: Array | None, numbers: int) -> Question:
    """What must be asked for a report on this tally; `numbers` is how many columns of a sample the
    report reads.
    """
    low, high = find_histogram_span(t)
    if keys is not None and len(keys) > MAX_FOLLOWED_CLASSES:
        keys = None
    return Question(
        thresholds=t.score[find_operating_rows(t)],
        low=low,
        high=high,
        keys=keys,
        # Where all samples are alike the tally says it all, and none of them is held.
        hold=not shape.alike and numbers * float(t.n) <= MAX_HELD_NUMBERS,
        near=shape.vectors and (shape.k or 0) > NEAR_MISS_MIN_CLASSES,
    )


def find_operating_rows(t: Tally) -> Ints:
    """Rows of at most 200 thresholds, spread evenly over coverage, most trusted first."""
    ends = t.ends
    ranks: Floats = np.linspace(0, float(ends[-1]), OPERATING_POINTS + 1)[1:]
    if t.weighted:
        # Sums of weights may end a last bit below the rank that they reach.
        ranks = ranks - WEIGHT_ROUNDING * float(t.n)
    rows: Ints = np.searchsorted(ends, ranks)
    return np.unique(rows.clip(max=len(ends) - 1))


def find_asked_coverages(t: Tally) -> Floats:
    """For each of these rows, the smallest of the 200 coverages that leads to it."""
    ends = t.ends
    coverages = np.arange(1, OPERATING_POINTS + 1) / OPERATING_POINTS
    ranks = coverages * float(ends[-1]) - WEIGHT_ROUNDING * float(t.n)
    rows = np.searchsorted(ends, ranks).clip(max=len(ends) - 1)
    return coverages[np.unique(rows, return_index=True)[1]]


def find_histogram_span(t: Tally) -> tuple[float, float]:
    """Where the bars of a histogram begin and end: [0, 1] for claims, else the range of the finite
    scores.
    """
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    finite = t.score[np.isfinite(t.score)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite[-1]), float(finite[0])
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low == high:
        return low - 0.5, high + 0.5
    return low, high


def build_details(samples: Samples, question: Question) -> Details:
    """The answers of samples in memory.

    >>> from howsure import Predictions
    >>> samples = Samples.of(Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0]))
    >>> question = Question(
    ...     np.array([0.9, 0.6]), low=0.0, high=1.0, keys=np.arange(2), hold=False, near=False
    ... )
    >>> build_details(samples, question).deferred
    array([[1, 0],
           [0, 0]])
    """
    return Details(
        near=_count_near_misses(samples, question),
        deferred=_count_deferred(samples, question),
        samples=samples,
    )


def build_part_details(samples: Samples, question: Question, file: int, row: int) -> Details:
    """The answers of one part, without the part itself."""
    held: tuple[HeldSamples, ...] = ()
    if question.hold:
        shape = samples.shape
        values = {f"score {name}": score for name, score in samples.scores.items()}
        beside: list[On] = []
        if shape.vectors:
            beside += shape.losses
            beside.append("uncertainty")
        if shape.positive is not None:
            beside.append("positive")
        for on in beside:
            values[on] = samples.value(on, "")
        columns = HeldSamples(
            file=file,
            row=row,
            correct=samples.correct,
            weight=samples.weight,
            group=samples.group,
            happened=samples.correct if shape.positive is None else samples.happened,
            slices=samples.slices,
            values=values,
        )
        held = (columns,)
    return Details(
        near=_count_near_misses(samples, question),
        deferred=_count_deferred(samples, question),
        held=held,
    )


def _count_near_misses(samples: Samples, question: Question) -> Array:
    """Wrong answers with the label in the top 5, in each bar of the histogram."""
    if not question.near:
        return np.zeros(HISTOGRAM_BARS, np.int64)
    near = samples.fate == 1
    score = samples.scores[samples.first][near]
    weight = None if samples.weight is None else samples.weight[near]
    span = (question.low, question.high)
    return np.histogram(score, HISTOGRAM_BARS, span, weights=weight)[0]


def _count_deferred(samples: Samples, question: Question) -> Ints | None:
    """How many samples of each class score less than each threshold."""
    keys, labels = question.keys, samples.preds.known_labels
    if keys is None or labels is None:
        return None
    ascending = question.thresholds[::-1]
    # Each sample falls between two thresholds: one cell per class and place, counted at once. The
    # running sum over places says how many lie below each threshold; the last place is above all.
    places = len(ascending) + 1
    place = np.searchsorted(ascending, samples.scores[samples.first], side="right")
    cell = find_class_numbers(keys, labels) * places + place
    counts = np.bincount(cell, minlength=len(keys) * places).reshape(len(keys), places)
    return np.cumsum(counts, axis=1)[:, -2::-1]


def concat_held(held: tuple[HeldSamples, ...]) -> HeldSamples:
    """All columns, in the order of files and rows."""
    ordered = sorted(held, key=lambda part: (part.file, part.row))
    first = ordered[0]
    weights = [part.weight for part in ordered if part.weight is not None]
    groups = [part.group for part in ordered if part.group is not None]
    slices: dict[str, Array] = {}
    for column in first.slices:
        slices[column] = np.concatenate([part.slices[column] for part in ordered])
    values: dict[str, Floats] = {}
    for name in first.values:
        values[name] = np.concatenate([part.values[name] for part in ordered])
    return HeldSamples(
        file=first.file,
        row=first.row,
        correct=np.concatenate([part.correct for part in ordered]),
        weight=np.concatenate(weights) if weights else None,
        group=np.concatenate(groups) if groups else None,
        happened=np.concatenate([part.happened for part in ordered]),
        slices=slices,
        values=values,
    )
