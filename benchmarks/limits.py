"""Limits of all ranking metrics of a tally against the panel that the tally is made and measured
in.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import howsure as hs

from .panel import panel
from .rows import Row
from .timing import seconds
from .workloads import usual

RANKING = (
    hs.accuracy,
    hs.aurc,
    hs.e_aurc,
    hs.augrc,
    hs.auroc,
    hs.aupr,
    partial(hs.aupr, positive="success"),
    partial(hs.coverage_at_risk, risk=0.01),
    partial(hs.coverage_at_risk, risk=0.05),
    partial(hs.risk_at_coverage, coverage=0.8),
)


def rows() -> Iterator[Row]:
    for n, repeats in ((10**6, 5), (10**7, 3)):
        data = usual(n)
        t = hs.tally(data.score, correct=data.correct)
        ours, whole = seconds(
            lambda t=t: hs.each_interval(RANKING, t), lambda data=data: panel(data), repeats=repeats
        )
        detail = f"{1e3 * ours:.0f} ms; panel {1e3 * whole:.0f} ms"
        yield Row(
            f"limits of {len(RANKING)} ranking metrics, {n:,} rows",
            ours / whole,
            "× panel",
            3.0,
            1.0,
            detail=detail,
        )
