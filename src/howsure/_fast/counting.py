"""Scores into the buckets of a compact tally: `howsure._buckets._cell_sums` in two short loops."""

from __future__ import annotations

import numpy as np

from howsure._check import Array, Bools, Floats, Ints
from howsure._fast import compiled

PART = 4096  # scores at a time: their cells stay in the innermost cache


@compiled
def cells_of(score: Array, from_one: Array, cell: Array, plan: Floats) -> None:
    """The cell of each float32 score. All in float64, for that runs on several numbers at once."""
    even, steps, first, last, added = plan
    for i in range(len(score)):
        bits = np.float64(from_one[i])
        bits = first if bits < first else bits
        bits = last if bits > last else bits
        cell[i] = np.int32(np.ceil(np.float64(score[i]) * even) - np.floor((bits - first) * steps) + added)


@compiled
def cell_sums(score: Array, from_one: Array, right: Bools, counts: Ints, claim: Floats, plan: Floats) -> None:
    """Add a chunk of scores to their cells: samples plus 2^32 for each right one, and summed scores.

    `from_one` are the bits of 1 - score; `plan` is even, steps per bit, first and last of these bits, and what is
    added to a code, all as `howsure._buckets` defines them for scores that are not close to 0.
    """
    cell = np.empty(PART, dtype=np.int32)
    for start in range(0, len(score), PART):
        part, good = score[start : start + PART], right[start : start + PART]
        cells_of(part, from_one[start : start + PART], cell, plan)
        for i in range(len(part)):
            counts[cell[i]] += np.int64(1) + (np.int64(good[i]) << 32)
            claim[cell[i]] += np.float64(part[i])
