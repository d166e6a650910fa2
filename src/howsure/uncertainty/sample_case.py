"""One set of answers as its limits see it: rows of a tally, and single samples where groups or a
partner need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sum_runs
from howsure.binning import Binning, compute_grade_variance, find_cuts, sum_bins
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.row_tally import RowTally, as_rows
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.calibration_limits import BinCounts
from howsure.uncertainty.influence import ClaimLoss, GapSign, Influence, Ranks, RowInfluence
from howsure.uncertainty.means import (
    UNSAFE_BELOW_GROUPS,
    DecidingUnits,
    Units,
    compute_group_design,
    count_deciding,
    estimate_freedom,
    student_quantile,
    sum_by_unit,
)

MAX_SINGLE_RANKS = 1 << 17  # more rows with losses are put together to half as many
TOP_SINGLE_RANKS = 1 << 12  # rows at the top stay single: the influence changes fast there


class BinSums(NamedTuple):
    """Sums in bins, and the lowest score of each."""

    counts: BinCounts
    low: Floats


def count_few_groups(o: Outcomes) -> int | None:
    """How many groups there are, where they are too few to tell how groups differ; else None."""
    if o.group is None:
        return None
    groups = len(np.unique(o.group))
    return groups if groups < UNSAFE_BELOW_GROUPS else None


@frozen(eq=False)
class SampleCase:
    """A tally; with `outcomes`, which it is the tally of, where samples belong to groups or are
    paired. `few_groups` is how many groups there were, where they are too few to count as groups.
    """

    tally: Tally
    outcomes: Outcomes | None = None
    few_groups: int | None = None

    @classmethod
    def of(cls, source: Tally | Outcomes, *, singly: bool = False) -> SampleCase:
        """The case of a source.

        Outcomes are kept where they have groups or losses, or where `singly` asks for single
        samples.
        """
        if is_tally(source):
            return cls(source)
        few = count_few_groups(source)
        tally = source.tally()
        if few is not None:
            source = replace(source, group=None)
        if not singly and source.group is None and source.loss is None:
            return cls(tally, few_groups=few)
        if source.weight is not None and not source.weight.all():
            source = source[source.weight > 0]
            tally = source.tally()
        return cls(tally=tally, outcomes=source, few_groups=few)

    @property
    def n(self) -> float:
        """Samples."""
        return float(self.tally.n)

    @property
    def samples(self) -> Outcomes:
        """The outcomes of a case that keeps them."""
        assert self.outcomes is not None
        return self.outcomes

    @cached_property
    def units(self) -> Units:
        """Weights and groups of single samples."""
        return Units.of(len(self.samples), self.samples.weight, self.samples.group)

    @property
    def groups(self) -> int | None:
        """Number of groups, where there are any."""
        if self.outcomes is None or self.outcomes.group is None:
            return None
        return self.units.many

    @property
    def is_simple(self) -> bool:
        """Whether samples have neither groups nor weights, so that no design effect widens."""
        return self.groups is None and not self.tally.weighted

    @cached_property
    def rows(self) -> RowTally:
        """The tally as columns."""
        return as_rows(self.tally)

    @cached_property
    def ranks(self) -> Ranks:
        """The rows with losses."""
        b = self.tally.blocks()
        return Ranks(
            before=np.asarray(b.before, dtype=np.float64),
            after=np.asarray(b.after, dtype=np.float64),
            wrong=np.asarray(b.loss, dtype=np.float64),
            n=self.n,
        )

    @cached_property
    def runs(self) -> Ranks:
        """The same for sums of squared influences: of very many rows, runs of neighbours count as
        one row.
        """
        r = self.ranks
        rows = len(r.wrong)
        # Groups and weights need the influence of each row, so there rows stay single.
        if rows <= MAX_SINGLE_RANKS or self.outcomes is not None or self.tally.weighted:
            return r
        later = np.linspace(TOP_SINGLE_RANKS, rows, MAX_SINGLE_RANKS // 2, endpoint=False)
        start = np.concatenate((np.arange(TOP_SINGLE_RANKS), later.astype(np.int64)))
        last = np.append(start[1:], rows) - 1
        wrong = sum_runs(r.wrong, start)
        return Ranks(before=r.before[start], after=r.after[last], wrong=wrong, n=r.n)

    @cached_property
    def _sample_rows(self) -> Ints:
        """The row of each sample."""
        score = self.samples.score.astype(np.float64) + 0.0
        return len(self.rows.score) - np.searchsorted(self.rows.score[::-1], score, side="right")

    @cached_property
    def losses(self) -> Floats:
        """The loss of each sample."""
        if self.samples.loss is None:
            return (~self.samples.right).astype(np.float64)
        return self.samples.loss.astype(np.float64)

    @property
    def square_gaps(self) -> Floats:
        """The squared distance of claim and grade of each sample."""
        assert self.outcomes is not None
        return (self.outcomes.score.astype(np.float64) - 1 + self.losses) ** 2

    # ---- influences: of rows, of samples, and their sums

    def centre(self, start: Floats, slope: Floats) -> RowInfluence:
        """An influence minus its mean over all samples."""
        mean = float((start * self.rows.count + slope * self.rows.loss).sum()) / self.n
        return RowInfluence(start=start - mean, slope=slope)

    def spread_over_rows(self, influence: Influence) -> RowInfluence:
        """An influence on the rows with losses as one on all rows."""
        bears = self.rows.loss != 0
        at = np.cumsum(bears)
        wrong = np.append(0.0, influence.wrong)[at]
        tied = np.append(0.0, influence.tied)[at]
        return RowInfluence(
            start=np.where(bears, tied, influence.free[at]),
            slope=np.where(bears, wrong - tied, 0.0),
        )

    def spread_over_samples(self, influence: RowInfluence) -> Floats:
        """The influence of each sample."""
        at = self._sample_rows
        return influence.start[at] + influence.slope[at] * self.losses

    def compute_loss_influence(self, loss: ClaimLoss, value: float) -> RowInfluence:
        """The deviation of a loss that depends on claim and outcome from its mean."""
        r = self.rows
        with np.errstate(divide="ignore"):
            right, wrong = loss.right(r.score), loss.wrong(r.score)
        # What did not happen may be infinite; the slope of such a row is not read.
        start = np.where(r.count > r.loss, right, wrong)
        end = np.where(r.loss > 0, wrong, start)
        return RowInfluence(start=start - value, slope=end - start)

    def compute_gap_influence(self, bins: Binning, sign: GapSign) -> RowInfluence:
        """The influence on a sum of gaps: claim minus outcome, with the sign that the gap of its
        bin counts with.
        """
        sums = self._sum_in_bins(bins)
        side = sign(sums.counts.gap)[np.searchsorted(-sums.low, -self.rows.score)]
        return self.centre(side * (self.rows.score - 1), side)

    def compute_root_gap_influence(self, bins: Binning) -> RowInfluence:
        """The influence on the root of the mean squared gap, at these bins; 0 where there is no
        gap.
        """
        counts, low = self._sum_in_bins(bins)
        gap = counts.gap[np.searchsorted(-low, -self.rows.score)]
        root = float(np.sqrt((counts.share * counts.gap**2).sum()))
        side = np.zeros_like(gap)
        if root > 0:
            side = gap / root
        return self.centre(side * (self.rows.score - 1 - gap / 2), side)

    def sum_squares(self, influence: RowInfluence) -> float:
        """Squared influence, summed over all samples."""
        return float(self._square_by_row(influence).sum())

    def _square_by_row(self, influence: RowInfluence) -> Floats:
        start, slope = influence
        r = self.rows
        return start**2 * r.count + 2 * start * slope * r.loss + slope**2 * r.square

    def _square_weights_by_row(self, influence: RowInfluence) -> Floats:
        """The same with each sample's weight squared."""
        start, slope = influence
        w = self.rows.weights
        assert w is not None
        return start**2 * w.square + 2 * start * slope * w.lost + slope**2 * w.lost_square

    def sum_cubes(self, influence: RowInfluence) -> float:
        """Cubed influence, summed over all samples; 0 where single losses are forgotten."""
        r = self.rows
        if r.zero_one:
            right, wrong = influence.start, influence.start + influence.slope
            # A cube by np.power takes ten times as long.
            cubes_right = (r.count - r.loss) * (right * right * right)
            return float((cubes_right + r.loss * (wrong * wrong * wrong)).sum())
        if self.outcomes is None:
            return 0.0
        each = self.spread_over_samples(influence)
        return self.units.total(each * each * each)

    # ---- design effects

    def compute_design(self, influence: Callable[[], RowInfluence], half: float) -> float:
        """The design effect of a number with this influence: groups, weights, or 1.

        Weights widen it further where a few heavy samples decide: Student's t of as many as decide,
        over that without weights. The influence is asked for only where it is needed.
        """
        if self.groups is not None:
            each = self.spread_over_samples(influence())
            return compute_group_design(each, self.units, half)
        weights = None
        if self.tally.weighted:
            weights = self.rows.weights
        if weights is None:
            return 1.0
        part = influence()
        heavy = self._square_weights_by_row(part)
        alone = self._square_by_row(part)
        if alone.sum() <= 1e-12 * heavy.sum():
            return max(1.0, float(weights.square.sum()) / self.n)
        few = student_quantile(estimate_freedom(heavy, self.n), half)
        many = student_quantile(estimate_freedom(alone, self.n), half)
        return max(1.0, float(heavy.sum() / alone.sum())) * max(1.0, few / many) ** 2

    def find_deciding(self, influence: RowInfluence) -> DecidingUnits:
        """Groups, or weighted samples that are wrong, which raise the number with this influence.

        What was not seen may be a group as large as the largest and as bad as those that decide;
        among weighted samples it may weigh as any of them. Where samples of a row differ in weight,
        each counts with their mean.
        """
        if self.groups is None:
            return self._find_heavy(influence)
        each, units = self.spread_over_samples(influence), self.units
        assert units.group is not None
        sums = sum_by_unit(each, units)
        size = count_values(units.group, units.weight)
        worse = np.maximum(sums, 0.0)
        if units.weight is not None:
            each = units.weight * each
        square = float(np.dot(worse, worse))
        largest = 0.0
        if square > 0:
            largest = square / float(np.dot(worse, size)) * float(size.max())
        return DecidingUnits(
            total=float(worse.sum()),
            squares=float(np.dot(sums, sums)),
            deciding=count_deciding(worse),
            largest=largest,
            alone=count_deciding(np.maximum(each, 0.0)),
        )

    def _find_heavy(self, influence: RowInfluence) -> DecidingUnits:
        r, w = self.rows, self.rows.weights
        assert w is not None
        bears = r.loss > 0
        wrong = np.maximum(influence.start + influence.slope, 0.0)
        loss, worse = r.loss[bears], wrong[bears]
        weight = w.lost[bears] / loss
        return DecidingUnits(
            total=float(np.dot(loss / weight, worse * weight)),
            squares=float(self._square_weights_by_row(influence).sum()),
            deciding=count_deciding(worse * weight, loss / weight),
            largest=float((wrong * w.square / r.count).max()),
            alone=count_deciding(worse, loss),
        )

    # ---- bins and cuts

    def count_in_bins(self, bins: Binning, sign: GapSign, half: float) -> BinCounts:
        """Sums in bins, with the design effect of gaps that count with this sign."""
        plain = self._sum_in_bins(bins).counts
        design = self.compute_design(lambda: self.compute_gap_influence(bins, sign), half)
        return replace(plain, design=design)

    def sum_gap_squares(self, bins: Binning) -> Floats:
        """Squared gaps of single samples, summed in each bin."""
        low = self._sum_in_bins(bins).low
        if not self.tally.zero_one:
            r = self.rows
            off = r.score - 1
            each = off * off * r.count + 2 * off * r.loss + r.square
            return sum_runs(each, r.first_rows(find_cuts(bins, r)))
        total = np.zeros(len(low))
        for score, count, loss in self.tally.pieces():
            off = score - 1
            each = off * off * count + (2 * off + 1) * loss
            end = len(score) - np.searchsorted(score[::-1], low)  # bins are runs of rows
            start = np.append(0, end[:-1])
            some = np.flatnonzero(end > start)
            total[some] += sum_runs(each, start[some])
        return total

    def _sum_in_bins(self, bins: Binning) -> BinSums:
        sums = sum_bins(bins, self.tally)
        count = np.asarray(sums.count, dtype=np.float64)
        claim = np.asarray(sums.claim, dtype=np.float64)
        loss = np.asarray(sums.loss, dtype=np.float64)
        graded = None
        if sums.square is not None:
            graded = compute_grade_variance(count, loss, sums.square)
        counts = BinCounts(count=count, claim=claim, right=count - loss, graded=graded)
        return BinSums(counts=counts, low=sums.low)

    def mark_accepted(self, end: float) -> Floats:
        """1 for the rows down to a cut, 0 below."""
        return (self.rows.ends <= end + 1e-9 * self.n).astype(np.float64)

    def find_cuts(self, ranks: Floats) -> Floats:
        """The first cut at or after each rank."""
        if self.tally.weighted:
            return np.asarray(self.tally.cut_at(ranks), dtype=np.float64)
        # Ranks are whole but for rounding.
        whole = np.ceil(ranks - 1e-9).astype(np.int64)
        return np.asarray(self.tally.cut_at(whole), dtype=np.float64)
