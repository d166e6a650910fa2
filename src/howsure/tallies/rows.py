"""A tally as columns: any sign of score, any loss, any weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from howsure._core import check
from howsure._core.check import Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.tallies.grid import LEAST, even_ranks, grid
from howsure.tallies.tally import (
    Blocks,
    Counts,
    Ideal,
    Sums,
    Tally,
    added_to,
    described,
    row_pieces,
    running_sums,
)

ROUNDING = 1e-12  # of sums of weights, relative to the whole


@frozen(eq=False)
class Weights:
    """What a weighted tally keeps of the single weights, which it scales to mean 1: the mean as
    given, and for each row the sums of w², of w² times the loss and of w² times its square."""

    unit: float
    square: Floats
    lost: Floats
    lost_square: Floats

    def within(self, start: Ints) -> Weights:
        """The same over runs of rows that begin at these."""
        add: Callable[[Floats], Floats] = lambda a: np.add.reduceat(a, start)
        return Weights(self.unit, add(self.square), add(self.lost), add(self.lost_square))


def run_lengths(start: Ints, n: int) -> Ints:
    """How long the runs are that begin at these positions of n."""
    out = np.empty_like(start)
    np.subtract(start[1:], start[:-1], out=out[:-1])
    out[-1:] = n - start[-1:]
    return out


def group(key: Floats, *columns: Counts) -> tuple[Floats, list[Counts]]:
    """Sum `columns` over equal values of the sorted `key`."""
    start = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    return key[start], [np.add.reduceat(c, start) for c in columns]


@frozen(eq=False)
class RowTally:
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
    weights: Weights | None = (
        None  # where samples have weights; the columns are in weights of mean 1
    )

    @property
    def n(self) -> int | float:
        return self.ends[-1].item()

    @property
    def total(self) -> int | float:
        return self.loss.sum().item()

    @property
    def ends(self) -> Counts:
        return self._cuts[1:]

    @cached_property
    def _cuts(self) -> Counts:
        """All cuts, from 0 on."""
        out = np.empty(len(self.count) + 1, self.count.dtype)
        out[0] = 0
        np.cumsum(self.count, out=out[1:])
        return out

    @property
    def equal_weights(self) -> bool:
        w = self.weights
        return not self.weighted or (
            w is not None and bool(np.allclose(w.square, self.count, rtol=1e-12, atol=0))
        )

    def blocks(self) -> Blocks:
        return self._blocks

    @cached_property
    def _blocks(self) -> Blocks:
        return self._picked(self.loss != 0)

    def tied(self) -> Blocks:
        return self._picked(self.count > 1)

    def _picked(self, rows: Bools) -> Blocks:
        after = self.ends
        return Blocks((after - self.count)[rows], after[rows], self.loss[rows])

    def above(self, scores: Floats) -> Counts:
        return self._cuts[len(self.score) - np.searchsorted(self.score[::-1], scores, side="right")]

    def cut_at(self, ranks: Counts) -> Counts:
        ends = self._cuts
        if self.weighted:
            ranks = (
                ranks - ROUNDING * self.n
            )  # sums of weights are rounded: a rank may miss the end of a row by that
        return ends[np.minimum(np.searchsorted(ends, ranks), len(ends) - 1)]

    def score_at(self, rank: int) -> float:
        row = np.searchsorted(self.ends, rank, side="right")
        return float(self.score[min(int(row), len(self.score) - 1)])

    def score_range(self) -> tuple[float, float]:
        return float(self.score[-1]), float(self.score[0])

    def first_rows(self, cuts: Counts) -> Ints:
        """The first row after each cut but the last."""
        return np.searchsorted(self.ends, cuts[:-1], side="right")

    def between(self, cuts: Counts) -> Sums:
        edge = self.first_rows(cuts)
        last = np.concatenate((edge[1:], [len(self.score)])) - 1
        with np.errstate(
            invalid="ignore", over="ignore"
        ):  # inf - inf: infinite scores rank; their claim is never read
            count, claim, loss = (
                np.add.reduceat(c, edge) for c in (self.count, self.claim, self.loss)
            )
        return Sums(count, claim, loss, self.score[edge], self.score[last])

    @property
    def distinct(self) -> int:
        return len(self.score)

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Counts, Counts]:
        return running_sums(self, rows, bottom_up)

    def compact(self, buckets: int = 25_000) -> Tally:
        return compacted(self, buckets)

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        return row_pieces(self)

    def has_at_most(self, rows: int) -> bool:
        return len(self.score) <= rows

    def __add__(self, other: Tally) -> Tally:
        return merge(self, as_rows(other))

    def __radd__(self, other: object) -> Tally:
        return added_to(self, other)

    def __repr__(self) -> str:
        return described(self)


def as_rows(t: Tally) -> RowTally:
    """`t` with its columns made."""
    if isinstance(t, RowTally):
        return t
    return from_rows(t.score, t.count, t.loss)


def from_rows(score: Floats, count: Counts, wrong: Counts) -> RowTally:
    """The tally of right and wrong with these rows, highest score first."""
    return RowTally(score, count, wrong, score * count, wrong)


def of_moments(n: int | float, total: float, square: float, *, zero_one: bool) -> RowTally:
    """All samples in one row: what is known where only their number, summed loss and summed squared
    loss are.

    >>> of_moments(4, 2.0, 2.5, zero_one=False)
    <Tally: n=4, loss=2, 1 distinct scores>
    """
    whole = (
        isinstance(n, int) and n < 1 << 63
    )  # whole weights may sum up to more than an int64 holds
    loss = np.array([int(total) if zero_one and whole else float(total)])
    count = np.array([n if whole else float(n)])
    return RowTally(np.zeros(1), count, loss, np.zeros(1), np.array([square]), zero_one=zero_one)


def on_grid(score: Floats, count: Ints, wrong: Ints, claim: Floats, edges: Floats) -> RowTally:
    """The compact tally of rows whose buckets end at `edges`."""
    return RowTally(score, count, wrong, claim, wrong, approximate=fixed_note(edges), edges=edges)


def score_ends(t: RowTally) -> tuple[Floats, Floats]:
    """The lowest and the highest score that each row can hold; they are equal where all its samples
    are tied.
    """
    if t.edges is None:
        return t.score, t.score
    i = np.searchsorted(t.edges[:-1], t.score)
    low = np.where(i > 0, np.nextafter(t.edges[i - 1], inf), -inf)
    return low, np.maximum(t.edges[i], t.score)  # scores beyond the last edge joined its bucket


def merge(a: RowTally, b: RowTally) -> RowTally:
    """All rows of both, equal scores summed."""
    if a.zero_one != b.zero_one:
        raise InputError(
            "one tally counts right and wrong, the other sums a loss; only tallies of one kind add up."
        )
    edges = shared_edges(a, b)
    if a.weighted or b.weighted:
        a, b = shared_unit(a, b)
    score = np.concatenate((a.score, b.score))
    order = np.argsort(-score, kind="stable")
    score, sums = group(
        score[order],
        *(np.concatenate(pair)[order] for pair in zip(_columns(a), _columns(b), strict=True)),
    )
    count, loss, claim, square, *double = sums
    weights = None if a.weights is None else Weights(a.weights.unit, *double)
    both = RowTally(
        score,
        count,
        loss,
        claim,
        square,
        merge_ideal(a.ideal, b.ideal),
        a.zero_one,
        a.weighted,
        weights=weights,
    )
    if edges is None:
        return both
    return replace(
        bucketed(both, edge_cuts(both, edges)),
        approximate=a.approximate or b.approximate,
        edges=edges,
    )


def _columns(t: RowTally) -> tuple[Counts, ...]:
    w = t.weights
    return (
        t.count,
        t.loss,
        t.claim,
        t.square,
        *(() if w is None else (w.square, w.lost, w.lost_square)),
    )


def shared_unit(a: RowTally, b: RowTally) -> tuple[RowTally, RowTally]:
    """Both with weights whose common mean is 1; samples without weights weigh 1."""
    sides = [
        (t, t.weights or Weights(1.0, t.count * 1.0, t.loss * 1.0, t.square * 1.0)) for t in (a, b)
    ]
    unit = sum(t.n * w.unit for t, w in sides) / (a.n + b.n)
    first, second = (_rescaled(t, w, w.unit / unit, unit) for t, w in sides)
    return first, second


def _rescaled(t: RowTally, w: Weights, by: float, unit: float) -> RowTally:
    count, loss, claim, square = (column * by for column in (t.count, t.loss, t.claim, t.square))
    ideal = None if t.ideal is None else Ideal(t.ideal.loss, t.ideal.count * by)
    double = Weights(unit, *(column * by**2 for column in (w.square, w.lost, w.lost_square)))
    return RowTally(
        t.score, count, loss, claim, square, ideal, t.zero_one, True, t.approximate, t.edges, double
    )


def shared_edges(a: RowTally, b: RowTally) -> Floats | None:
    """The buckets of the sum; an exact tally joins those of a compact one."""
    if a.edges is not None and b.edges is not None and not np.array_equal(a.edges, b.edges):
        raise InputError(
            f"these tallies were compacted to different buckets ({a.approximate}; {b.approximate}); "
            "add them first, then compact the sum."
        )
    return b.edges if a.edges is None else a.edges


def edge_cuts(t: Tally, edges: Floats) -> Counts:
    """The cuts of a tally at bucket edges, empty buckets dropped; scores beyond the last edge join
    its bucket.
    """
    return np.unique(np.concatenate(([0], t.above(edges[:-1]), [t.n])))


def bucketed(t: Tally, cuts: Counts) -> RowTally:
    """One row per bucket between cuts, scored by the mean of its scores; `edges` are the highest
    scores found.
    """
    sums = t.between(cuts)
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # infinite scores have no mean; any score of the bucket will do
        score = np.fmax(sums.low, np.fmin(sums.claim / sums.count, sums.high))
    rows = RowTally(score, sums.count, sums.loss, sums.claim, sums.loss, edges=sums.high[::-1])
    if not isinstance(t, RowTally):
        return rows
    start = t.first_rows(cuts)
    square = np.add.reduceat(t.square, start)
    weights = None if t.weights is None else t.weights.within(start)
    return replace(
        rows,
        square=square,
        ideal=t.ideal,
        zero_one=t.zero_one,
        weighted=t.weighted,
        weights=weights,
    )


def compacted(t: Tally, buckets: int) -> RowTally:
    """`Tally.compact` for every kind of tally."""
    check.at_least(buckets, LEAST, "buckets")
    if t.has_at_most(buckets):
        return as_rows(t)
    if (
        t.approximate
    ):  # its buckets may straddle the new ones, whose ends would then be no cuts of the data
        raise InputError(
            f"this tally is already {t.approximate}; compact the exact tally, or keep this one."
        )
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        edges = grid(buckets)
        rows = replace(bucketed(t, edge_cuts(t, edges)), edges=edges)
        note = fixed_note(edges)
    else:
        rows = bucketed(
            t, np.unique(np.concatenate(([0], t.cut_at(even_ranks(t.n, buckets)), [t.n])))
        )
        note = f"compacted to {len(rows.score):,} equally full buckets"
    ideal = None if rows.ideal is None else thinned(rows.ideal, buckets)
    return replace(rows, ideal=ideal, approximate=note)


def fixed_note(edges: Floats) -> str:
    """How a tally on this grid says that it is coarse."""
    return f"compacted to {len(edges):,} fixed buckets"


def merge_ideal(a: Ideal | None, b: Ideal | None) -> Ideal | None:
    """The distribution of the losses of both."""
    if a is None or b is None:
        return None
    return ideal_order(np.concatenate((a.loss, b.loss)), np.concatenate((a.count, b.count)))


def ideal_order(loss: Floats, count: Floats) -> Ideal:
    """Distinct losses ascending with their counts."""
    order = np.argsort(loss, kind="stable")
    value, (total,) = group(loss[order], count[order])
    return Ideal(value, total.astype(np.float64))


def thinned(ideal: Ideal, rows: int) -> Ideal:
    """About `rows` rows of equally many samples, each with its mean loss."""
    if len(ideal.loss) <= rows:
        return ideal
    part = np.floor((np.cumsum(ideal.count) - ideal.count) / ideal.count.sum() * rows)
    _, (count, loss) = group(part, ideal.count, ideal.count * ideal.loss)
    return Ideal(loss / count, count)


def count_rows(score: Floats, wrong: Bools) -> RowTally:
    """Integer rows for right and wrong answers; sorts values only, never an index."""
    ordered, missed = np.sort(score), np.sort(score[wrong])
    start = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    distinct = ordered[start] if len(start) < len(ordered) else ordered
    count = run_lengths(start, len(ordered))[::-1]
    loss = np.bincount(np.searchsorted(distinct, missed), minlength=len(distinct)).astype(
        np.int64, copy=False
    )[::-1]
    distinct = distinct[::-1]
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # infinite scores rank; their claim is never read
        return RowTally(distinct, count, loss, distinct * count, loss)


def sum_rows(
    score: Floats,
    loss: Floats,
    *,
    weight: Floats | None = None,
    times: Ints | None = None,
    zero_one: bool,
) -> RowTally:
    """Rows for general losses, weights or repeated samples. Sorting by loss too makes the sums free
    of row order.

    `times` says how often each sample counts. Weights are scaled to mean 1, so that their unit
    never matters.
    """
    one = np.ones(len(score), dtype=np.int64) if times is None else times
    w = np.ones(len(score)) if weight is None else weight
    order = np.lexsort((one, w, loss, -score))
    score, loss, w, one = score[order], loss[order], w[order], one[order]
    unit = 1.0 if weight is None else float(np.average(w / w.max(), weights=one) * w.max())
    w = w / unit
    many = one if zero_one and weight is None else w * one  # whole numbers stay whole
    with np.errstate(invalid="ignore", over="ignore"):
        columns = (many, many * loss, many * score, many * loss * loss)
        double = () if weight is None else (w * many, w * many * loss, w * many * loss * loss)
        distinct, (count, total, claim, square, *rest) = group(score, *columns, *double)
    if zero_one and weight is None:
        total, square = total.astype(np.int64), square.astype(np.int64)
    ideal = None if zero_one else ideal_order(loss, many.astype(np.float64))
    weights = None if weight is None else Weights(unit, *rest)
    return RowTally(
        distinct, count, total, claim, square, ideal, zero_one, weight is not None, weights=weights
    )
