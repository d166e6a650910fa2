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

from howsure._core.check import Array, Bools, Floats, Ints
from howsure.tallies.packed import (
    CHUNK,
    FLOAT,
    UNSIGNED,
    PackedTally,
    bits_at_most,
    claim_sums,
    pack,
    run_starts,
    widen,
)
from howsure.tallies.rows import as_rows, compacted, group, run_lengths
from howsure.tallies.tally import (
    PIECE,
    Blocks,
    Counts,
    Sums,
    Tally,
    added_to,
    described,
    running_sums,
)

SLICE = 1 << 20  # rows merged at a time; bounds the extra memory
SINGLY = (
    1 << 30
)  # up to this many samples claims are summed one by one, in the same order as a packed tally's


class CountedTally:
    """A tally of right and wrong: the bits of its distinct scores, ascending, how often each occurs
    and is wrong.
    """

    zero_one = True
    weighted = False
    equal_weights = True
    approximate = None
    ideal = None

    def __init__(self, bits: Array, times: Array, missed: Array):
        self.bits, self.times, self.missed = bits, times, missed
        self.n, self.total = (int(column.sum(dtype=np.int64)) for column in (times, missed))

    # Columns are made on demand and not kept: they are three times the size of what is stored.

    @property
    def score(self) -> Floats:
        return self._scores(slice(None))[::-1]

    @property
    def count(self) -> Ints:
        return self.times.astype(np.int64)[::-1]

    @property
    def loss(self) -> Ints:
        return self.missed.astype(np.int64)[::-1]

    @property
    def ends(self) -> Ints:
        return np.cumsum(self.count)

    def _scores(self, rows: slice | Ints) -> Floats:
        """The scores of rows, ascending."""
        return self.bits[rows].view(FLOAT[self.bits.itemsize]).astype(np.float64)

    @cached_property
    def _ends(self) -> Array:
        """Samples up to and with each row, ascending."""
        return np.cumsum(self.times, dtype=self.times.dtype)

    def _row_of(self, position: Ints) -> Ints:
        """The row that holds a position among the ascending samples."""
        return np.searchsorted(self._ends, position.astype(self._ends.dtype), side="right")

    def _start_of(self, row: Ints) -> Ints:
        """The position of the first sample of a row; n after the last row."""
        return np.where(row > 0, self._ends[np.maximum(row, 1) - 1], 0).astype(np.int64)

    def pieces(self) -> Iterator[tuple[Floats, Ints, Ints]]:
        for stop in range(len(self.bits), 0, -PIECE):
            rows = slice(max(0, stop - PIECE), stop)
            count, loss = self.times[rows].astype(np.int64), self.missed[rows].astype(np.int64)
            yield self._scores(rows)[::-1], count[::-1], loss[::-1]

    def has_at_most(self, rows: int) -> bool:
        return len(self.bits) <= rows

    def blocks(self) -> Blocks:
        return self._picked(self.missed > 0)

    def tied(self) -> Blocks:
        return self._picked(self.times > 1)

    def _picked(self, rows: Bools) -> Blocks:
        after = self._ends[rows].astype(np.int64)
        before = self.n - after
        after -= self.times[rows]
        np.subtract(
            self.n, after, out=after
        )  # in place: these columns are as long as the rows with errors
        return Blocks(before[::-1], after[::-1], self.missed[rows].astype(np.int64)[::-1])

    def above(self, scores: Floats) -> Ints:
        last = bits_at_most(scores, self.bits.itemsize)
        rows = np.where(np.asarray(scores) < 0, 0, np.searchsorted(self.bits, last, side="right"))
        return self.n - self._start_of(rows)

    def cut_at(self, ranks: Counts) -> Ints:
        cuts: Ints = np.array(ranks, dtype=np.int64)
        inside = (cuts > 0) & (cuts < self.n)
        cuts[inside] = self.n - self._start_of(self._row_of(self.n - cuts[inside]))
        return cuts

    def score_at(self, rank: int) -> float:
        return float(self._scores(self._row_of(np.array([self.n - 1 - rank])))[0])

    def score_range(self) -> tuple[float, float]:
        low, high = self._scores(np.array([0, -1]))
        return float(low), float(high)

    def between(self, cuts: Counts) -> Sums:
        at: Ints = self.n - np.array(cuts, dtype=np.int64)[::-1]  # ascending positions from 0 to n
        rows = np.append(self._row_of(at[:-1]), len(self.bits))
        loss = np.add.reduceat(self.missed, rows[:-1], dtype=np.int64)
        claim = self._claims(at[:-1]) if self.n <= SINGLY else self._row_claims(rows[:-1])
        low, high = self._scores(rows[:-1]), self._scores(rows[1:] - 1)
        return Sums(np.diff(at)[::-1], claim[::-1], loss[::-1], high[::-1], low[::-1])

    def _claims(self, start: Ints) -> Floats:
        """Summed scores of the bins that start at these positions; equal to the last bit to a
        packed tally's.
        """
        return claim_sums(start, self.n, self._sums, self._samples)

    @cached_property
    def _sums(self) -> list[float]:
        """The summed scores of each run of 2^16 samples."""
        return [float(np.add.reduceat(self._samples(i), [0])[0]) for i in range(0, self.n, CHUNK)]

    def _samples(self, start: int) -> Floats:
        """2^16 scores, ascending, one by one again, from a position on."""
        stop = min(start + CHUNK, self.n)
        first, last = self._row_of(np.array([start, stop - 1]))
        rows = slice(int(first), int(last) + 1)
        edges = np.clip(self._ends[rows].astype(np.int64), start, stop)
        return np.repeat(self._scores(rows), np.diff(edges, prepend=start))

    def _row_claims(self, row: Ints) -> Floats:
        """The same as score times count, for more samples than can be looked at one by one."""
        edges = np.arange(0, len(self.bits), SLICE)
        start = np.union1d(row, edges)
        sums: list[Floats] = []
        for i in edges.tolist():
            claims = self._scores(slice(i, i + SLICE)) * self.times[i : i + SLICE]
            sums.append(np.add.reduceat(claims, start[(start >= i) & (start < i + SLICE)] - i))
        return np.add.reduceat(np.concatenate(sums), np.searchsorted(start, row))

    @property
    def distinct(self) -> int:
        return len(self.bits)

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Counts, Counts]:
        return running_sums(self, rows, bottom_up)

    def compact(self, buckets: int = 25_000) -> Tally:
        return compacted(self, buckets)

    def __add__(self, other: Tally) -> Tally:
        return (
            _merged_counts([self, other])
            if isinstance(other, CountedTally)
            else as_rows(self) + other
        )

    def __radd__(self, other: object) -> Tally:
        return added_to(self, other)

    def __repr__(self) -> str:
        return described(self)


