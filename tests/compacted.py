"""Metrics with certified bounds, and tallies squeezed into the buckets that such bounds are for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import howsure as hs
from howsure.tallies.buckets import make_grid
from howsure.tallies.row_tally import bucket_rows, find_edge_cuts

Metric = Callable[[Any], float]

RANKING: list[Metric] = [
    *(hs.aurc, hs.aac, hs.e_aurc, hs.augrc, hs.auroc, hs.optimal_aurc, hs.accuracy),
    *(partial(hs.aupr, positive=p) for p in ("error", "success")),
    *(partial(hs.coverage_at_risk, risk=r) for r in (0.0, 0.01, 0.05, 0.3, 0.5, 0.9)),
    *(partial(hs.risk_at_coverage, coverage=c) for c in (1e-9, 0.01, 1 / 3, 0.5, 0.9, 1.0)),
]
BINS = [hs.equal_range(15), hs.equal_range(5), hs.equal_range(1)]  # edges are ends of buckets
BINNED = (hs.ece, hs.mce, hs.over_confidence, hs.under_confidence, hs.rms_calibration_error)
CLAIMS: list[Metric] = [
    *(partial(metric, bins=bins) for metric in BINNED for bins in BINS),
    *(hs.signed_calibration_error, hs.correctness_brier, hs.correctness_nll),
]
COUNTED: list[Metric] = [partial(hs.debiased_ece, bins=bins) for bins in BINS]


def squeezed(t: hs.Tally, buckets: int = 400) -> hs.Tally:
    """`t` in fixed buckets even where it has so few rows that `compact` would leave it as it is."""
    edges = make_grid(buckets)
    return replace(
        bucket_rows(t, find_edge_cuts(t, edges)), edges=edges, approximate="squeezed for a test"
    )
