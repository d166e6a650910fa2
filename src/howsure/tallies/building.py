"""Making tallies: `tally()` of scores and outcomes, `set_tally()` for the loss of a whole set such as
Dice, the arrays that a file keeps; and what a tally becomes where neighbours are pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import sum_runs
from howsure.tallies.buckets import MIN_BUCKETS, build_compact
from howsure.tallies.counted import CountedTally
from howsure.tallies.packed_keys import PackedTally, pack_keys, pack_signed
from howsure.tallies.row_tally import (
    RowTally,
    as_rows,
    count_rows,
    find_runs,
    from_rows,
    sum_rows,
)
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
        checks.at_least(compact, MIN_BUCKETS, "buckets")
    s = checks.column(score, "score")
    if (correct is None) == (loss is None):
        raise InputError(
            "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one of them."
        )
    times = None if count is None else checks.counts(count, len(s))
    if correct is not None:
        right = checks.same_length(checks.zero_one(correct, "correct"), "correct", len(s), "score")
        if weight is None and times is None:
            return _count_right_and_wrong(s, right, compact)
        if weight is None and times is not None:
            exact = count_cells(s.astype(np.float64), right, times)
            return exact if compact is None else exact.compact(compact)
        losses = (~right).astype(np.float64)
    else:
        losses = checks.finite(checks.column(loss, "loss"), "loss").astype(np.float64)
        checks.same_length(losses, "loss", len(s), "score")

    w = None if weight is None else checks.weights(weight, len(s))
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


def count_cells(score: Floats, right: Bools, times: Ints) -> Tally:
    """The exact tally of answers that are counted already: `times` answers of this score, right or
    wrong.

    >>> count_cells(np.array([0.5, 0.9]), np.array([True, False]), np.array([7, 500]))
    <Tally: n=507, wrong=500, 2 distinct scores>
    """
    used = times > 0
    score, right, times = score[used] + 0.0, right[used], times[used]  # -0.0 becomes 0.0
    order = np.argsort(score, kind="stable")
    score, times = score[order], times[order]
    start = find_runs(score)
    count = sum_runs(times, start)
    wrong = sum_runs(np.where(right[order], 0, times), start)
    if score[0] < 0:
        with np.errstate(invalid="ignore"):  # infinite scores rank; their claim is never read
            return from_rows(score[start][::-1], count[::-1], wrong[::-1])
    kind = np.uint32 if int(count.sum()) < 1 << 32 else np.int64
    bits = score[start].view(np.uint64)
    return CountedTally(bits=bits, times=count.astype(kind), missed=wrong.astype(kind))


# ---- losses of whole sets


@frozen(eq=False)
class SetTally:
    """One row per distinct score with additive `parts`; `risk_of` turns their running sums into the
    risk.

    Goes where a tally goes for risk–coverage curves and for the step and trapezoid AURC.

    >>> t = dice_tally([0.9, 0.8], [1, 1], [1, 0])
    >>> t + t
    <SetTally: n=4, 2 distinct scores>
    """

    score: Floats
    count: Ints
    parts: Array  # (rows, number of parts)
    risk_of: Callable[[Array], Floats]
    approximate: str | None = None

    @property
    def n(self) -> int:
        """Number of units, such as pixels."""
        return int(self.count.sum())

    @cached_property
    def risk(self) -> Floats:
        """Risk of the kept set at each row."""
        return self.risk_of(np.cumsum(self.parts, axis=0))

    def __add__(self, other: SetTally) -> SetTally:
        if self.risk_of != other.risk_of or self.parts.shape[1] != other.parts.shape[1]:
            raise InputError(
                "these tallies measure different set losses; only tallies of one kind add up."
            )
        return _sum_equal_scores(
            score=np.concatenate((self.score, other.score)),
            count=np.concatenate((self.count, other.count)),
            parts=np.concatenate((self.parts, other.parts)),
            risk_of=self.risk_of,
        )

    def __radd__(self, other: object) -> SetTally:
        # sum(tallies) starts from 0.
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"<SetTally: n={self.n:,}, {len(self.score):,} distinct scores>"


def set_tally(score: ArrayLike, parts: ArrayLike, risk_of: Callable[[Array], Floats]) -> SetTally:
    """A tally for any set loss that is a function of sums over the kept units.

    `parts` has one row per unit; `risk_of` maps running sums, one row per threshold, to risks.

    >>> t = set_tally([0.9, 0.5], [[1, 0], [0, 1]], lambda sums: sums[:, 1] / sums.sum(axis=1))
    >>> t.risk
    array([0. , 0.5])
    """
    s = checks.column(score, "score").astype(np.float64) + 0.0  # -0.0 becomes 0.0
    p = checks.finite(checks.array(parts, "parts"), "parts")
    if p.ndim != 2:
        raise InputError(
            f"parts has shape {p.shape}; one row per unit and one column per sum is needed."
        )
    checks.same_length(p, "parts", len(s), "score")
    ones = np.ones(len(s), dtype=np.int64)
    return _sum_equal_scores(score=s, count=ones, parts=p, risk_of=risk_of)


def _sum_equal_scores(
    score: Floats, count: Ints, parts: Array, risk_of: Callable[[Array], Floats]
) -> SetTally:
    order = np.argsort(-score, kind="stable")
    score = score[order]
    start = find_runs(score)
    total = sum_runs(count[order], start)
    return SetTally(
        score=score[start],
        count=total.astype(np.int64),
        parts=sum_runs(parts[order], start),
        risk_of=risk_of,
    )


def dice_tally(
    score: ArrayLike, prediction: ArrayLike, truth: ArrayLike, classes: Sequence[int] | None = None
) -> SetTally:
    r"""A tally whose risk is 1 − Dice on the kept pixels.

    .. math:: \mathrm{Dice} = \frac{2 |P \cap T|}{|P| + |T|}

    averaged over the foreground `classes`; both sets empty counts 1. With `classes=None` everything that is
    not 0 is one foreground. Arrays of any shape are flattened. Its `aurc` is the step variant by default.
    Ding et al. 2020, section 4.1.

    >>> dice_tally([0.9, 0.8, 0.7], [1, 1, 0], [1, 0, 1]).risk
    array([0.        , 0.33333333, 0.5       ])
    """
    s = checks.floats(score, "score").ravel()
    p = _check_mask(prediction, "prediction", len(s))
    t = _check_mask(truth, "truth", len(s))
    if classes is None:
        p, t, classes = p != 0, t != 0, [1]
    if len(classes) == 0:
        raise InputError("classes is empty; name at least one foreground class.")
    parts: list[Array] = []
    for c in classes:
        in_p, in_t = p == c, t == c
        parts += [2 * (in_p & in_t), in_p.astype(int) + in_t]
    return set_tally(s, np.stack(parts, axis=1).astype(np.int64), dice_risk)


def dice_risk(sums: Array) -> Floats:
    """1 − mean Dice from columns 2|P∩T|, |P|+|T| per class."""
    overlap, size = sums[:, 0::2], sums[:, 1::2]
    dice = np.where(size > 0, overlap / np.maximum(size, 1), 1.0)
    return 1.0 - dice.mean(axis=1)


def _check_mask(a: ArrayLike, name: str, n: int) -> Array:
    mask = checks.array(a, name).ravel()
    if mask.dtype.kind == "f":
        raise InputError(
            f"{name} has dtype {mask.dtype}; whole class numbers are needed. Use {name}.astype(int)."
        )
    return checks.same_length(mask, name, n, "score")


# ---- arrays for files


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


# ---- pooled steps


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
        count = sum_runs(t.count, first)
        loss = sum_runs(t.loss, first)
        return RangeSums(
            count=count, claim=nan * count, loss=loss, high=t.score[first], low=t.score[last]
        )
    # A step of counted samples can only start at an error: a right answer directly below another
    # answer is pooled with it, whatever follows. So only the errors are looked at, with their ties.
    block = t.blocks()
    cuts, loss = block.before, block.loss
    if not len(cuts) or cuts[0] > 0:  # right answers above the first error
        cuts, loss = np.concatenate(([0], cuts)), np.concatenate(([0], loss))
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
        count = sum_runs(count, start)
        loss = sum_runs(loss, start)
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
