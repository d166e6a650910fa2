"""Tally and the eight metrics of the panel against np.sort, and the memory they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import howsure as hs

from .rows import Row
from .timing import peak_bytes, seconds
from .workloads import Outcome, saturated, usual

METRICS = (hs.auroc, hs.aupr, hs.aurc, hs.e_aurc, hs.augrc, hs.ece, hs.mce, hs.aece)
SIZES = ((10**6, 3.0, 15), (10**7, 3.5, 5))  # samples, limit, repeats


def panel(data: Outcome) -> list[float]:
    t = hs.tally(data.score, correct=data.correct)
    return [metric(t) for metric in METRICS]


def rows() -> Iterator[Row]:
    for n, limit, repeats in SIZES:
        for draw in (usual, saturated):
            yield speed(draw(n), job(n, draw), limit, repeats)
    for n, _, _ in SIZES:
        yield memory(usual(n), n)


def job(n: int, draw: Callable[[int], Outcome]) -> str:
    return f"tally + 8 metrics, {n:,} float32, {draw.__name__}"


def speed(data: Outcome, job: str, limit: float, repeats: int) -> Row:
    ours, sort = seconds(lambda: panel(data), lambda: np.sort(data.score), repeats=repeats)
    detail = f"{1e3 * ours:.1f} ms; np.sort {1e3 * sort:.1f} ms"
    return Row(job, ours / sort, "× np.sort", limit, 1.5, detail=detail)


def memory(data: Outcome, n: int) -> Row:
    extra = peak_bytes(lambda: panel(data))
    detail = f"{extra / 2**20:.1f} MiB for {data.score.nbytes / 2**20:.1f} MiB"
    return Row(
        f"extra memory of the panel, {n:,} float32",
        extra / data.score.nbytes,
        "× input",
        3.0,
        2.0,
        detail=detail,
    )
