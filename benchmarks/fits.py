"""Fits of calibrators beside the pass over the data that they cannot do without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import howsure as hs

from .rows import Row
from .timing import Job, peak_bytes, seconds
from .workloads import logits, usual


def rows() -> Iterator[Row]:
    """Isotonic regression beside np.sort; vector and matrix scaling beside np.exp of the float32
    logits.
    """
    data = usual(10**7)
    preds = hs.Predictions.from_confidence(data.score, data.correct)
    sort, fit = seconds(
        lambda: np.sort(data.score), lambda: hs.calibrators.Isotonic.fit(preds), repeats=3
    )
    detail = (
        f"{fit:.2f} CPU s, np.sort {sort:.2f}; {peak(lambda: hs.calibrators.Isotonic.fit(preds))}"
    )
    yield Row("isotonic fit, 10⁷", fit / sort, "× np.sort", 4, 3, detail=detail)
    z, labels = logits(10**5, 100)
    preds, out = hs.Predictions.from_logits(z, labels), np.empty_like(z)
    kinds = (
        (hs.calibrators.VectorScaling, "vector", 50, 25),
        (hs.calibrators.MatrixScaling, "matrix", 250, 120),
    )
    for kind, name, must, moonshot in kinds:
        exp, fit = seconds(lambda: np.exp(z, out=out), lambda kind=kind: kind.fit(preds), repeats=2)
        detail = (
            f"{fit:.2f} CPU s, np.exp {1e3 * exp:.1f} ms; {peak(lambda kind=kind: kind.fit(preds))}"
        )
        yield Row(
            f"{name} scaling, 10⁵ × 100", fit / exp, "× np.exp", must, moonshot, detail=detail
        )


def peak(job: Job) -> str:
    """Memory that a job needs beside its input, at its peak."""
    return f"peak {peak_bytes(job) / 1e6:,.0f} MB beside the input"
