"""Predictions in memory: scores, losses and tallies of their samples, each made once, when first
asked for.
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
from howsure.metrics.binary import build_case_aucs, build_case_outcomes, positive_class
from howsure.metrics.calibration_error import ClassBinSums, sum_classes
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import TOP_K, On, Score, choose_scores, resolve_score
from howsure.report.focus import WHOLE, Focus, find_column
from howsure.report.sums import (
    MIN_ROWS_PER_CLASS,
    AnswerColumns,
    ClassSums,
    Moments,
    sum_by_class,
    sum_losses,
)
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.tally import Tally

OF_CASES: tuple[On, ...] = ("cases", "exact", "macro")  # numbers of cases with many labels
NEAR_MISS_MIN_CLASSES = 20  # up to so many classes nearly every label is in the top 5
LOSSES: dict[On, Callable[[Predictions], Floats]] = {
    "nll": losses.nll,
    "brier": losses.brier,
    "top_5": losses.top_k(TOP_K),
}


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
        if positive is not None or (preds.kind != "confidence" and preds.k == 2):
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
        return self.kind != "confidence"

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
        answers = AnswerColumns(
            label=preds.known_labels,
            said=preds.prediction if vectors else preds.known_prediction,
            correct=self.correct,
            confidence=preds.confidence,
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
