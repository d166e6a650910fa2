"""The tally: what every scalar metric is a function of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure._core.fast import kernels

PIECE = 1 << 18  # rows of a tally that are looked at together
WHOLE = 1 << 31  # from so many samples on products of ranks may leave int64
Counts: TypeAlias = Array  # int64, or float64 where there are weights


@dataclass(frozen=True, eq=False)
class Blocks:
    """Tie blocks that carry loss, most trusted first: samples before the block, at its end, and its loss.

    `kept` holds sums that several metrics ask for, each with the n it belongs to.
    """

    before: Counts
    after: Counts
    loss: Counts
    kept: dict[str, tuple[Counts, Floats]] = field(default_factory=dict[str, tuple[Counts, Floats]])

    @cached_property
    def middle_sum(self) -> Floats:
        """Each loss times the middle rank of its block, summed along the last axis; exact for up to 10^9 samples."""
        loss = self.loss if self.after.max(initial=0) < WHOLE else np.asarray(self.loss, dtype=np.float64)
        if loss.ndim == 1 and (fast := kernels("ranks")) is not None:
            return np.asarray(fast.middle_sum(self.before, self.after, loss) / 2)
        return (loss * (self.before + self.after)).sum(axis=-1) / 2


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the samples between two cuts, with the highest and lowest score found there."""

    count: Counts
    claim: Floats
    loss: Counts
    high: Floats
    low: Floats


class Tally:
    """Scores and losses, sorted, most trusted first, one row per distinct score; `a + b` merges two.

    Make one with `howsure.tally`. `.score`, `.count` and `.loss` are its rows; `.n` samples with
    `.total` loss in all. Ranks count samples from the most trusted down, so a *cut* at rank k separates
    the k most trusted from the rest, and only cuts between two rows exist: ties are never split.

    >>> from howsure import tally
    >>> t = tally([0.8, 0.9, 0.8], correct=[1, 1, 0])
    >>> t.score, t.count, t.loss
    (array([0.9, 0.8]), array([1, 2]), array([0, 1]))
    """

    n: int | float
    total: int | float
    score: Floats  # distinct scores, highest first
    count: Counts  # samples (or summed weights) with that score
    loss: Counts  # their summed loss; wrong answers for the 0/1 loss
    zero_one: bool  # the loss is 1 for wrong and 0 for right
    weighted: bool
    approximate: str | None = None  # how it was coarsened, when it was

    def blocks(self) -> Blocks:
        """The tie blocks that carry loss."""
        raise NotImplementedError

    def above(self, scores: Floats) -> Counts:
        """How many samples score strictly more than each of `scores`."""
        raise NotImplementedError

    def cut_at(self, ranks: Counts) -> Counts:
        """The first cut at or after each rank: the end of the tie block that the rank falls into."""
        raise NotImplementedError

    def score_at(self, rank: int) -> float:
        """Score of the sample with this rank, 0 being the most trusted."""
        raise NotImplementedError

    def score_range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        raise NotImplementedError

    def between(self, cuts: Counts) -> Sums:
        """Sums between consecutive cuts; `cuts` increases strictly from 0 to n."""
        raise NotImplementedError

    def pieces(self) -> Iterator[tuple[Floats, Counts, Counts]]:
        """Scores, counts and losses of some rows at a time, most trusted first: for sums that must not take memory."""
        score, count, loss = self.score, self.count, self.loss
        for i in range(0, len(score), PIECE):
            rows = slice(i, i + PIECE)
            yield score[rows], count[rows], loss[rows]

    def has_at_most(self, rows: int) -> bool:
        """Whether there are no more distinct scores than this."""
        return len(self.score) <= rows

    def compact(self, buckets: int = 25_000) -> Tally:
        """The same samples in about `buckets` rows: a tally of fixed size, for data that outgrow memory.

        Nothing is lost where there are fewer distinct scores than that. Otherwise scores in one bucket become
        ties, with their exact counts, losses and summed claims, and `.approximate` says so. Scores in [0, 1] share
        one fixed grid that holds the edges j/M of the usual equal-range bins (M = 10, 15, 20, 25, 100, ...), so
        those bins stay exact and compact tallies add up. Other scores get buckets of equally many samples. A compact
        tally cannot be compacted again to fewer buckets. `certified` bounds the values that the exact data have.

        >>> from howsure import tally
        >>> tally([0.25, 0.5, 0.75], correct=[0, 1, 1]).compact()
        <Tally: n=3, wrong=1, 3 distinct scores>
        """
        raise NotImplementedError

    def __add__(self, other: Tally) -> Tally:
        raise NotImplementedError

    def __radd__(self, other: object) -> Tally:
        if other == 0:  # so that sum(tallies) works
            return self
        return NotImplemented

    def __repr__(self) -> str:
        kind = "wrong" if self.zero_one else "loss"
        note = f", {self.approximate}" if self.approximate else ""
        return f"<Tally: n={self.n:g}, {kind}={self.total:g}, {len(self.score):,} distinct scores{note}>"


def needs_tally(t: object, what: str) -> None:
    """Refuse anything else, predictions say, where a tally is meant."""
    if not isinstance(t, Tally):
        kind = type(t).__name__
        raise InputError(f"{what} needs a tally, this is a {kind}. Make one with tally(score, correct=...).")


def needs_zero_one(t: Tally, what: str) -> None:
    """Refuse a tally of general losses where right and wrong are meant."""
    needs_tally(t, what)
    if not t.zero_one:
        raise InputError(f"{what} needs right or wrong, this tally was made with loss=. Use tally(score, correct=...).")


def needs_whole_counts(t: Tally, what: str, instead: str) -> None:
    """Refuse weights that are not whole numbers where samples are counted."""
    needs_tally(t, what)
    if t.weighted and not np.array_equal(t.count, np.round(t.count)):
        raise InputError(f"{what} counts samples; these weights are not whole numbers. Use {instead}.")


def needs_claims(t: Tally, what: str) -> None:
    """Refuse scores that cannot be read as the probability of being right."""
    needs_zero_one(t, what)
    low, high = t.score_range()
    if low < 0 or high > 1:
        found = low if low < 0 else high
        raise InputError(
            f"{what} needs scores in [0, 1], this tally has {found:g}. "
            "Read it with a ranking metric such as aurc, or calibrate it first."
        )
