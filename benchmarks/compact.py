"""A tally of fixed size straight from the scores: time, memory, and how wide the certified bounds
are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

import howsure as hs

from .rows import Row
from .timing import peak_bytes, seconds
from .workloads import Outcome, saturated, usual

N = 10**7
BUCKETS = 25_000
METRICS = (hs.aurc, hs.e_aurc, hs.augrc, hs.auroc, hs.aupr, hs.ece, hs.correctness_brier)


def rows() -> Iterator[Row]:
    data = usual(N)
    yield speed(data, f"compact tally, {N:,} float32", 1.1)
    extra = peak_bytes(lambda: small(data))
    yield Row(f"memory of the compact tally, {N:,} float32", extra / 1e6, "MB", 10)
    yield from widths(data, "usual")
    yield from widths(saturated(N), "saturated")


def small(data: Outcome) -> hs.Tally:
    return hs.tally(data.score, correct=data.correct, compact=BUCKETS)


def speed(data: Outcome, job: str, must: float) -> Row:
    ours, sort = seconds(lambda: small(data), lambda: np.sort(data.score), repeats=5)
    return Row(
        job,
        ours / sort,
        "× np.sort",
        must,
        0.25,
        detail=f"{1e3 * ours:.0f} ms; np.sort {1e3 * sort:.0f} ms",
    )


def widths(data: Outcome, name: str) -> Iterator[Row]:
    """Bounds of the compact tally around the value of the exact one, as parts of it."""
    exact, kept = hs.tally(data.score, correct=data.correct), small(data)
    for metric in METRICS:
        value, (low, high) = metric(exact), hs.certified(metric, kept)
        inside = "contain" if low <= value <= high else "MISS"
        detail = f"[{low:.8g}, {high:.8g}] {inside} the exact {value:.8g}"
        must = 0.1 if metric is hs.aurc and name == "usual" else None
        job = f"  bounds of {metric.__name__}, {N:,} {name}"
        width = 100 * (high - low) / value
        yield Row(job, width if isfinite(width) else None, "% wide", must, detail=detail)
