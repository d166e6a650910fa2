"""What is kept of a part of the data: small, exact, and summed by `+` in any order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, InputError
from howsure.predictions import Predictions
from howsure.report import catalogue
from howsure.report.vectors import Vectors, add_vectors, vectors
from howsure.report.views import SUSPECTS, class_names
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.build import tally
from howsure.tallies.counted import counted, keeps_all, merged, rows_held
from howsure.tallies.tally import Tally

LIMIT = 32_000_000  # distinct scores of all tallies together; about 400 MB of float32 scores
BOUNDED = ("max_prob", "entropy", "margin", "top_k_mass")  # scores in [0, 1], which a compact tally can add up
UNCERTAINTY = "uncertainty"  # the tally whose ECE is the UCE


class Shape(NamedTuple):
    """What must be the same in all parts."""

    kind: str
    k: int | None
    samples: int
    class_names: tuple[str, ...] | None
    grouped: bool


DIFFER = {
    "kind": "what they hold",
    "k": "the number of classes",
    "samples": "the number of samples per row",
    "class_names": "the class names",
    "grouped": "whether they have groups",
}


class Suspect(NamedTuple):
    """A wrong answer; the surest of them are kept. Sorts as it is listed: highest score first, then by place."""

    minus_score: float
    file: int
    row: int
    id: str | None
    prediction: str | None
    label: str | None


@dataclass(frozen=True, eq=False)
class Summary:
    """Everything that is kept of some rows."""

    shape: Shape
    rows: dict[int, int]  # file → samples
    tallies: dict[str, Tally]
    suspects: tuple[Suspect, ...]
    vectors: Vectors | None

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.rows.values())

    @property
    def size(self) -> int:
        """Rows of all tallies, which is what takes memory."""
        return sum(rows_held(t) for t in self.tallies.values())

    def __add__(self, other: Summary) -> Summary:
        return total([self, other])


class Place(NamedTuple):
    """Where a run of rows stands: the number of its file, and the row of the file that it begins with.

    `salt`, a number that belongs to the file, makes the sample of single rows of each file its own.
    """

    file: int
    row: int
    salt: int = 0


def summary_of(preds: Predictions, place: Place, scores: Sequence[str] | None, compact: bool) -> Summary:
    """The summary of one run of rows.

    >>> p = Predictions.from_confidence([0.9, 0.8], [1, 0])
    >>> summary_of(p, Place(0, 0), None, False).tallies
    {'max_prob': <Tally: n=2, wrong=1, 2 distinct scores>}
    """
    _refuse_weights(preds)
    names = scores or default_scores(preds, compact)
    found = {name: np.asarray(catalogue.score_named(name)(preds)) for name in names}
    tallies = {name: exact(score, ~preds.correct) for name, score in found.items()}
    of_classes = None
    if preds.kind != "confidence":
        tallies[UNCERTAINTY] = exact(normalised_entropy(preds), preds.correct)
        of_classes = vectors(preds, found[names[0]], place.salt, place.row)
    if compact:
        tallies = {name: compacted(t, name) for name, t in tallies.items()}
    shape = Shape(preds.kind, preds.k, preds.samples, preds.class_names, preds.group is not None)
    listed = suspects(preds, found[names[0]], place)
    return Summary(shape, {place.file: preds.n}, tallies, listed, of_classes)


def _refuse_weights(preds: Predictions) -> None:
    if preds.weight is not None:
        raise InputError("a weight per sample cannot be streamed; evaluate these files in memory, with hs.evaluate.")


def default_scores(preds: Predictions, compact: bool) -> list[str]:
    """The scores of an ordinary report; of these only the ones in [0, 1] where tallies are compact."""
    names = catalogue.default_scores(preds)
    return [name for name in names if name in BOUNDED] if compact else names


def exact(score: Array, wrong: Bools) -> Tally:
    """The tally of a score, counted where scores are not negative; as float32 where that loses nothing."""
    if score.min() < 0:
        return tally(score, correct=~wrong)
    narrow = score.astype(np.float32)
    return counted(narrow if np.array_equal(narrow, score) else score, wrong)


def compacted(t: Tally, name: str) -> Tally:
    """A tally of fixed size."""
    low, high = t.score_range()
    if low < 0 or high > 1:
        raise InputError(f"{name} is not in [0, 1], so compact tallies of it do not add up; leave out this score.")
    return t if t.approximate else t.compact()


def suspects(preds: Predictions, score: Array, place: Place) -> tuple[Suspect, ...]:
    """The surest wrong answers, as a report lists them."""
    wrong = np.flatnonzero(~preds.correct)
    said = preds.known_prediction if preds.kind == "confidence" else preds.prediction
    names = None if preds.kind == "confidence" else class_names(preds)
    return tuple(
        Suspect(
            -float(score[i]),
            place.file,
            place.row + int(i),
            None if preds.ids is None else str(preds.ids[i]),
            _called(said, i, names),
            _called(preds.known_labels, i, names),
        )
        for i in _surest(wrong, score[wrong])
    )


def _surest(wrong: Array, score: Array) -> Array:
    if len(wrong) > SUSPECTS:
        least = -np.partition(-score, SUSPECTS - 1)[SUSPECTS - 1]
        wrong, score = wrong[score >= least], score[score >= least]
    return wrong[np.lexsort((wrong, -score))][:SUSPECTS]


def _called(column: Array | None, i: int, names: list[str] | None) -> str | None:
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
    return Summary(
        first.shape,
        _summed(s.rows for s in every),
        {name: _merged([s.tallies[name] for s in every], name) for name in first.tallies},
        tuple(sorted(suspect for s in every for suspect in s.suspects)[:SUSPECTS]),
        None if first.vectors is None else reduce(add_vectors, [s.vectors for s in every if s.vectors is not None]),
    )


@dataclass(frozen=True, eq=False)
class Gathered:
    """What is known of some parts of a job: which they are, their summary, and what of them could not be read."""

    parts: frozenset[int]
    summary: Summary | None
    skipped: tuple[str, ...] = ()

    def __add__(self, other: Gathered) -> Gathered:
        return gathered([self, other])


def gathered(every: Sequence[Gathered]) -> Gathered:
    """All parts of all of them; a part that is in two of them is refused, for it would count twice."""
    parts = frozenset[int]().union(*(g.parts for g in every))
    if len(parts) < sum(len(g.parts) for g in every):
        raise InputError("some part of the data was delivered twice in different company; run the evaluation again.")
    found = [g.summary for g in every if g.summary is not None]
    whole = within(total(found)) if found else None
    return Gathered(parts, whole, tuple(note for g in every for note in g.skipped))


def within(s: Summary) -> Summary:
    """`s`, unless it has grown beyond what is kept exactly."""
    if s.size <= LIMIT:
        return s
    raise InputError(
        f"these data have more than {LIMIT:,} distinct scores, too many to keep exactly in bounded memory; "
        "ask for the compact tally, which gives certified bounds (compact=True, --compact), or for fewer scores."
    )


def _merged(tallies: list[Tally], name: str) -> Tally:
    whole = merged(tallies)
    if keeps_all(whole):
        return whole
    low, high = whole.score_range()
    small = low >= 0 and high <= 1 and not any(keeps_all(t) for t in tallies)  # kept small; it may have grown
    return compacted(whole, name) if small or whole.approximate else whole


def _summed(counts: Iterable[dict[int, int]]) -> dict[int, int]:
    out: dict[int, int] = {}
    for part in counts:
        for file, n in part.items():
            out[file] = out.get(file, 0) + n
    return out


def _check_alike(a: Shape, b: Shape) -> None:
    for name, x, y in zip(Shape._fields, a, b, strict=True):
        if x != y:
            raise InputError(f"the files differ in {DIFFER[name]} ({x} and {y}); evaluate them separately.")


def moved(g: Gathered, part: int, file: int) -> Gathered:
    """One part under another number, as when files were added since it was stored."""
    if g.summary is None:
        return replace(g, parts=frozenset((part,)))
    listed = tuple(suspect._replace(file=file) for suspect in g.summary.suspects)
    return replace(g, parts=frozenset((part,)), summary=replace(g.summary, rows={file: g.summary.n}, suspects=listed))
