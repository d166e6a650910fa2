"""Compact tallies: where scores are cut into buckets, and how samples get there without a sort.

Scores in [0, 1] go to a fixed grid. Its edges are evenly spaced, or lie at even parts between
powers of two counted from 0 or from 1. So the bucket follows from arithmetic: `score * even`, and
the bits of the score and of its distance to 1, for the bits of a float rise evenly between powers
of two. The sum of the three whole numbers rises by at least 1 at every edge and nowhere else. A
float32 that is not on an edge is so far from it that nothing is rounded across; float64 scores are
compared with the edges of the bucket found and moved where they are a rounding away.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.indices import count_values, sort_distinct, sum_runs
from howsure.tallies.row_tally import RowTally, as_rows, bucket_rows, find_edge_cuts
from howsure.tallies.tally import Ideal, Tally

MIN_BUCKETS = 400
EVEN_MULTIPLE = 300  # j/10, j/12, j/15, j/20, j/25, j/30, j/50, j/60, j/100 are multiples of 1/300
OCTAVES = range(6, 53)  # distances 2^-6 ... 2^-53 to either end: 1 - 2^-53 is the float below 1
FAR = 2.0 ** -OCTAVES[0]  # from here to either end buckets are spaced by ratio
SMALLEST_EDGE = 2.0 ** -(OCTAVES[-1] + 1)
BELOW_ANY_DISTANCE = 2.0 ** -(OCTAVES[-1] + 2)
SCORE_CHUNK = 1 << 17  # scores at a time: all columns of a chunk stay near the processor
DISTINCT_SAMPLE = 4  # distinct scores are counted in this many samples per bucket
SIGNED = {4: np.int32, 8: np.int64}


class BucketLayout(NamedTuple):
    """How a grid is spaced: parts of 1/even, and `steps` buckets between a power of two and the
    next.
    """

    even: int
    steps: int

    @property
    def lowest_code(self) -> int:
        """How far below 0 codes could fall; added to all of them."""
        return (len(OCTAVES) + 2) * self.steps * 2 + 1


def plan_layout(buckets: int) -> BucketLayout:
    """The layout of a grid of about `buckets` buckets."""
    checks.at_least(buckets, MIN_BUCKETS, "buckets")
    even = EVEN_MULTIPLE * max(1, -(-buckets // 2 // EVEN_MULTIPLE))
    return BucketLayout(even=even, steps=max(1, (buckets - even) // (2 * len(OCTAVES))))


@lru_cache(maxsize=8)
def make_grid(buckets: int) -> Floats:
    """Upper ends of about `buckets` buckets on [0, 1], ascending; bucket i is (edge i-1, edge i].

    One half is evenly spaced, so every edge of the usual equal-range bins is also an edge here. The
    other half is spaced by ratio towards 0 and towards 1, where the confidences of networks crowd.
    Exactly 0 and exactly 1 have buckets of their own. The grid depends on nothing but `buckets`, so
    tallies on it add up.

    >>> bool(np.isin(np.arange(16) / 15, make_grid(25_000)).all())
    True
    """
    even, steps = plan_layout(buckets)
    parts = 1 - np.arange(steps) / (2 * steps)
    near = np.concatenate([*(2.0**-k * parts for k in OCTAVES), [SMALLEST_EDGE]])
    edges = sort_distinct(np.concatenate((np.arange(even + 1) / even, near, 1 - near)))
    edges.setflags(write=False)  # shared by all tallies on this grid
    return edges


def space_ranks(n: int | float, parts: int) -> Floats:
    """Ranks that cut n samples into parts of equal size."""
    return sort_distinct(np.floor(np.arange(1, parts) * (n / parts)))


def compact_rows(t: Tally, buckets: int) -> RowTally:
    """`Tally.compact` for every kind of tally."""
    checks.at_least(buckets, MIN_BUCKETS, "buckets")
    if t.has_at_most(buckets):
        return as_rows(t)
    # Its buckets may straddle the new ones, whose ends would then be no cuts of the data.
    if t.approximate:
        raise InputError(
            f"this tally is already {t.approximate}; compact the exact tally, or keep this one."
        )
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        edges = make_grid(buckets)
        rows = replace(bucket_rows(t, find_edge_cuts(t, edges)), edges=edges)
        note = describe_grid(edges)
    else:
        cuts = t.cut_at(space_ranks(t.n, buckets))
        rows = bucket_rows(t, sort_distinct(np.concatenate(([0], cuts, [t.n]))))
        note = f"compacted to {len(rows.score):,} equally full buckets"
    ideal = rows.ideal
    if ideal is not None and len(ideal.loss) > buckets:
        # About so many rows of equally many samples, each with its mean loss.
        before = np.cumsum(ideal.count) - ideal.count
        part = np.floor(before / ideal.count.sum() * buckets)
        start = np.flatnonzero(np.diff(part, prepend=-1))
        count = sum_runs(ideal.count, start)
        ideal = Ideal(loss=sum_runs(ideal.count * ideal.loss, start) / count, count=count)
    return replace(rows, ideal=ideal, approximate=note)


def describe_grid(edges: Floats) -> str:
    """How a tally on this grid says that it is coarse."""
    return f"compacted to {len(edges):,} fixed buckets"


def from_buckets(score: Floats, count: Ints, wrong: Ints, claim: Floats, edges: Floats) -> RowTally:
    """The compact tally of rows whose buckets end at `edges`."""
    return RowTally(
        score=score,
        count=count,
        loss=wrong,
        claim=claim,
        square=wrong,
        approximate=describe_grid(edges),
        edges=edges,
    )


def merge_cells(score: Floats, right: Bools, count: Ints, *, low: Floats, high: Floats) -> RowTally:
    """The compact tally of counted cells, each with its mean score and the ends of its scores.

    Cells that overlap become one bucket: which of their scores were higher is not known.

    >>> ends = {"low": np.array([0.2, 0.6, 0.5]), "high": np.array([0.4, 0.8, 0.7])}
    >>> cells = np.array([0.3, 0.7, 0.6]), np.array([True, True, False]), np.array([2, 3, 1])
    >>> t = merge_cells(*cells, **ends)
    >>> t.count, t.loss, t.approximate
    (array([4, 2]), array([1, 0]), 'counted in 2 cells of neighbouring scores')
    """
    used = np.flatnonzero(count > 0)
    order = used[np.argsort(low[used], kind="stable")]
    score, right, count = score[order], right[order], count[order]
    low, high = low[order], high[order]
    reach = np.maximum.accumulate(high)
    start = np.flatnonzero(np.concatenate(([True], low[1:] > reach[:-1])))
    total, claim = sum_runs(count, start), sum_runs(score * count, start)
    bottom, top = low[start], reach[np.append(start[1:], len(score)) - 1]
    # A bucket is open at its lower end, and a mean may be rounded out of it.
    edges = np.unique(np.concatenate((np.nextafter(bottom, -inf), top)))
    rows = from_buckets(
        score=np.clip(claim / total, bottom, top)[::-1],
        count=total[::-1],
        wrong=sum_runs(np.where(right, 0, count), start)[::-1],
        claim=claim[::-1],
        edges=edges,
    )
    note = f"counted in {len(start):,} cells of neighbouring scores"
    return replace(rows, approximate=note)


def build_compact(score: Array, right: Bools, buckets: int) -> Tally | None:
    """The compact tally of right and wrong answers, without a sort; None where only a sort can tell
    what it is.

    That is the case for scores outside [0, 1], and where so few are distinct that the exact tally
    may be small enough.
    """
    sample = score[: DISTINCT_SAMPLE * buckets]
    if len(score) <= buckets or len(sort_distinct(sample)) <= buckets:
        return None
    if score.min() < 0 or score.max() > 1:
        return None
    wrong, count, claim = sum_buckets(score, right, buckets)
    edges = make_grid(buckets)
    some = np.flatnonzero(count)[::-1]
    low = np.where(some > 0, np.nextafter(edges[some - 1], inf), 0.0)
    # A mean may be rounded out of its bucket.
    mean = np.clip(claim[some] / count[some], low, edges[some])
    return from_buckets(
        score=mean, count=count[some], wrong=wrong[some], claim=claim[some], edges=edges
    )


def sum_buckets(score: Array, right: Bools, buckets: int) -> tuple[Ints, Ints, Floats]:
    """Wrong answers, samples and summed scores of each bucket, of scores in [0, 1].

    One pass over the samples, chunk by chunk, into cells; a bucket is one or more cells.
    """
    bucket = list_cell_buckets(buckets, score.itemsize)
    cells, size = len(bucket), len(make_grid(buckets))
    wrong = np.zeros(cells, dtype=np.int64)
    count = np.zeros(cells, dtype=np.int64)
    claim = np.zeros(cells)
    work = ChunkColumns.of(min(SCORE_CHUNK, len(score)), score.dtype)
    for i in range(0, len(score), SCORE_CHUNK):
        part, good = score[i : i + SCORE_CHUNK], right[i : i + SCORE_CHUNK]
        cell = find_cells(part, buckets, work)
        count += count_values(cell, minlength=cells)
        claim += count_values(cell, part, minlength=cells)
        wrong += count_values(cell[np.flatnonzero(~good)], minlength=cells)
    return (
        count_values(bucket, wrong, minlength=size).astype(np.int64),
        count_values(bucket, count, minlength=size).astype(np.int64),
        count_values(bucket, claim, minlength=size).astype(np.float64),
    )


class ChunkColumns(NamedTuple):
    """Columns of a chunk, reused: new memory for each step would cost more than the steps."""

    wide: Array
    distance: Array
    bits: Array
    whole: Array
    code: Array
    cell: Array

    @classmethod
    def of(cls, n: int, kind: np.dtype[np.floating]) -> ChunkColumns:
        """Columns for n scores of this kind."""
        return cls(
            wide=np.empty(n),
            distance=np.empty(n, dtype=kind),
            bits=np.empty(n, dtype=SIGNED[kind.itemsize]),
            whole=np.empty(n, dtype=np.int32),
            code=np.empty(n, dtype=np.int32),
            cell=np.empty(n, dtype=np.intp),
        )

    def take_first(self, n: int) -> ChunkColumns:
        """Columns for the last chunk, which is shorter."""
        return ChunkColumns(*(column[:n] for column in self))


def find_cells(score: Array, buckets: int, work: ChunkColumns) -> Ints:
    """A whole number per score that tells its bucket: a code of float32 scores, the bucket itself
    of float64 ones.
    """
    work = work.take_first(len(score))
    work.cell[:] = _encode(score, plan_layout(buckets), work)
    if score.itemsize == 4:
        return work.cell
    place = _list_code_buckets(buckets, 8)[work.cell]
    edges = make_grid(buckets)
    below = np.concatenate(([-inf], edges[:-1]))
    # A score that was rounded across an edge is moved until it lies in its bucket.
    off = np.flatnonzero((score > edges[place]) | (score <= below[place]))
    while len(off):
        there = place[off]
        there = there + np.where(score[off] > edges[there], 1, -1)
        place[off] = there
        off = off[(score[off] > edges[there]) | (score[off] <= below[there])]
    return place


def list_cell_buckets(buckets: int, itemsize: int) -> Ints:
    """The bucket of each cell, for scores of this width."""
    if itemsize == 4:
        return _list_code_buckets(buckets, 4)
    return np.arange(len(make_grid(buckets)))


@lru_cache(maxsize=8)
def _list_code_buckets(buckets: int, itemsize: int) -> Ints:
    """The bucket of each code, from the highest score of each bucket that is a float of this width."""
    edges, layout = make_grid(buckets), plan_layout(buckets)
    kind = {4: np.float32, 8: np.float64}[itemsize]
    top = edges.astype(kind)
    top = np.where(top > edges, np.nextafter(top, kind(-1)), top)
    # Some buckets hold no float of this width.
    used = np.flatnonzero(np.concatenate(([True], top[1:] > edges[:-1])))
    code = _encode(top[used], layout, ChunkColumns.of(len(used), top.dtype))
    table = np.zeros(layout.lowest_code + layout.even + 1, dtype=np.int64)
    np.maximum.at(table, code, used)
    return np.maximum.accumulate(table)


def _encode(score: Array, layout: BucketLayout, work: ChunkColumns) -> Array:
    """A whole number that rises from bucket to bucket."""
    kind = score.dtype
    steps_per_bit = layout.steps / 2.0 ** np.finfo(kind).nmant

    # The evenly spaced part.
    work.wide[:] = score
    np.multiply(work.wide, layout.even, out=work.wide)
    np.ceil(work.wide, out=work.wide)
    work.code[:] = work.wide

    # Less the buckets between 1 and each score, down to 1 - FAR.
    np.subtract(kind.type(1), score, out=work.distance)
    first, last = _read_bits(BELOW_ANY_DISTANCE, kind), _read_bits(FAR, kind)
    np.clip(work.distance.view(work.bits.dtype), first, last, out=work.bits)
    work.bits[:] -= first
    work.wide[:] = work.bits
    work.wide[:] *= steps_per_bit
    work.whole[:] = work.wide
    work.code[:] -= work.whole

    # Less the buckets between each score and FAR, and 1 at FAR; exactly 0 has one more than any.
    if score.min() < FAR:
        plain = score + kind.type(0)  # -0.0 + 0.0 is 0.0
        first = _read_bits(SMALLEST_EDGE, kind)
        bits = last - np.clip(plain.view(SIGNED[kind.itemsize]), first, last)
        near_zero = (bits * steps_per_bit).astype(np.int32)
        work.code[:] -= near_zero + (score <= FAR) + (score == 0)

    work.code[:] += layout.lowest_code
    return work.code


def _read_bits(x: float, kind: np.dtype[np.floating]) -> int:
    return int(kind.type(x).view(SIGNED[kind.itemsize]))
