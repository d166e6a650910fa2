"""Tallies from columns: `tally()` for users, named arrays for files; and pooled steps of a tally."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, InputError, Ints
from howsure.tallies.buckets import MIN_BUCKETS, build_compact
from howsure.tallies.counted import CountedTally
from howsure.tallies.packed_keys import PackedTally, pack_keys, pack_signed
from howsure.tallies.row_tally import RowTally, as_rows, count_rows, sum_rows
from howsure.tallies.tally import Counts, RangeSums, Tally

POOLING_SHRINK = 0.9  # a pass that leaves more of the steps than this share has little left to pool


def tally(
    score: ArrayLike,
    correct: ArrayLike | None = None,
    *,
    loss: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    count: ArrayLike | None = None,
    compact: int | None = None,
) -> Tally:
    """Sort scores with their outcomes into the table that every metric reads.

    `score` ranks: higher means trust more. Give either `correct` (0/1 or bool) or any finite
    per-sample `loss`. A `weight` is importance: only the ratios of weights matter, and columns are
    in weights of mean 1. A `count` is repetition: whole numbers, the same as that many rows. Equal
    scores (in value; -0.0 is 0.0) form one row, so nothing computed from a tally depends on the
    order of the samples. `a + b` merges two tallies. `compact=25_000` gives what
    `tally(...).compact(25_000)` gives, for right and wrong in [0, 1] without a sort and in a few
    megabytes.

    >>> tally([0.9, 0.8, 0.8], correct=[1, 0, 1])
    <Tally: n=3, wrong=1, 2 distinct scores>
    >>> tally([0.9, 0.8], correct=[1, 0], count=[2, 1])
    <Tally: n=3, wrong=1, 2 distinct scores>
    >>> tally([0.9], correct=[1]) + tally([0.8, 0.8], correct=[0, 1])
    <Tally: n=3, wrong=1, 2 distinct scores>
    """
    if compact is not None:
        check.at_least(compact, MIN_BUCKETS, "buckets")
    s = check.column(score, "score")
    if (correct is None) == (loss is None):
        raise InputError(
            "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one of them."
        )
    times = None if count is None else check.counts(count, len(s))
    if correct is not None:
        right = check.same_length(check.zero_one(correct, "correct"), "correct", len(s), "score")
        if weight is None and times is None:
            return _count_right_and_wrong(s, right, compact)
        losses = (~right).astype(np.float64)
    else:
        losses = check.finite(check.column(loss, "loss"), "loss").astype(np.float64)
        check.same_length(losses, "loss", len(s), "score")

    w = None if weight is None else check.weights(weight, len(s))
    used = np.ones(len(s), dtype=bool)
    if w is not None:
        used &= w > 0
    if times is not None:
        used &= times > 0
    if not used.any():
        raise InputError("every sample has weight 0 or count 0; at least one must count.")
    rows = sum_rows(
        s[used].astype(np.float64) + 0.0,  # -0.0 becomes 0.0
        losses[used],
        weight=None if w is None else w[used],
        times=None if times is None else times[used],
        zero_one=correct is not None,
    )
    return rows if compact is None else rows.compact(compact)


def _count_right_and_wrong(score: Array, right: Bools, compact: int | None) -> Tally:
    if compact is not None:
        small = build_compact(score, right, compact)
        if small is not None:
            return small
    if score.min() >= 0:
        exact = PackedTally(pack_keys(score, ~right))
    else:
        wide = np.add(score, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
        exact = pack_signed(wide, ~right) or count_rows(wide, ~right)
    return exact if compact is None else exact.compact(compact)


def to_columns(t: Tally) -> dict[str, Array]:
    """The arrays that a tally of right and wrong consists of.

    >>> list(to_columns(tally([-0.5], correct=[1])))
    ['score', 'count', 'loss', 'claim', 'square']
    """
    if isinstance(t, PackedTally) and t.signs is None:
        return {"keys": t.keys}
    if isinstance(t, CountedTally):
        return {"bits": t.bits, "times": t.times, "missed": t.missed}
    rows = as_rows(t)
    columns = {
        "score": rows.score,
        "count": rows.count,
        "loss": rows.loss,
        "claim": rows.claim,
        "square": rows.square,
    }
    if rows.edges is not None:
        columns["edges"] = rows.edges
    return columns


def from_columns(
    columns: Mapping[str, Array], approximate: str | None = None, *, weighted: bool = False
) -> Tally:
    """The tally of such arrays.

    >>> from_columns(to_columns(tally([0.5, 0.5], correct=[1, 0])))
    <Tally: n=2, wrong=1, 1 distinct scores>
    """
    if "keys" in columns:
        return PackedTally(columns["keys"])
    if "bits" in columns:
        return CountedTally(bits=columns["bits"], times=columns["times"], missed=columns["missed"])
    return RowTally(
        score=columns["score"],
        count=columns["count"],
        loss=columns["loss"],
        claim=columns["claim"],
        square=columns["square"],
        approximate=approximate,
        edges=columns.get("edges"),
        weighted=weighted,
    )


def pool_adjacent_violators(t: Tally) -> RangeSums:
    """Count, loss and ends of every step of the loss rate that rises where the score falls, most
    trusted first.

    The ends of the steps are also the corners of the lower convex hull of (kept, loss).

    >>> steps = pool_adjacent_violators(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]))
    >>> steps.count, steps.loss
    (array([1, 2, 1]), array([0, 1, 1]))
    """
    if t.weighted or not t.zero_one:
        first = find_steps(t.count, t.loss)
        last = np.append(first[1:], len(t.count)) - 1
        count = np.add.reduceat(t.count, first)
        loss = np.add.reduceat(t.loss, first)
        return RangeSums(
            count=count, claim=nan * count, loss=loss, high=t.score[first], low=t.score[last]
        )
    # A step of counted samples can only start at an error: a right answer directly below another
    # answer is pooled with it, whatever follows. So only the errors are looked at, with their ties.
    block = t.blocks()
    cuts, loss = block.before, block.loss
    if not len(cuts) or cuts[0] > 0:  # right answers above the first error
        cuts, loss = np.insert(cuts, 0, 0), np.insert(loss, 0, 0)
    first = find_steps(np.diff(cuts, append=t.n), loss)
    return t.between(np.append(cuts[first], t.n))


def find_steps(count: Counts, loss: Counts) -> Ints:
    """The first row of every step, where the loss rate must rise from step to step."""
    # Neighbours that do not rise belong to one step, and so do all of a falling run: each pass
    # pools every run at once and leaves a fraction of the steps.
    first, size = np.arange(len(count)), inf
    while len(first) < POOLING_SHRINK * size:
        rate, size = loss / count, len(first)
        start = np.flatnonzero(np.concatenate(([True], rate[1:] > rate[:-1])))
        first = first[start]
        count = np.add.reduceat(count, start)
        loss = np.add.reduceat(loss, start)
    if len(first) == size:
        return first
    # What several passes do not settle is little. A stack of steps pools it one by one, in linear
    # time whatever the data.
    steps: list[tuple[int, float, float]] = []
    for row, n, lost in zip(first.tolist(), count.tolist(), loss.tolist(), strict=True):
        while steps and steps[-1][2] * n >= lost * steps[-1][1]:
            row, n_above, lost_above = steps.pop()
            n, lost = n + n_above, lost + lost_above
        steps.append((row, n, lost))
    return np.array([row for row, _, _ in steps])
