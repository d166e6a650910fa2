"""Tests along thresholds: the searches behind a guaranteed threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, log1p, nan
from typing import Literal

import numpy as np

from howsure import bounds
from howsure._core import check
from howsure._core.check import Floats, InputError
from howsure.predictions.outcomes import Outcomes

Bound = Literal["clopper_pearson", "hoeffding_bentkus", "betting"]
STEPS = 50  # coverages that the fixed sequence tests


@dataclass(frozen=True, eq=False)
class Kept:
    """Running counts over thresholds, strictest first. Losses stand in their own order for the betting bound."""

    score: Floats
    kept: Floats
    loss: Floats
    zero_one: bool
    rows: Outcomes | None = None
    losses: Floats | None = None  # distinct losses, ascending, where they are not 0 and 1

    @property
    def n(self) -> float:
        return float(self.kept[-1])

    def at_rank(self, rank: float) -> int:
        """The first threshold that keeps at least `rank` samples."""
        return min(int(np.searchsorted(self.kept, rank - 1e-9)), len(self.kept) - 1)


def upper_bound(kept: Kept, row: int, delta: float, how: Bound) -> float:
    """The upper bound on the risk at one threshold."""
    n, loss = float(kept.kept[row]), float(kept.loss[row])
    if how == "clopper_pearson":
        return bounds.clopper_pearson(loss, n, delta)
    if how == "hoeffding_bentkus":
        return bounds.hoeffding_bentkus(min(1.0, loss / n), int(n), delta)
    rows = kept.rows
    assert rows is not None  # checked in _bound_for
    per_row = (~rows.correct).astype(np.float64) if rows.loss is None else np.asarray(rows.loss)
    return bounds.betting(per_row[np.asarray(rows.score) >= kept.score[row]], delta)


def search(
    kept: Kept, risk: float, delta: float, method: str, how: Bound, grid: Sequence[int] | None
) -> tuple[int | None, float]:
    """The accepted row, if any, with its bound."""
    if method == "sgr":
        return _sgr(kept, risk, delta, how)
    return _fixed_sequence(kept, risk, delta, how, _grid(kept, risk, delta, how) if grid is None else grid)


def _sgr(kept: Kept, risk: float, delta: float, how: Bound) -> tuple[int | None, float]:
    """Bisection over the sorted scores; the widest step that passed, by the union bound over all steps."""
    n = ceil(kept.n)
    steps = max(1, (n - 1).bit_length())  # ceil(log2 n), in integers
    low, high, best = 1, n, (None, nan)
    for _ in range(steps):
        z = (low + high + 1) // 2
        row = kept.at_rank(n - z + 1)
        upper = upper_bound(kept, row, delta / steps, how)
        if upper < risk and (best[0] is None or row > best[0]):
            best = (row, upper)
        low, high = (low, z) if upper < risk else (z, high)
    return best


def _fixed_sequence(kept: Kept, risk: float, delta: float, how: Bound, grid: Sequence[int]) -> tuple[int | None, float]:
    """Test at full delta along the sequence; the last success before the first failure."""
    best = (None, nan)
    for row in grid:
        upper = upper_bound(kept, row, delta, how)
        if not upper < risk:
            break
        best = (row, upper)
    return best


def _grid(kept: Kept, risk: float, delta: float, how: Bound) -> list[int]:
    """Rows that keep j/50 of the samples, ties closed, from the first with enough samples to succeed upwards."""
    x = log(delta) / log1p(-risk) if risk < 1 else 0.0
    n = ceil(kept.n)
    enough = ceil(2.5 * x) if how == "clopper_pearson" else _enough(risk, delta)
    start = min(enough, ceil((ceil(x) + n) / 2))
    ranks = -(-np.arange(1, STEPS + 1) * n // STEPS)
    rows = np.unique(np.minimum(np.searchsorted(kept.kept, ranks - 1e-9), len(kept.kept) - 1))
    return rows[kept.kept[rows] >= start].tolist()


def _enough(risk: float, delta: float) -> int:
    """Samples, to a tenth, at which a mean loss of half the risk passes; other losses than 0/1 are rarely 0."""
    n = 8.0
    while bounds.hoeffding_bentkus(risk / 2, ceil(n), delta) >= risk:
        n *= 1.1
    return ceil(n)


def given(kept: Kept, thresholds: Sequence[float], method: str) -> list[int]:
    """Rows of thresholds fixed in advance, strictest first; those that keep nothing are left out."""
    if method != "fixed_sequence":
        raise InputError("thresholds= are tested in sequence; use method='fixed_sequence'.")
    wanted = np.sort(check.column(thresholds, "thresholds").astype(np.float64))[::-1]
    rows = (int(np.searchsorted(-kept.score, -x, side="right")) - 1 for x in wanted)
    return [row for row in rows if row >= 0]
