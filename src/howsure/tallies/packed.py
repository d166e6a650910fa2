"""The exact tally of non-negative scores: one sorted integer per sample.

The bits of a non-negative float order like the float itself and leave the sign bit free, so
`bits << 1 | wrong` sorts as an unsigned integer of the same width. The keys ascend: least trusted first,
and inside a tie block the right answers come before the wrong ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure.tallies.rows import as_rows, compacted, run_lengths
from howsure.tallies.tally import Blocks, Counts, Sums, Tally, added_to, described, row_pieces

CHUNK = 1 << 16  # scores decoded at a time; bounds the extra memory
SOME = 1 << 15  # tie blocks widened at a time
TIED = 8  # runs of which at least one in so many has ties are summed
UNSIGNED = {4: np.uint32, 8: np.uint64}
FLOAT = {4: np.float32, 8: np.float64}
CODES = {4: ("=I", "=f"), 8: ("=Q", "=d")}
REACH = (16, 8, 4, 2, 1)  # together the longest run of equal keys that steps alone can cross


def pack(score: Array, wrong: Bools) -> Array:
    """Sorted keys of non-negative scores."""
    keys = (score + score.dtype.type(0)).view(UNSIGNED[score.itemsize])  # -0.0 + 0.0 is 0.0
    keys <<= 1
    keys |= wrong
    keys.sort()
    return keys


def unpack(keys: Array) -> Array:
    """The scores of keys."""
    return (keys >> 1).view(FLOAT[keys.itemsize])


def widen(keys: Array) -> Array:
    """float32 keys as float64 keys; order and meaning stay."""
    if keys.itemsize == 8:
        return keys
    wide = unpack(keys).astype(np.float64).view(np.uint64) << np.uint64(1)
    return wide | (keys & 1)


def run_starts(keys: Array) -> Ints:
    """Where each run of equal scores begins: more than the lowest bit of the sorted keys differs."""
    return np.flatnonzero(np.concatenate(([True], (keys[1:] ^ keys[:-1]) > 1)))


def bits_at_most(scores: Floats, itemsize: int) -> Array:
    """The bits of the largest float of this width that is not above each score; those of 0 below 0."""
    kind = FLOAT[itemsize]
    near = np.asarray(scores, dtype=kind)
    floor = np.where(near.astype(np.float64) > scores, np.nextafter(near, kind(-1)), near)
    return np.maximum(floor, kind(0)).view(UNSIGNED[itemsize])


def claim_sums(start: Ints, n: int, sums: Sequence[float], samples: Callable[[int], Array]) -> Floats:
    """Summed scores of the bins that start at these ascending positions, the first at 0, of n ascending scores.

    `sums` are those of each CHUNK, and `samples` gives the scores of the one that begins at a position: only chunks
    that belong to several bins are looked at. The order of the additions depends on the bin alone.
    """
    total = [0.0] * len(start)
    begins = np.searchsorted(start, np.arange(0, n + CHUNK, CHUNK)).tolist()  # bins that begin before each chunk
    for number, i in enumerate(range(0, n, CHUNK)):
        first, last = begins[number], begins[number + 1]
        if first == len(start) or start[first] != i:
            first -= 1  # the bin before reaches in
        if last - first == 1:
            total[first] += sums[number]
            continue
        inside = np.maximum(start[first:last] - i, 0)
        for b, part in enumerate(np.add.reduceat(samples(i), inside, dtype=np.float64).tolist(), first):
            total[b] += part
    return np.array(total)


class PackedTally:
    """A tally of right and wrong that keeps only its sorted keys."""

    zero_one = True
    weighted = False
    equal_weights = True
    approximate = None
    ideal = None

    def __init__(self, keys: Array):
        self.keys = keys
        self._last: tuple[Counts, Sums] | None = None

    @property
    def n(self) -> int:
        return len(self.keys)

    @cached_property
    def wrong(self) -> Ints:
        """Positions of the wrong answers, ascending."""
        flag = self.keys.astype(np.uint8)  # keeps the low byte
        flag &= 1
        return np.flatnonzero(flag.view(np.bool_))

    @property
    def total(self) -> int:
        return len(self.wrong)

    @cached_property
    def rows(self) -> tuple[Floats, Ints, Ints]:
        """Distinct scores, counts and wrong counts, most trusted first."""
        start = run_starts(self.keys)
        first = self.keys[start] if len(start) < self.n else self.keys
        score = unpack(first).astype(np.float64, copy=False)
        count = run_lengths(start, self.n)
        return score[::-1], count[::-1], self._losses(start, count, first)[::-1]

    def _losses(self, start: Ints, count: Ints, first: Array) -> Ints:
        """Wrong answers of runs; where few are tied, the first key of a run tells all of it."""
        tied = np.flatnonzero(count > 1)
        if TIED * len(tied) > len(start):
            return np.add.reduceat(self.keys & 1, start, dtype=np.uint32).astype(np.int64)
        loss = (first & 1).astype(np.int64)
        ends = start[tied] + count[tied], start[tied]
        loss[tied] = np.subtract(*(np.searchsorted(self.wrong, at) for at in ends))
        return loss

    def has_at_most(self, rows: int) -> bool:
        return self._distinct(rows) <= rows

    @cached_property
    def distinct(self) -> int:
        """How many scores there are, without making the rows."""
        return self._distinct(self.n)

    def _distinct(self, enough: int) -> int:
        found = 1
        for i in range(0, self.n - 1, CHUNK):  # often decided by the first chunk
            part = self.keys[i : i + CHUNK + 1]
            found += int(np.count_nonzero((part[1:] ^ part[:-1]) > 1))  # more than the lowest bit: another score
            if found > enough:
                break
        return found

    @property
    def score(self) -> Floats:
        return self.rows[0]

    @property
    def count(self) -> Ints:
        return self.rows[1]

    @property
    def loss(self) -> Ints:
        return self.rows[2]

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        return row_pieces(self)

    def blocks(self) -> Blocks:
        return self._blocks

    @cached_property
    def _blocks(self) -> Blocks:
        wrong = self.wrong
        if not len(wrong):
            return Blocks(wrong, wrong, wrong)
        key = self.keys[wrong]
        first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))  # equal keys: wrong and tied
        loss = np.diff(first, append=len(wrong))
        start, key = wrong[first], key[first]
        del first  # columns as long as the errors are what the panel's memory goes to
        before = start + loss  # wrong answers close their block
        np.subtract(self.n, before, out=before)
        self._include_right(start, key)
        after = np.subtract(self.n, start, out=start)
        return Blocks(before[::-1], after[::-1], loss[::-1])

    def _include_right(self, start: Ints, key: Array) -> None:
        """Move `start` back over the right answers with the same score."""
        for i in range(0, len(start), SOME):
            part = slice(i, i + SOME)
            right = key[part] - key.dtype.type(1)
            mixed = np.flatnonzero(self.keys.take(start[part] - 1, mode="clip") == right)
            start[i + mixed] = self._first_equal(start[i + mixed] - 1, right[mixed])

    def _first_equal(self, at: Ints, key: Array) -> Ints:
        """Where the run of equal keys that holds each position begins."""
        for width in REACH:  # short runs by steps of falling width, which is faster than a search of all keys
            at -= width * (self.keys.take(at - width, mode="clip") == key)
        at = np.maximum(at, 0)
        long = np.flatnonzero(self.keys.take(at - 1, mode="clip") == key)
        at[long] = np.searchsorted(self.keys, key[long])
        return at

    def above(self, scores: Floats) -> Ints:
        last = bits_at_most(scores, self.keys.itemsize) << 1 | 1  # the last key that is not above
        found = np.searchsorted(self.keys, last, side="right")
        return self.n - np.where(np.asarray(scores) < 0, 0, found)

    def cut_at(self, ranks: Counts) -> Ints:
        cuts: Ints = np.array(ranks, dtype=np.int64)
        inside = (cuts > 0) & (cuts < self.n)
        here = self.keys[np.where(inside, self.n - cuts, 0)] >> 1  # the last sample before the cut ...
        below = self.keys[np.where(inside, self.n - 1 - cuts, 0)] >> 1  # ... and the first after it
        split = inside & (here == below)
        cuts[split] = self.n - np.searchsorted(self.keys, below[split] << 1)
        return cuts

    def score_at(self, rank: int) -> float:
        bits, number = CODES[self.keys.itemsize]  # for single keys much faster than NumPy
        return struct.unpack(number, struct.pack(bits, self.keys.item(self.n - 1 - rank) >> 1))[0]

    def score_range(self) -> tuple[float, float]:
        low, high = unpack(self.keys[[0, -1]])
        return float(low), float(high)

    def between(self, cuts: Counts) -> Sums:
        if self._last is None or not np.array_equal(self._last[0], cuts):
            self._last = (np.array(cuts), self._between(cuts))  # ece, mce and reliability ask for the same bins
        return self._last[1]

    def _between(self, cuts: Counts) -> Sums:
        at: Ints = self.n - np.array(cuts, dtype=np.int64)  # descending positions
        loss = -np.diff(np.searchsorted(self.wrong, at))
        claim = self._claims(at[:0:-1])[::-1]
        high, low = unpack(self.keys[at[:-1] - 1]), unpack(self.keys[at[1:]])
        return Sums(-np.diff(at), claim, loss, high.astype(np.float64), low.astype(np.float64))

    def _claims(self, start: Ints) -> Floats:
        """Summed scores of the bins that start at these ascending positions."""
        return claim_sums(start, self.n, self._sums, self._samples)

    @cached_property
    def _sums(self) -> list[float]:
        """The summed scores of each run of 2^16 samples."""
        return [float(np.add.reduceat(self._samples(i), [0], dtype=np.float64)[0]) for i in range(0, self.n, CHUNK)]

    def _samples(self, start: int) -> Array:
        """2^16 scores, ascending, from a position on."""
        return unpack(self.keys[start : start + CHUNK])

    def compact(self, buckets: int = 25_000) -> Tally:
        return compacted(self, buckets)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, PackedTally):
            return as_rows(self) + other
        keys = (self.keys, other.keys)
        if keys[0].itemsize != keys[1].itemsize:
            keys = (widen(keys[0]), widen(keys[1]))
        merged = np.concatenate(keys)
        merged.sort(kind="stable")  # two sorted runs: one merge
        return PackedTally(merged)

    def __radd__(self, other: object) -> Tally:
        return added_to(self, other)

    def __repr__(self) -> str:
        return described(self)
