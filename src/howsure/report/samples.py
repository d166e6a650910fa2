"""Single samples: scores, losses and tallies of predictions in memory, each made once, when first
asked for; and what only single samples tell once the tally of the score is known.

A stream is read twice. The first reading gives the tally; from it follows a `Question` (which
thresholds, which bars, which classes), and the second reading answers it with `Details`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from howsure import losses
from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure.metrics.binary import build_case_aucs, build_case_outcomes, positive_class
from howsure.metrics.calibration_error import ClassBinSums, sum_classes
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import VECTOR_KINDS
from howsure.predictions.segments import find_column
from howsure.report.catalogue import TOP_K, On, Score, choose_scores, resolve_score
from howsure.report.focus import WHOLE, Focus
from howsure.report.sums import (
    MIN_ROWS_PER_CLASS,
    AnswerColumns,
    ClassSums,
    Moments,
    find_class_numbers,
    sum_by_class,
    sum_losses,
)
from howsure.scores import normalised_entropy
from howsure.tallies.tally import Counts, Tally

OF_CASES: tuple[On, ...] = ("cases", "exact", "macro")  # numbers of cases with many labels
NEAR_MISS_MIN_CLASSES = 20  # up to so many classes nearly every label is in the top 5
LOSSES: dict[On, Callable[[Predictions], Floats]] = {
    "nll": losses.nll,
    "brier": losses.brier,
    "top_5": losses.top_k(TOP_K),
}
OPERATING_POINTS = 200  # steps of half a percent
HISTOGRAM_BARS = 50
SCORE_GRIDS = (0.1, 0.05, 0.01)  # to which confidences are rounded, coarsest first
MAX_FOLLOWED_CLASSES = 20_000  # whose deferral can be followed: a table of classes and thresholds
# Numbers of single samples that are held for limits of groups or weights: 400 MB.
MAX_HELD_NUMBERS = 50_000_000
WEIGHT_ROUNDING = 1e-12  # relative error of summed weights


class Shape(NamedTuple):
    """What must be the same in all parts of a data set."""

    kind: str
    k: int | None
    samples: int
    class_names: tuple[str, ...] | None
    grouped: bool
    weighted: bool
    positive: int | None  # number of the positive class
    labels: tuple[str, ...] | None = None  # where a case has many

    @classmethod
    def of(cls, preds: Predictions, positive: str | int | None = None) -> Shape:
        """The shape of predictions; without a name the positive class is class 1 of two."""
        number = None
        if positive is not None or (preds.vectors and preds.k == 2):
            number = positive_class(preds, positive)
        labels = None
        if preds.layout is not None and preds.layout.parts == "labels":
            labels = preds.layout.names
        return cls(
            kind=preds.kind,
            k=preds.k,
            samples=preds.samples,
            class_names=preds.class_names,
            grouped=preds.group is not None,
            weighted=preds.weight is not None,
            positive=number,
            labels=labels,
        )

    @property
    def alike(self) -> bool:
        """Whether all samples count alike and independently, so that a tally says it all."""
        return not (self.grouped or self.weighted)

    @property
    def vectors(self) -> bool:
        """Whether the probabilities of all classes are known."""
        return self.kind in VECTOR_KINDS

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers where they have none."""
        return self.class_names or tuple(str(c) for c in range(self.k or 0))

    @property
    def losses(self) -> list[On]:
        """The losses of a report on such predictions."""
        if not self.vectors:
            return []
        if self.k is None or self.k <= TOP_K:
            return ["nll", "brier"]
        return list(LOSSES)


def find_known_classes(classes: ClassSums | None, shape: Shape, n: int) -> ClassSums | None:
    """The classes of n samples; where only the top answer is known, those that occur, unless they
    hardly repeat.
    """
    if classes is None or classes.crowded:
        return None
    if not shape.vectors and len(classes.keys) * MIN_ROWS_PER_CLASS > n:
        return None
    return classes


def list_class_names(classes: ClassSums, shape: Shape) -> list[str]:
    """What the classes are called."""
    keys, names = classes.keys, shape.class_names
    if names is None or keys.dtype.kind != "i" or int(keys[-1]) >= len(names):
        return keys.astype(str).tolist()
    return [names[k] for k in keys.tolist()]


class SampleColumns(Protocol):
    """Aligned columns of single samples."""

    @property
    def correct(self) -> Bools:
        """Right or wrong."""
        ...

    @property
    def weight(self) -> Floats | None:
        """Importance."""
        ...

    @property
    def group(self) -> Array | None:
        """Patient, image, question."""
        ...

    @property
    def happened(self) -> Bools:
        """Whether the label is the positive class."""
        ...

    @property
    def slices(self) -> Mapping[str, Array]:
        """By column: the slice of each sample."""
        ...

    def value(self, on: On, score: str) -> Floats:
        """The score, the entropy, the probability of the positive class, or the loss of each
        sample.
        """
        ...

    def outcomes(self, on: On, score: str) -> Outcomes:
        """The outcomes that numbers `on` them are measured on."""
        ...


