"""The exact tally in counted form: distinct scores with integer counts, for data that arrive in
parts.

The bits of a non-negative float order like the float itself. A float32 score takes 12 bytes here,
however often it occurs, and there are fewer than 3 · 10^7 of them in [0.1, 1]. All columns are
integers, so sums of parts are the same to the last bit in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.indices import sort_distinct, sum_runs
from howsure.tallies.packed_keys import (
    FLOAT,
    UNSIGNED,
    PackedTally,
    find_key_runs,
    pack_keys,
    round_down_to_bits,
    widen_keys,
)
from howsure.tallies.row_tally import find_runs, measure_runs
from howsure.tallies.tally import PIECE_ROWS, Blocks, Counts, RangeSums, Tally, compute_on_read

MERGE_ROWS = 1 << 20  # rows merged or summed at a time; bounds the extra memory


class CountedTally(Tally):
    """A tally of right and wrong: the bits of its distinct scores, ascending, how often each occurs
    and is wrong.
    """

    def __init__(self, bits: Array, times: Array, missed: Array):
        self.bits, self.times, self.missed = bits, times, missed
        self._n = int(times.sum(dtype=np.int64))
        self._total = int(missed.sum(dtype=np.int64))

    @compute_on_read
    def n(self) -> int:
        return self._n

    @compute_on_read
    def total(self) -> int:
        return self._total

    # Columns are made on demand and not kept: they are three times the size of what is stored.

    @compute_on_read
    def score(self) -> Floats:
        return self._decode(slice(None))[::-1]

    @compute_on_read
    def count(self) -> Ints:
        return self.times.astype(np.int64)[::-1]

    @compute_on_read
    def loss(self) -> Ints:
        return self.missed.astype(np.int64)[::-1]

    @property
    def ends(self) -> Ints:
        return np.cumsum(self.count)

    @property
    def distinct(self) -> int:
        return len(self.bits)

    def _decode(self, rows: slice | Ints) -> Floats:
        """The scores of rows, ascending."""
        return self.bits[rows].view(FLOAT[self.bits.itemsize]).astype(np.float64)

    @cached_property
    def _ascending_ends(self) -> Array:
        """Samples up to and with each row, ascending."""
        return np.cumsum(self.times, dtype=self.times.dtype)

    def _find_rows(self, positions: Ints) -> Ints:
        """The rows that hold these positions among the ascending samples."""
        ends = self._ascending_ends
        return np.searchsorted(ends, positions.astype(ends.dtype), side="right")

    def _find_starts(self, rows: Ints) -> Ints:
        """The position of the first sample of each row; n after the last row."""
        before = self._ascending_ends[np.maximum(rows, 1) - 1]
        return np.where(rows > 0, before, 0).astype(np.int64)

    def pieces(self) -> Iterator[tuple[Floats, Ints, Ints]]:
        for stop in range(len(self.bits), 0, -PIECE_ROWS):
            rows = slice(max(0, stop - PIECE_ROWS), stop)
            count = self.times[rows].astype(np.int64)
            loss = self.missed[rows].astype(np.int64)
            yield self._decode(rows)[::-1], count[::-1], loss[::-1]

    def blocks(self) -> Blocks:
        return self._pick_ascending(self.missed > 0)

    def tied(self) -> Blocks:
        return self._pick_ascending(self.times > 1)

    def _pick_ascending(self, rows: Bools) -> Blocks:
        # In place: these columns are as long as the rows with errors.
        after = self._ascending_ends[rows].astype(np.int64)
        before = self.n - after
        after -= self.times[rows]
        np.subtract(self.n, after, out=after)
        loss = self.missed[rows].astype(np.int64)
        return Blocks(before=before[::-1], after=after[::-1], loss=loss[::-1])

    def above(self, scores: Floats) -> Ints:
        last = round_down_to_bits(scores, self.bits.itemsize)
        rows_below = np.searchsorted(self.bits, last, side="right")
        rows_below = np.where(np.asarray(scores) < 0, 0, rows_below)
        return self.n - self._find_starts(rows_below)

    def cut_at(self, ranks: Counts) -> Ints:
        cuts: Ints = np.array(ranks, dtype=np.int64)
        inside = (cuts > 0) & (cuts < self.n)
        row = self._find_rows(self.n - cuts[inside])
        cuts[inside] = self.n - self._find_starts(row)
        return cuts

    def score_at(self, rank: int) -> float:
        row = self._find_rows(np.array([self.n - 1 - rank]))
        return float(self._decode(row)[0])

    def score_range(self) -> tuple[float, float]:
        low, high = self._decode(np.array([0, -1]))
        return float(low), float(high)

    def between(self, cuts: Counts) -> RangeSums:
        at: Ints = self.n - np.array(cuts, dtype=np.int64)[::-1]  # ascending positions from 0 to n
        first = self._find_rows(at[:-1])
        last = np.append(first[1:], len(self.bits)) - 1
        loss = sum_runs(self.missed, first, dtype=np.int64)
        return RangeSums(
            count=np.diff(at)[::-1],
            claim=self._sum_claims(first)[::-1],
            loss=loss[::-1],
            high=self._decode(last)[::-1],
            low=self._decode(first)[::-1],
        )

    def _sum_claims(self, first: Ints) -> Floats:
        """Summed scores of the bins that begin at these rows, some rows at a time."""
        edges = np.arange(0, len(self.bits), MERGE_ROWS)
        start = sort_distinct(np.concatenate((first, edges)))
        sums: list[Floats] = []
        for i in edges.tolist():
            claims = self._decode(slice(i, i + MERGE_ROWS)) * self.times[i : i + MERGE_ROWS]
            inside = start[(start >= i) & (start < i + MERGE_ROWS)]
            sums.append(sum_runs(claims, inside - i))
        return sum_runs(np.concatenate(sums), np.searchsorted(start, first))

    def __add__(self, other: Tally) -> Tally:
        if isinstance(other, CountedTally):
            return _merge_counted([self, other])
        return super().__add__(other)


def count_scores(score: Array, wrong: Bools) -> CountedTally:
    """The counted tally of non-negative float32 or float64 scores.

    >>> count_scores(np.array([0.5, 0.25, 0.5], np.float32), np.array([True, False, False]))
    <Tally: n=3, wrong=1, 2 distinct scores>
    """
    return _count_keys(pack_keys(score, wrong))


def _count_keys(keys: Array) -> CountedTally:
    start = find_key_runs(keys)
    return CountedTally(
        bits=keys[start] >> 1,
        times=measure_runs(start, len(keys)).astype(np.uint32),
        missed=sum_runs(keys & 1, start, dtype=np.uint32),
    )


def merge_tallies(parts: Sequence[Tally]) -> Tally:
    """All samples of all parts: faster than adding one after the other, and with little in memory
    beside the result.

    >>> singles = [count_scores(np.array([s], np.float32), np.array([False])) for s in (0.5, 0.25)]
    >>> merge_tallies(singles)
    <Tally: n=2, wrong=0, 2 distinct scores>
    """
    packed: list[Array] = []
    counted: list[CountedTally] = []
    for part in parts:
        if isinstance(part, PackedTally) and part.signs is None:
            packed.append(part.keys)
        elif isinstance(part, CountedTally):
            counted.append(part)
    if len(packed) == len(parts):
        if any(keys.itemsize == 8 for keys in packed):
            packed = [widen_keys(keys) for keys in packed]
        keys = np.concatenate(packed)
        keys.sort(kind="stable")  # sorted runs: merged, not sorted again
        singles = PackedTally(keys)
        # Single samples, which are sorted faster, while counts would not take half of their memory.
        if keys.nbytes > 2 * (keys.itemsize + 8) * singles.distinct:
            return _count_keys(keys)
        return singles
    if len(packed) + len(counted) == len(parts):
        return _merge_counted([*counted, *map(_count_keys, packed)])
    return sum(parts[1:], parts[0])


def _merge_counted(parts: Sequence[CountedTally]) -> CountedTally:
    """The sum of counted tallies, slice by slice of the scores."""
    if len(parts) == 1:
        return parts[0]
    width = max(p.bits.itemsize for p in parts)
    columns: list[Array] = []
    for p in parts:
        if p.bits.itemsize == width:
            columns.append(p.bits)
        else:  # float32 bits as float64 bits; order and meaning stay
            columns.append(p.bits.view(np.float32).astype(np.float64).view(np.uint64))
    kind = np.uint32 if sum(p.n for p in parts) < 1 << 32 else np.int64
    # As large as all parts together: pages of memory count only when they are written to.
    size = sum(map(len, columns))
    bits, times, missed = (
        np.empty(size, UNSIGNED[width]),
        np.empty(size, kind),
        np.empty(size, kind),
    )
    stop = 0
    for slices in _slice_in_step(columns):
        pieces = list(zip(parts, columns, slices, strict=True))
        key = np.concatenate([column[rows] for _, column, rows in pieces])
        order = np.argsort(key, kind="stable")  # sorted runs: merged, not sorted again
        key = key[order]
        first = find_runs(key)
        some_times = np.concatenate([p.times[rows] for p, _, rows in pieces])[order]
        some_missed = np.concatenate([p.missed[rows] for p, _, rows in pieces])[order]
        start, stop = stop, stop + len(first)
        bits[start:stop] = key[first]
        times[start:stop] = sum_runs(some_times, first, dtype=kind)
        missed[start:stop] = sum_runs(some_missed, first, dtype=kind)
    return CountedTally(bits=bits[:stop], times=times[:stop], missed=missed[:stop])


def _slice_in_step(columns: Sequence[Array]) -> Iterator[list[slice]]:
    """Slices of sorted columns between the same values, about MERGE_ROWS rows in all; the longest
    column sets the pace.
    """
    longest = max(columns, key=len)
    step = max(1, MERGE_ROWS * len(longest) // sum(map(len, columns)))
    edges = longest[step::step]
    stops = [np.append(np.searchsorted(c, edges), len(c)) for c in columns]
    starts = [np.concatenate(([0], s[:-1])) for s in stops]
    for i in range(len(edges) + 1):
        yield [slice(int(a[i]), int(b[i])) for a, b in zip(starts, stops, strict=True)]
