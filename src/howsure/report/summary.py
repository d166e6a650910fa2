"""Summary: everything that a report needs of one data set; summaries of its parts add up in any
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, InputError
from howsure._core.frozen import frozen
from howsure.metrics.vectors import Cells
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.render.catalogue import On
from howsure.report import catalogue
from howsure.report.catalogue import Score
from howsure.report.details import Details, Question, details_of, question_of
from howsure.report.focus import WHOLE, Focus
from howsure.report.labels import LabelSums, sum_labels
from howsure.report.masks import ImageSums, sum_images
from howsure.report.samples import CASES, Samples, Shape, known_classes
from howsure.report.sums import ClassSums, Moments, least_points, sample_points, sum_classes
from howsure.tallies.build import tally
from howsure.tallies.counted import merged
from howsure.tallies.packed import PackedTally, pack
from howsure.tallies.tally import Tally

BOUNDED = (
    "max_prob",
    "entropy",
    "margin",
    "top_k_mass",
)  # scores in [0, 1], which a compact tally can add up
SUSPECTS = 30
EXACT = 1 << 20  # distinct probabilities of the positive class that are kept beside compact tallies
DIFFER = {
    "kind": "what they hold",
    "k": "the number of classes",
    "samples": "the number of samples per row",
    "class_names": "the class names",
    "grouped": "whether they have groups",
    "weighted": "whether they have weights",
    "positive": "the positive class",
    "labels": "the labels",
}
AGAIN = "needs a second reading of all samples"
ALONE = "limits of samples with groups or weights need single samples, which are not held here"


class Suspect(NamedTuple):
    """A wrong answer; the surest of them are kept. Sorts as it is listed: highest score first, then
    by place.
    """

    minus_score: float
    file: int
    row: int
    id: str | None
    prediction: str | None
    label: str | None


class Place(NamedTuple):
    """Where a run of rows stands: the number of its file, and the row of the file that it begins
    with.
    """

    file: int
    row: int


@frozen(eq=False)
class Summary:
    """All sums and tallies of one data set. `a + b` is the summary of the rows of both.

    `details`, what needs single samples, is there while they are in memory, and after a second
    reading of the parts.

    >>> p = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 0, 1])
    >>> (Summary.of(p[:2]) + Summary.of(p[2:])).tallies
    {'max_prob': <Tally: n=3, wrong=1, 3 distinct scores>}
    """

    shape: Shape
    files: dict[int, int]  # samples of each file
    tallies: dict[str, Tally]  # by score; the first is the one that a report is about
    uncertainty: Tally | None  # claims to be wrong by the normalised entropy
    positive: Tally | None  # of the probability of the positive class
    losses: dict[On, Moments]
    classes: ClassSums | None
    cells: Cells | None
    sample: Array | None  # points of the scatter plot
    suspects: tuple[Suspect, ...]
    slices: dict[str, dict[str, Tally]]  # of the first score, by column and value
    compact: bool = False
    details: Details | None = None
    labels: LabelSums | None = None  # where a case has many
    images: ImageSums | None = None  # where images are asked about, not only their pixels

    @classmethod
    def of(
        cls, preds: Predictions, scores: Sequence[Score] | None = None, focus: Focus = WHOLE
    ) -> Summary:
        """The summary of predictions in memory."""
        samples = Samples.of(preds, scores, focus)
        shape = samples.shape
        tallies = {name: samples.outcomes("score", name).tally() for name in samples.scores}
        uncertain = samples.outcomes("uncertainty", "").tally() if shape.vectors else None
        positive = None if shape.positive is None else samples.outcomes("positive", "").tally()
        found = _summed(
            samples, Place(0, 0), Tallies(tallies, uncertain, positive, _slices(samples))
        )
        return replace(found, details=details_of(samples, found.question()))

    @classmethod
    def of_part(
        cls,
        preds: Predictions,
        place: Place,
        scores: Sequence[str] | None,
        focus: Focus = WHOLE,
        *,
        compact: bool,
    ) -> Summary:
        """The summary of a run of rows, without the rows.

        >>> p = Predictions.from_confidence([0.9, 0.8], [1, 0])
        >>> Summary.of_part(p, Place(0, 0), None, compact=False).tallies
        {'max_prob': <Tally: n=2, wrong=1, 2 distinct scores>}
        """
        samples = Samples.of(preds, scores or default_scores(preds, compact), focus)
        shape = samples.shape
        tallies = {name: _exact(samples, "score", name, samples.correct) for name in samples.scores}
        uncertain = _exact(samples, "uncertainty", "", ~samples.correct) if shape.vectors else None
        positive = (
            None if shape.positive is None else _exact(samples, "positive", "", samples.happened)
        )
        slices = _slices(samples)
        if compact:
            slices = {
                c: {name: compacted(t, samples.first) for name, t in found.items()}
                for c, found in slices.items()
            }
            tallies = {name: compacted(t, name) for name, t in tallies.items()}
            uncertain = None if uncertain is None else compacted(uncertain, "the entropy")
            positive = None if positive is None else _within(positive)
        return replace(
            _summed(samples, place, Tallies(tallies, uncertain, positive, slices)), compact=compact
        )

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.files.values())

    @property
    def size(self) -> int:
        """Rows of all tallies, which is what takes memory."""
        every = [
            *self.tallies.values(),
            *(t for t in (self.uncertainty, self.positive) if t is not None),
        ]
        every += [t for found in self.slices.values() for t in found.values()]
        return sum(t.distinct for t in every) + (0 if self.labels is None else self.labels.size)

    @property
    def first(self) -> str:
        """The score that a report is about."""
        return next(iter(self.tallies))

    @property
    def tally(self) -> Tally:
        """The tally of the first score."""
        return self.tallies[self.first]

    @property
    def known_classes(self) -> ClassSums | None:
        """The classes; where only the top answer is known, those that occur, unless they hardly
        repeat.
        """
        return known_classes(self.classes, self.shape, self.n)

    def left_out(self) -> dict[str, str]:
        """The keys of a report that this summary cannot fill, and why."""
        out: dict[str, str] = {}
        question = self.question()
        if self.details is None and question.keys is not None:
            out["views.operating.classes"] = AGAIN
        if self.details is None and question.near:
            out["views.histogram.top_5"] = AGAIN
        if isinstance(self.source("score", self.first), str):
            out["limits"] = ALONE
        if self.positive is not None and self.positive.approximate:
            out["binary.exact"] = (
                f"more than {EXACT:,} distinct probabilities; its numbers are {self.positive.approximate}"
            )
        return out

    def question(self) -> Question:
        """What must be asked of the single samples."""
        keys = None if self.known_classes is None else self.known_classes.keys
        beside = 2 + len(self.slices) + (self.positive is not None)
        return question_of(
            self.tally, self.shape, keys, len(self.tallies) + len(self.losses) + beside
        )

    def data(self, on: On, score: str) -> Tally | Cells:
        """What the numbers `on` it read."""
        if on == "score":
            return self.tallies[score]
        if self.images is not None and on == "images":
            return self.images.outcomes.tally()
        if self.labels is not None and on in CASES:
            return {"cases": self.labels.wrong_shares, "exact": self.labels.all_right}.get(
                on, self.labels.mean_auc
            )()
        kept = {"uncertainty": self.uncertainty, "classes": self.cells, "positive": self.positive}
        found = kept.get(on)
        return self.losses[on].tally(zero_one=on == "top_5") if found is None else found

    def source(self, on: On, score: str) -> Tally | Outcomes | str:
        """What limits are made from, or why there is nothing to make them from."""
        if on == "images" and self.images is not None:
            return self.images.outcomes
        if self.shape.alike:
            found = self.data(on, score)
            assert not isinstance(found, Cells)
            return found
        if on in ("cases", "exact") and self.labels is not None and self.labels.alone:
            return self.labels.single_cases() if on == "cases" else self.labels.all_right()
        columns = (
            None
            if self.details is None
            else self.details.samples
            if on in CASES
            else self.details.columns
        )
        return ALONE if columns is None else columns.outcomes(on, score)

    def __add__(self, other: Summary) -> Summary:
        return total([self, other])


class Tallies(NamedTuple):
    """All tallies of a data set."""

    scores: dict[str, Tally]
    uncertainty: Tally | None
    positive: Tally | None
    slices: dict[str, dict[str, Tally]]


def _slices(samples: Samples) -> dict[str, dict[str, Tally]]:
    """The tally of the first score in each slice."""
    out: dict[str, dict[str, Tally]] = {}
    for column, where in samples.slices.items():
        names, number = np.unique(where, return_inverse=True)
        rows = (number.reshape(-1) == i for i in range(len(names)))
        out[column] = {str(name): _part(samples, at) for name, at in zip(names, rows, strict=True)}
    return out


def _part(samples: Samples, rows: Bools) -> Tally:
    o = samples.outcomes("score", samples.first)[rows]
    return o.tally() if o.weight is not None or o.score.min() < 0 else narrow(o.score, ~o.right)


def _summed(samples: Samples, place: Place, tallies: Tallies) -> Summary:
    """Everything but the tallies, which parts make in another form."""
    p, shape, score = samples.preds, samples.shape, samples.scores[samples.first]
    sample = sample_points(score, samples.value("nll", ""), samples.fate) if shape.vectors else None
    return Summary(
        shape,
        {place.file: p.n},
        tallies.scores,
        tallies.uncertainty,
        tallies.positive,
        {name: samples.moments(name) for name in shape.losses},
        samples.classes,
        samples.cells if shape.vectors else None,
        sample,
        suspects(samples, place),
        tallies.slices,
        labels=None if shape.labels is None else LabelSums.of(p),
        images=ImageSums.of(p, place, samples.focus.image_score)
        if samples.focus.loss == "dice"
        else None,
    )


def _said(p: Predictions) -> Array | None:
    return p.known_prediction if p.kind == "confidence" else p.prediction


def _exact(samples: Samples, on: On, score: str, correct: Bools) -> Tally:
    """The tally of a part; as float32 where that loses nothing."""
    value = samples.value(on, score)
    if samples.weight is not None:
        return samples.outcomes(on, score).tally()
    return tally(value, correct=correct) if value.min() < 0 else narrow(value, ~correct)


def narrow(score: Array, wrong: Bools) -> Tally:
    """The tally of scores that are not negative, as float32 where nothing is lost by it."""
    short = score.astype(np.float32, copy=False)
    return PackedTally(
        pack(short if short is score or np.array_equal(short, score) else score, wrong)
    )


def default_scores(preds: Predictions, compact: bool) -> list[str]:
    """The scores of an ordinary report; of these only the ones in [0, 1] where tallies are compact."""
    names = catalogue.default_scores(preds)
    return [name for name in names if name in BOUNDED] if compact else names


def compacted(t: Tally, name: str) -> Tally:
    """A tally of fixed size."""
    low, high = t.score_range()
    if low < 0 or high > 1:
        raise InputError(
            f"{name} is not in [0, 1], so compact tallies of it do not add up; leave out this score."
        )
    return t if t.approximate else t.compact()


def suspects(samples: Samples, place: Place) -> tuple[Suspect, ...]:
    """The wrong answers that are trusted most: wrong labels are found here first (Finlay & Oberman,
    section 7.2).
    """
    p, score = samples.preds, samples.scores[samples.first]
    wrong = np.flatnonzero(~samples.correct)
    names = samples.shape.names if samples.shape.vectors else None
    return tuple(
        Suspect(
            -float(score[i]),
            place.file,
            place.row + int(i),
            None if p.ids is None else str(p.ids[i]),
            _called(_said(p), i, names),
            _called(p.known_labels, i, names),
        )
        for i in _surest(wrong, score[wrong])
    )


def _surest(wrong: Array, score: Array) -> Array:
    if len(wrong) > SUSPECTS:
        least = -np.partition(-score, SUSPECTS - 1)[SUSPECTS - 1]
        wrong, score = wrong[score >= least], score[score >= least]
    return wrong[np.lexsort((wrong, -score))][:SUSPECTS]


def _called(column: Array | None, i: int, names: Sequence[str] | None) -> str | None:
    if column is None:
        return None
    return names[int(column[i])] if names else str(column[i])


def total(every: Sequence[Summary]) -> Summary:
    """All rows of all of them; refuses rows of different kinds."""
    first = every[0]
    if len(every) == 1:
        return first
    for other in every[1:]:
        _check_alike(first.shape, other.shape)
    compact = any(s.compact for s in every)
    samples = [s.sample for s in every if s.sample is not None]
    classes = [s.classes for s in every if s.classes is not None]
    return Summary(
        first.shape,
        _files(s.files for s in every),
        {name: _merged([s.tallies[name] for s in every], name, compact) for name in first.tallies},
        _merged_known([s.uncertainty for s in every], "the entropy", compact),
        _merged_positive([s.positive for s in every], compact),
        {name: reduce(Moments.__add__, [s.losses[name] for s in every]) for name in first.losses},
        sum_classes(classes) if len(classes) == len(every) else None,
        None
        if first.cells is None
        else reduce(Cells.__add__, [s.cells for s in every if s.cells is not None]),
        least_points(np.concatenate(samples)) if samples else None,
        tuple(sorted(suspect for s in every for suspect in s.suspects)[:SUSPECTS]),
        {
            column: _merged_slices([s.slices[column] for s in every], compact)
            for column in first.slices
        },
        compact,
        labels=None
        if first.labels is None
        else sum_labels([s.labels for s in every if s.labels is not None]),
        images=None
        if first.images is None
        else sum_images([s.images for s in every if s.images is not None]),
    )


def _merged_slices(every: Sequence[dict[str, Tally]], compact: bool) -> dict[str, Tally]:
    names = dict.fromkeys(name for found in every for name in found)
    return {
        name: _merged([found[name] for found in every if name in found], "the score", compact)
        for name in names
    }


def _merged_known(tallies: Sequence[Tally | None], name: str, compact: bool) -> Tally | None:
    known = [t for t in tallies if t is not None]
    return _merged(known, name, compact) if len(known) == len(tallies) else None


def _merged_positive(tallies: Sequence[Tally | None], compact: bool) -> Tally | None:
    """Exact up to a number of rows that depends on the data alone, not on how they are cut into
    parts.
    """
    known = [t for t in tallies if t is not None]
    if len(known) < len(tallies):
        return None
    if any(t.approximate for t in known):
        return _merged(
            [compacted(t, "the probability of the positive class") for t in known], "", compact
        )
    return _within(merged(known)) if compact else merged(known)


def _within(t: Tally) -> Tally:
    return t if t.has_at_most(EXACT) else t.compact()


def _merged(tallies: Sequence[Tally], name: str, compact: bool) -> Tally:
    whole = merged(tallies)
    return compacted(whole, name) if compact else whole


def _files(counts: Iterable[dict[int, int]]) -> dict[int, int]:
    out: dict[int, int] = {}
    for part in counts:
        for file, n in part.items():
            out[file] = out.get(file, 0) + n
    return out


def _check_alike(a: Shape, b: Shape) -> None:
    for name, x, y in zip(Shape._fields, a, b, strict=True):
        if x != y:
            raise InputError(
                f"the files differ in {DIFFER[name]} ({x} and {y}); evaluate them separately."
            )
