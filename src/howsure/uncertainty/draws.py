"""Poisson bootstrap: tables as they might have been, drawn from one that was observed.

A unit (a sample, a cluster, a pair of answers) is drawn Poisson(1) times. Units with the same
effect are drawn together, m of them Poisson(m) times, so the cost depends on the number of rows and
not on the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure.binning import Binning
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.grid import even_ranks
from howsure.tallies.rows import RowTally, as_rows, bucketed
from howsure.tallies.tally import Blocks, Counts, Sums, Tally

DRAWS = 1000
ROWS = 300  # cuts at the ranks of samples, and as many at the ranks of losses
MANY = 50_000  # from here on pairs share fewer rows, so that more of them are alike
USUAL = np.unique(
    np.concatenate([np.arange(1, m) / m for m in (10, 12, 15, 20, 25, 50)])
)  # edges of the usual bins
CHUNK = 1 << 22  # numbers drawn at a time
LINES = 64  # draws measured at a time
FEW = 32  # up to here Poisson counts are looked up, which is ten times as fast as drawing them


def coarse(t: Tally, parts: int = ROWS) -> RowTally:
    """About twice `parts` rows: exact where there are no more, else cut where the metrics look.

    Some cuts follow the samples and some the rows that carry loss, so that with few errors each
    error keeps its own rank; the edges of the usual bins are cuts as well. `.edges` are the upper
    ends of the rows.
    """
    if t.has_at_most(2 * parts):
        rows = as_rows(t)
        return replace(rows, edges=rows.score[::-1])
    usual = t.above(USUAL)
    ranks = t.cut_at(even_ranks(t.n, parts))
    return bucketed(
        t, np.unique(np.concatenate(([0], ranks, _loss_cuts(t.blocks(), parts), usual, [t.n])))
    )


def _loss_cuts(block: Blocks, parts: int) -> Counts:
    """Cuts on both sides of each row that bears loss; before some of them, evenly chosen, where
    there are many.
    """
    if 2 * len(block.loss) <= parts:
        return np.concatenate((block.before, block.after))
    return block.before[np.linspace(0, len(block.loss) - 1, parts).astype(np.int64)]


@frozen(eq=False)
class Table:
    """Rows, and the entries that make them up: what one draw of a unit adds to a row. Entries are
    sorted by row.
    """

    rows: RowTally
    row: Ints  # the row of each entry ...
    unit: Ints  # ... and its unit
    count: Counts
    loss: Counts
    spread: Floats | None = None  # standard deviation of the loss inside an entry

    def sums(self, drawn: Array, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """Counts and losses of the rows, one line per draw; `drawn` has a line per unit and a
        column per draw.
        """
        times = drawn[self.unit]
        bears = np.flatnonzero(self.loss if self.spread is None else self.count)
        loss = times[bears] * self.loss[bears, None]
        if self.spread is not None:
            loss += np.sqrt(times) * self.spread[:, None] * rng.standard_normal(loss.shape)
        return self._by_row(times * self.count[:, None], self.row), self._by_row(
            loss, self.row[bears]
        )

    def _by_row(self, entries: Array, row: Ints) -> Counts:
        out = np.zeros(
            (len(self.rows.score), entries.shape[1]), dtype=np.result_type(entries, np.int64)
        )
        if len(row):
            start = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
            alone = len(start) == len(row)
            out[row[start]] = (
                entries if alone else np.add.reduceat(entries, start, axis=0, dtype=out.dtype)
            )
        return np.ascontiguousarray(out.T)


@frozen(eq=False)
class Stack:
    """Many drawn tables over the same rows, one line each."""

    rows: RowTally
    count: Counts
    loss: Counts

    @cached_property
    def parts(self) -> list[Stack]:
        """The same draws, some at a time: arrays that stay near the processor are read twice as
        fast.
        """
        lines = range(0, len(self.count), LINES)
        return [
            Stack(self.rows, self.count[i : i + LINES], self.loss[i : i + LINES]) for i in lines
        ]

    @cached_property
    def n(self) -> Counts:
        """Samples in each drawn table."""
        return self.count.sum(axis=1)

    @cached_property
    def blocks(self) -> Blocks:
        """Tie blocks of every table; those that drew no loss stand as blocks of one at the end,
        where they weigh 0.
        """
        bears = np.flatnonzero(self.rows.loss)
        after, count, loss = (
            a.take(bears, axis=1) for a in (np.cumsum(self.count, axis=1), self.count, self.loss)
        )
        some, n = loss != 0, self.n[:, None]
        return Blocks(np.where(some, after - count, n - 1), np.where(some, after, n), loss)

    def binned(self, bins: Binning) -> Sums:
        """Sums in the bins of the observed rows."""
        r = self.rows
        cuts = bins.cuts(r)
        start = r.first_rows(cuts)
        add: Callable[[Array], Array] = lambda a: np.add.reduceat(a, start, axis=1)
        whole = r.between(cuts)
        return Sums(
            add(self.count),
            add(self.count * (r.claim / r.count)),
            add(self.loss),
            whole.high,
            whole.low,
        )

    def tallies(self) -> Iterator[RowTally]:
        """The drawn tables one by one."""
        r = self.rows
        with np.errstate(invalid="ignore"):
            claim = r.claim / r.count
            for count, loss in zip(self.count, self.loss, strict=True):
                keep = count > 0
                count, loss = count[keep], loss[keep]
                square = loss if r.zero_one else loss * 0
                yield RowTally(
                    r.score[keep],
                    count,
                    loss,
                    claim[keep] * count,
                    square,
                    None,
                    r.zero_one,
                    r.weighted,
                )


def draw_rows(t: Tally, seed: int) -> Stack:
    """Draws of a tally: its samples are alike within a row, right ones and wrong ones, or of one
    mean loss.
    """
    rows = coarse(t)
    table, times = _cells(rows) if rows.zero_one else _means(rows)
    return _stacks([table], times, seed)[0]


def _cells(rows: RowTally) -> tuple[Table, Ints]:
    cells = np.stack((rows.count - rows.loss, rows.loss), axis=1)
    row, wrong = np.nonzero(cells)
    return Table(rows, row, np.arange(len(row)), np.ones(len(row), np.uint8), wrong), cells[
        row, wrong
    ]


def _means(rows: RowTally) -> tuple[Table, Ints]:
    mean = rows.loss / rows.count
    spread = np.sqrt(np.maximum(rows.square / rows.count - mean**2, 0.0))
    row = np.arange(len(mean))
    return Table(rows, row, row, np.ones(len(mean)), mean, spread), np.round(rows.count).astype(
        np.int64
    )


def draw_units(o: Outcomes, seed: int) -> Stack:
    """Draws of weighted samples, or of whole groups."""
    unit = _units(o.group, len(o))
    return _stacks([_entries(o, unit, coarse(o.tally()))], _once(unit), seed)[0]


def draw_pair(a: Outcomes, b: Outcomes, seed: int) -> tuple[Stack, Stack]:
    """Draws of the same samples, or of the same groups, for both sides."""
    parts = ROWS if len(a) <= MANY else ROWS // 4
    rows = [coarse(o.tally(), parts) for o in (a, b)]
    if all(o.group is None and o.weight is None and o.loss is None for o in (a, b)):
        first, times = _alike(rows, (a, b))
        a, b, unit = a[first], b[first], np.arange(len(first))
    else:
        unit = _units(b.group if a.group is None else a.group, len(a))
        times = _once(unit)
    one, two = _stacks(
        [_entries(o, unit, r) for o, r in zip((a, b), rows, strict=True)], times, seed
    )
    return one, two


def _alike(rows: Sequence[RowTally], sides: Sequence[Outcomes]) -> tuple[Ints, Ints]:
    """One sample of each kind, and how many there are: the same rows and the same outcomes on both
    sides.
    """
    kind = np.zeros(len(sides[0]), dtype=np.int64)
    for r, o in zip(rows, sides, strict=True):
        kind = (kind * len(r.score) + _row_of(r, o.score)) * 2 + o.right
    _, first, times = np.unique(kind, return_index=True, return_counts=True)
    return first, times


def _units(group: Array | None, n: int) -> Ints:
    return np.arange(n) if group is None else np.unique(group, return_inverse=True)[1]


def _once(unit: Ints) -> Ints:
    return np.ones(int(unit.max()) + 1, dtype=np.int64)


def _entries(o: Outcomes, unit: Ints, rows: RowTally) -> Table:
    """What every unit adds to every row; samples of one unit in one row are one entry."""
    row = _row_of(rows, o.score)
    order = np.lexsort((unit, row))
    row, unit = row[order], unit[order]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(row) != 0) | (np.diff(unit) != 0))))
    scale = 1.0 if rows.weights is None else rows.weights.unit
    weight = (np.ones(len(o), dtype=np.int64) if o.weight is None else o.weight / scale)[order]
    loss = (~o.right if o.loss is None else o.loss)[order] * weight
    count, loss = np.add.reduceat(weight, first), np.add.reduceat(loss, first)
    return Table(rows, row[first], unit[first], _slim(count), _slim(loss))


def _slim(a: Counts) -> Counts:
    """Small whole numbers in single bytes, with room for being drawn 8 times."""
    return a.astype(np.uint8) if a.dtype.kind == "i" and a.min() >= 0 and a.max() < 32 else a


def _row_of(rows: RowTally, score: Array) -> Ints:
    assert rows.edges is not None
    last = len(rows.edges) - 1
    return last - np.minimum(np.searchsorted(rows.edges, score.astype(np.float64)), last)


def _stacks(tables: Sequence[Table], times: Ints, seed: int) -> list[Stack]:
    """Every table drawn as often as is asked for, all with the same units; draws without a sample
    are left out.
    """
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // max(len(times), *(len(t.unit) for t in tables)))
    parts: list[list[tuple[Counts, Counts]]] = []
    for i in range(0, DRAWS, step):
        drawn = _poisson(times, min(step, DRAWS - i), rng)
        parts.append([t.sums(drawn, rng) for t in tables])
    joined: Callable[[Sequence[Array]], Array] = lambda a: (
        a[0] if len(a) == 1 else np.concatenate(a)
    )
    lines = [
        [joined(column) for column in zip(*part, strict=True)] for part in zip(*parts, strict=True)
    ]
    some = np.logical_and.reduce([count.any(axis=1) for count, _ in lines])
    kept: Callable[[Array], Array] = lambda a: a if some.all() else a[some]
    return [
        Stack(t.rows, kept(count), kept(loss))
        for t, (count, loss) in zip(tables, lines, strict=True)
    ]


def _poisson(times: Ints, draws: int, rng: np.random.Generator) -> Array:
    """A line of Poisson counts for each mean in `times`."""
    many = times > FEW
    drawn = np.empty((len(times), draws), dtype=np.int64 if many.any() else np.uint8)
    drawn[many] = rng.poisson(times[many, None], size=(int(many.sum()), draws))
    for mean in np.unique(times[~many]):
        lines = np.flatnonzero(times == mean)
        drawn[lines] = _looked_up(int(mean)).take(
            rng.integers(0, 1 << 16, (len(lines), draws), dtype=np.uint16)
        )
    return drawn


@lru_cache(maxsize=FEW)
def _looked_up(mean: int) -> Array:
    """Poisson counts as 65,536 equally likely values: the distribution function rounded to 2^-16."""
    k = np.arange(3 * mean + 20)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(k[1:]))))
    below = np.cumsum(np.exp(k * np.log(mean) - mean - log_factorial))
    shares = np.diff(np.round(below * (1 << 16)).astype(np.int64), prepend=0)
    return np.repeat(k.astype(np.uint8), shares)