def build_outcomes(columns: SampleColumns, on: On, score: str) -> Outcomes:
    """The outcomes whose tally the numbers `on` them read."""
    value = columns.value(on, score)
    weight, group = columns.weight, columns.group
    if on == "score":
        return Outcomes(value, correct=columns.correct, weight=weight, group=group)
    if on == "uncertainty":  # claims to be wrong
        return Outcomes(value, correct=~columns.correct, weight=weight, group=group)
    if on == "positive":
        return Outcomes(value, correct=columns.happened, weight=weight, group=group)
    if on == "top_5":
        by = columns.value("score", score)
        return Outcomes(by, correct=value == 0, weight=weight, group=group)
    return Outcomes(-value, loss=value, weight=weight, group=group)


@frozen(eq=False)
class Samples:
    """Predictions with their scores by name, the first being the one that a report is about.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    >>> Samples.of(p).data("score", "max_prob")
    <Tally: n=2, wrong=1, 2 distinct scores>
    """

    preds: Predictions
    scores: Mapping[str, Floats]
    focus: Focus = WHOLE
    outcome_cache: dict[tuple[str, str], Outcomes] = field(
        default_factory=dict[tuple[str, str], Outcomes]
    )
    loss_cache: dict[str, Floats] = field(default_factory=dict[str, Floats])

    @classmethod
    def of(
        cls, preds: Predictions, scores: Sequence[Score] | None = None, focus: Focus = WHOLE
    ) -> Samples:
        """The samples with these scores, those of an ordinary report unless given."""
        columns: dict[str, Floats] = {}
        for score in scores or choose_scores(preds):
            name, function = resolve_score(score)
            columns[name] = np.asarray(function(preds))
        return cls(preds=preds, scores=columns, focus=focus)

    @cached_property
    def shape(self) -> Shape:
        """What is said of the predictions before anything is measured."""
        return Shape.of(self.preds, self.focus.positive)

    @property
    def happened(self) -> Bools:
        """Whether the label is the positive class."""
        return self.preds.labels == self.shape.positive

    # A protocol's property must be a property; the values behind it are made once.
    @property
    def slices(self) -> Mapping[str, Array]:
        """By column: the slice of each sample."""
        return self._slices

    @cached_property
    def _slices(self) -> Mapping[str, Array]:
        return {cut.column: cut.names(find_column(self.preds, cut.column)) for cut in self.focus.by}

    @property
    def correct(self) -> Bools:
        """Right or wrong."""
        return self.preds.correct

    @property
    def weight(self) -> Floats | None:
        """Importance."""
        return self.preds.weight

    @property
    def group(self) -> Array | None:
        """Patient, image, question."""
        return self.preds.group

    @property
    def first(self) -> str:
        """The score that a report is about."""
        return next(iter(self.scores))

    def value(self, on: On, score: str) -> Floats:
        """The score, the entropy, the probability of the positive class, or the loss of each
        sample.
        """
        if on == "score":
            return self.scores[score]
        if on == "uncertainty":
            return normalised_entropy(self.preds)
        if on == "positive":
            return np.clip(self.preds.probs[:, self.shape.positive or 0], 0.0, 1.0)
        if on not in self.loss_cache:
            self.loss_cache[on] = LOSSES[on](self.preds)
        return self.loss_cache[on]

    def moments(self, on: On) -> Moments:
        """Sums of a loss and of its square."""
        return sum_losses(self.value(on, self.first), self.weight)

    @cached_property
    def cells(self) -> ClassBinSums:
        """Sums per class and bin."""
        return sum_classes(self.preds)

    @cached_property
    def fate(self) -> Ints:
        """0 right, 1 wrong but among the five most probable of many classes, 2 wrong."""
        fate = np.where(self.correct, 0, 2)
        shape = self.shape
        if not shape.vectors or shape.k is None or shape.k <= NEAR_MISS_MIN_CLASSES:
            return fate
        in_top_5 = self.value("top_5", self.first) == 0
        return np.where((fate == 2) & in_top_5, 1, fate)

    @cached_property
    def classes(self) -> ClassSums | None:
        """Sums per class, where labels are known."""
        preds = self.preds
        if preds.known_labels is None:
            return None
        vectors = self.shape.vectors
        confidence = np.full(preds.n, np.nan)  # of a mere score there is none
        if preds.kind != "score":
            confidence = preds.confidence
        answers = AnswerColumns(
            label=preds.known_labels,
            said=preds.prediction if vectors else preds.known_prediction,
            correct=self.correct,
            confidence=confidence,
            score=self.scores[self.first],
        )
        return sum_by_class(answers, preds.k if vectors else None)

    def outcomes(self, on: On, score: str) -> Outcomes:
        """The outcomes that numbers `on` them are measured on; made once, and so is their tally."""
        key = on, score if on == "score" else ""
        if key not in self.outcome_cache:
            # Where a case has many labels, numbers of whole cases have one row per case.
            if on == "macro":
                outcomes = build_case_aucs(self.preds)[0]
            elif on in OF_CASES:
                outcomes = build_case_outcomes(self.preds, exact=on == "exact")
            else:
                outcomes = build_outcomes(self, on, score)
            self.outcome_cache[key] = outcomes
        return self.outcome_cache[key]

    def data(self, on: On, score: str) -> Tally | ClassBinSums:
        """What the numbers `on` it read."""
        if on == "classes":
            return self.cells
        if on in LOSSES:
            return self.moments(on).tally(zero_one=on == "top_5")
        return self.outcomes(on, score).tally()

    def source(self, on: On, score: str) -> Tally | Outcomes | str:
        """What limits are made from: a tally where all samples are alike, else the samples
        themselves.
        """
        if self.shape.alike:
            tally = self.data(on, score)
            assert not isinstance(tally, ClassBinSums)
            return tally
        return self.outcomes(on, score)


