"""Pool adjacent violators on a tally: the steps of the loss rate that rises where the score falls.

The ends of the steps are also the corners of the lower convex hull of (kept, loss).
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from howsure._core.check import Ints
from howsure.tallies.tally import Counts, Sums, Tally

SHRINK = 0.9  # a pass that leaves more of the steps than this share has little left to pool


def pooled(t: Tally) -> Sums:
    """Count, loss and ends of every step, most trusted first.

    >>> from howsure import tally
    >>> found = pooled(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]))
    >>> found.count, found.loss
    (array([1, 2, 1]), array([0, 1, 1]))
    """
    return _of_rows(t) if t.weighted or not t.zero_one else _of_errors(t)


def _of_rows(t: Tally) -> Sums:
    first = steps(t.count, t.loss)
    last = np.append(first[1:], len(t.count)) - 1
    count, loss = (np.add.reduceat(a, first) for a in (t.count, t.loss))
    return Sums(count, nan * count, loss, t.score[first], t.score[last])


def _of_errors(t: Tally) -> Sums:
    """The steps of counted samples.

    A step can only start at an error: a right answer directly below another answer is pooled with
    it, whatever follows. So the errors alone are looked at, with their ties.
    """
    block = t.blocks()
    cuts, loss = block.before, block.loss
    if not len(cuts) or cuts[0] > 0:  # right answers above the first error
        cuts, loss = (np.concatenate((a[:0], [0], a)) for a in (cuts, loss))
    first = steps(np.diff(cuts, append=t.n), loss)
    return t.between(np.append(cuts[first], t.n))


def steps(count: Counts, loss: Counts) -> Ints:
    """The first row of every step, where the loss rate must rise from step to step.

    Neighbours that do not rise belong to one step, and so do all of a falling run: each pass pools
    every run at once and leaves a fraction of the steps. What several passes do not settle is
    little, and is pooled one by one.
    """
    first, size = np.arange(len(count)), inf
    while len(first) < SHRINK * size:
        rate, size = loss / count, len(first)
        start = np.flatnonzero(np.concatenate(([True], rate[1:] > rate[:-1])))
        first, count, loss = (
            first[start],
            np.add.reduceat(count, start),
            np.add.reduceat(loss, start),
        )
    return first if len(first) == size else _one_by_one(first, count, loss)


def _one_by_one(first: Ints, count: Counts, loss: Counts) -> Ints:
    """The same with a stack of steps, in linear time whatever the data."""
    found: list[tuple[int, float, float]] = []
    for row, n, lost in zip(first.tolist(), count.tolist(), loss.tolist(), strict=True):
        while found and found[-1][2] * n >= lost * found[-1][1]:
            row, before, more = found.pop()
            n, lost = n + before, lost + more
        found.append((row, n, lost))
    return np.array([row for row, _, _ in found])
