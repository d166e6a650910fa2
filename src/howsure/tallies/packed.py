"""The exact tally of right and wrong: one sorted integer per sample.

The bits of a non-negative float order like the float itself and leave the sign bit free, so `bits
<< 1 | wrong` sorts as an unsigned integer of the same width. The keys ascend: least trusted first,
and inside a tie block the right answers come before the wrong ones. Scores of both signs have no
free bit, but the floats between the smallest and the largest of each sign, counted from the lowest
on, do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure.tallies.rows import as_rows, compacted, run_lengths
from howsure.tallies.tally import (
    PIECE,
    Blocks,
    Counts,
    Sums,
    Tally,
    added_to,
    described,
    row_pieces,
)

CHUNK = 1 << 16  # scores decoded at a time; bounds the extra memory
SOME = 1 << 15  # tie blocks widened at a time
TIED = 8  # runs of which at least one in so many has ties are summed
UNSIGNED = {4: np.uint32, 8: np.uint64}
FLOAT = {4: np.float32, 8: np.float64}
CODES = {4: ("=I", "=f"), 8: ("=Q", "=d")}
HUGE = 2.0**960  # sums of larger scores may overflow
REACH = (16, 8, 4, 2, 1)  # together the longest run of equal keys that steps alone can cross


def pack(score: Array, wrong: Bools) -> Array:
    """Sorted keys of non-negative scores."""
    return _sorted(
        (score + score.dtype.type(0)).view(UNSIGNED[score.itemsize]), wrong
    )  # -0.0 + 0.0 is 0.0


def _sorted(bits: Array, wrong: Bools) -> Array:
    """Keys, made in place."""
    bits <<= 1
    bits |= wrong
    bits.sort()
    return bits


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
    def of(cls, score: Floats, negative: Bools) -> Signs:
        """What scores span, some of them negative."""
        near, least = (
            np.where(negative, score, -np.inf).max(),
            np.where(negative, np.inf, score).min(),
        )
        ends = np.array([-near, -score.min(), least if least < np.inf else 0.0])
        return cls(*ends.view(np.uint64).tolist())

    @property
    def zero(self) -> int:
        """The number of the first score that is not negative."""
        return self.far - self.near + 1

    def number(self, score: Floats) -> Array:
        """Numbers of scores."""
        bits = score.view(np.uint64)
        negative = (score.view(np.int64) >> 63).view(np.uint64)  # all bits set, or none
        above, below = self.zero - self.least, self.far + (1 << 63) + 1
        number = bits ^ negative  # minus the bits, less 1, where negative; all sums are modulo 2^64
        negative &= np.uint64((below - above) % (1 << 64))
        number += negative
        number += np.uint64(above % (1 << 64))
        return number

    def scores(self, number: Array) -> Floats:
        """The scores of numbers."""
        negative, wide = number < self.zero, np.uint64
        bits = np.where(
            negative, wide(self.far) - number, number - wide(self.zero) + wide(self.least)
        )
        return np.where(negative, -bits.view(np.float64), bits.view(np.float64))

    def up_to(self, scores: Floats) -> tuple[Array, Bools]:
        """The number of the largest score that is not above each of these, and where there is any."""
        negative, bits = scores < 0, np.abs(scores).view(np.uint64)
        below = np.uint64(self.far) - np.clip(bits, self.near, self.far)
        above = np.maximum(bits, self.least) - np.uint64(self.least) + np.uint64(self.zero)
        above = np.where(bits < self.least, np.uint64(self.zero - 1), above)
        return np.where(negative, below, above), ~(negative & (bits > self.far))


def packed(score: Floats, wrong: Bools) -> PackedTally | None:
    """The tally of float64 scores, some of them negative; None where numbering them takes more than
    63 bits.

    >>> found = packed(np.array([-1.5, 2.0, 0.0]), np.array([True, False, False]))
    >>> found.score, found.loss
    (array([ 2. ,  0. , -1.5]), array([0, 0, 1]))
    """
    signs, high = Signs.of(score, score < 0), score.max()
    if (
        max(high, -score.min()) > HUGE
        or signs.zero + int(np.float64(max(high, 0.0)).view(np.uint64)) - signs.least >= 1 << 63
    ):
        return None
    return PackedTally(_sorted(signs.number(score), wrong), signs)


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


def claim_sums(
    start: Ints, n: int, sums: Sequence[float], samples: Callable[[int], Array]
) -> Floats:
    """Summed scores of the bins that start at these ascending positions, the first at 0, of n
    ascending scores.

    `sums` are those of each CHUNK, and `samples` gives the scores of the one that begins at a
    position: only chunks that belong to several bins are looked at. The order of the additions
    depends on the bin alone.
    """
    total = [0.0] * len(start)
    begins = np.searchsorted(
        start, np.arange(0, n + CHUNK, CHUNK)
    ).tolist()  # bins that begin before each chunk
    for number, i in enumerate(range(0, n, CHUNK)):
        first, last = begins[number], begins[number + 1]
        if first == len(start) or start[first] != i:
            first -= 1  # the bin before reaches in
        if last - first == 1:
            total[first] += sums[number]
            continue
        inside = np.maximum(start[first:last] - i, 0)
        for b, part in enumerate(
            np.add.reduceat(samples(i), inside, dtype=np.float64).tolist(), first
        ):
            total[b] += part
    return np.array(total)


class PackedTally:
    """A tally of right and wrong that keeps only its sorted keys."""

    zero_one = True
    weighted = False
    equal_weights = True
    approximate = None
    ideal = None

    def __init__(self, keys: Array, signs: Signs | None = None):
        self.keys = keys
        self.signs = signs
        self._last: tuple[Counts, Sums] | None = None

    @property
    def n(self) -> int:
        return len(self.keys)

    def _scores(self, keys: Array) -> Array:
        return unpack(keys) if self.signs is None else self.signs.scores(keys >> 1)

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
        score = self._scores(first).astype(np.float64, copy=False)
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

    @property
    def ends(self) -> Ints:
        return self._ends

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum(self.count)

    def has_at_most(self, rows: int) -> bool:
        return self._distinct(rows) <= rows

    @property
    def distinct(self) -> int:
        return int(self._rows_before[-1])

    @cached_property
    def _rows_before(self) -> Ints:
        """How many rows begin before each run of 2^16 samples, and before the end."""
        return np.cumsum(
            [0, *(int(np.count_nonzero(self._begins(i))) for i in range(0, self.n, CHUNK))]
        )

    def _begins(self, at: int) -> Bools:
        """Which of 2^16 samples from a position on are the first of their score."""
        part = self.keys[max(at - 1, 0) : at + CHUNK]
        other = (part[1:] ^ part[:-1]) > 1  # more than the lowest bit: another score
        return other if at else np.concatenate(([True], other))

    def _starts(self, rows: Ints) -> Ints:
        """Where these rows begin, counted from the lowest score on; n after the last."""
        if self.distinct == self.n:
            return rows
        chunk = np.searchsorted(self._rows_before, rows, side="right") - 1
        start = np.full(len(rows), self.n)
        for c in np.unique(chunk[rows < self.distinct]).tolist():
            here = chunk == c
            start[here] = (
                c * CHUNK
                + np.flatnonzero(self._begins(c * CHUNK))[rows[here] - self._rows_before[c]]
            )
        return start

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Ints, Ints]:
        """Without making the rows."""
        lowest = rows if bottom_up else self.distinct - 1 - rows
        start = self._starts(lowest)
        cut = self._starts(lowest + 1) if bottom_up else start
        kept, lost = cut, np.searchsorted(self.wrong, cut)
        if not bottom_up:
            kept, lost = self.n - kept, self.total - lost
        return self._scores(self.keys[start]).astype(np.float64, copy=False), kept, lost

    def _distinct(self, enough: int) -> int:
        found = 1
        for i in range(0, self.n - 1, CHUNK):  # often decided by the first chunk
            part = self.keys[i : i + CHUNK + 1]
            found += int(
                np.count_nonzero((part[1:] ^ part[:-1]) > 1)
            )  # more than the lowest bit: another score
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
        """Without making the rows, which take three times the memory of the keys."""
        return row_pieces(self) if "rows" in vars(self) else self._pieces()

    def _pieces(self) -> Iterator[tuple[Floats, Ints, Ints]]:
        stop = self.n
        while stop:
            start = self._last_runs(stop)
            part, start = self.keys[start[0] : stop], start - start[0]
            loss = (
                np.add.reduceat((part & 1).astype(np.int64), start)
                if len(start) < len(part)
                else part & 1
            )
            score = self._scores(part[start] if len(start) < len(part) else part).astype(
                np.float64, copy=False
            )
            yield (
                score[::-1],
                run_lengths(start, len(part))[::-1],
                loss.astype(np.int64, copy=False)[::-1],
            )
            stop -= len(part)

    def _last_runs(self, stop: int) -> Ints:
        """Where the last PIECE runs of equal scores before a position begin."""
        size = PIECE + 1
        while True:
            low = max(0, stop - size)
            start = low + run_starts(self.keys[low:stop])
            if low == 0 or len(start) > PIECE:  # the first of them may have begun before
                return start[-PIECE:]
            size *= 2

    def blocks(self) -> Blocks:
        return self._blocks

    @cached_property
    def _blocks(self) -> Blocks:
        wrong = self.wrong
        if not len(wrong):
            return Blocks(wrong, wrong, wrong)
        key = self.keys[wrong]
        first = np.flatnonzero(
            np.concatenate(([True], key[1:] != key[:-1]))
        )  # equal keys: wrong and tied
        loss = np.diff(first, append=len(wrong))
        start, key = wrong[first], key[first]
        del first  # columns as long as the errors are what the panel's memory goes to
        before = start + loss  # wrong answers close their block
        np.subtract(self.n, before, out=before)
        self._include_right(start, key)
        after = np.subtract(self.n, start, out=start)
        return Blocks(before[::-1], after[::-1], loss[::-1])

    def tied(self) -> Blocks:
        pairs = [at + np.flatnonzero(~self._begins(at)) for at in range(0, self.n, CHUNK)]
        later = np.concatenate(pairs)  # every sample of a row but its first
        ends = np.flatnonzero(np.diff(later, append=self.n + 1) != 1)
        stop = later[ends] + 1
        start = later[np.concatenate(([0], ends[:-1] + 1))[: len(ends)]] - 1
        loss = np.searchsorted(self.wrong, stop) - np.searchsorted(self.wrong, start)
        return Blocks((self.n - stop)[::-1], (self.n - start)[::-1], loss[::-1])

    def _include_right(self, start: Ints, key: Array) -> None:
        """Move `start` back over the right answers with the same score."""
        for i in range(0, len(start), SOME):
            part = slice(i, i + SOME)
            right = key[part] - key.dtype.type(1)
            mixed = np.flatnonzero(self.keys.take(start[part] - 1, mode="clip") == right)
            start[i + mixed] = self._first_equal(start[i + mixed] - 1, right[mixed])

    def _first_equal(self, at: Ints, key: Array) -> Ints:
        """Where the run of equal keys that holds each position begins."""
        for width in (
            REACH
        ):  # short runs by steps of falling width, which is faster than a search of all keys
            at -= width * (self.keys.take(at - width, mode="clip") == key)
        at = np.maximum(at, 0)
        long = np.flatnonzero(self.keys.take(at - 1, mode="clip") == key)
        at[long] = np.searchsorted(self.keys, key[long])
        return at

    def above(self, scores: Floats) -> Ints:
        given = np.asarray(scores, dtype=np.float64)
        if self.signs is None:
            last, some = bits_at_most(given, self.keys.itemsize), given >= 0
        else:
            last, some = self.signs.up_to(given)
        found = np.searchsorted(
            self.keys, last << 1 | 1, side="right"
        )  # the last key that is not above
        return self.n - np.where(some, found, 0)

    def cut_at(self, ranks: Counts) -> Ints:
        cuts: Ints = np.array(ranks, dtype=np.int64)
        inside = (cuts > 0) & (cuts < self.n)
        here = (
            self.keys[np.where(inside, self.n - cuts, 0)] >> 1
        )  # the last sample before the cut ...
        below = self.keys[np.where(inside, self.n - 1 - cuts, 0)] >> 1  # ... and the first after it
        split = inside & (here == below)
        cuts[split] = self.n - np.searchsorted(self.keys, below[split] << 1)
        return cuts

    def score_at(self, rank: int) -> float:
        if self.signs is not None:
            return float(self.signs.scores(self.keys[[self.n - 1 - rank]] >> 1)[0])
        bits, number = CODES[self.keys.itemsize]  # for single keys much faster than NumPy
        return struct.unpack(number, struct.pack(bits, self.keys.item(self.n - 1 - rank) >> 1))[0]

    def score_range(self) -> tuple[float, float]:
        low, high = self._scores(self.keys[[0, -1]])
        return float(low), float(high)

    def between(self, cuts: Counts) -> Sums:
        if self._last is None or not np.array_equal(self._last[0], cuts):
            self._last = (
                np.array(cuts),
                self._between(cuts),
            )  # ece, mce and reliability ask for the same bins
        return self._last[1]

    def _between(self, cuts: Counts) -> Sums:
        at: Ints = self.n - np.array(cuts, dtype=np.int64)  # descending positions
        loss = -np.diff(np.searchsorted(self.wrong, at))
        claim = self._claims(at[:0:-1])[::-1]
        high, low = self._scores(self.keys[at[:-1] - 1]), self._scores(self.keys[at[1:]])
        return Sums(-np.diff(at), claim, loss, high.astype(np.float64), low.astype(np.float64))

    def _claims(self, start: Ints) -> Floats:
        """Summed scores of the bins that start at these ascending positions."""
        return claim_sums(start, self.n, self._sums, self._samples)

    @cached_property
    def _sums(self) -> list[float]:
        """The summed scores of each run of 2^16 samples."""
        return [
            float(np.add.reduceat(self._samples(i), [0], dtype=np.float64)[0])
            for i in range(0, self.n, CHUNK)
        ]

    def _samples(self, start: int) -> Array:
        """2^16 scores, ascending, from a position on."""
        return self._scores(self.keys[start : start + CHUNK])

    def compact(self, buckets: int = 25_000) -> Tally:
        return compacted(self, buckets)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, PackedTally) or (self.signs, other.signs) != (None, None):
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
