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

from howsure._core.checks import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import repeat_values, sort_distinct, sum_runs
from howsure.binning import Binning
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.buckets import space_ranks
from howsure.tallies.row_tally import RowTally, as_rows, bucket_rows
from howsure.tallies.tally import Blocks, Counts, RangeSums, Tally

BOOTSTRAP_DRAWS = 1000
BOOTSTRAP_CUTS = 300  # cuts at the ranks of samples, and as many at the ranks of losses
# Of more pairs, rows are a quarter as many, so that more pairs are alike and are drawn together.
FINE_PAIRS_SAMPLES = 50_000
# The edges of the usual bins.
USUAL_EDGES = sort_distinct(np.concatenate([np.arange(1, m) / m for m in (10, 12, 15, 20, 25, 50)]))
BOOTSTRAP_CHUNK_NUMBERS = 1 << 22  # numbers drawn at a time
STACK_PART_DRAWS = 64  # draws measured at a time
MAX_TABLE_MEAN = 32  # Poisson counts up to this mean are looked up: ten times as fast as drawing


# ---- the observed table


def coarsen(t: Tally, parts: int = BOOTSTRAP_CUTS) -> RowTally:
    """About twice `parts` rows: exact where there are no more, else cut where the metrics look.

    Some cuts follow the samples and some the rows that carry loss, so that with few errors each
    error keeps its own rank; the edges of the usual bins are cuts as well. `.edges` are the upper
    ends of the rows.
    """
    if t.has_at_most(2 * parts):
        rows = as_rows(t)
        return replace(rows, edges=rows.score[::-1])
    at_ranks = t.cut_at(space_ranks(t.n, parts))
    block = t.blocks()
    if 2 * len(block.loss) <= parts:
        at_losses = np.concatenate((block.before, block.after))
    else:
        at_losses = block.before[np.linspace(0, len(block.loss) - 1, parts).astype(np.int64)]
    cuts = np.concatenate(([0], at_ranks, at_losses, t.above(USUAL_EDGES), [t.n]))
    return bucket_rows(t, sort_distinct(cuts))


