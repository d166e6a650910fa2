"""Tests along thresholds: the searches behind a guaranteed threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from math import ceil, log, log1p, nan
from typing import Literal

import numpy as np

from howsure import bounds
from howsure._core import check
from howsure._core.check import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.predictions.outcomes import Outcomes

Bound = Literal["clopper_pearson", "hoeffding_bentkus", "betting", "groups"]
STEPS = 50  # coverages that the fixed sequence tests
STARTS = {
    0.0: 0.5,
    0.25: 0.1,
    0.5: 0.15,
    1.0: 0.25,
}  # coverage at which the fallback begins anew → its share of delta


@frozen(eq=False)
class Kept:
    """Running counts over thresholds, strictest first. Losses stand in their own order for the
    betting bound.
    """

    score: Floats
    kept: Floats
    loss: Floats
    zero_one: bool
    rows: Outcomes | None = None
    losses: Floats | None = None  # distinct losses, ascending, where they are not 0 and 1
    largest: int | None = None  # samples that the largest group can have, where that is stated

    @property
    def n(self) -> float:
        return float(self.kept[-1])

    def at_score(self, score: float) -> tuple[float, float]:
        """How many samples score at least this much, and their loss."""
        row = int(np.searchsorted(-self.score, -score, side="right")) - 1
        return float(self.kept[row]), float(self.loss[row])

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
    accepted = np.asarray(rows.score) >= kept.score[row]
    per_row = ((~rows.right).astype(np.float64) if rows.loss is None else rows.loss)[accepted]
    if how == "betting":
        return bounds.betting(per_row, delta)
    group = rows.units
    lost, n = (np.bincount(group[accepted], w, int(group.max()) + 1) for w in (per_row, None))
    return bounds.group_betting(lost, n, kept.largest or np.bincount(group), delta)


def search(
    kept: Kept, risk: float, delta: float, method: str, how: Bound, grid: Sequence[int] | None
) -> tuple[int | None, float]:
    """The accepted row, if any, with its bound."""
    if method == "sgr":
        return _sgr(kept, risk, delta, how)
    rows = _grid(kept, risk, delta, how) if grid is None else grid
    return (_fallback if method == "fallback" else _fixed_sequence)(kept, risk, delta, how, rows)


def _sgr(kept: Kept, risk: float, delta: float, how: Bound) -> tuple[int | None, float]:
    """Bisection over the sorted scores; the widest step that passed, by the union bound over all
    steps.
    """
    n = ceil(kept.n)
    steps = max(1, (n - 1).bit_length())  # ceil(log2 n), in integers
    low, high, best = 1, n, (None, nan)
    for _ in range(steps):
        z = (low + high + 1) // 2
        row = kept.at_rank(n - z + 1)
        upper = upper_bound(kept, row, delta / steps, how)
        if upper < risk:  # a later z is never above it, so a later row is never stricter
            high, best = z, (row, upper)
        else:
            low = z
    return best


def _fixed_sequence(
    kept: Kept, risk: float, delta: float, how: Bound, grid: Sequence[int]
) -> tuple[int | None, float]:
    """Test at full delta along the sequence; the last success before the first failure."""
    best = (None, nan)
    for row in grid:
        upper = upper_bound(kept, row, delta, how)
        if not upper < risk:
            break
        best = (row, upper)
    return best


def _fallback(
    kept: Kept, risk: float, delta: float, how: Bound, grid: Sequence[int]
) -> tuple[int | None, float]:
    """Test along the sequence, which begins anew at some coverages; a success hands its share of
    delta on.

    Wiens 2003: the chance of any wrong promise is at most delta, so the widest success counts.
    """
    if not grid:
        return None, nan
    starts = defaultdict[int, float](float)
    for c, part in STARTS.items():  # where no row has this coverage, the share goes to the first
        starts[next((r for r in grid if kept.kept[r] >= c * kept.n - 1e-9), grid[0])] += part
    best, carried = (None, nan), 0.0
    for row in grid:
        level = delta * starts[row] + carried
        upper = upper_bound(kept, row, level, how) if level > 0 else 1.0
        carried = level if upper < risk else 0.0
        best = (row, upper) if carried else best
    return best


def _grid(kept: Kept, risk: float, delta: float, how: Bound) -> list[int]:
    """Rows that keep j/50 of the samples, ties closed, from the first with enough samples to
    succeed upwards.
    """
    x = log(delta) / log1p(-risk) if risk < 1 else 0.0
    n, units = ceil(kept.n), ceil(kept.n)
    if how == "groups" and kept.rows is not None:
        units = int(kept.rows.units.max()) + 1
    enough = _enough(risk, delta) if how in ("hoeffding_bentkus", "betting") else ceil(2.5 * x)
    start = min(enough, ceil((ceil(x) + units) / 2)) * n / units
    rows = step_rows(kept)
    return rows[kept.kept[rows] >= start].tolist()


def step_rows(kept: Kept) -> Ints:
    """Rows that keep j/50 of the samples, ties closed: all that the fixed sequence can stop at."""
    ranks = -(-np.arange(1, STEPS + 1) * ceil(kept.n) // STEPS)
    return np.unique(np.minimum(np.searchsorted(kept.kept, ranks - 1e-9), len(kept.kept) - 1))


@cache
def _enough(risk: float, delta: float) -> int:
    """Samples, to a tenth, at which a mean loss of half the risk passes; other losses than 0/1 are
    rarely 0.
    """
    n = 8.0
    while bounds.hoeffding_bentkus(risk / 2, ceil(n), delta) >= risk:
        n *= 1.1
    return ceil(n)


def given(kept: Kept, thresholds: Sequence[float], method: str) -> list[int]:
    """Rows of thresholds fixed in advance, strictest first; those that keep nothing are left out."""
    if method == "sgr":
        raise InputError("thresholds= are tested in sequence; use method='fixed_sequence'.")
    wanted: list[float] = np.sort(check.column(thresholds, "thresholds").astype(np.float64))[
        ::-1
    ].tolist()
    rows = (int(np.searchsorted(-kept.score, -x, side="right")) - 1 for x in wanted)
    return [row for row in rows if row >= 0]
