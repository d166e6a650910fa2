"""Limits of AURC and of ECE, with the tally they are made from."""

from __future__ import annotations

from collections.abc import Iterator

import howsure as hs

from .rows import Row
from .timing import seconds
from .workloads import Outcome, usual

SIZES = (10**4, 10**6)


def rows() -> Iterator[Row]:
    for n in SIZES:
        data = usual(n)
        (ours,) = seconds(lambda: intervals(data), repeats=3)  # noqa: B023
        yield Row(
            f"limits of AURC and ECE, {n:,}", ours, "CPU s", 0.3, 0.15, detail="with the tally"
        )


def intervals(data: Outcome) -> list[hs.Interval]:
    return hs.each_interval([hs.aurc, hs.ece], hs.tally(data.score, correct=data.correct))