@frozen(eq=False)
class DrawTable:
    """Rows, and the entries that make them up: what one draw of a unit adds to a row. Entries are
    sorted by row.
    """

    rows: RowTally
    row: Ints  # the row of each entry ...
    unit: Ints  # ... and its unit
    count: Counts
    loss: Counts
    spread: Floats | None = None  # standard deviation of the loss inside an entry

    def sum_draws(self, times: Array, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """Counts and losses of the rows, one line per draw; `times` has a line per unit and a
        column per draw.
        """
        times = times[self.unit]
        if self.spread is None:
            bears = np.flatnonzero(self.loss)
            loss = times[bears] * self.loss[bears, None]
        else:
            bears = np.flatnonzero(self.count)
            loss = times[bears] * self.loss[bears, None]
            loss += np.sqrt(times) * self.spread[:, None] * rng.standard_normal(loss.shape)
        count = self._sum_by_row(times * self.count[:, None], self.row)
        return count, self._sum_by_row(loss, self.row[bears])

    def _sum_by_row(self, entries: Array, row: Ints) -> Counts:
        shape = (len(self.rows.score), entries.shape[1])
        out = np.zeros(shape, dtype=np.result_type(entries, np.int64))
        if len(row):
            start = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
            if len(start) < len(row):
                entries = sum_runs(entries, start, axis=0, dtype=out.dtype)
            out[row[start]] = entries
        return np.ascontiguousarray(out.T)


# ---- the drawn tables


@frozen(eq=False)
class DrawStack:
    """Many drawn tables over the same rows, one line each."""

    rows: RowTally
    count: Counts
    loss: Counts

    @cached_property
    def parts(self) -> list[DrawStack]:
        """The same draws, some at a time: arrays that stay near the processor are read twice as
        fast.
        """
        parts: list[DrawStack] = []
        for i in range(0, len(self.count), STACK_PART_DRAWS):
            lines = slice(i, i + STACK_PART_DRAWS)
            parts.append(DrawStack(rows=self.rows, count=self.count[lines], loss=self.loss[lines]))
        return parts

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
        after = np.cumsum(self.count, axis=1).take(bears, axis=1)
        count = self.count.take(bears, axis=1)
        loss = self.loss.take(bears, axis=1)
        some, n = loss != 0, self.n[:, None]
        return Blocks(
            before=np.where(some, after - count, n - 1), after=np.where(some, after, n), loss=loss
        )

    def sum_in_bins(self, bins: Binning) -> RangeSums:
        """Sums in the bins of the observed rows."""
        r = self.rows
        cuts = bins.cuts(r)
        start = r.first_rows(cuts)
        whole = r.between(cuts)
        claim = self.count * (r.claim / r.count)
        return RangeSums(
            count=sum_runs(self.count, start, axis=1),
            claim=sum_runs(claim, start, axis=1),
            loss=sum_runs(self.loss, start, axis=1),
            high=whole.high,
            low=whole.low,
        )

    def build_tallies(self) -> Iterator[RowTally]:
        """The drawn tables one by one."""
        r = self.rows
        with np.errstate(invalid="ignore"):
            claim = r.claim / r.count
            for all_counts, all_losses in zip(self.count, self.loss, strict=True):
                keep = all_counts > 0
                count, loss = all_counts[keep], all_losses[keep]
                square = loss if r.zero_one else loss * 0
                yield RowTally(
                    score=r.score[keep],
                    count=count,
                    loss=loss,
                    claim=claim[keep] * count,
                    square=square,
                    zero_one=r.zero_one,
                    weighted=r.weighted,
                )


# ---- drawing


def draw_rows(t: Tally, seed: int) -> DrawStack:
    """Draws of a tally: its samples are alike within a row, right ones and wrong ones, or of one
    mean loss.
    """
    rows = coarsen(t)
    if rows.zero_one:
        cells = np.stack((rows.count - rows.loss, rows.loss), axis=1)
        row, wrong = np.nonzero(cells)
        times = cells[row, wrong]
        ones = np.ones(len(row), np.uint8)
        table = DrawTable(rows=rows, row=row, unit=np.arange(len(row)), count=ones, loss=wrong)
    else:
        mean = rows.loss / rows.count
        spread = np.sqrt(np.maximum(rows.square / rows.count - mean**2, 0.0))
        row = np.arange(len(mean))
        times = np.round(rows.count).astype(np.int64)
        ones = np.ones(len(mean))
        table = DrawTable(rows=rows, row=row, unit=row, count=ones, loss=mean, spread=spread)
    return _draw_tables([table], times, seed)[0]


def draw_units(o: Outcomes, seed: int) -> DrawStack:
    """Draws of weighted samples, or of whole groups."""
    unit = _number_units(o.group, len(o))
    once = np.ones(int(unit.max()) + 1, dtype=np.int64)
    return _draw_tables([_build_table(o, unit, coarsen(o.tally()))], once, seed)[0]


def draw_pair(a: Outcomes, b: Outcomes, seed: int) -> tuple[DrawStack, DrawStack]:
    """Draws of the same samples, or of the same groups, for both sides."""
    parts = BOOTSTRAP_CUTS
    if len(a) > FINE_PAIRS_SAMPLES:
        parts = BOOTSTRAP_CUTS // 4
    a_rows, b_rows = coarsen(a.tally(), parts), coarsen(b.tally(), parts)
    if all(o.group is None and o.weight is None and o.loss is None for o in (a, b)):
        # Samples in the same rows with the same outcomes on both sides are drawn together.
        kind = _find_rows(a_rows, a.score) * 2 + a.right
        kind = (kind * len(b_rows.score) + _find_rows(b_rows, b.score)) * 2 + b.right
        _, first, times = np.unique(kind, return_index=True, return_counts=True)
        a, b, unit = a[first], b[first], np.arange(len(first))
    else:
        unit = _number_units(b.group if a.group is None else a.group, len(a))
        times = np.ones(int(unit.max()) + 1, dtype=np.int64)
    tables = [_build_table(a, unit, a_rows), _build_table(b, unit, b_rows)]
    one, two = _draw_tables(tables, times, seed)
    return one, two


def _number_units(group: Array | None, n: int) -> Ints:
    """The unit of each sample: its group, or itself."""
    if group is None:
        return np.arange(n)
    return np.unique(group, return_inverse=True)[1]


def _find_rows(rows: RowTally, score: Array) -> Ints:
    """The row of each score."""
    assert rows.edges is not None
    last = len(rows.edges) - 1
    return last - np.minimum(np.searchsorted(rows.edges, score.astype(np.float64)), last)


def _build_table(o: Outcomes, unit: Ints, rows: RowTally) -> DrawTable:
    """What every unit adds to every row; samples of one unit in one row are one entry."""
    row = _find_rows(rows, o.score)
    order = np.lexsort((unit, row))
    row, unit = row[order], unit[order]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(row) != 0) | (np.diff(unit) != 0))))
    weight: Array = np.ones(len(o), dtype=np.int64)
    if o.weight is not None:
        weight = o.weight / (1.0 if rows.weights is None else rows.weights.unit)
    weight = weight[order]
    loss = (~o.right if o.loss is None else o.loss)[order] * weight
    return DrawTable(
        rows=rows,
        row=row[first],
        unit=unit[first],
        count=_shrink_to_bytes(sum_runs(weight, first)),
        loss=_shrink_to_bytes(sum_runs(loss, first)),
    )


