"""The tally: what every scalar metric is a function of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from howsure._core.check import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen

if TYPE_CHECKING:
    from typing_extensions import TypeIs

PIECE = 1 << 18  # rows of a tally that are looked at together
WHOLE = 1 << 31  # at this many samples products of ranks may leave int64
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
        loss = (
            self.loss
            if self.after.max(initial=0) < WHOLE
            else np.asarray(self.loss, dtype=np.float64)
        )
        return (loss * (self.before + self.after)).sum(axis=-1) / 2


@frozen(eq=False)
class Sums:
    """Sums over the samples between two cuts, with the highest and lowest score found there."""

    count: Counts
    claim: Floats
    loss: Counts
    high: Floats
    low: Floats


@frozen(eq=False)
class Ideal:
    """Distinct losses, smallest first, with their counts: the order of a perfect score."""

    loss: Floats
    count: Floats


@runtime_checkable
class Tally(Protocol):
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

    if (
        TYPE_CHECKING
    ):  # Python 3.11's isinstance() would evaluate each of these, and columns are made on demand

        @property
        def n(self) -> int | float:
            """Samples."""
            ...

        @property
        def total(self) -> int | float:
            """Summed loss; wrong answers for the 0/1 loss."""
            ...

        @property
        def score(self) -> Floats:
            """Distinct scores, highest first."""
            ...

        @property
        def count(self) -> Counts:
            """Samples with each score, or their weights, which have mean 1."""
            ...

        @property
        def loss(self) -> Counts:
            """Their summed loss; wrong answers for the 0/1 loss."""
            ...

        @property
        def distinct(self) -> int:
            """How many distinct scores, and so rows, there are."""
            ...

        @property
        def ends(self) -> Counts:
            """The cut after each row: samples up to it and with it."""
            ...

        @property
        def zero_one(self) -> bool:
            """Whether the loss is 1 for wrong and 0 for right."""
            ...

        @property
        def weighted(self) -> bool:
            """Whether samples have weights."""
            ...

        @property
        def equal_weights(self) -> bool:
            """Whether every sample counts alike: there are no weights, or all are equal."""
            ...

        @property
        def approximate(self) -> str | None:
            """How it was coarsened, when it was."""
            ...

        @property
        def ideal(self) -> Ideal | None:
            """The losses in the order of a perfect score; None for the 0/1 loss, where the totals
            suffice.
            """
            ...

    def blocks(self) -> Blocks:
        """The tie blocks that carry loss."""
        ...

    def tied(self) -> Blocks:
        """The rows of more than one sample, with or without loss."""
        ...

    def above(self, scores: Floats) -> Counts:
        """How many samples score strictly more than each of `scores`."""
        ...

    def cut_at(self, ranks: Counts) -> Counts:
        """The first cut at or after each rank: the end of the tie block that the rank falls into."""
        ...

    def score_at(self, rank: int) -> float:
        """Score of the sample with this rank, 0 being the most trusted."""
        ...

    def score_range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        ...

    def between(self, cuts: Counts) -> Sums:
        """Sums between consecutive cuts; `cuts` increases strictly from 0 to n."""
        ...

    def running(self, rows: Ints, *, bottom_up: bool = False) -> tuple[Floats, Counts, Counts]:
        """The scores of these rows, and the samples and loss up to each and with it, from the top
        or the bottom.
        """
        ...

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        """Scores, counts and losses of some rows at a time, most trusted first, for sums in bounded
        memory.
        """
        ...

    def has_at_most(self, rows: int) -> bool:
        """Whether there are no more distinct scores than this."""
        ...

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
        ...

    def __add__(self, other: Tally) -> Tally: ...

    def __radd__(self, other: object) -> Tally: ...


def is_tally(x: object) -> TypeIs[Tally]:
    """Whether `x` is a tally; isinstance() of a protocol takes as long as a metric of a small
    tally.
    """
    return hasattr(type(x), "between")


def running_sums(t: Tally, rows: Ints, bottom_up: bool) -> tuple[Floats, Counts, Counts]:
    """`Tally.running` of a tally with its rows in memory."""
    step = -1 if bottom_up else 1
    kept, lost = (np.cumsum(column[::step])[rows] for column in (t.count, t.loss))
    return t.score[::step][rows], kept, lost


def row_pieces(t: Tally) -> Iterator[tuple[Floats, Counts, Counts]]:
    """`Tally.pieces` of a tally with its rows in memory."""
    score, count, loss = t.score, t.count, t.loss
    for i in range(0, len(score), PIECE):
        rows = slice(i, i + PIECE)
        yield score[rows], count[rows], loss[rows]


def added_to(t: Tally, other: object) -> Tally:
    """`other + t` where `other` is no tally: the 0 that `sum(tallies)` starts from."""
    return t if other == 0 else NotImplemented


def described(t: Tally) -> str:
    """What a tally prints."""
    kind = "wrong" if t.zero_one else "loss"
    note = f", {t.approximate}" if t.approximate else ""
    return f"<Tally: n={t.n:g}, {kind}={t.total:g}, {len(t.score):,} distinct scores{note}>"


def needs_tally(t: object, what: str) -> None:
    """Raise if `t` is not a tally, such as predictions."""
    if not is_tally(t):
        known = (
            "preds.confidence, correct=preds.correct"
            if hasattr(t, "confidence")
            else "score, correct=..."
        )
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


def needs_whole_counts(t: Tally, what: str, instead: str) -> None:
    """Raise if weights are unequal, where samples are counted."""
    needs_tally(t, what)
    if not t.equal_weights:
        raise InputError(
            f"{what} counts samples; these weights are not equal. Use {instead}, or count= where they are repetitions."
        )


def needs_claims(t: Tally, what: str) -> None:
    """Raise if scores cannot be read as the probability of being right."""
    needs_zero_one(t, what)
    low, high = t.score_range()
    if low < 0 or high > 1:
        found = low if low < 0 else high
        raise InputError(
            f"{what} needs scores in [0, 1], this tally has {found:g}. "
            "Read it with a ranking metric such as aurc, or calibrate it first."
        )