@frozen(eq=False)
class Question:
    """What is asked of every sample: thresholds and bars of the first score, classes, and whether
    to hold it.
    """

    thresholds: Floats
    edges: Floats  # of the bars of a histogram
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
    if keys is not None and len(keys) > MAX_FOLLOWED_CLASSES:
        keys = None
    return Question(
        thresholds=t.score[find_operating_rows(t)],
        edges=find_histogram_edges(t),
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
    rows: Ints = np.searchsorted(ends, _round_up(ranks, ends))
    return sort_distinct(rows.clip(max=len(ends) - 1))


def find_asked_coverages(t: Tally) -> Floats:
    """For each of these rows, the smallest of the 200 coverages that leads to it."""
    ends = t.ends
    coverages = np.arange(1, OPERATING_POINTS + 1) / OPERATING_POINTS
    ranks = coverages * float(ends[-1]) - WEIGHT_ROUNDING * float(t.n)
    rows = np.searchsorted(ends, _round_up(ranks, ends)).clip(max=len(ends) - 1)
    return coverages[np.unique(rows, return_index=True)[1]]


def _round_up(ranks: Floats, ends: Counts) -> Counts:
    """The ranks in the type of the ends: a search in another type would copy all of these."""
    if ends.dtype.kind == "f":
        return ranks
    return np.ceil(ranks).astype(ends.dtype)


def find_histogram_edges(t: Tally) -> Floats:
    """Edges of the bars of a histogram: over [0, 1] for claims, else over the range of the finite
    scores.

    Scores rounded to a grid of at least 0.01 get equally many of its values in each bar; other bars
    would stand high and low in turn, however even the scores are.

    >>> from howsure import tally
    >>> find_histogram_edges(tally([0.9, 0.8, 0.5], correct=[1, 1, 0])).round(2)[[0, 1, -1]]
    array([-0.05,  0.05,  1.05])
    """
    finite = t.score
    if not np.isfinite(finite[[0, -1]]).all():
        finite = finite[np.isfinite(finite)]
    low, high = 0.0, 1.0
    if len(finite) and (finite[-1] < 0 or finite[0] > 1):
        low, high = float(finite[-1]), float(finite[0])
        if low == high:
            low, high = low - 0.5, high + 0.5
    elif len(finite) <= 1 / SCORE_GRIDS[-1] + 1:
        for grid in SCORE_GRIDS:
            if np.allclose(finite, np.round(finite / grid) * grid, rtol=0, atol=1e-9):
                width = grid * np.ceil(1 / grid / HISTOGRAM_BARS)
                return np.arange(-grid / 2, 1 + width, width)
    return np.histogram_bin_edges(np.empty(0), HISTOGRAM_BARS, (low, high))


def build_details(samples: Samples, question: Question) -> Details:
    """The answers of samples in memory.

    >>> from howsure import Predictions
    >>> samples = Samples.of(Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0]))
    >>> question = Question(
    ...     np.array([0.9, 0.6]), edges=np.array([0.0, 1.0]), keys=np.arange(2), hold=False, near=False
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
        return np.zeros(len(question.edges) - 1, np.int64)
    near = samples.fate == 1
    score = samples.scores[samples.first][near]
    weight = None if samples.weight is None else samples.weight[near]
    return np.histogram(score, question.edges, weights=weight)[0]


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
    counts = count_values(cell, minlength=len(keys) * places).reshape(len(keys), places)
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
