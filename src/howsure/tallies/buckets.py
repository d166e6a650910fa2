"""Scores in [0, 1] straight into the buckets of a compact tally: one pass, no sort, a few
megabytes.

The edges of the grid are evenly spaced, or lie at even parts between powers of two counted from 0
or from 1. So the bucket follows from arithmetic: `score * even`, and the bits of the score and of
its distance to 1, for the bits of a float rise evenly between powers of two. The sum of the three
whole numbers rises by at least 1 at every edge and nowhere else. A float32 that is not on an edge
is so far from it that nothing is rounded across; float64 scores are compared with the edges of the
bucket found and moved where they are a rounding away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure.tallies.grid import OCTAVES, Layout, grid, layout
from howsure.tallies.rows import on_grid
from howsure.tallies.tally import Tally

CHUNK = 1 << 17  # scores at a time: all columns of a chunk stay near the processor
SAMPLE = 4  # distinct scores are counted in this many samples per bucket
BITS = {4: np.int32, 8: np.int64}
FAR, NEAR, ONE = 2.0 ** -OCTAVES[0], 2.0 ** -(OCTAVES[-1] + 1), 2.0 ** -(OCTAVES[-1] + 2)


def in_buckets(score: Array, right: Bools, buckets: int) -> Tally | None:
    """The compact tally of right and wrong answers; None where only a sort can tell what it is.

    That is the case for scores outside [0, 1], and where so few are distinct that the exact tally
    may be small enough.
    """
    sums = bucket_sums(score, right, buckets) if _many(score, buckets) else None
    if sums is None:
        return None
    (wrong, count, claim), edges = sums, grid(buckets)
    some = np.flatnonzero(count)[::-1]
    low = np.where(some > 0, np.nextafter(edges[some - 1], inf), 0.0)
    mean = np.clip(
        claim[some] / count[some], low, edges[some]
    )  # a mean may be rounded out of its bucket
    return on_grid(mean, count[some], wrong[some], claim[some], edges)


def _many(score: Array, buckets: int) -> bool:
    """Whether there are surely more distinct scores than buckets."""
    return len(score) > buckets and len(np.unique(score[: SAMPLE * buckets])) > buckets


def bucket_sums(score: Array, right: Bools, buckets: int) -> tuple[Ints, Ints, Floats] | None:
    """Wrong answers, samples and summed scores of each bucket; None where scores leave [0, 1].

    One pass over the samples, chunk by chunk, into cells; a bucket is one or more cells.
    """
    bucket, size = _bucket_of_cell(buckets, score.itemsize), len(grid(buckets))
    if score.min() < 0 or score.max() > 1:
        return None
    sums = _cell_sums(score, right, buckets)
    wrong, count, claim = (np.bincount(bucket, column, minlength=size) for column in sums)
    return wrong.astype(np.int64), count.astype(np.int64), claim.astype(np.float64)


def _cell_sums(score: Array, right: Bools, buckets: int) -> Sequence[Array]:
    """Wrong answers, samples and summed scores of each cell."""
    cells = len(_bucket_of_cell(buckets, score.itemsize))
    wrong, count, claim = (
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells),
    )
    room = Room.of(min(CHUNK, len(score)), score.dtype)
    for i in range(0, len(score), CHUNK):
        part, good = score[i : i + CHUNK], right[i : i + CHUNK]
        cell = cell_of(part, buckets, room)
        count += np.bincount(cell, minlength=cells)
        claim += np.bincount(cell, part, minlength=cells)
        wrong += np.bincount(cell[np.flatnonzero(~good)], minlength=cells)
    return wrong, count, claim


class Room(NamedTuple):
    """Columns of a chunk, reused: new memory for each step would cost more than the steps."""

    wide: Array
    distance: Array
    bits: Array
    whole: Array
    code: Array
    cell: Array

    @classmethod
    def of(cls, n: int, kind: np.dtype[np.floating]) -> Room:
        """Room for n scores of this kind."""
        kinds = (np.float64, kind, BITS[kind.itemsize], np.int32, np.int32, np.intp)
        return cls(*(np.empty(n, dtype=k) for k in kinds))

    def first(self, n: int) -> Room:
        """Room for the last chunk, which is shorter."""
        return Room(*(column[:n] for column in self))


def cell_of(score: Array, buckets: int, room: Room) -> Ints:
    """A whole number per score that tells its bucket: a code of float32 scores, the bucket itself
    of float64 ones.
    """
    room = room.first(len(score))
    room.cell[:] = _code(score, layout(buckets), room)
    if score.itemsize == 4:
        return room.cell
    return _settled(score, _bucket_of_code(buckets, 8)[room.cell], grid(buckets))


def _bucket_of_cell(buckets: int, itemsize: int) -> Ints:
    return _bucket_of_code(buckets, 4) if itemsize == 4 else np.arange(len(grid(buckets)))


def _code(score: Array, of: Layout, room: Room) -> Array:
    """A whole number that rises from bucket to bucket."""
    room.wide[:] = score
    np.multiply(room.wide, of.even, out=room.wide)
    np.ceil(room.wide, out=room.wide)
    room.code[:] = room.wide
    room.code[:] -= _parts_from_one(score, of, room)
    if score.min() < FAR:
        room.code[:] -= _parts_to_far(score, of)
    room.code[:] += _most(of)
    return room.code


def _parts_from_one(score: Array, of: Layout, room: Room) -> Array:
    """How many parts of octaves lie between 1 and each score, down to 1 - FAR."""
    np.subtract(score.dtype.type(1), score, out=room.distance)
    first, last = (_bits(end, score.dtype) for end in (ONE, FAR))
    np.clip(room.distance.view(room.bits.dtype), first, last, out=room.bits)
    room.bits[:] -= first
    room.wide[:] = room.bits
    room.wide[:] *= _per_bit(of, score.dtype)
    room.whole[:] = room.wide
    return room.whole


def _parts_to_far(score: Array, of: Layout) -> Ints:
    """How many parts of octaves lie between each score and FAR, and 1 at FAR; exactly 0 has one
    more than any.
    """
    first, last = (_bits(end, score.dtype) for end in (NEAR, FAR))
    plain = score + score.dtype.type(0)  # -0.0 + 0.0 is 0.0
    bits = last - np.clip(plain.view(BITS[score.itemsize]), first, last)
    parts = bits * _per_bit(of, score.dtype)
    return parts.astype(np.int32) + (score <= FAR) + (score == 0)


def _bits(x: float, kind: np.dtype[np.floating]) -> int:
    return int(kind.type(x).view(BITS[kind.itemsize]))


def _per_bit(of: Layout, kind: np.dtype[np.floating]) -> float:
    """Parts of an octave per step of the bits."""
    return of.steps / 2.0 ** np.finfo(kind).nmant


def _most(of: Layout) -> int:
    """What keeps codes from being negative."""
    return (len(OCTAVES) + 2) * of.steps * 2 + 1


@lru_cache(maxsize=8)
def _bucket_of_code(buckets: int, itemsize: int) -> Ints:
    """The bucket of each code, from the highest score of each bucket that is a float of this width."""
    edges, kind = grid(buckets), {4: np.float32, 8: np.float64}[itemsize]
    top = edges.astype(kind)
    top = np.where(top > edges, np.nextafter(top, kind(-1)), top)
    held = np.flatnonzero(
        np.concatenate(([True], top[1:] > edges[:-1]))
    )  # some buckets hold no float of this width
    code = _code(top[held], layout(buckets), Room.of(len(held), top.dtype))
    table = np.zeros(_most(layout(buckets)) + layout(buckets).even + 1, dtype=np.int64)
    np.maximum.at(table, code, held)
    return np.maximum.accumulate(table)


def _settled(score: Floats, place: Ints, edges: Floats) -> Ints:
    """Places moved up or down until each score lies in its bucket."""
    below = np.concatenate(([-inf], edges[:-1]))
    off = np.flatnonzero((score > edges[place]) | (score <= below[place]))
    while len(off):
        there = place[off]
        up = score[off] > edges[there]
        place[off] = there = there + np.where(up, 1, -1)
        off = off[(score[off] > edges[there]) | (score[off] <= below[there])]
    return place
