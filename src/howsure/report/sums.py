"""Sums over samples that add up in any order: of losses, of classes, and a sample of single
answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Array, Floats, Ints
from howsure._core.exact import MANY, UNIT, as_float, exact_sum, fixed_sums
from howsure._core.frozen import frozen
from howsure._core.text import make_text_array
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally

SCATTER_POINTS = 1_500
MAX_TEXT_CLASSES = 10_000  # labels that differ more than that are free text
FREE_TEXT_PROBE_ROWS = 50_000  # labels among which free text shows
MIN_ROWS_PER_CLASS = 5  # on average, or labels are no classes but free text
NO_INTS = np.zeros(0, dtype=np.int64)


class Moments(NamedTuple):
    """Exact sums of weights, of a loss and of its square, in units of 2^-1127, and how often it is
    infinite.
    """

    weight: int
    first: int
    second: int
    infinite: int

    def __add__(self, other: Moments) -> Moments:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Moments(
            weight=self.weight + other.weight,
            first=self.first + other.first,
            second=self.second + other.second,
            infinite=self.infinite + other.infinite,
        )

    def tally(self, *, zero_one: bool) -> Tally:
        """One row that holds all samples: its mean loss is that of the data."""
        n = as_float(self.weight)
        if self.weight % (1 << UNIT) == 0:
            n = int(n)
        loss = inf if self.infinite else as_float(self.first)
        return of_moments(n, loss, as_float(self.second), zero_one=zero_one)


def sum_losses(loss: Floats, weight: Floats | None = None) -> Moments:
    """Sums of the finite losses, and the number of the others.

    >>> sum_losses(np.array([1.0, np.inf])).infinite
    1
    >>> sum_losses(np.array([1.0, 3.0])).tally(zero_one=False).total
    4.0
    """
    total = Moments(weight=0, first=0, second=0, infinite=0)
    for rows in _split_rows(len(loss)):
        total += _sum_chunk(loss[rows], None if weight is None else weight[rows])
    return total


def _split_rows(n: int) -> Iterator[slice]:
    """Runs of rows that are looked at together: small enough to stay near the processor, and for
    `exact_sum`, which takes at most 2^26 numbers.
    """
    return (slice(i, i + MANY) for i in range(0, n, MANY))


def _sum_chunk(loss: Floats, weight: Floats | None) -> Moments:
    if weight is not None:
        # Samples without weight must not count, not even by an infinite loss.
        loss, weight = loss[weight > 0], weight[weight > 0]
    elif (np.equal(loss, 0.0) | np.equal(loss, 1.0)).all():
        # The 0/1 loss is its own square: counting is enough, and much faster.
        wrong = int(np.count_nonzero(loss)) << UNIT
        return Moments(weight=len(loss) << UNIT, first=wrong, second=wrong, infinite=0)
    finite = np.isfinite(loss)
    x = loss if finite.all() else loss[finite]
    if weight is None:
        y, total = x, len(loss) << UNIT
    else:
        y, total = weight[finite] * x, exact_sum(weight)
    return Moments(
        weight=total,
        first=exact_sum(y),
        second=exact_sum(y * x),
        infinite=len(loss) - len(x),
    )


@frozen(eq=False)
class ClassSums:
    """Per class: samples, answers, right answers, summed confidence and summed score of its answers
    (fixed point).

    `keys` are the classes in order: numbers or text. None of them: too many to be classes. `pairs`
    are the pairs of label and answer that occur, sorted: their class numbers, counts, and summed
    confidence (fixed point, two rows).
    """

    keys: Array
    count: Ints
    given: Ints
    hits: Ints
    claim: Ints
    scored: Ints
    pairs: Ints

    @property
    def crowded(self) -> bool:
        """Whether labels are free text."""
        return len(self.keys) == 0

    def __add__(self, other: ClassSums) -> ClassSums:
        return merge_class_sums([self, other])


# The columns with one number per class (along the last axis), which are summed alike.
CLASS_COLUMNS = ("count", "given", "hits", "claim", "scored")
FREE_TEXT = ClassSums(
    keys=NO_INTS,
    count=NO_INTS,
    given=NO_INTS,
    hits=NO_INTS,
    claim=np.zeros((2, 0), np.int64),
    scored=np.zeros((2, 0), np.int64),
    pairs=np.zeros((5, 0), np.int64),
)


class AnswerColumns(NamedTuple):
    """What class sums are made of: labels, answers where known, right or wrong, confidence and
    score in [0, 1].
    """

    label: Array
    said: Array | None
    correct: Array
    confidence: Floats
    score: Floats


def sum_by_class(answers: AnswerColumns, k: int | None) -> ClassSums:
    """The sums of all k classes, or of the labels that occur where k is None."""
    if k is not None:
        keys = np.arange(k)
    else:
        keys = _find_keys(answers)
        if not 0 < len(keys) <= MAX_TEXT_CLASSES:
            return FREE_TEXT
    classes = len(keys)
    label = find_class_numbers(keys, answers.label)
    said = NO_INTS
    if answers.said is not None:
        said = find_class_numbers(keys, answers.said)
    # Without answers there are no rows here, so that what sums over answers is 0.
    rows = len(said)
    pairs = _count_pairs(label[:rows], said, answers.confidence[:rows], classes)
    return ClassSums(
        keys=keys,
        count=np.bincount(label, minlength=classes),
        given=np.bincount(said, minlength=classes),
        hits=np.bincount(label[answers.correct], minlength=classes),
        claim=_sum_by_place(pairs[3:], pairs[1], classes),
        scored=fixed_sums(said, np.clip(answers.score[:rows], 0.0, 1.0), classes),
        pairs=pairs,
    )


def _find_keys(answers: AnswerColumns) -> Array:
    """The labels and answers that occur, in order; none where they look like free text."""
    labels = _to_keys(answers.label)
    if len(labels) > FREE_TEXT_PROBE_ROWS:
        # Sorting millions of different texts takes minutes: a look at some of them is enough.
        probe = np.unique(labels[:FREE_TEXT_PROBE_ROWS])
        if len(probe) > MAX_TEXT_CLASSES:
            return NO_INTS
    if answers.said is None:
        return np.unique(labels)
    return np.unique(np.concatenate([labels, _to_keys(answers.said)]))


def _to_keys(labels: Array) -> Array:
    """Labels as whole numbers or text."""
    if labels.dtype == object:  # texts of any length: one width for all could take any memory
        return make_text_array([str(one) for one in labels.tolist()])
    return labels.astype(np.int64) if labels.dtype.kind in "iu" else labels.astype(str)


def find_class_numbers(keys: Array, labels: Array) -> Ints:
    """The place of each label among the keys."""
    if keys.dtype.kind == "i" and len(keys) and keys[0] == 0 and keys[-1] == len(keys) - 1:
        return labels.astype(np.int64)  # keys 0, 1, 2, …: a label is its own place
    return np.searchsorted(keys, _to_keys(labels).astype(keys.dtype))


def _count_pairs(label: Ints, said: Ints, confidence: Floats, k: int) -> Ints:
    """How often each pair of label and answer occurs, with the summed confidence."""
    code = label * k + said
    if k * k <= 4 * len(code):
        # A table of all pairs is small beside the samples, and counting into it needs no sorting.
        count, claim = np.bincount(code, minlength=k * k), fixed_sums(code, confidence, k * k)
        pairs = np.flatnonzero(count)
        count, claim = count[pairs], claim[:, pairs]
    else:
        pairs, place, count = np.unique(code, return_inverse=True, return_counts=True)
        claim = fixed_sums(place.reshape(-1), confidence, len(pairs))
    return np.stack((pairs // k, pairs % k, count, *claim)).astype(np.int64)


def _sum_by_place(rows: Ints, place: Ints, places: int) -> Ints:
    """Sums of whole numbers by place, each row by itself."""
    total = np.zeros((len(rows), places), np.int64)
    for into, row in zip(total, rows, strict=True):
        np.add.at(into, place, row)
    return total


def merge_class_sums(every: Sequence[ClassSums]) -> ClassSums:
    """The sums of all of them, over all classes that occur."""
    if any(s.crowded for s in every):
        return FREE_TEXT
    keys = every[0].keys
    if not all(np.array_equal(s.keys, keys) for s in every):
        keys = np.unique(np.concatenate([s.keys for s in every]))
        if len(keys) > MAX_TEXT_CLASSES:
            return FREE_TEXT
    sums: dict[str, Ints] = {}
    for name in CLASS_COLUMNS:
        shape = getattr(every[0], name).shape[:-1]
        sums[name] = np.zeros((*shape, len(keys)), np.int64)
    parts: list[Ints] = []
    for s in every:
        place = np.searchsorted(keys, s.keys.astype(keys.dtype))
        parts.append(np.stack((place[s.pairs[0]], place[s.pairs[1]], *s.pairs[2:])))
        for name, total in sums.items():
            total[..., place] += getattr(s, name)
    label, said, *columns = np.concatenate(parts, axis=1)
    codes, where = np.unique(label * len(keys) + said, return_inverse=True)
    added = _sum_by_place(np.stack(columns), where.reshape(-1), len(codes))
    pairs = np.stack((codes // len(keys), codes % len(keys), *added))
    return ClassSums(keys=keys, pairs=pairs, **sums)


def sample_points(score: Floats, loss: Floats, fate: Ints) -> Array:
    """At most 1,500 of the distinct points (score, loss, fate), in an order that looks random.

    The order belongs to the point itself, so the same points are chosen in whatever parts and order
    samples come. Columns: order, score, loss, fate. Points that are not finite are left out.

    >>> sample_points(np.array([0.5, 0.5]), np.array([0.7, 0.7]), np.array([0, 0]))[:, 1:]
    array([[0.5, 0.7, 0. ]])
    """
    if len(score) > MANY:
        parts = [sample_points(score[i], loss[i], fate[i]) for i in _split_rows(len(score))]
        return keep_first_points(np.concatenate(parts))
    shown = np.isfinite(score) & np.isfinite(loss)
    # Adding 0.0 turns -0.0 into 0.0, which has other bits but is the same point.
    columns = [column[shown].astype(np.float64) + 0.0 for column in (score, loss, fate)]
    bits = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        bits = scramble(bits ^ column.view(np.uint64))
    order = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    # Sorting all rows would take most of the time. Some more than are needed are looked at, and
    # four times as many where too many of them are the same point.
    size = SCATTER_POINTS
    while True:
        near = np.arange(len(order))
        if size < len(order):
            near = np.flatnonzero(order <= np.partition(order, size)[size])
        rows = near[np.unique(order[near], return_index=True)[1][:SCATTER_POINTS]]
        if len(rows) == SCATTER_POINTS or len(near) == len(order):
            return np.stack([order[rows], *(column[rows] for column in columns)], axis=1)
        size *= 4


def keep_first_points(points: Array) -> Array:
    """The distinct points that come first in their order."""
    return points[np.unique(points[:, 0], return_index=True)[1][:SCATTER_POINTS]]


def scramble(z: Array) -> Array:
    """Whole numbers that look random: the finaliser of splitmix64.

    >>> scramble(np.array([1], dtype=np.uint64)) >> np.uint64(60)
    array([9], dtype=uint64)
    """
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
