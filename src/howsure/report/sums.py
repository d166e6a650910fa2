"""Sums over samples that add up in any order: of losses, of classes, and a sample of single
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure._core.text import make_text_array
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally

SCATTER_POINTS = 1_500
POINT_CHUNK_ROWS = 1 << 16  # small enough to stay near the processor
MAX_TEXT_CLASSES = 10_000  # labels that differ more than that are free text
FREE_TEXT_PROBE_ROWS = 50_000  # labels among which free text shows
MIN_ROWS_PER_CLASS = 5  # on average, or labels are no classes but free text
NO_INTS = np.zeros(0, dtype=np.int64)


class Moments(NamedTuple):
    """Sums of weights, of a loss and of its square, and how often it is infinite."""

    weight: float
    first: float
    second: float
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
        n = self.weight
        # Weights may sum up to a whole number although the wrong answers among them do not.
        if n.is_integer() and (self.first.is_integer() or not zero_one):
            n = int(n)
        loss = inf if self.infinite else self.first
        return of_moments(n, loss, self.second, zero_one=zero_one)


def sum_losses(loss: Floats, weight: Floats | None = None) -> Moments:
    """Sums of the finite losses, and the number of the others.

    >>> sum_losses(np.array([1.0, np.inf])).infinite
    1
    >>> sum_losses(np.array([1.0, 3.0])).tally(zero_one=False).total
    4.0
    """
    if weight is not None:
        # Samples without weight must not count, not even by an infinite loss.
        loss, weight = loss[weight > 0], weight[weight > 0]
    elif (np.equal(loss, 0.0) | np.equal(loss, 1.0)).all():
        # The 0/1 loss is its own square: counting is enough, and much faster.
        wrong = float(np.count_nonzero(loss))
        return Moments(weight=float(len(loss)), first=wrong, second=wrong, infinite=0)
    finite = np.isfinite(loss)
    x = y = loss[finite]
    total = float(len(loss))
    if weight is not None:
        y = weight[finite] * x
        total = float(weight.sum())
    return Moments(
        weight=total,
        first=float(y.sum()),
        second=float((y * x).sum()),
        infinite=len(loss) - len(x),
    )


@frozen(eq=False)
class ClassSums:
    """Per class: samples, answers, right answers, summed confidence and summed score of its
    answers.

    `keys` are the classes in order: numbers or text. None of them: too many to be classes. `pairs`
    are the pairs of label and answer that occur, sorted: their class numbers and counts; their
    summed confidence is `pair_claim`.
    """

    keys: Array
    count: Ints
    given: Ints
    hits: Ints
    claim: Floats
    scored: Floats
    pairs: Ints
    pair_claim: Floats

    @property
    def crowded(self) -> bool:
        """Whether labels are free text."""
        return len(self.keys) == 0

    def __add__(self, other: ClassSums) -> ClassSums:
        return merge_class_sums([self, other])


# The columns with one number per class, which are summed alike.
CLASS_COLUMNS = ("count", "given", "hits", "claim", "scored")
FREE_TEXT = ClassSums(
    keys=NO_INTS,
    count=NO_INTS,
    given=NO_INTS,
    hits=NO_INTS,
    claim=np.zeros(0),
    scored=np.zeros(0),
    pairs=np.zeros((3, 0), np.int64),
    pair_claim=np.zeros(0),
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
        labels = _to_keys(answers.label)
        # Sorting millions of different texts takes minutes: a look at some of them is enough.
        if len(labels) > FREE_TEXT_PROBE_ROWS:
            probe = sort_distinct(labels[:FREE_TEXT_PROBE_ROWS])
            if len(probe) > MAX_TEXT_CLASSES:
                return FREE_TEXT
        if answers.said is not None:
            labels = np.concatenate([labels, _to_keys(answers.said)])
        keys = sort_distinct(labels)
        if not 0 < len(keys) <= MAX_TEXT_CLASSES:
            return FREE_TEXT
    classes = len(keys)
    label = find_class_numbers(keys, answers.label)
    said = NO_INTS
    if answers.said is not None:
        said = find_class_numbers(keys, answers.said)
    # Without answers there are no rows here, so that what sums over answers is 0.
    rows = len(said)
    confidence = answers.confidence[:rows]
    # How often each pair of label and answer occurs, with the summed confidence.
    code = label[:rows] * classes + said
    if classes**2 <= 4 * rows:
        # A table of all pairs is small beside the samples, and counting into it needs no sorting.
        count = count_values(code, minlength=classes**2)
        pairs = np.flatnonzero(count)
        count, pair_claim = count[pairs], sum_at(code, confidence, classes**2)[pairs]
    else:
        pairs, place, count = np.unique(code, return_inverse=True, return_counts=True)
        pair_claim = sum_at(place.reshape(-1), confidence, len(pairs))
    pairs = np.stack((pairs // classes, pairs % classes, count)).astype(np.int64)
    return ClassSums(
        keys=keys,
        count=count_values(label, minlength=classes),
        given=count_values(said, minlength=classes),
        hits=count_values(label[answers.correct], minlength=classes),
        claim=sum_at(pairs[1], pair_claim, classes),
        scored=sum_at(said, np.clip(answers.score[:rows], 0.0, 1.0), classes),
        pairs=pairs,
        pair_claim=pair_claim,
    )


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


def sum_at(at: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each of `size` places."""
    return count_values(at, values, minlength=size).astype(np.float64)


def merge_class_sums(every: Sequence[ClassSums]) -> ClassSums:
    """The sums of all of them, over all classes that occur."""
    if any(s.crowded for s in every):
        return FREE_TEXT
    keys = every[0].keys
    if not all(np.array_equal(s.keys, keys) for s in every):
        keys = sort_distinct(np.concatenate([s.keys for s in every]))
        if len(keys) > MAX_TEXT_CLASSES:
            return FREE_TEXT
    sums: dict[str, Array] = {}
    for name in CLASS_COLUMNS:
        sums[name] = np.zeros(len(keys), getattr(every[0], name).dtype)
    parts: list[Ints] = []
    for s in every:
        place = np.searchsorted(keys, s.keys.astype(keys.dtype))
        parts.append(np.stack((place[s.pairs[0]], place[s.pairs[1]], s.pairs[2])))
        for name, total in sums.items():
            total[place] += getattr(s, name)
    label, said, count = np.concatenate(parts, axis=1)
    codes, where = np.unique(label * len(keys) + said, return_inverse=True)
    where = where.reshape(-1)
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, where, count)
    pairs = np.stack((codes // len(keys), codes % len(keys), counts))
    claims = np.concatenate([s.pair_claim for s in every])
    pair_claim = sum_at(where, claims, len(codes))
    return ClassSums(keys=keys, pairs=pairs, pair_claim=pair_claim, **sums)


def sample_points(score: Floats, loss: Floats, fate: Ints) -> Array:
    """At most 1,500 of the distinct points (score, loss, fate), in an order that looks random.

    The order belongs to the point itself, so the same points are chosen in whatever parts and order
    samples come. Columns: order, score, loss, fate. Points that are not finite are left out.

    >>> sample_points(np.array([0.5, 0.5]), np.array([0.7, 0.7]), np.array([0, 0]))[:, 1:]
    array([[0.5, 0.7, 0. ]])
    """
    if len(score) > POINT_CHUNK_ROWS:
        parts: list[Array] = []
        for start in range(0, len(score), POINT_CHUNK_ROWS):
            rows = slice(start, start + POINT_CHUNK_ROWS)
            parts.append(sample_points(score[rows], loss[rows], fate[rows]))
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
