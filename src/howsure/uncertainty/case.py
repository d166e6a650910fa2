"""One set of answers as its limits see it: rows of a tally, and single samples where groups or a
partner need them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats, Ints
from howsure._core.frozen import frozen
from howsure.binning import Binning, sums_in
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.rows import RowTally, as_rows
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.calibration import Bins
from howsure.uncertainty.clusters import Few, Units, deciding, freedom, group_design, unit_sums
from howsure.uncertainty.influence import Influence, Ranks
from howsure.uncertainty.means import student

__all__ = ["Case", "Linear"]

SINGLE = 1 << 12  # rows at the top that keep their own influence, which changes fast there
RUNS = 1 << 17  # of more rows with losses the others are put together to half as many

Loss = Callable[[Floats], Floats]  # claims → the loss of each


class Linear(NamedTuple):
    """The influence of a sample of each row: start + slope · its loss."""

    start: Floats
    slope: Floats


@frozen(eq=False)
class Case:
    """A tally; with `outcomes`, which it is the tally of, where samples belong to groups or are
    paired.
    """

    tally: Tally
    outcomes: Outcomes | None = None

    @classmethod
    def of(cls, source: Tally | Outcomes, *, singly: bool = False) -> Case:
        """Outcomes are kept where they have groups or losses, or where `singly` asks for single
        samples.
        """
        if is_tally(source):
            return cls(source)
        if not singly and source.group is None and source.loss is None:
            return cls(source.tally())
        kept = source if source.weight is None or source.weight.all() else source[source.weight > 0]
        return cls(kept.tally(), kept)

    @property
    def n(self) -> float:
        """Samples."""
        return float(self.tally.n)

    @cached_property
    def units(self) -> Units:
        """Weights and groups of single samples."""
        assert self.outcomes is not None
        return Units.of(len(self.outcomes), self.outcomes.weight, self.outcomes.group)

    @property
    def groups(self) -> int | None:
        """Number of groups, where there are any."""
        return None if self.outcomes is None or self.outcomes.group is None else self.units.many

    @cached_property
    def rows(self) -> RowTally:
        """The tally as columns."""
        return as_rows(self.tally)

    @cached_property
    def ranks(self) -> Ranks:
        """Its rows with losses."""
        b = self.tally.blocks()
        before, after, loss = (np.asarray(c, dtype=np.float64) for c in (b.before, b.after, b.loss))
        return Ranks(before, after, loss, self.n)

    @cached_property
    def runs(self) -> Ranks:
        """The same for sums of squared influences: of very many rows, runs of neighbours count as
        one row.

        Where single rows are asked for, because of groups or weights, they stay single.
        """
        r = self.ranks
        if len(r.wrong) <= RUNS or self.outcomes is not None or self.tally.weighted:
            return r
        later = np.linspace(SINGLE, len(r.wrong), RUNS // 2, endpoint=False).astype(np.int64)
        start = np.concatenate((np.arange(SINGLE), later))
        last = np.append(start[1:], len(r.wrong)) - 1
        return Ranks(r.before[start], r.after[last], np.add.reduceat(r.wrong, start), r.n)

    @cached_property
    def _row(self) -> Ints:
        """The row of each sample."""
        assert self.outcomes is not None
        score = self.outcomes.score.astype(np.float64) + 0.0
        return len(self.rows.score) - np.searchsorted(self.rows.score[::-1], score, side="right")

    @cached_property
    def losses(self) -> Floats:
        """The loss of each sample."""
        assert self.outcomes is not None
        o = self.outcomes
        return (~o.right if o.loss is None else o.loss).astype(np.float64)

    def single(self, part: Linear) -> Floats:
        """The influence of each sample."""
        return part.start[self._row] + part.slope[self._row] * self.losses

    def squares(self, part: Linear) -> float:
        """Squared influence, summed over all samples."""
        r = self.rows
        return float(
            (
                part.start**2 * r.count
                + 2 * part.start * part.slope * r.loss
                + part.slope**2 * r.square
            ).sum()
        )

    def cubes(self, part: Linear) -> float:
        """Cubed influence, summed over all samples; 0 where single losses are forgotten."""
        r = self.rows
        if r.zero_one:
            right, wrong = part.start, part.start + part.slope
            return float(
                (
                    (r.count - r.loss) * (right * right * right) + r.loss * (wrong * wrong * wrong)
                ).sum()
            )
        if self.outcomes is None:
            return 0.0
        each = self.single(part)
        return self.units.total(each * each * each)

    def design(self, part: Callable[[], Linear], half: float) -> float:
        """The design effect of a number with this influence: groups, weights, or 1.

        Weights widen it further where a few heavy samples decide: Student's t of as many as decide,
        over that without weights.
        """
        if self.groups is not None:
            return group_design(self.single(part()), self.units, half)
        w = self.rows.weights if self.tally.weighted else None
        if w is None:
            return 1.0
        start, slope = part()
        double = start**2 * w.square + 2 * start * slope * w.lost + slope**2 * w.lost_square
        single = (
            start**2 * self.rows.count
            + 2 * start * slope * self.rows.loss
            + slope**2 * self.rows.square
        )
        if single.sum() <= 1e-12 * double.sum():
            return max(1.0, float(w.square.sum()) / self.n)
        few, many = (student(freedom(each, self.n), half) for each in (double, single))
        return max(1.0, float(double.sum() / single.sum())) * max(1.0, few / many) ** 2

    def few(self, part: Linear) -> Few:
        """Groups, or weighted samples that are wrong, which raise the number with this influence.

        What was not seen may be a group as large as the largest and as bad as those that decide;
        among weighted samples it may weigh as any of them. Where samples of a row differ in weight,
        each counts with their mean.
        """
        if self.groups is None:
            return self._few_heavy(part)
        each, units = self.single(part), self.units
        assert units.group is not None
        sums, size = unit_sums(each, units), np.bincount(units.group, units.weight)
        worse, alone = (
            np.maximum(sums, 0.0),
            np.maximum(each if units.weight is None else units.weight * each, 0.0),
        )
        square = float(np.dot(worse, worse))
        largest = square / float(np.dot(worse, size)) * float(size.max()) if square > 0 else 0.0
        return Few.of(
            float(np.dot(sums, sums)), worse, np.ones(len(worse)), largest, deciding(alone)
        )

    def _few_heavy(self, part: Linear) -> Few:
        r, w = self.rows, self.rows.weights
        assert w is not None
        start, slope = part
        bad, wrong = r.loss > 0, np.maximum(start + slope, 0.0)
        squares = float(
            (start**2 * w.square + 2 * start * slope * w.lost + slope**2 * w.lost_square).sum()
        )
        size = w.lost[bad] / r.loss[bad]
        largest = float((wrong * w.square / r.count).max())
        return Few.of(
            squares,
            wrong[bad] * size,
            r.loss[bad] / size,
            largest,
            deciding(wrong[bad], r.loss[bad]),
        )

    def centred(self, start: Floats, slope: Floats) -> Linear:
        """Minus the mean over all samples."""
        return Linear(
            start - float((start * self.rows.count + slope * self.rows.loss).sum()) / self.n, slope
        )

    def spread(self, part: Influence) -> Linear:
        """An influence on the rows with losses as one on all rows."""
        bears = self.rows.loss != 0
        at = np.cumsum(bears)
        wrong, tied = (np.append(0.0, column)[at] for column in (part.wrong, part.tied))
        return Linear(np.where(bears, tied, part.free[at]), np.where(bears, wrong - tied, 0.0))

    def mean(self, right: Loss, wrong: Loss, value: float) -> Linear:
        """The deviation of a loss that depends on claim and outcome from its mean."""
        r = self.rows
        with np.errstate(divide="ignore"):
            a, b = right(r.score), wrong(r.score)
        a, b = (
            np.where(r.count > r.loss, a, b),
            np.where(r.loss > 0, b, a),
        )  # what did not happen may be infinite
        return Linear(a - value, b - a)

    def accepted(self, end: float) -> Floats:
        """1 for the rows down to a cut, 0 below."""
        return (self.rows.ends <= end + 1e-9 * self.n).astype(np.float64)

    def binned(self, bins: Binning, sign: Loss, half: float) -> Bins:
        """Sums in bins, with the design effect of gaps that count with this sign."""
        plain = self._bins(bins)[0]
        design = self.design(lambda: self.gaps(bins, sign), half)
        return Bins(plain.count, plain.claim, plain.right, design)

    def gaps(self, bins: Binning, sign: Loss) -> Linear:
        """The influence on a sum of gaps: claim minus outcome, with the sign that the gap of its
        bin counts with.
        """
        plain, low = self._bins(bins)
        side = sign(plain.gap)[np.searchsorted(-low, -self.rows.score)]
        return self.centred(side * (self.rows.score - 1), side)

    def root_gaps(self, bins: Binning) -> Linear:
        """The influence on the root of the mean squared gap, at these bins; 0 where there is no
        gap.
        """
        plain, low = self._bins(bins)
        gap = plain.gap[np.searchsorted(-low, -self.rows.score)]
        root = float(np.sqrt((plain.share * plain.gap**2).sum()))
        side = gap / root if root > 0 else 0.0 * gap
        return self.centred(side * (self.rows.score - 1 - gap / 2), side)

    def gap_squares(self, bins: Binning) -> Floats:
        """Squared gaps of single samples, summed in each bin; a loss counts as that share of a
        wrong answer.
        """
        low = self._bins(bins)[1]
        total = np.zeros(len(low))
        for score, count, loss in self.tally.pieces():
            off = score - 1
            each = off * off * count + (2 * off + 1) * loss
            end = len(score) - np.searchsorted(score[::-1], low)  # bins are runs of rows
            start = np.append(0, end[:-1])
            some = np.flatnonzero(end > start)
            total[some] += np.add.reduceat(each, start[some])
        return total

    def _bins(self, bins: Binning) -> tuple[Bins, Floats]:
        sums = sums_in(bins, self.tally)
        count, claim, loss = (
            np.asarray(c, dtype=np.float64) for c in (sums.count, sums.claim, sums.loss)
        )
        return Bins(count, claim, count - loss), sums.low

    def cut_at(self, ranks: Floats) -> Floats:
        """The first cut at or after each rank."""
        at = ranks if self.tally.weighted else np.ceil(ranks - 1e-9).astype(np.int64)
        return np.asarray(self.tally.cut_at(at), dtype=np.float64)
