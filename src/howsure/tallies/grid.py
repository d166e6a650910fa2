"""Where a compacted tally is cut: fixed buckets for scores in [0, 1], ranks for all others."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from howsure._core import check
from howsure._core.check import Floats

EVEN = 300  # j/10, j/12, j/15, j/20, j/25, j/30, j/50, j/60, j/100 are all multiples of 1/300
OCTAVES = range(
    6, 53
)  # distances 2^-6 ... 2^-53 to either end; a float just below 1 is 2^-53 away from it
LEAST = 400


class Layout(NamedTuple):
    """How a grid is spaced: parts of 1/even, and `steps` buckets between a power of two and the
    next.
    """

    even: int
    steps: int


def layout(buckets: int) -> Layout:
    """The layout of a grid of about `buckets` buckets."""
    check.at_least(buckets, LEAST, "buckets")
    even = EVEN * max(1, -(-buckets // 2 // EVEN))
    return Layout(even, max(1, (buckets - even) // (2 * len(OCTAVES))))


@lru_cache(maxsize=8)
def grid(buckets: int) -> Floats:
    """Upper ends of about `buckets` buckets on [0, 1], ascending; bucket i is (edge i-1, edge i].

    One half is evenly spaced, so every edge of the usual equal-range bins is also an edge here. The
    other half is spaced by ratio towards 0 and towards 1, where the confidences of networks crowd.
    Exactly 0 and exactly 1 have buckets of their own. The grid depends on nothing but `buckets`, so
    tallies on it add up.

    >>> bool(np.isin(np.arange(16) / 15, grid(25_000)).all())
    True
    """
    even, steps = layout(buckets)
    near = np.concatenate(
        [*(2.0**-k * (1 - np.arange(steps) / (2 * steps)) for k in OCTAVES), [2.0**-53]]
    )
    edges = np.unique(np.concatenate((np.arange(even + 1) / even, near, 1 - near)))
    edges.setflags(write=False)  # shared by all tallies on this grid
    return edges


def even_ranks(n: int | float, parts: int) -> Floats:
    """Ranks that cut n samples into parts of equal size."""
    return np.unique(np.floor(np.arange(1, parts) * (n / parts)))
