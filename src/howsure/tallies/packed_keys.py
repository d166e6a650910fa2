"""The exact tally of right and wrong: one sorted integer per sample.

The bits of a non-negative float order like the float itself and leave the sign bit free, so `bits
<< 1 | wrong` sorts as an unsigned integer of the same width. The keys ascend: least trusted first,
and inside a tie block the right answers come before the wrong ones. Scores of both signs have no
free bit, but the floats between the smallest and the largest of each sign, counted from the lowest
on, do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.indices import sort_distinct, sum_runs
from howsure.tallies.row_tally import find_runs, measure_runs
from howsure.tallies.tally import PIECE_ROWS, Blocks, Counts, RangeSums, Tally, compute_on_read

KEY_CHUNK = 1 << 16  # keys decoded at a time; bounds the extra memory
BLOCK_CHUNK = 1 << 15  # tie blocks widened at a time
MANY_TIES = 8  # where one run in so many or more has ties, all runs are summed
UNSIGNED = {4: np.uint32, 8: np.uint64}
FLOAT = {4: np.float32, 8: np.float64}
STRUCT_CODES = {4: ("=I", "=f"), 8: ("=Q", "=d")}
LARGEST_SUMMED_SCORE = 2.0**960  # sums of larger scores may overflow
RUN_STEPS = (16, 8, 4, 2, 1)  # together the longest run of equal keys that steps alone can cross


def pack_keys(score: Array, wrong: Bools) -> Array:
    """Sorted keys of non-negative scores."""
    plain = score + score.dtype.type(0)  # -0.0 + 0.0 is 0.0
    return _sort_keys(plain.view(UNSIGNED[score.itemsize]), wrong)


def _sort_keys(bits: Array, wrong: Bools) -> Array:
    """Keys, made in place."""
    bits <<= 1
    bits |= wrong
    bits.sort()
    return bits


def unpack_scores(keys: Array) -> Array:
    """The scores of keys."""
    return (keys >> 1).view(FLOAT[keys.itemsize])


def widen_keys(keys: Array) -> Array:
    """float32 keys as float64 keys; order and meaning stay."""
    if keys.itemsize == 8:
        return keys
    wide = unpack_scores(keys).astype(np.float64).view(np.uint64) << np.uint64(1)
    return wide | (keys & 1)


def find_key_runs(keys: Array) -> Ints:
    """Where each run of equal scores begins: more than the lowest bit of the sorted keys differs."""
    return np.flatnonzero(np.concatenate(([True], (keys[1:] ^ keys[:-1]) > 1)))


def round_down_to_bits(scores: Floats, itemsize: int) -> Array:
    """The bits of the largest float of this width that is not above each score; those of 0 below 0."""
    kind = FLOAT[itemsize]
    near = np.asarray(scores, dtype=kind)
    floor = np.where(near.astype(np.float64) > scores, np.nextafter(near, kind(-1)), near)
    return np.maximum(floor, kind(0)).view(UNSIGNED[itemsize])


class Signs(NamedTuple):
    """float64 scores of both signs, numbered from the lowest on; the floats between the two
    smallest are left out.

    The bits of the negative score nearest to 0 and of the lowest one, both without their sign, and
    of the smallest score that is not negative.
    """

    near: int
    far: int
    least: int

    @classmethod
    def of(cls, score: Floats) -> Signs:
        """What scores span, some of them negative."""
        negative = score < 0
        nearest = np.where(negative, score, -np.inf).max()
        least = np.where(negative, np.inf, score).min()
        if least == np.inf:  # all are negative
            least = 0.0
        near_bits, far_bits, least_bits = np.array([-nearest, -score.min(), least]).view(np.uint64)
        return cls(near=int(near_bits), far=int(far_bits), least=int(least_bits))

    @property
    def zero(self) -> int:
        """The number of the first score that is not negative."""
        return self.far - self.near + 1

    def to_numbers(self, score: Floats) -> Array:
        """Numbers of scores."""
        bits = score.view(np.uint64)
        negative = (score.view(np.int64) >> 63).view(np.uint64)  # all bits set, or none
        above, below = self.zero - self.least, self.far + (1 << 63) + 1
        # Flipped bits are minus the bits, less 1. All sums are modulo 2^64, and made in place.
        number = bits ^ negative
        negative &= np.uint64((below - above) % (1 << 64))
        number += negative
        number += np.uint64(above % (1 << 64))
        return number

    def to_scores(self, number: Array) -> Floats:
        """The scores of numbers."""
        negative = number < self.zero
        below = np.uint64(self.far) - number
        above = number - np.uint64(self.zero) + np.uint64(self.least)
        size = np.where(negative, below, above).view(np.float64)
        return np.where(negative, -size, size)

    def find_last_number(self, scores: Floats) -> tuple[Array, Bools]:
        """The number of the largest score that is not above each of these, and where there is any."""
        negative, bits = scores < 0, np.abs(scores).view(np.uint64)
        below = np.uint64(self.far) - np.clip(bits, self.near, self.far)
        above = np.maximum(bits, self.least) - np.uint64(self.least) + np.uint64(self.zero)
        above = np.where(bits < self.least, np.uint64(self.zero - 1), above)
        return np.where(negative, below, above), ~(negative & (bits > self.far))


def pack_signed(score: Floats, wrong: Bools) -> PackedTally | None:
    """The tally of float64 scores, some of them negative; None where numbering them takes more than
    63 bits.

    >>> t = pack_signed(np.array([-1.5, 2.0, 0.0]), np.array([True, False, False]))
    >>> t.score, t.loss
    (array([ 2. ,  0. , -1.5]), array([0, 0, 1]))
    """
    signs, high = Signs.of(score), score.max()
    if max(high, -score.min()) > LARGEST_SUMMED_SCORE:
        return None
    high_bits = int(np.float64(max(high, 0.0)).view(np.uint64))
    if signs.zero + high_bits - signs.least >= 1 << 63:
        return None
    return PackedTally(_sort_keys(signs.to_numbers(score), wrong), signs)


class PackedTally(Tally):
    """A tally of right and wrong that keeps only its sorted keys."""

    def __init__(self, keys: Array, signs: Signs | None = None):
        self.keys = keys
        self.signs = signs
        self._last_sums: tuple[Counts, RangeSums] | None = None

    @compute_on_read
    def n(self) -> int:
        return len(self.keys)

    @compute_on_read
    def total(self) -> int:
        return len(self.wrong)

    @compute_on_read
    def score(self) -> Floats:
        return self.rows[0]

    @compute_on_read
    def count(self) -> Ints:
        return self.rows[1]

    @compute_on_read
    def loss(self) -> Ints:
        return self.rows[2]

    @cached_property
    def rows(self) -> tuple[Floats, Ints, Ints]:
        """Distinct scores, counts and wrong counts, most trusted first."""
        start = find_key_runs(self.keys)
        first = self.keys[start] if len(start) < self.n else self.keys
        count = measure_runs(start, self.n)
        tied = np.flatnonzero(count > 1)
        if MANY_TIES * len(tied) > len(start):
            loss = sum_runs(self.keys & 1, start, dtype=np.uint32).astype(np.int64)
        else:  # the key of a single sample tells whether it is wrong
            loss = (first & 1).astype(np.int64)
            wrong_at_end = np.searchsorted(self.wrong, start[tied] + count[tied])
            loss[tied] = wrong_at_end - np.searchsorted(self.wrong, start[tied])
        return self._decode(first)[::-1], count[::-1], loss[::-1]

    @cached_property
    def wrong(self) -> Ints:
        """Positions of the wrong answers, ascending."""
        flag = self.keys.astype(np.uint8)  # keeps the low byte
        flag &= 1
        return np.flatnonzero(flag.view(np.bool_))

    def _decode(self, keys: Array) -> Floats:
        """The float64 scores of keys."""
        if self.signs is not None:
            return self.signs.to_scores(keys >> 1)
        return unpack_scores(keys).astype(np.float64, copy=False)

    # The rows take three times the memory of the keys, so most questions are answered without them.

    def has_at_most(self, rows: int) -> bool:
        distinct = 1
        for i in range(0, self.n - 1, KEY_CHUNK):  # often decided by the first chunk
            part = self.keys[i : i + KEY_CHUNK + 1]
            distinct += int(np.count_nonzero((part[1:] ^ part[:-1]) > 1))
            if distinct > rows:
                return False
        return distinct <= rows

    @property
    def distinct(self) -> int:
        return int(self._rows_before[-1])

    @cached_property
    def _rows_before(self) -> Ints:
        """How many rows begin before each chunk of keys, and before the end."""
        chunks = range(0, self.n, KEY_CHUNK)
        return np.cumsum([0, *(int(np.count_nonzero(self._mark_starts(i))) for i in chunks)])

    def _mark_starts(self, at: int) -> Bools:
        """Which keys of the chunk at a position are the first of their score."""
        part = self.keys[max(at - 1, 0) : at + KEY_CHUNK]
        starts = (part[1:] ^ part[:-1]) > 1  # more than the lowest bit: another score
        return starts if at else np.concatenate(([True], starts))

    def _find_row_starts(self, rows: Ints) -> Ints:
        """Where these rows begin, counted from the lowest score on; n after the last."""
        if self.distinct == self.n:
            return rows
        chunk = np.searchsorted(self._rows_before, rows, side="right") - 1
        start = np.full(len(rows), self.n)
        for c in sort_distinct(chunk[rows < self.distinct]).tolist():
            here = chunk == c
            starts = np.flatnonzero(self._mark_starts(c * KEY_CHUNK))
            start[here] = c * KEY_CHUNK + starts[rows[here] - self._rows_before[c]]
        return start

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Ints, Ints]:
        if bottom_up:
            start, stop = self._find_row_starts(rows), self._find_row_starts(rows + 1)
            return self._decode(self.keys[start]), stop, np.searchsorted(self.wrong, stop)
        start = self._find_row_starts(self.distinct - 1 - rows)
        lost = self.total - np.searchsorted(self.wrong, start)
        return self._decode(self.keys[start]), self.n - start, lost

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        if "rows" in vars(self):
            yield from super().pieces()
            return
        stop = self.n
        while stop:
            start = self._find_last_runs(stop)
            part, start = self.keys[start[0] : stop], start - start[0]
            first, loss = part, part & 1
            if len(start) < len(part):
                first = part[start]
                loss = sum_runs(loss.astype(np.int64), start)
            count = measure_runs(start, len(part))
            loss = loss.astype(np.int64, copy=False)
            yield self._decode(first)[::-1], count[::-1], loss[::-1]
            stop -= len(part)

    def _find_last_runs(self, stop: int) -> Ints:
        """Where the last PIECE_ROWS runs of equal scores before a position begin."""
        size = PIECE_ROWS + 1
        while True:
            low = max(0, stop - size)
            start = low + find_key_runs(self.keys[low:stop])
            if low == 0 or len(start) > PIECE_ROWS:  # the first of them may have begun before
                return start[-PIECE_ROWS:]
            size *= 2

    @cached_property
    def _blocks(self) -> Blocks:
        wrong = self.wrong
        if not len(wrong):
            return Blocks(before=wrong, after=wrong, loss=wrong)
        key = self.keys[wrong]
        first = find_runs(key)  # equal keys: wrong and tied
        loss = np.diff(first, append=len(wrong))
        start, key = wrong[first], key[first]
        del first  # columns as long as the errors are what the panel's memory goes to
        before = start + loss  # wrong answers close their block
        np.subtract(self.n, before, out=before)
        self._include_right(start, key)
        after = np.subtract(self.n, start, out=start)
        return Blocks(before=before[::-1], after=after[::-1], loss=loss[::-1])

    def _include_right(self, start: Ints, key: Array) -> None:
        """Move `start` back over the right answers with the same score."""
        for i in range(0, len(start), BLOCK_CHUNK):
            part = slice(i, i + BLOCK_CHUNK)
            right = key[part] - key.dtype.type(1)
            mixed = np.flatnonzero(self.keys.take(start[part] - 1, mode="clip") == right)
            start[i + mixed] = self._find_first_equal(start[i + mixed] - 1, right[mixed])

    def _find_first_equal(self, at: Ints, key: Array) -> Ints:
        """Where the run of equal keys that holds each position begins."""
        # Steps of falling width cross short runs faster than a search of all keys finds their ends.
        for width in RUN_STEPS:
            at -= width * (self.keys.take(at - width, mode="clip") == key)
        at = np.maximum(at, 0)
        long = np.flatnonzero(self.keys.take(at - 1, mode="clip") == key)
        at[long] = np.searchsorted(self.keys, key[long])
        return at

    def tied(self) -> Blocks:
        chunks = range(0, self.n, KEY_CHUNK)
        later = np.concatenate([at + np.flatnonzero(~self._mark_starts(at)) for at in chunks])
        # `later` holds every sample of a row but its first; a gap in it ends a row.
        ends = np.flatnonzero(np.diff(later, append=self.n + 1) != 1)
        stop = later[ends] + 1
        start = later[np.concatenate(([0], ends[:-1] + 1))[: len(ends)]] - 1
        loss = np.searchsorted(self.wrong, stop) - np.searchsorted(self.wrong, start)
        before, after = self.n - stop, self.n - start
        return Blocks(before=before[::-1], after=after[::-1], loss=loss[::-1])

    def above(self, scores: Floats) -> Ints:
        given = np.asarray(scores, dtype=np.float64)
        if self.signs is None:
            last, some = round_down_to_bits(given, self.keys.itemsize), given >= 0
        else:
            last, some = self.signs.find_last_number(given)
            # A score far above all others has a number that the shift below would cut.
            last = np.minimum(last, self.keys[-1] >> 1)
        # The largest key that is not above the score is that of a wrong answer.
        below = np.searchsorted(self.keys, last << 1 | 1, side="right")
        return self.n - np.where(some, below, 0)

    def cut_at(self, ranks: Counts) -> Ints:
        cuts: Ints = np.array(ranks, dtype=np.int64)
        inside = (cuts > 0) & (cuts < self.n)
        # The last sample before the cut, and the first after it: a cut between equals is moved.
        here = self.keys[np.where(inside, self.n - cuts, 0)] >> 1
        below = self.keys[np.where(inside, self.n - 1 - cuts, 0)] >> 1
        split = inside & (here == below)
        cuts[split] = self.n - np.searchsorted(self.keys, below[split] << 1)
        return cuts

    def score_at(self, rank: int) -> float:
        position = self.n - 1 - rank
        if self.signs is not None:
            return float(self._decode(self.keys[[position]])[0])
        bits, number = STRUCT_CODES[self.keys.itemsize]  # for single keys much faster than NumPy
        return struct.unpack(number, struct.pack(bits, self.keys.item(position) >> 1))[0]

    def score_range(self) -> tuple[float, float]:
        low, high = self._decode(self.keys[[0, -1]])
        return float(low), float(high)

    def between(self, cuts: Counts) -> RangeSums:
        # ece, mce and reliability ask for the same bins, one after the other.
        if self._last_sums is not None and np.array_equal(self._last_sums[0], cuts):
            return self._last_sums[1]
        at: Ints = self.n - np.array(cuts, dtype=np.int64)  # descending positions
        sums = RangeSums(
            count=-np.diff(at),
            claim=self._sum_claims(at[:0:-1])[::-1],
            loss=-np.diff(np.searchsorted(self.wrong, at)),
            high=self._decode(self.keys[at[:-1] - 1]),
            low=self._decode(self.keys[at[1:]]),
        )
        self._last_sums = (np.array(cuts), sums)
        return sums

    def _sum_claims(self, start: Ints) -> Floats:
        """Summed scores of the bins that start at these ascending positions, the first at 0.

        Sums of whole chunks are kept, so only chunks that belong to several bins are decoded again.
        """
        total = [0.0] * len(start)
        chunks = np.arange(0, self.n + KEY_CHUNK, KEY_CHUNK)
        bins_before = np.searchsorted(start, chunks).tolist()
        for number, i in enumerate(range(0, self.n, KEY_CHUNK)):
            first, stop = bins_before[number], bins_before[number + 1]
            if first == len(start) or start[first] != i:
                first -= 1  # the bin before reaches in
            if stop - first == 1:
                total[first] += self._chunk_claims[number]
                continue
            inside = np.maximum(start[first:stop] - i, 0)
            parts = sum_runs(self._decode_chunk(i), inside, dtype=np.float64)
            for b, part in enumerate(parts.tolist(), first):
                total[b] += part
        return np.array(total)

    @cached_property
    def _chunk_claims(self) -> list[float]:
        """The summed scores of each chunk of keys."""
        chunks = range(0, self.n, KEY_CHUNK)
        return [float(np.sum(self._decode_chunk(i), dtype=np.float64)) for i in chunks]

    def _decode_chunk(self, start: int) -> Array:
        """The scores of the chunk at a position, as wide as its keys: summing widens them anyway."""
        part = self.keys[start : start + KEY_CHUNK]
        if self.signs is not None:
            return self._decode(part)
        return unpack_scores(part)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, PackedTally) or self.signs or other.signs:
            return super().__add__(other)
        keys = [self.keys, other.keys]
        if keys[0].itemsize != keys[1].itemsize:
            keys = [widen_keys(part) for part in keys]
        merged = np.concatenate(keys)
        merged.sort(kind="stable")  # two sorted runs: one merge
        return PackedTally(merged)
