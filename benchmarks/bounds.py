"""Certified bounds on real predictions: do they contain the exact value, and how wide are they?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import howsure as hs

from .rows import Row

BUCKETS = 400  # real sets are small: with 25,000 buckets most of them would stay exact
METRICS = (
    *(
        hs.aurc,
        hs.e_aurc,
        hs.augrc,
        hs.auroc,
        hs.ece,
        hs.mce,
        hs.correctness_brier,
        hs.correctness_nll,
    ),
    *(partial(hs.aupr, positive=p) for p in ("error", "success")),
    *(partial(hs.coverage_at_risk, risk=r) for r in (0.01, 0.05)),
)


def rows() -> Iterator[Row]:
    folder = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    paths = sorted(p for p in folder.glob("*.npz") if p.stem != "membrane_images")
    if not paths:
        yield Row(
            "bounds on real sets",
            None,
            "",
            detail="left out: no real predictions here (set HOWSURE_SHARED)",
        )
    for path in paths:
        yield row(path)


def row(path: Path) -> Row:
    preds = hs.read(path, split="test", mc=path.stem == "mc_fashion_cnn")
    exact = hs.tally(preds.confidence, correct=preds.correct)
    kept = exact.compact(BUCKETS)
    inside = sum(contains(metric, exact, kept) for metric in METRICS)
    low, high = hs.certified(hs.aurc, kept)
    form = (
        f"{len(kept.score):,} rows of {len(exact.score):,}"
        if kept.approximate
        else "few scores, stays exact"
    )
    detail = f"{inside} of {len(METRICS)} bounds contain the exact value; n = {preds.n:,}, {form}"
    width = 100 * (high - low) / hs.aurc(exact) if high > 0 else 0.0
    return Row(f"  bounds of aurc, {path.stem}, {BUCKETS} buckets", width, "% wide", detail=detail)


def contains(metric: object, exact: hs.Tally, kept: hs.Tally) -> bool:
    value, (low, high) = metric(exact), hs.certified(metric, kept)  # type: ignore[operator, arg-type]
    return bool(value != value or low - 1e-12 <= value <= high + 1e-12)
