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
from howsure._core.check import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure.metrics.binary import positive_class
from howsure.metrics.multilabel import case_aucs, case_outcomes
from howsure.metrics.vectors import Cells, class_cells
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.render.catalogue import TOP_K, On
from howsure.report.catalogue import Score, default_scores, named
from howsure.report.focus import WHOLE, Focus, column_of
from howsure.report.sums import LEAST_OF_CLASS, Answer, ClassSums, Moments, class_sums, moments
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.tally import Tally

CASES: tuple[On, ...] = ("cases", "exact", "macro")
MANY_CLASSES = 20  # among fewer classes nearly every label is in the top 5
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
    def of(cls, p: Predictions, positive: str | int | None = None) -> Shape:
        """The shape of predictions; without a name the positive class is class 1 of two."""
        number = (
            positive_class(p, positive)
            if positive is not None or (p.kind != "confidence" and p.k == 2)
            else None
        )
        labels = p.layout.names if p.layout is not None and p.layout.parts == "labels" else None
        return cls(
            p.kind,
            p.k,
            p.samples,
            p.class_names,
            p.group is not None,
            p.weight is not None,
            number,
            labels,
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
        return tuple(self.class_names or (str(c) for c in range(self.k or 0)))

    @property
    def losses(self) -> list[On]:
        """The losses of a report on such predictions."""
        few = self.k is None or self.k <= TOP_K
        return [name for name in LOSSES if self.vectors and not (few and name == "top_5")]


def known_classes(c: ClassSums | None, shape: Shape, n: int) -> ClassSums | None:
    """The classes of n samples; where only the top answer is known, those that occur, unless they
    hardly repeat.
    """
    if c is None or c.crowded or (not shape.vectors and len(c.keys) * LEAST_OF_CLASS > n):
        return None
    return c


def class_names(c: ClassSums, shape: Shape) -> list[str]:
    """What the classes are called."""
    keys, names = c.keys, shape.class_names
    if names is None or keys.dtype.kind != "i" or int(keys[-1]) >= len(names):
        return keys.astype(str).tolist()
    return [names[k] for k in keys.tolist()]


class Columns(Protocol):
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


def outcomes_of(c: Columns, on: On, score: str) -> Outcomes:
    """The outcomes whose tally the numbers `on` them read."""
    value, kept = c.value(on, score), {"weight": c.weight, "group": c.group}
    if on == "score":
        return Outcomes(value, correct=c.correct, **kept)
    if on == "uncertainty":  # claims to be wrong
        return Outcomes(value, correct=~c.correct, **kept)
    if on == "positive":
        return Outcomes(value, correct=c.happened, **kept)
    if on == "top_5":
        return Outcomes(c.value("score", score), correct=value == 0, **kept)
    return Outcomes(-value, loss=value, **kept)


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
    kept: dict[tuple[str, str], Outcomes] = field(default_factory=dict[tuple[str, str], Outcomes])
    lost: dict[str, Floats] = field(default_factory=dict[str, Floats])

    @classmethod
    def of(
        cls, preds: Predictions, scores: Sequence[Score] | None = None, focus: Focus = WHOLE
    ) -> Samples:
        """The samples with these scores, those of an ordinary report unless given."""
        pairs = [named(score) for score in (scores or default_scores(preds))]
        return cls(preds, {name: np.asarray(f(preds)) for name, f in pairs}, focus)

    @cached_property
    def shape(self) -> Shape:
        """What is said of the predictions before anything is measured."""
        return Shape.of(self.preds, self.focus.positive)

    @property
    def happened(self) -> Bools:
        """Whether the label is the positive class."""
        return self.preds.labels == self.shape.positive

    @property
    def slices(self) -> Mapping[str, Array]:
        """By column: the slice of each sample."""
        return self._slices

    @cached_property
    def _slices(self) -> Mapping[str, Array]:
        return {cut.column: cut.names(column_of(self.preds, cut.column)) for cut in self.focus.by}

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
        """The score, the entropy or the loss of each sample."""
        if on == "score":
            return self.scores[score]
        if on == "uncertainty":
            return normalised_entropy(self.preds)
        if on == "positive":
            return np.clip(self.preds.probs[:, self.shape.positive or 0], 0.0, 1.0)
        if on not in self.lost:
            self.lost[on] = LOSSES[on](self.preds)
        return self.lost[on]

    def moments(self, on: On) -> Moments:
        """Sums of a loss and of its square."""
        return moments(self.value(on, self.first), self.weight)

    @cached_property
    def cells(self) -> Cells:
        """Sums per class and bin."""
        return class_cells(self.preds)

    @cached_property
    def fate(self) -> Ints:
        """0 right, 1 wrong but among the five most probable of many classes, 2 wrong."""
        wrong = np.where(self.correct, 0, 2)
        if not self.shape.vectors or self.shape.k is None or self.shape.k <= MANY_CLASSES:
            return wrong
        return np.where((wrong == 2) & (self.value("top_5", self.first) == 0), 1, wrong)

    @cached_property
    def classes(self) -> ClassSums | None:
        """Sums per class, where labels are known."""
        p = self.preds
        if p.known_labels is None:
            return None
        said = p.prediction if self.shape.vectors else p.known_prediction
        answer = Answer(p.known_labels, said, self.correct, p.confidence, self.scores[self.first])
        return class_sums(answer, p.k if self.shape.vectors else None)

    def cases(self, on: On) -> Outcomes:
        """One row per case, where a case has many labels: what numbers of whole cases are measured
        on.
        """
        if on == "macro":
            return case_aucs(self.preds)[0]
        return case_outcomes(self.preds, exact=on == "exact")

    def outcomes(self, on: On, score: str) -> Outcomes:
        """The outcomes that numbers `on` them are measured on; made once, and so is their tally."""
        key = on, score if on == "score" else ""
        if key not in self.kept:
            self.kept[key] = self.cases(on) if on in CASES else outcomes_of(self, on, score)
        return self.kept[key]

    def data(self, on: On, score: str) -> Tally | Cells:
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
            found = self.data(on, score)
            assert not isinstance(found, Cells)
            return found
        return self.outcomes(on, score)
