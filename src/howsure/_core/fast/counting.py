"""Scores into the buckets of a compact tally: `howsure.tallies.buckets._cell_sums` in two short loops."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure._core.fast import compiled

PART = 4096  # scores at a time: their cells stay in the innermost cache


@compiled
def cells_of(score: Array, from_one: Array, cell: Array, plan: Floats) -> None:
    """The cell of each float32 score. All in float64, for that runs on several numbers at once.

    A score outside [0, 1] gets some cell; that its sums are of no use is seen at the end.
    """
    even, steps, first, last, added, cells = plan
    for i in range(len(score)):
        bits = np.float64(from_one[i])
        bits = first if bits < first else bits
        bits = last if bits > last else bits
        found = np.ceil(np.float64(score[i]) * even) - np.floor((bits - first) * steps) + added
        found = 0.0 if found < 0.0 else found
        cell[i] = np.int32(cells - 1.0 if found > cells - 1.0 else found)


@compiled
def cell_sums(score: Array, right: Bools, counts: Ints, claim: Floats, plan: Floats) -> tuple[float, float]:
    """Add scores to their cells: samples plus 2^32 for each right one, and summed scores.

    `plan` is even, steps per bit, first and last bits of 1 - score, what is added to a code, and the number of cells,
    all as `tallies.buckets` defines them for scores that are not close to 0. Gives the least and the greatest score,
    for such sums hold only where they are inside.
    """
    cell, distance = np.empty(PART, dtype=np.int32), np.empty(PART, dtype=np.float32)
    bits = distance.view(np.int32)
    least, most = score[0], score[0]
    for start in range(0, len(score), PART):
        part, good = score[start : start + PART], right[start : start + PART]
        for i in range(len(part)):
            distance[i] = np.float32(1) - part[i]
            least = part[i] if part[i] < least else least
            most = part[i] if part[i] > most else most
        cells_of(part, bits, cell, plan)
        for i in range(len(part)):
            at = np.uint64(cell[i])  # unsigned: no check for an index from the end
            counts[at] += np.int64(1) + (np.int64(good[i]) << 32)
            claim[at] += np.float64(part[i])
    return float(least), float(most)
