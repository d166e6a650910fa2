"""Sums over samples that add up in any order: of losses, of classes, and a sample of single
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure._core.exact import MANY, UNIT, as_float, exact_sum, fixed_sums
from howsure._core.frozen import frozen
from howsure._core.text import array_of
from howsure.tallies.rows import of_moments
from howsure.tallies.tally import Tally

DOTS = 1_500  # of the scatter plot
MOST_CLASSES = 10_000  # labels that differ more than that are free text
LOOK = 50_000  # labels among which free text shows
LEAST_OF_CLASS = 5  # samples of a class on average, or labels are no classes but free text
EMPTY = np.zeros(0, dtype=np.int64)


class Moments(NamedTuple):
    """Exact sums of weights, of a loss and of its square, in units of 2^-1127, and how often it is
    infinite.
    """

    weight: int
    first: int
    second: int
    infinite: int

    def __add__(self, other: Moments) -> Moments:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Moments(*(a + b for a, b in zip(self, other, strict=True)))

    def tally(self, *, zero_one: bool) -> Tally:
        """One row that holds all samples: its mean loss is that of the data."""
        n, total, square = (as_float(x) for x in self[:3])
        whole = self.weight % (1 << UNIT) == 0
        return of_moments(
            int(n) if whole else n, inf if self.infinite else total, square, zero_one=zero_one
        )


def moments(loss: Floats, weight: Floats | None = None) -> Moments:
    """Sums of the finite losses, and the number of the others.

    >>> moments(np.array([1.0, np.inf])).infinite
    1
    >>> moments(np.array([1.0, 3.0])).tally(zero_one=False).total
    4.0
    """
    parts = (slice(i, i + MANY) for i in range(0, len(loss), MANY))
    return reduce(
        Moments.__add__,
        (_moments(loss[i], None if weight is None else weight[i]) for i in parts),
        Moments(0, 0, 0, 0),
    )


def _moments(loss: Floats, weight: Floats | None) -> Moments:
    """The same of at most 2^26 losses."""
    if weight is not None:
        loss, weight = loss[weight > 0], weight[weight > 0]
    elif (np.equal(loss, 0.0) | np.equal(loss, 1.0)).all():
        hits = int(np.count_nonzero(loss)) << UNIT
        return Moments(len(loss) << UNIT, hits, hits, 0)
    finite = np.isfinite(loss)
    x = loss if finite.all() else loss[finite]
    y = x if weight is None else weight[finite] * x
    total = len(loss) << UNIT if weight is None else exact_sum(weight)
    return Moments(total, exact_sum(y), exact_sum(y * x), len(loss) - len(x))


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
        return sum_classes([self, other])


COLUMNS = ("count", "given", "hits", "claim", "scored")
CROWDED = ClassSums(
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    np.zeros((2, 0), np.int64),
    np.zeros((2, 0), np.int64),
    np.zeros((5, 0), np.int64),
)


class Answer(NamedTuple):
    """What class sums are made of: labels, answers where known, right or wrong, confidence and
    score in [0, 1].
    """

    label: Array
    said: Array | None
    correct: Array
    confidence: Floats
    score: Floats


def class_sums(a: Answer, k: int | None) -> ClassSums:
    """The sums of all k classes, or of the labels that occur where k is None."""
    keys = np.arange(k) if k is not None else _keys(a)
    if not 0 < len(keys) <= MOST_CLASSES and k is None:
        return CROWDED
    label = class_number(keys, a.label)
    said = EMPTY if a.said is None else class_number(keys, a.said)
    rows = len(said)
    count, given, hits = (
        np.bincount(which, minlength=len(keys)) for which in (label, said, label[a.correct])
    )
    pairs = _pairs(label[:rows], said, a.confidence[:rows], len(keys))
    claim = _summed(pairs[3:], pairs[1], len(keys))
    scored = fixed_sums(said, np.clip(a.score[:rows], 0.0, 1.0), len(keys))
    return ClassSums(keys, count, given, hits, claim, scored, pairs)


def _pairs(label: Ints, said: Ints, confidence: Floats, k: int) -> Ints:
    """How often each pair of label and answer occurs, with the summed confidence."""
    code = label * k + said
    if k * k <= 4 * len(code):
        count, claim = np.bincount(code, minlength=k * k), fixed_sums(code, confidence, k * k)
        found = np.flatnonzero(count)
        count, claim = count[found], claim[:, found]
    else:
        found, at, count = np.unique(code, return_inverse=True, return_counts=True)
        claim = fixed_sums(at.reshape(-1), confidence, len(found))
    return np.stack((found // k, found % k, count, *claim)).astype(np.int64)


def _summed_pairs(every: Sequence[Ints], k: int) -> Ints:
    label, said, *sums = np.concatenate(every, axis=1)
    found, at = np.unique(label * k + said, return_inverse=True)
    return np.stack((found // k, found % k, *_summed(np.stack(sums), at.reshape(-1), len(found))))


def _summed(rows: Ints, place: Ints, places: int) -> Ints:
    """Sums of whole numbers by place, each row by itself."""
    total = np.zeros((len(rows), places), np.int64)
    for into, row in zip(total, rows, strict=True):
        np.add.at(into, place, row)
    return total


def _keys(a: Answer) -> Array:
    """The labels and answers that occur, in order."""
    given = [as_keys(a.label), *([] if a.said is None else [as_keys(a.said)])]
    if len(a.label) > LOOK and len(np.unique(given[0][:LOOK])) > MOST_CLASSES:
        return EMPTY
    return np.unique(np.concatenate(given))


def as_keys(labels: Array) -> Array:
    """Labels as whole numbers or text."""
    if labels.dtype == object:  # texts of any length: one width for all could take any memory
        return array_of([str(one) for one in labels.tolist()])
    return labels.astype(np.int64) if labels.dtype.kind in "iu" else labels.astype(str)


def class_number(keys: Array, labels: Array) -> Ints:
    """The place of each label among the keys."""
    if keys.dtype.kind == "i" and len(keys) and keys[0] == 0 and keys[-1] == len(keys) - 1:
        return labels.astype(np.int64)
    return np.searchsorted(keys, as_keys(labels).astype(keys.dtype))


def sum_classes(every: Sequence[ClassSums]) -> ClassSums:
    """The sums of all of them, over all classes that occur."""
    first = every[0]
    if any(s.crowded for s in every):
        return CROWDED
    if all(np.array_equal(s.keys, first.keys) for s in every):
        sums = (np.sum([getattr(s, name) for s in every], axis=0) for name in COLUMNS)
        return ClassSums(
            first.keys, *sums, pairs=_summed_pairs([s.pairs for s in every], len(first.keys))
        )
    keys = np.unique(np.concatenate([s.keys for s in every]))
    if len(keys) > MOST_CLASSES:
        return CROWDED
    out = [np.zeros((*getattr(first, name).shape[:-1], len(keys)), np.int64) for name in COLUMNS]
    pairs: list[Ints] = []
    for s in every:
        at = np.searchsorted(keys, s.keys.astype(keys.dtype))
        pairs.append(np.stack((at[s.pairs[0]], at[s.pairs[1]], *s.pairs[2:])))
        for column, name in zip(out, COLUMNS, strict=True):
            column[..., at] += getattr(s, name)
    return ClassSums(keys, *out, pairs=_summed_pairs(pairs, len(keys)))


def sample_points(score: Floats, loss: Floats, fate: Ints) -> Array:
    """At most 1,500 of the distinct points (score, loss, fate), after an order that looks random.

    The order belongs to the point itself, so the same points are chosen in whatever parts and order
    samples come. Columns: order, score, loss, fate. Points that are not finite are left out.

    >>> sample_points(np.array([0.5, 0.5]), np.array([0.7, 0.7]), np.array([0, 0]))[:, 1:]
    array([[0.5, 0.7, 0. ]])
    """
    if len(score) > MANY:  # some at a time: all columns of a part stay near the processor
        parts = (slice(i, i + MANY) for i in range(0, len(score), MANY))
        return least_points(
            np.concatenate([sample_points(score[i], loss[i], fate[i]) for i in parts])
        )
    shown = np.isfinite(score) & np.isfinite(loss)
    columns = [c[shown].astype(np.float64) + 0.0 for c in (score, loss, fate)]
    order = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        order = scrambled(order ^ column.view(np.uint64))
    unit = (order >> np.uint64(11)).astype(np.float64) * 2.0**-53
    size = DOTS
    while True:
        near = (
            np.arange(len(unit))
            if size >= len(unit)
            else np.flatnonzero(unit <= np.partition(unit, size)[size])
        )
        found = near[np.unique(unit[near], return_index=True)[1][:DOTS]]
        if len(found) == DOTS or len(near) == len(unit):
            return np.stack([unit[found], *(c[found] for c in columns)], axis=1)
        size *= 4


def least_points(rows: Array) -> Array:
    """The distinct points that come first."""
    return rows[np.unique(rows[:, 0], return_index=True)[1][:DOTS]]


def scrambled(z: Array) -> Array:
    """Whole numbers that look random: the finaliser of splitmix64.

    >>> scrambled(np.array([1], dtype=np.uint64)) >> np.uint64(60)
    array([9], dtype=uint64)
    """
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
