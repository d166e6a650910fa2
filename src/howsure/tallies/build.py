"""tally(): from columns to a tally."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError
from howsure.tallies.buckets import in_buckets
from howsure.tallies.grid import LEAST
from howsure.tallies.packed import PackedTally, pack
from howsure.tallies.rows import count_rows, sum_rows
from howsure.tallies.tally import Tally


def tally(
    score: ArrayLike,
    correct: ArrayLike | None = None,
    *,
    loss: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    compact: int | None = None,
) -> Tally:
    """Sort scores with their outcomes into the table that every metric reads.

    `score` ranks: higher means trust more. Give either `correct` (0/1 or bool) or any finite per-sample
    `loss`. A `weight` counts a sample that many times. Equal scores (in value; -0.0 is 0.0) form one row,
    so nothing computed from a tally depends on the order of the samples. `a + b` merges two tallies.
    `compact=25_000` gives what `tally(...).compact(25_000)` gives, for right and wrong in [0, 1] without a sort
    and in a few megabytes.

    >>> tally([0.9, 0.8, 0.8], correct=[1, 0, 1])
    <Tally: n=3, wrong=1, 2 distinct scores>
    >>> tally([0.9], correct=[1]) + tally([0.8, 0.8], correct=[0, 1])
    <Tally: n=3, wrong=1, 2 distinct scores>
    """
    if compact is not None:
        check.at_least(compact, LEAST, "buckets")
    s = check.column(score, "score")
    if (correct is None) == (loss is None):
        raise InputError("give either correct= (0/1 per sample) or loss= (a number per sample), exactly one of them.")
    if correct is not None:
        right = check.same_length(check.zero_one(correct, "correct"), "correct", len(s), "score")
        if weight is None:
            return _exact(s, ~right) if compact is None else _compact(s, right, compact)
        return _kept(_weighted(s, (~right).astype(np.float64), weight, zero_one=True), compact)
    per_sample = check.finite(check.column(loss, "loss"), "loss").astype(np.float64)
    check.same_length(per_sample, "loss", len(s), "score")
    return _kept(_weighted(s, per_sample, weight, zero_one=False), compact)


def _kept(t: Tally, buckets: int | None) -> Tally:
    return t if buckets is None else t.compact(buckets)


def _compact(score: Array, right: Bools, buckets: int) -> Tally:
    found = in_buckets(score, right, buckets)
    return _exact(score, ~right).compact(buckets) if found is None else found


def _exact(score: Array, wrong: Array) -> Tally:
    if score.min() >= 0:
        return PackedTally(pack(score, wrong))
    return count_rows(score.astype(np.float64) + 0.0, wrong)


def _weighted(score: Array, loss: Floats, weight: ArrayLike | None, *, zero_one: bool) -> Tally:
    s = score.astype(np.float64) + 0.0
    if weight is None:
        return sum_rows(s, loss, np.ones(len(s)), zero_one=zero_one, weighted=False)
    w = check.weights(weight, len(s))
    counts = w > 0
    return sum_rows(s[counts], loss[counts], w[counts], zero_one=zero_one, weighted=True)
