"""A tally of fixed size from an exact one: time, size, and what it does to the AURC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import howsure as hs

from .rows import Row
from .timing import seconds
from .workloads import usual

N = 10**7


def rows() -> Iterator[Row]:
    data = usual(N)

    def small() -> hs.Tally:
        return hs.tally(data.score, correct=data.correct).compact()

    ours, sort = seconds(small, lambda: np.sort(data.score), repeats=3)
    t = small()
    size = sum(c.nbytes for c in (t.score, t.count, t.loss)) / 2**20
    exact, kept = hs.aurc(hs.tally(data.score, correct=data.correct)), hs.aurc(t)
    detail = f"{1e3 * ours:.0f} ms; np.sort {1e3 * sort:.0f} ms; score, count and loss take {size:.1f} MiB"
    detail += f"; AURC off by {abs(kept / exact - 1):.1e} of itself"
    yield Row(f"compact tally, {N:,} float32", ours / sort, "× np.sort", 1.1, 0.25, detail=detail)