def counted(score: Array, wrong: Bools) -> CountedTally:
    """The counted tally of non-negative float32 or float64 scores.

    >>> counted(np.array([0.5, 0.25, 0.5], np.float32), np.array([True, False, False]))
    <Tally: n=3, wrong=1, 2 distinct scores>
    """
    return _counted(pack(score, wrong))


def _counted(keys: Array) -> CountedTally:
    start = run_starts(keys)
    missed = np.add.reduceat(keys & 1, start, dtype=np.uint32)
    times = run_lengths(start, len(keys)).astype(np.uint32)
    return CountedTally(keys[start] >> 1, times, missed)


def merged(parts: Sequence[Tally]) -> Tally:
    """All samples of all parts: faster than adding one after the other, and with little in memory
    beside the result.

    >>> merged([counted(np.array([s], np.float32), np.array([False])) for s in (0.5, 0.25, 0.5)])
    <Tally: n=3, wrong=0, 2 distinct scores>
    """
    packed = [t.keys for t in parts if isinstance(t, PackedTally) and t.signs is None]
    if len(packed) == len(parts):
        return _merged_keys(packed)
    counts = [
        _counted(t.keys) if isinstance(t, PackedTally) and t.signs is None else t for t in parts
    ]
    exact = [t for t in counts if isinstance(t, CountedTally)]
    return _merged_counts(exact) if len(exact) == len(parts) else sum(parts[1:], parts[0])


def _merged_keys(every: Sequence[Array]) -> Tally:
    """The samples one by one while that is no more than twice as large as counting them: sorting
    keys is faster.
    """
    if any(keys.itemsize == 8 for keys in every):
        every = [widen(keys) for keys in every]
    keys = np.concatenate(every)
    keys.sort(kind="stable")  # sorted runs: merged, not sorted again
    found = PackedTally(keys)
    return _counted(keys) if keys.nbytes > 2 * (keys.itemsize + 8) * found.distinct else found


def _merged_counts(parts: Sequence[CountedTally]) -> CountedTally:
    """The same of counted tallies, slice by slice of the scores."""
    if len(parts) == 1:
        return parts[0]
    width = max(p.bits.itemsize for p in parts)
    bits = [_widened(p.bits, width) for p in parts]
    kind = np.uint32 if sum(p.n for p in parts) < 1 << 32 else np.int64
    size = sum(map(len, bits))
    out = (
        np.empty(size, UNSIGNED[width]),
        np.empty(size, kind),
        np.empty(size, kind),
    )  # pages count when written to
    at = 0
    for rows in _in_step(bits):
        key = np.concatenate([b[r] for b, r in zip(bits, rows, strict=True)])
        order = np.argsort(key, kind="stable")  # sorted runs: merged, not sorted again
        columns = ("times", "missed")
        pairs = [
            np.concatenate([getattr(p, c)[r] for p, r in zip(parts, rows, strict=True)])
            for c in columns
        ]
        found, sums = group(key[order], *(p[order].astype(kind, copy=False) for p in pairs))
        for target, column in zip(out, (found, *sums), strict=True):
            target[at : at + len(found)] = column
        at += len(found)
    bits_, times, missed = (column[:at] for column in out)
    return CountedTally(bits_, times, missed)


def _widened(bits: Array, width: int) -> Array:
    """float32 bits as float64 bits; order and meaning stay."""
    if bits.itemsize == width:
        return bits
    return bits.view(np.float32).astype(np.float64).view(np.uint64)


def _in_step(columns: Sequence[Array]) -> Iterator[list[slice]]:
    """Slices of sorted columns between the same values, about SLICE rows in all; the longest column
    sets the pace.
    """
    longest = max(columns, key=len)
    step = max(1, SLICE * len(longest) // sum(map(len, columns)))
    edges = longest[step::step]
    stops = [np.append(np.searchsorted(c, edges), len(c)) for c in columns]
    starts = [np.concatenate(([0], s[:-1])) for s in stops]
    for i in range(len(edges) + 1):
        yield [slice(int(a[i]), int(b[i])) for a, b in zip(starts, stops, strict=True)]
