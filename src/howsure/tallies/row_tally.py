"""A tally as columns: any sign of score, any loss, any weight. Every other kind can become one."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct, sum_runs
from howsure.tallies.tally import Counts, Ideal, RangeSums, Tally, compute_on_read


@frozen(eq=False)
class Weights:
    """What a weighted tally keeps of the single weights, which it scales to mean 1: the mean as
    given, and for each row the sums of w², of w² times the loss and of w² times its square."""

    unit: float
    square: Floats
    lost: Floats
    lost_square: Floats


@frozen(eq=False)
class RowTally(Tally):
    """One row per distinct score. `claim` is the summed score of a row, `square` its summed squared
    loss.
    """

    score: Floats
    count: Counts
    loss: Counts
    claim: Floats
    square: Counts
    ideal: Ideal | None = None
    zero_one: bool = True
    weighted: bool = False
    approximate: str | None = None
    edges: Floats | None = None  # upper ends of the buckets, ascending, where it was compacted
    weights: Weights | None = None  # where samples have weights; columns are in weights of mean 1

    __repr__ = Tally.__repr__  # instead of that of a record

    @compute_on_read
    def n(self) -> int | float:
        return self.ends[-1].item()

    @compute_on_read
    def total(self) -> int | float:
        return self.loss.sum().item()

    @compute_on_read
    def equal_weights(self) -> bool:
        """Whether every sample counts alike: there are no weights, or all are equal."""
        if not self.weighted:
            return True
        if self.weights is None:
            return False
        # The squares of weights of mean 1 sum up to the weights only if all of them are 1.
        return bool(np.allclose(self.weights.square, self.count, rtol=1e-12, atol=0))

    @property
    def total_square(self) -> float:
        return float(self.square.sum())

    def row_claims(self) -> Floats:
        return self.claim

    def between(self, cuts: Counts) -> RangeSums:
        sums = super().between(cuts)
        if self.zero_one:
            return sums
        return replace(sums, square=sum_runs(self.square, self.first_rows(cuts)))


def as_rows(t: Tally) -> RowTally:
    """`t` with its columns made."""
    if isinstance(t, RowTally):
        return t
    return from_rows(t.score, t.count, t.loss)


def from_rows(score: Floats, count: Counts, wrong: Counts) -> RowTally:
    """The tally of right and wrong with these rows, highest score first."""
    return RowTally(score=score, count=count, loss=wrong, claim=score * count, square=wrong)


def of_moments(n: int | float, total: float, square: float, *, zero_one: bool) -> RowTally:
    """All samples in one row: what is known where only their number, summed loss and summed squared
    loss are.

    >>> of_moments(4, 2.0, 2.5, zero_one=False)
    <Tally: n=4, loss=2, 1 distinct scores>
    """
    # Whole weights may sum up to more than an int64 holds.
    whole = isinstance(n, int) and n < 1 << 63
    loss = int(total) if whole and zero_one else float(total)
    return RowTally(
        score=np.zeros(1),
        count=np.array([n if whole else float(n)]),
        loss=np.array([loss]),
        claim=np.zeros(1),
        square=np.array([square]),
        zero_one=zero_one,
    )


def count_rows(score: Floats, wrong: Bools) -> RowTally:
    """Integer rows for right and wrong answers; sorts values only, never an index."""
    ascending = np.sort(score)
    start = find_runs(ascending)
    distinct = ascending[start]
    row_of_wrong = np.searchsorted(distinct, np.sort(score[wrong]))
    count = measure_runs(start, len(ascending))[::-1]
    loss = count_values(row_of_wrong, minlength=len(distinct)).astype(np.int64, copy=False)[::-1]
    # Infinite scores rank; their claim is never read.
    with np.errstate(invalid="ignore", over="ignore"):
        return from_rows(distinct[::-1], count, loss)


def sum_rows(
    score: Floats,
    loss: Floats,
    *,
    weight: Floats | None = None,
    times: Ints | None = None,
    zero_one: bool,
) -> RowTally:
    """Rows for general losses, weights or repeated samples.

    `times` says how often each sample counts. Weights are scaled to mean 1, so that their unit
    never matters.
    """
    one = np.ones(len(score), dtype=np.int64) if times is None else times
    w = np.ones(len(score)) if weight is None else weight
    # Sorted by everything, so that the rounding of sums does not depend on the order of the input.
    order = np.lexsort((one, w, loss, -score))
    score, loss, w, one = score[order], loss[order], w[order], one[order]
    start = find_runs(score)

    def add(column: Array) -> Array:
        return sum_runs(column, start)

    unit = 1.0
    if weight is not None:  # divided by the largest, for weights may be near the largest float
        unit = float(np.average(w / w.max(), weights=one) * w.max())
        w = w / unit
    whole = zero_one and weight is None
    size = one if whole else w * one
    weights = None
    # Infinite scores rank; their claim is never read.
    with np.errstate(invalid="ignore", over="ignore"):
        total, claim, square = add(size * loss), add(size * score), add(size * loss * loss)
        if weight is not None:
            weights = Weights(
                unit=unit,
                square=add(w * size),
                lost=add(w * size * loss),
                lost_square=add(w * size * loss * loss),
            )
    if whole:
        total, square = total.astype(np.int64), square.astype(np.int64)
    ideal = None
    if not zero_one:
        ideal = sort_losses(loss, size.astype(np.float64))
    return RowTally(
        score=score[start],
        count=add(size),
        loss=total,
        claim=claim,
        square=square,
        ideal=ideal,
        zero_one=zero_one,
        weighted=weight is not None,
        weights=weights,
    )


def merge_rows(a: RowTally, b: RowTally) -> RowTally:
    """All rows of both, equal scores summed; an exact tally joins the buckets of a compact one."""
    if a.zero_one != b.zero_one:
        raise InputError(
            "one tally counts right and wrong, the other sums a loss; only tallies of one kind add up."
        )
    if a.edges is not None and b.edges is not None and not np.array_equal(a.edges, b.edges):
        raise InputError(
            f"these tallies were compacted to different buckets ({a.approximate}; {b.approximate}); "
            "add them first, then compact the sum."
        )
    if a.weighted or b.weighted:
        a, b = share_unit(a, b)
    score = np.concatenate((a.score, b.score))
    order = np.argsort(-score, kind="stable")
    score = score[order]
    start = find_runs(score)

    def add(x: Array, y: Array) -> Array:
        return sum_runs(np.concatenate((x, y))[order], start)

    weights = ideal = None
    if a.weights is not None and b.weights is not None:
        weights = Weights(
            unit=a.weights.unit,
            square=add(a.weights.square, b.weights.square),
            lost=add(a.weights.lost, b.weights.lost),
            lost_square=add(a.weights.lost_square, b.weights.lost_square),
        )
    if a.ideal is not None and b.ideal is not None:
        losses = np.concatenate((a.ideal.loss, b.ideal.loss))
        ideal = sort_losses(losses, np.concatenate((a.ideal.count, b.ideal.count)))
    both = RowTally(
        score=score[start],
        count=add(a.count, b.count),
        loss=add(a.loss, b.loss),
        claim=add(a.claim, b.claim),
        square=add(a.square, b.square),
        ideal=ideal,
        zero_one=a.zero_one,
        weighted=a.weighted,
        weights=weights,
    )
    edges = b.edges if a.edges is None else a.edges
    if edges is None:
        return both
    rows = bucket_rows(both, find_edge_cuts(both, edges))
    return replace(rows, approximate=a.approximate or b.approximate, edges=edges)


def share_unit(a: RowTally, b: RowTally) -> tuple[RowTally, RowTally]:
    """Both with weights whose common mean is 1; samples without weights weigh 1."""
    unit_a = 1.0 if a.weights is None else a.weights.unit
    unit_b = 1.0 if b.weights is None else b.weights.unit
    unit = (a.n * unit_a + b.n * unit_b) / (a.n + b.n)
    return _rescale(a, unit_a / unit, unit), _rescale(b, unit_b / unit, unit)


def _rescale(t: RowTally, by: float, unit: float) -> RowTally:
    w, ideal = t.weights, t.ideal
    if w is None:
        w = Weights(unit=1.0, square=t.count * 1.0, lost=t.loss * 1.0, lost_square=t.square * 1.0)
    if ideal is not None:
        ideal = Ideal(loss=ideal.loss, count=ideal.count * by)
    return replace(
        t,
        count=t.count * by,
        loss=t.loss * by,
        claim=t.claim * by,
        square=t.square * by,
        ideal=ideal,
        weighted=True,
        weights=Weights(
            unit=unit,
            square=w.square * by**2,
            lost=w.lost * by**2,
            lost_square=w.lost_square * by**2,
        ),
    )


def find_edge_cuts(t: Tally, edges: Floats) -> Counts:
    """The cuts of a tally at bucket edges, empty buckets dropped; scores beyond the last edge join
    its bucket.
    """
    return sort_distinct(np.concatenate(([0], t.above(edges[:-1]), [t.n])))


def bucket_rows(t: Tally, cuts: Counts) -> RowTally:
    """One row per bucket between cuts, scored by the mean of its scores; `edges` are the highest
    scores found.
    """
    sums = t.between(cuts)
    # Infinite scores have no mean; any score of the bucket will do.
    with np.errstate(invalid="ignore", over="ignore"):
        score = np.fmax(sums.low, np.fmin(sums.claim / sums.count, sums.high))
    rows = RowTally(
        score=score,
        count=sums.count,
        loss=sums.loss,
        claim=sums.claim,
        square=sums.loss,
        edges=sums.high[::-1],
    )
    if not isinstance(t, RowTally):
        return rows
    start = t.first_rows(cuts)
    weights = t.weights
    if weights is not None:
        weights = Weights(
            unit=weights.unit,
            square=sum_runs(weights.square, start),
            lost=sum_runs(weights.lost, start),
            lost_square=sum_runs(weights.lost_square, start),
        )
    return replace(
        rows,
        square=sum_runs(t.square, start),
        ideal=t.ideal,
        zero_one=t.zero_one,
        weighted=t.weighted,
        weights=weights,
    )


def find_score_ends(t: RowTally) -> tuple[Floats, Floats]:
    """The lowest and the highest score that each row can hold; they are equal where all its samples
    are tied.
    """
    if t.edges is None:
        return t.score, t.score
    i = np.searchsorted(t.edges[:-1], t.score)
    low = np.where(i > 0, np.nextafter(t.edges[i - 1], inf), -inf)
    return low, np.maximum(t.edges[i], t.score)  # scores beyond the last edge joined its bucket


def sort_losses(loss: Floats, count: Floats) -> Ideal:
    """Distinct losses ascending with their counts."""
    order = np.argsort(loss, kind="stable")
    loss = loss[order]
    start = find_runs(loss)
    total = sum_runs(count[order], start)
    return Ideal(loss=loss[start], count=total.astype(np.float64))


def find_runs(values: Array) -> Ints:
    """Where each run of equal values begins in a sorted array."""
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def measure_runs(start: Ints, n: int) -> Ints:
    """How long the runs are that begin at these positions of n."""
    lengths = np.empty_like(start)
    np.subtract(start[1:], start[:-1], out=lengths[:-1])
    lengths[-1:] = n - start[-1:]
    return lengths
