"""Summary: everything that a report needs of one data set; summaries of its parts add up in any
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from math import isnan
from os import PathLike
from typing import IO, NamedTuple

import numpy as np

from howsure._core.checks import Array, InputError
from howsure._core.frozen import frozen
from howsure.formats.count_tables import CountTable
from howsure.metrics.calibration_error import ClassBinSums
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.segments import Cut
from howsure.report.catalogue import On, Score, choose_scores
from howsure.report.focus import WHOLE, Focus
from howsure.report.label_sections import LabelSums, merge_label_sums
from howsure.report.masks import ImageSums, merge_image_sums
from howsure.report.samples import (
    OF_CASES,
    Details,
    Question,
    Samples,
    Shape,
    build_details,
    build_question,
    find_known_classes,
)
from howsure.report.sums import (
    ClassSums,
    Moments,
    keep_first_points,
    merge_class_sums,
    sample_points,
)
from howsure.tallies.building import SetTally, dice_tally, tally
from howsure.tallies.counted import merge_tallies
from howsure.tallies.packed_keys import PackedTally, pack_keys
from howsure.tallies.tally import Tally
from howsure.uncertainty.limits import NO_KNOWN_INTERVAL

MAX_SUSPECTS = 30
# Distinct probabilities of the positive class that are kept beside compact tallies.
MAX_EXACT_POSITIVE_ROWS = 1 << 20
SHAPE_WORDS = {
    "kind": "what they hold",
    "k": "the number of classes",
    "samples": "the number of samples per row",
    "class_names": "the class names",
    "grouped": "whether they have groups",
    "weighted": "whether they have weights",
    "positive": "the positive class",
    "labels": "the labels",
}
NEEDS_SECOND_READING = "needs a second reading of all samples"
SliceTallies = dict[str, dict[str, Tally]]  # by column and value
NEEDS_ROWS = "needs single rows, which are not held here"
NEEDS_SINGLE_SAMPLES = (
    "limits of samples with groups or weights need single samples, which are not held here"
)


class SuspectSample(NamedTuple):
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
    cells: ClassBinSums | None
    sample: Array | None  # points of the scatter plot
    suspects: tuple[SuspectSample, ...]
    slices: SliceTallies  # of the first score
    compact: bool = False
    details: Details | None = None
    labels: LabelSums | None = None  # where a case has many
    images: ImageSums | None = None  # where images are asked about, not only their pixels
    # Of the probability of the positive class, where there is one.
    positive_slices: SliceTallies = field(default_factory=dict[str, dict[str, Tally]])

    @classmethod
    def of(
        cls, preds: Predictions, scores: Sequence[Score] | None = None, focus: Focus = WHOLE
    ) -> Summary:
        """The summary of predictions in memory."""
        samples = Samples.of(preds, scores, focus)
        # The samples keep these tallies, so that limits find them again.
        keep: Callable[[On, str], Tally] = lambda on, score: samples.outcomes(on, score).tally()
        summary = _summarise(samples, Place(file=0, row=0), keep)
        return replace(summary, details=build_details(samples, summary.question()))

    @classmethod
    def of_tally(cls, t: Tally) -> Summary:
        """The summary of a tally, which knows scores and right or wrong alone.

        >>> Summary.of_tally(tally([0.9, 0.8], correct=[1, 0])).n
        2
        """
        shape = Shape(
            kind="confidence",
            k=None,
            samples=1,
            class_names=None,
            grouped=False,
            weighted=t.weighted,
            positive=None,
        )
        return cls(
            shape=shape,
            files={0: round(float(t.n))},
            tallies={"given": t},
            uncertainty=None,
            positive=None,
            losses={},
            classes=None,
            cells=None,
            sample=None,
            suspects=(),
            slices={},
        )

    @classmethod
    def of_counts(cls, table: CountTable, by: Sequence[Cut] = ()) -> Summary:
        """The summary of a count table, with the slices of these columns."""
        slices: dict[str, dict[str, Tally]] = {}
        for cut in by:
            names = cut.names(table.columns[cut.column])
            slices[cut.column] = {
                str(name): table.tally(names == name) for name in np.unique(names[table.count > 0])
            }
        summary = cls.of_tally(table.tally())
        return replace(
            summary,
            shape=summary.shape._replace(kind=table.kind),
            tallies={"score" if table.kind == "score" else "max_prob": summary.tally},
            slices=slices,
        )

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
        samples = Samples.of(preds, scores or choose_scores(preds, compact), focus)
        summary = _summarise(samples, place, lambda on, score: _pack_tally(samples, on, score))
        if not compact:
            return summary
        uncertainty, positive = summary.uncertainty, summary.positive
        if uncertainty is not None:
            uncertainty = _compact(uncertainty, "the entropy")
        if positive is not None:
            positive = _compact_above_limit(positive)
        return replace(
            summary,
            tallies={name: _compact(t, name) for name, t in summary.tallies.items()},
            uncertainty=uncertainty,
            positive=positive,
            slices=_compact_slices(summary.slices, summary.first),
            positive_slices=_compact_slices(summary.positive_slices, "the probability"),
            compact=True,
        )

    def save(self, file: str | PathLike[str] | IO[bytes]) -> None:
        """Write it as .npz that `load` reads, here or elsewhere: counts and sums, no single row."""
        from howsure.report.summary_files import save_summary  # which stands on this module

        save_summary(self, file)

    @classmethod
    def load(cls, file: str | PathLike[str] | IO[bytes]) -> Summary:
        """Return what `save` wrote; raise where the file was damaged or is of another version."""
        from howsure.report.summary_files import load_summary

        return load_summary(file)

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.files.values())

    @property
    def size(self) -> int:
        """Rows of all tallies, which is what takes memory."""
        tallies = [*self.tallies.values()]
        for by_value in (*self.slices.values(), *self.positive_slices.values()):
            tallies += by_value.values()
        for extra in (self.uncertainty, self.positive):
            if extra is not None:
                tallies.append(extra)
        rows = sum(t.distinct for t in tallies)
        return rows if self.labels is None else rows + self.labels.size

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
        return find_known_classes(self.classes, self.shape, self.n)

    def left_out(self) -> dict[str, str]:
        """The keys of a report that this summary cannot fill, and why."""
        out: dict[str, str] = {}
        question = self.question()
        if self.details is None and question.keys is not None:
            out["views.operating.classes"] = NEEDS_SECOND_READING
        if self.details is None and question.near:
            out["views.histogram.top_5"] = NEEDS_SECOND_READING
        if not self.suspects and self.tally.total > 0:
            out["views.label_errors"] = NEEDS_ROWS
        if self.sample is None and self.shape.vectors:
            out["views.scatter"] = NEEDS_ROWS
        if isinstance(self.source("score", self.first), str):
            out["limits"] = NEEDS_SINGLE_SAMPLES
        if self.positive is not None and self.positive.approximate:
            out["binary.exact"] = (
                f"more than {MAX_EXACT_POSITIVE_ROWS:,} distinct probabilities; "
                f"its numbers are {self.positive.approximate}"
            )
        return out

    def question(self) -> Question:
        """What must be asked of the single samples."""
        classes = self.known_classes
        keys = None if classes is None else classes.keys
        # Columns that limits read of each sample: right or wrong, the entropy, scores, losses, …
        columns = 2 + len(self.tallies) + len(self.losses) + len(self.slices)
        if self.positive is not None:
            columns += 1
        return build_question(self.tally, self.shape, keys, columns)

    @property
    def asks_pixels(self) -> bool:
        """Whether the Dice of all kept pixels together is asked for."""
        samples = None if self.details is None else self.details.samples
        return samples is not None and samples.focus.loss == "dice-pixels"

    def data(self, on: On, score: str) -> Tally | ClassBinSums | SetTally:
        """What the numbers `on` it read."""
        if on == "score":
            return self.tallies[score]
        if on == "images" and self.images is not None:
            return self.images.outcomes.tally()
        if on == "pixels" and self.details is not None and self.details.samples is not None:
            return tally_dice(self.details.samples, score)
        if on in OF_CASES and self.labels is not None:
            if on == "cases":
                return self.labels.wrong_shares()
            if on == "exact":
                return self.labels.all_right()
            return self.labels.mean_auc()
        if on == "uncertainty" and self.uncertainty is not None:
            return self.uncertainty
        if on == "classes" and self.cells is not None:
            return self.cells
        if on == "positive" and self.positive is not None:
            return self.positive
        return self.losses[on].tally(zero_one=on == "top_5")

    def source(self, on: On, score: str) -> Tally | Outcomes | str:
        """What limits are made from, or why there is nothing to make them from."""
        if on == "images" and self.images is not None:
            return self.images.outcomes
        if on == "pixels":
            return NO_KNOWN_INTERVAL
        if self.shape.alike:
            data = self.data(on, score)
            assert not isinstance(data, (ClassBinSums, SetTally))
            return data
        if self.labels is not None and self.labels.alone:
            # Labels of one case belong together, but the cases themselves are independent.
            if on == "cases":
                return self.labels.single_cases()
            if on == "exact":
                return self.labels.all_right()
        if on == "macro" and self.labels is not None and isnan(self.labels.mean_auc().total):
            return "no label has both positive and negative cases"
        columns = None
        if self.details is not None:
            columns = self.details.samples if on in OF_CASES else self.details.columns
        return NEEDS_SINGLE_SAMPLES if columns is None else columns.outcomes(on, score)

    def __add__(self, other: Summary) -> Summary:
        return merge_summaries([self, other])


def tally_dice(samples: Samples, score: str) -> SetTally:
    """The pixels of all images by a score, 1 − Dice of the kept ones as their risk."""
    preds = samples.preds
    # Class 0 is the background; Dice is the mean over the others.
    foreground = range(1, preds.needs_vector("--loss dice-pixels"))
    return dice_tally(samples.scores[score], preds.prediction, preds.labels, foreground)


def _summarise(samples: Samples, place: Place, make_tally: Callable[[On, str], Tally]) -> Summary:
    """The one builder; parts of a stream differ only in the form of their tallies."""
    preds, shape, focus = samples.preds, samples.shape, samples.focus
    uncertainty = cells = points = None
    positive = labels = images = None
    if shape.vectors:
        uncertainty = make_tally("uncertainty", "")
        cells = samples.cells
        nll = samples.value("nll", "")
        points = sample_points(samples.scores[samples.first], nll, samples.fate)
    if shape.positive is not None:
        positive = make_tally("positive", "")
    if shape.labels is not None:
        labels = LabelSums.of(preds)
    if focus.loss == "dice":
        images = ImageSums.of(preds, place, focus.image_score)
    return Summary(
        shape=shape,
        files={place.file: preds.n},
        tallies={name: make_tally("score", name) for name in samples.scores},
        uncertainty=uncertainty,
        positive=positive,
        losses={name: samples.moments(name) for name in shape.losses},
        classes=samples.classes,
        cells=cells,
        sample=points,
        suspects=_list_suspects(samples, place),
        slices=_tally_slices(samples, "score"),
        positive_slices={} if positive is None else _tally_slices(samples, "positive"),
        labels=labels,
        images=images,
    )


def _pack_tally(samples: Samples, on: On, score: str) -> Tally:
    """The tally of a part, in as few bytes as hold it."""
    if samples.weight is not None:
        return samples.outcomes(on, score).tally()
    correct = samples.correct
    if on == "uncertainty":
        correct = ~correct
    elif on == "positive":
        correct = samples.happened
    value = samples.value(on, score)
    if value.min() < 0:
        return tally(value, correct=correct)
    return _pack_scores(value, ~correct)


def _pack_scores(score: Array, wrong: Array) -> Tally:
    """The tally of scores that are not negative, as float32 where nothing is lost by it."""
    short = score.astype(np.float32, copy=False)
    if short is score or np.array_equal(short, score):
        score = short
    return PackedTally(pack_keys(score, wrong))


def _tally_slices(samples: Samples, on: On) -> SliceTallies:
    """The tally of the first score, or of the probability of the positive class, in each slice."""
    out: SliceTallies = {}
    for column, slice_names in samples.slices.items():
        out[column] = {}
        names, number = np.unique(slice_names, return_inverse=True)
        number = number.reshape(-1)
        for i, name in enumerate(names):
            part = samples.outcomes(on, samples.first)[number == i]
            if part.weight is not None or part.score.min() < 0:
                out[column][str(name)] = part.tally()
            else:
                out[column][str(name)] = _pack_scores(part.score, ~part.right)
    return out


def _list_suspects(samples: Samples, place: Place) -> tuple[SuspectSample, ...]:
    """The wrong answers that are trusted most: wrong labels are found here first (Finlay & Oberman,
    section 7.2).
    """
    preds, score = samples.preds, samples.scores[samples.first]
    wrong = np.flatnonzero(~samples.correct)
    if len(wrong) > MAX_SUSPECTS:
        # Only those that reach the 30th highest score are sorted.
        least = -np.partition(-score[wrong], MAX_SUSPECTS - 1)[MAX_SUSPECTS - 1]
        wrong = wrong[score[wrong] >= least]
    surest = wrong[np.lexsort((wrong, -score[wrong]))][:MAX_SUSPECTS]
    said = preds.prediction if preds.vectors else preds.known_prediction
    names = samples.shape.names if samples.shape.vectors else None
    return tuple(
        SuspectSample(
            minus_score=-float(score[i]),
            file=place.file,
            row=place.row + int(i),
            id=None if preds.ids is None else str(preds.ids[i]),
            prediction=_name_class(said, i, names),
            label=_name_class(preds.known_labels, i, names),
        )
        for i in surest
    )


def _name_class(column: Array | None, i: int, names: Sequence[str] | None) -> str | None:
    if column is None:
        return None
    return names[int(column[i])] if names else str(column[i])


def _compact(t: Tally, name: str) -> Tally:
    low, high = t.score_range()
    if low < 0 or high > 1:
        raise InputError(
            f"{name} is not in [0, 1], so compact tallies of it do not add up; leave out this score."
        )
    return t if t.approximate else t.compact()


def _compact_slices(slices: SliceTallies, name: str) -> SliceTallies:
    out: SliceTallies = {}
    for column, by_value in slices.items():
        out[column] = {value: _compact(t, name) for value, t in by_value.items()}
    return out


def _compact_above_limit(t: Tally) -> Tally:
    return t if t.has_at_most(MAX_EXACT_POSITIVE_ROWS) else t.compact()


def merge_summaries(every: Sequence[Summary]) -> Summary:
    """All rows of all of them; refuses rows of different kinds."""
    first = every[0]
    if len(every) == 1:
        return first
    for other in every[1:]:
        for name, x, y in zip(Shape._fields, first.shape, other.shape, strict=True):
            if x != y:
                raise InputError(
                    f"the files differ in {SHAPE_WORDS[name]} ({x} and {y}); evaluate them separately."
                )
    compact = any(s.compact for s in every)
    files: dict[int, int] = {}
    for s in every:
        for file, n in s.files.items():
            files[file] = files.get(file, 0) + n
    tallies: dict[str, Tally] = {}
    for name in first.tallies:
        tallies[name] = _merge_tallies([s.tallies[name] for s in every], name, compact)
    losses: dict[On, Moments] = {}
    for name in first.losses:
        losses[name] = reduce(Moments.__add__, [s.losses[name] for s in every])
    # The shapes are the same, so either all parts have one of these or none has; only labels of
    # top answers may be there in some parts and not in others.
    uncertainty = None
    uncertainties = [s.uncertainty for s in every if s.uncertainty is not None]
    if uncertainties:
        uncertainty = _merge_tallies(uncertainties, "the entropy", compact)
    classes = [s.classes for s in every if s.classes is not None]
    cells = [s.cells for s in every if s.cells is not None]
    points = [s.sample for s in every if s.sample is not None]
    labels = [s.labels for s in every if s.labels is not None]
    images = [s.images for s in every if s.images is not None]
    suspects: list[SuspectSample] = []
    for s in every:
        suspects += s.suspects
    return Summary(
        shape=first.shape,
        files=files,
        tallies=tallies,
        uncertainty=uncertainty,
        positive=_merge_positive([s.positive for s in every if s.positive is not None], compact),
        losses=losses,
        classes=merge_class_sums(classes) if len(classes) == len(every) else None,
        cells=reduce(ClassBinSums.__add__, cells) if cells else None,
        sample=keep_first_points(np.concatenate(points)) if points else None,
        suspects=tuple(sorted(suspects)[:MAX_SUSPECTS]),
        slices=_merge_slices([s.slices for s in every], compact),
        positive_slices=_merge_slices([s.positive_slices for s in every], compact),
        compact=compact,
        labels=merge_label_sums(labels) if labels else None,
        images=merge_image_sums(images) if images else None,
    )


def _merge_tallies(tallies: Sequence[Tally], name: str, compact: bool) -> Tally:
    whole = merge_tallies(tallies)
    return _compact(whole, name) if compact else whole


def _merge_slices(every: Sequence[SliceTallies], compact: bool) -> SliceTallies:
    out: SliceTallies = {}
    for column in every[0]:
        by_value: dict[str, list[Tally]] = {}
        for slices in every:
            for value, t in slices[column].items():
                by_value.setdefault(value, []).append(t)
        out[column] = {
            value: _merge_tallies(ts, "the score", compact) for value, ts in by_value.items()
        }
    return out


def _merge_positive(tallies: Sequence[Tally], compact: bool) -> Tally | None:
    """Exact up to a number of rows that depends on the data alone, not on how they are cut into
    parts.
    """
    if not tallies:
        return None
    if any(t.approximate for t in tallies):
        name = "the probability of the positive class"
        return _merge_tallies([_compact(t, name) for t in tallies], name, compact)
    whole = merge_tallies(tallies)
    return _compact_above_limit(whole) if compact else whole