def _shrink_to_bytes(a: Counts) -> Counts:
    """Small whole numbers in single bytes, with room for being drawn 8 times."""
    if a.dtype.kind == "i" and a.min() >= 0 and a.max() < 32:
        return a.astype(np.uint8)
    return a


def _draw_tables(tables: Sequence[DrawTable], times: Ints, seed: int) -> list[DrawStack]:
    """Every table drawn as often as is asked for, all with the same units; draws without a sample
    are left out.
    """
    rng = np.random.default_rng(seed)
    widest = max(len(times), *(len(t.unit) for t in tables))
    step = max(1, BOOTSTRAP_CHUNK_NUMBERS // widest)
    counts: list[list[Counts]] = [[] for _ in tables]
    losses: list[list[Counts]] = [[] for _ in tables]
    for i in range(0, BOOTSTRAP_DRAWS, step):
        drawn = _draw_poisson(times, min(step, BOOTSTRAP_DRAWS - i), rng)
        for j, table in enumerate(tables):
            count, loss = table.sum_draws(drawn, rng)
            counts[j].append(count)
            losses[j].append(loss)
    # Copies are made only where there is something to join or to leave out: stacks are large.
    join: Callable[[list[Counts]], Counts] = lambda a: a[0] if len(a) == 1 else np.concatenate(a)
    whole = [join(count) for count in counts]
    some = np.logical_and.reduce([count.any(axis=1) for count in whole])
    keep: Callable[[Counts], Counts] = lambda a: a if some.all() else a[some]
    return [
        DrawStack(rows=table.rows, count=keep(count), loss=keep(join(loss)))
        for table, count, loss in zip(tables, whole, losses, strict=True)
    ]


def _draw_poisson(times: Ints, draws: int, rng: np.random.Generator) -> Array:
    """A line of Poisson counts for each mean in `times`."""
    large = times > MAX_TABLE_MEAN
    drawn = np.empty((len(times), draws), dtype=np.int64 if large.any() else np.uint8)
    drawn[large] = rng.poisson(times[large, None], size=(int(large.sum()), draws))
    for mean in sort_distinct(times[~large]):
        lines = np.flatnonzero(times == mean)
        at = rng.integers(0, 1 << 16, (len(lines), draws), dtype=np.uint16)
        drawn[lines] = tabulate_poisson(int(mean)).take(at)
    return drawn


@lru_cache(maxsize=MAX_TABLE_MEAN)
def tabulate_poisson(mean: int) -> Array:
    """Poisson counts as 65,536 equally likely values: the distribution function rounded to 2^-16."""
    k = np.arange(3 * mean + 20)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(k[1:]))))
    below = np.cumsum(np.exp(k * np.log(mean) - mean - log_factorial))
    shares = np.diff(np.round(below * (1 << 16)).astype(np.int64), prepend=0)
    return repeat_values(k.astype(np.uint8), shares)
