"""The least and the greatest value of a binned metric when bins may cut through the buckets of a
compact tally.

A bin that ends where buckets end has exact sums. Where a cut goes through a bucket, any part of its
samples may be in the bin above and the rest below. So each bin has `sure` rows, those wholly
inside, and `touched` rows, those that may add something. A part of a bucket with scores in [low,
high] and r right and w wrong answers has a count between 0 and r + w, a loss between 0 and w, and a
surplus (claims minus right answers) between -r (1 - low) and w high. All bounds are interval
arithmetic on these sums: never too narrow, and a point where no bucket is cut.
"""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.binning import Binning, equal_range, equal_size
from howsure.tallies.rows import RowTally, as_rows, score_ends
from howsure.tallies.tally import Tally

Pair = tuple[float, float]


@frozen(eq=False)
class Span:
    """A number that lies between `low` and `high`, one per bin."""

    low: Floats
    high: Floats

    @property
    def size(self) -> Span:
        """Its absolute value."""
        return Span(
            np.maximum(0.0, np.maximum(self.low, -self.high)), np.maximum(-self.low, self.high)
        )

    def clip(self, low: float, high: float) -> Span:
        """Kept between two numbers."""
        return Span(self.low.clip(low, high), self.high.clip(low, high))

    def total(self) -> Pair:
        """The sum over the bins."""
        return float(self.low.sum()), float(self.high.sum())


@frozen(eq=False)
class LooseBins:
    """Sums of the bins, most trusted first."""

    n: float
    count: Span
    loss: Span
    right: Span
    surplus: Span

    @property
    def gap(self) -> Span:
        """Surplus per sample; anything from -1 to 1 where a bin has no sure samples."""
        few, many = np.where(self.count.low > 0, self.count.low, np.nan), self.count.high
        low, high = self.surplus.low, self.surplus.high
        found = Span(np.minimum(low / few, low / many), np.maximum(high / few, high / many))
        return Span(np.nan_to_num(found.low, nan=-1.0), np.nan_to_num(found.high, nan=1.0))

    @property
    def accuracy(self) -> Span:
        """Right answers per sample: least with few right and many wrong."""
        return Span(
            _share(self.right.low, self.loss.high), 1.0 - _share(self.loss.low, self.right.high)
        )


def _share(part: Floats, other: Floats) -> Floats:
    """part / (part + other), and 0 of nothing."""
    whole = part + other
    return part / np.where(whole > 0, whole, 1.0)


def claims_of(t: RowTally) -> tuple[Floats, Floats]:
    """The lowest and the highest score in [0, 1] that each row can hold."""
    low, high = score_ends(t)
    return np.maximum(low, 0.0), high


def rows_at(bins: Binning, t: RowTally) -> tuple[Ints, Ints]:
    """For each inner cut the rows surely above it, and those that may be; they differ where it cuts
    a bucket.
    """
    if isinstance(bins, equal_range):
        low, high = claims_of(t)
        edge = -bins.edges()[-2:0:-1]
        return np.searchsorted(-low, edge), np.searchsorted(-high, edge)
    if isinstance(bins, equal_size):
        rank = np.array(
            [
                i * t.n / bins.m if t.weighted else -(-i * int(t.n) // bins.m)
                for i in range(1, bins.m)
            ]
        )
        near = (
            1e-9 * t.n if t.weighted else 0
        )  # sums of weights are rounded, so a rank may miss the end of a row
        possible = np.minimum(np.searchsorted(t.ends, rank + near) + 1, len(t.ends))
        sure = np.searchsorted(t.ends, rank - near, side="right")
        low, high = score_ends(t)
        whole = (possible == sure + 1) & (low == high)[
            np.minimum(sure, len(t.ends) - 1)
        ]  # a tie is never split
        return np.where(whole, possible, sure), possible
    kind = type(bins).__name__
    raise InputError(
        f"{kind} bins follow single scores, which a compact tally has lost; use equal_range or equal_size."
    )


def loose(t: Tally, bins: Binning) -> LooseBins:
    """The sums of every bin as far as they are known."""
    rows = as_rows(t)
    sure, possible = rows_at(bins, rows)
    last = len(rows.score)
    inner = np.append(0, possible), np.maximum(np.append(sure, last), np.append(0, possible))
    outer = np.append(0, sure), np.append(possible, last)
    low, high = claims_of(rows)
    right = rows.count - rows.loss
    surplus = _between(rows.claim - right, inner)
    lack, excess = (
        _between(c, outer) - _between(c, inner) for c in (right * (1 - low), rows.loss * high)
    )
    sums = [Span(_between(c, inner), _between(c, outer)) for c in (rows.count, rows.loss, right)]
    some = sums[0].high > 0
    spans = (
        Span(s.low[some], s.high[some]) for s in (*sums, Span(surplus - lack, surplus + excess))
    )
    return LooseBins(float(t.n), *spans)


def _between(column: Floats, rows: tuple[Ints, Ints]) -> Floats:
    """Sums of a column from one row to another."""
    sums = np.concatenate(([0.0], np.cumsum(column, dtype=np.float64)))
    return sums[rows[1]] - sums[rows[0]]
