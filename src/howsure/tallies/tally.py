"""The tally: what every scalar metric is a function of.

`Tally` answers every question from its rows. Its kinds differ in how they hold the samples, and
override what they can answer faster or in less memory: `RowTally` holds columns (any loss, any
weight), `PackedTally` one sorted integer per sample, `CountedTally` distinct scores with counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import sum_runs

if TYPE_CHECKING:
    from typing_extensions import TypeIs

V = TypeVar("V")
PIECE_ROWS = 1 << 18  # rows of a tally that are looked at together
INT64_RANK_PRODUCTS = 1 << 31  # from this many samples on, products of ranks may leave int64
WEIGHT_SUM_ROUNDING = 1e-12  # of sums of weights, relative to the whole
Counts: TypeAlias = Array  # int64, or float64 where there are weights


@frozen(eq=False)
class Blocks:
    """Tie blocks, most trusted first: samples before the block, at its end, and its loss.

    `kept` holds sums that several metrics ask for, each with the n it belongs to.
    """

    before: Counts
    after: Counts
    loss: Counts
    kept: dict[str, tuple[Counts, Floats]] = field(default_factory=dict[str, tuple[Counts, Floats]])

    @cached_property
    def middle_sum(self) -> Floats:
        """Each loss times the middle rank of its block, summed along the last axis; exact for up to
        10^9 samples.
        """
        loss = self.loss
        if self.after.max(initial=0) >= INT64_RANK_PRODUCTS:
            loss = np.asarray(loss, dtype=np.float64)
        return (loss * (self.before + self.after)).sum(axis=-1) / 2


@frozen(eq=False)
class RangeSums:
    """Sums over the samples between two cuts, with the highest and lowest score found there;
    `square` sums the squared losses where they are not 0 or 1.
    """

    count: Counts
    claim: Floats
    loss: Counts
    high: Floats
    low: Floats
    square: Floats | None = None


@frozen(eq=False)
class Ideal:
    """Distinct losses, smallest first, with their counts: the order of a perfect score."""

    loss: Floats
    count: Floats


def compute_on_read(make: Callable[[Any], V]) -> V:
    """A property that type checkers take for an attribute.

    `Tally` declares its columns as attributes, for `RowTally` stores them; the other kinds compute
    them, and to a checker a property cannot stand for an attribute.
    """
    return cast("V", property(make))


class Tally:
    """Scores and losses, sorted, most trusted first, one row per distinct score; `a + b` merges
    two.

    Make one with `howsure.tally`. `.score`, `.count` and `.loss` are its rows; `.n` samples with
    `.total` loss in all. Ranks count samples from the most trusted down, so a *cut* at rank k
    separates the k most trusted from the rest, and only cuts between two rows exist: ties are never
    split.

    >>> from howsure import tally
    >>> t = tally([0.8, 0.9, 0.8], correct=[1, 1, 0])
    >>> t.score, t.count, t.loss
    (array([0.9, 0.8]), array([1, 2]), array([0, 1]))
    """

    # What each kind provides. No values here: a dataclass would take them for defaults.
    n: int | float  # samples
    total: int | float  # summed loss; wrong answers for the 0/1 loss
    score: Floats  # distinct scores, highest first
    count: Counts  # samples with each score, or their weights, which have mean 1
    loss: Counts  # their summed loss; wrong answers for the 0/1 loss

    zero_one: bool = True  # whether the loss is 1 for wrong and 0 for right
    weighted: bool = False  # whether samples have weights
    equal_weights: bool = True  # whether every sample counts alike
    approximate: str | None = None  # how it was coarsened, when it was
    ideal: Ideal | None = None  # None for the 0/1 loss, where the totals suffice

    @property
    def distinct(self) -> int:
        """How many distinct scores, and so rows, there are."""
        return len(self.score)

    @property
    def ends(self) -> Counts:
        """The cut after each row: samples up to it and with it."""
        return self._cuts[1:]

    @cached_property
    def _cuts(self) -> Counts:
        """All cuts, from 0 on."""
        cuts = np.empty(len(self.count) + 1, self.count.dtype)
        cuts[0] = 0
        np.cumsum(self.count, out=cuts[1:])
        return cuts

    @property
    def total_square(self) -> float:
        """Summed squared loss."""
        return float(self.total)

    def row_claims(self) -> Floats:
        """The summed scores of each row."""
        return self.score * self.count

    def blocks(self) -> Blocks:
        """The tie blocks that carry loss."""
        return self._blocks

    @cached_property
    def _blocks(self) -> Blocks:
        return self._pick_blocks(self.loss != 0)

    def tied(self) -> Blocks:
        """The rows of more than one sample, with or without loss."""
        return self._pick_blocks(self.count > 1)

    def _pick_blocks(self, rows: Bools) -> Blocks:
        after = self.ends
        return Blocks(
            before=(after - self.count)[rows],
            after=after[rows],
            loss=self.loss[rows],
        )

    def above(self, scores: Floats) -> Counts:
        """How many samples score strictly more than each of `scores`."""
        rows_below = np.searchsorted(self.score[::-1], scores, side="right")
        return self._cuts[self.distinct - rows_below]

    def cut_at(self, ranks: Counts) -> Counts:
        """The first cut at or after each rank: the end of the tie block that the rank falls into."""
        if self.weighted:
            # Sums of weights are rounded: a rank may miss the end of its row by that much.
            ranks = ranks - WEIGHT_SUM_ROUNDING * self.n
        cuts = self._cuts
        return cuts[np.minimum(np.searchsorted(cuts, ranks), len(cuts) - 1)]

    def score_at(self, rank: int) -> float:
        """Score of the sample with this rank, 0 being the most trusted."""
        row = int(np.searchsorted(self.ends, rank, side="right"))
        return float(self.score[min(row, self.distinct - 1)])

    def score_range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        return float(self.score[-1]), float(self.score[0])

    def first_rows(self, cuts: Counts) -> Ints:
        """The first row after each cut but the last."""
        return np.searchsorted(self.ends, cuts[:-1], side="right")

    def between(self, cuts: Counts) -> RangeSums:
        """Sums between consecutive cuts; `cuts` increases strictly from 0 to n."""
        first = self.first_rows(cuts)
        last = np.append(first[1:], self.distinct) - 1
        # Infinite scores rank; their claims may be inf - inf and are never read.
        with np.errstate(invalid="ignore", over="ignore"):
            claim = sum_runs(self.row_claims(), first)
            loss = sum_runs(self.loss, first)
        return RangeSums(
            count=sum_runs(self.count, first),
            claim=claim,
            loss=loss,
            high=self.score[first],
            low=self.score[last],
        )

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Counts, Counts]:
        """The scores of these rows, and the samples and loss up to each and with it, from the top
        or the bottom.
        """
        step = -1 if bottom_up else 1
        kept = np.cumsum(self.count[::step])[rows]
        lost = np.cumsum(self.loss[::step])[rows]
        return self.score[::step][rows], kept, lost

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        """Scores, counts and losses of some rows at a time, most trusted first, for sums in bounded
        memory.
        """
        score, count, loss = self.score, self.count, self.loss
        for start in range(0, len(score), PIECE_ROWS):
            rows = slice(start, start + PIECE_ROWS)
            yield score[rows], count[rows], loss[rows]

    def has_at_most(self, rows: int) -> bool:
        """Whether there are no more distinct scores than this."""
        return self.distinct <= rows

    def compact(self, buckets: int = 25_000) -> Tally:
        """The same samples in about `buckets` rows: a tally of fixed size, for data that outgrow
        memory.

        Nothing is lost where there are fewer distinct scores than that. Otherwise scores in one
        bucket become ties, with their exact counts, losses and summed claims, and `.approximate`
        says so. Scores in [0, 1] share one fixed grid that holds the edges j/M of the usual
        equal-range bins (M = 10, 15, 20, 25, 100, ...), so those bins stay exact and compact
        tallies add up. Other scores get buckets of equally many samples. A compact tally cannot be
        compacted again to fewer buckets. `certified` bounds the values that the exact data have.

        >>> from howsure import tally
        >>> tally([0.25, 0.5, 0.75], correct=[0, 1, 1]).compact()
        <Tally: n=3, wrong=1, 3 distinct scores>
        """
        from howsure.tallies.buckets import compact_rows  # which stands on this module

        return compact_rows(self, buckets)

    def __add__(self, other: Tally) -> Tally:
        from howsure.tallies.row_tally import as_rows, merge_rows  # which stand on this module

        return merge_rows(as_rows(self), as_rows(other))

    def __radd__(self, other: object) -> Tally:
        # sum(tallies) starts from 0.
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        kind = "wrong" if self.zero_one else "loss"
        note = f", {self.approximate}" if self.approximate else ""
        rows = f"{len(self.score):,} distinct scores"
        return f"<Tally: n={self.n:g}, {kind}={self.total:g}, {rows}{note}>"


def is_tally(x: object) -> TypeIs[Tally]:
    """Whether `x` is a tally of any kind; a `SetTally` is none."""
    return isinstance(x, Tally)


def needs_tally(t: object, what: str) -> None:
    """Raise if `t` is not a tally, such as predictions."""
    if is_tally(t):
        return
    known = "score, correct=..."
    if hasattr(t, "confidence"):
        known = "preds.confidence, correct=preds.correct"
    raise InputError(
        f"{what} needs a tally, this is a {type(t).__name__}. Make one with tally({known})."
    )


def needs_zero_one(t: Tally, what: str) -> None:
    """Raise if `t` was made with `loss=`, where right and wrong are needed."""
    needs_tally(t, what)
    if not t.zero_one:
        raise InputError(
            f"{what} needs right or wrong, this tally was made with loss=. Use tally(score, correct=...)."
        )


def needs_grades(t: Tally, what: str) -> None:
    """Raise if `t` was made with losses that are not 1 − grade, with grades in [0, 1]."""
    needs_tally(t, what)
    if t.zero_one or t.ideal is None:
        return
    least, most = float(t.ideal.loss[0]), float(t.ideal.loss[-1])
    if least >= 0 and most <= 1:
        return
    raise InputError(
        f"{what} needs right or wrong, or losses in [0, 1], which are 1 − grade; "
        f"this tally has a loss of {most if most > 1 else least:g}."
    )


def needs_whole_counts(t: Tally, what: str, instead: str) -> None:
    """Raise if weights are unequal, where samples are counted."""
    needs_tally(t, what)
    if not t.equal_weights:
        raise InputError(
            f"{what} counts samples; these weights are not equal. Use {instead}, or count= where they are repetitions."
        )


def needs_claims(t: Tally, what: str) -> None:
    """Raise if scores cannot be read as the probability of being right, or losses as grades."""
    needs_grades(t, what)
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        return
    outside = low if low < 0 else high
    raise InputError(
        f"{what} needs scores in [0, 1], this tally has {outside:g}. "
        "Read it with a ranking metric such as aurc, or calibrate it first."
    )
