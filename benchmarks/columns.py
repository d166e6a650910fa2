"""All score and loss columns of logits against np.exp of the same numbers in float64.

np.exp writes to an array that is already there: with a fresh one of this size most of its time
would be spent on new pages of memory, and a pass that contains the same exponentials would seem
faster than they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from howsure.predictions.columns import RawValues, compute_columns

from .rows import Row
from .timing import seconds
from .workloads import logits

SHAPES = ((20_000, 1000, 3.0, 1.0), (100_000, 100, 5.0, 2.0))  # n, k, must, moonshot


def rows() -> Iterator[Row]:
    for n, k, must, moonshot in SHAPES:
        yield row(n, k, must, moonshot)


def row(n: int, k: int, must: float, moonshot: float) -> Row:
    z, labels = logits(n, k)
    wide = z.astype(np.float64)
    out = np.empty_like(wide)
    ours, exp = seconds(
        lambda: compute_columns(RawValues(z, True), labels),
        lambda: np.exp(wide, out=out),
        repeats=5,
    )
    detail = f"{1e3 * ours:.0f} ms; np.exp {1e3 * exp:.0f} ms"
    job = f"score and loss columns, {n:,} × {k}"
    return Row(job, ours / exp, "× np.exp", must, moonshot, detail=detail)
