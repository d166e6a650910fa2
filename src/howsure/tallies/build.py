"""tally(): from columns to a tally."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure.tallies.buckets import in_buckets
from howsure.tallies.grid import LEAST
from howsure.tallies.packed import PackedTally, pack, packed
from howsure.tallies.rows import count_rows, sum_rows
from howsure.tallies.tally import Tally


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
        check.at_least(compact, LEAST, "buckets")
    s = check.column(score, "score")
    if (correct is None) == (loss is None):
        raise InputError(
            "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one of them."
        )
    times = None if count is None else check.counts(count, len(s))
    if correct is not None:
        right = check.same_length(check.zero_one(correct, "correct"), "correct", len(s), "score")
        if weight is None and times is None:
            return _exact(s, ~right) if compact is None else _compact(s, right, compact)
        return _kept(_summed(s, (~right).astype(np.float64), weight, times, zero_one=True), compact)
    per_sample = check.finite(check.column(loss, "loss"), "loss").astype(np.float64)
    check.same_length(per_sample, "loss", len(s), "score")
    return _kept(_summed(s, per_sample, weight, times, zero_one=False), compact)


def _kept(t: Tally, buckets: int | None) -> Tally:
    return t if buckets is None else t.compact(buckets)


def _compact(score: Array, right: Bools, buckets: int) -> Tally:
    found = in_buckets(score, right, buckets)
    return _exact(score, ~right).compact(buckets) if found is None else found


def _exact(score: Array, wrong: Array) -> Tally:
    if score.min() >= 0:
        return PackedTally(pack(score, wrong))
    wide = np.add(score, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    return packed(wide, wrong) or count_rows(wide, wrong)


def _summed(
    score: Array, loss: Floats, weight: ArrayLike | None, times: Ints | None, *, zero_one: bool
) -> Tally:
    """Rows of what counts at all."""
    s = score.astype(np.float64) + 0.0
    w = None if weight is None else check.weights(weight, len(s))
    counts = np.ones(len(s), dtype=bool) if w is None else w > 0
    if times is not None:
        counts &= times > 0
    if not counts.any():
        raise InputError("every sample has weight 0 or count 0; at least one must count.")
    return sum_rows(
        s[counts],
        loss[counts],
        weight=None if w is None else w[counts],
        times=None if times is None else times[counts],
        zero_one=zero_one,
    )
