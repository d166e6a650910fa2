"""What a compact tally still says for certain: bounds that contain the value of the exact data.

A compact tally knows how many right and wrong answers are in every bucket. Their order inside the
bucket, and which of them were tied, is lost, except where a bucket holds a single score or a single
sample: that is one tie. The ends of buckets are cuts of the exact data, for scores of two buckets
differ. Each function here says which order and which ties are the extreme ones, and why; so the
bounds hold whatever the data were. Weights are masses on the axis of ranks: sums over ranks become
integrals, and the proofs stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import signature
from math import isfinite, isnan, nan
from typing import Protocol, TypedDict

import numpy as np

from howsure import metrics as m
from howsure._core.checks import Bools, Floats, InputError
from howsure.binning import equal_range
from howsure.metrics.metric_facts import Metric, get_arguments, get_options, unwrap_metric
from howsure.metrics.risk_coverage import harmonic_rise
from howsure.tallies.row_tally import as_rows, find_score_ends
from howsure.tallies.tally import Counts, Tally, needs_tally

Ends = tuple[float, float]
# Room for the rounding of both computations, far more than either needs.
RELATIVE_ROOM, ABSOLUTE_ROOM = 1e-9, 1e-13


class Bounds(TypedDict, total=False):
    """What a compact tally adds to a number of a report: bounds, or why there are none."""

    bounds: list[float | None] | None
    bounds_why: str


class ReportNumber(Protocol):
    """A number of a report: its key in the JSON, and how it is measured on a tally."""

    @property
    def name(self) -> str: ...
    @property
    def measure(self) -> Metric: ...


def certified(metric: Callable[..., float], t: Tally) -> tuple[float, float]:
    """The least and the greatest value that `metric` can have had before `t` was compacted: (low,
    high).

    An exact tally gives its value twice. Of a compact one the bounds are the metric's values at the
    extreme orders and ties inside every bucket; `howsure.metrics.compact_bounds` holds the proofs.
    They contain the exact value whatever the data were, and are widened by a part in 10^9 for
    rounding. Options go in with `functools.partial`. Raises for metrics without a proof (bins other
    than equal-range ones, `smooth_ece`, `eor`) and for tallies made with `loss=`.

    >>> import numpy as np
    >>> from howsure import aurc, tally
    >>> score = np.linspace(0.2, 1, 50_000)
    >>> t = tally(score, correct=score > 0.5)
    >>> low, high = certified(aurc, t.compact(400))
    >>> low < aurc(t) < high, certified(aurc, t) == (aurc(t), aurc(t))
    (True, True)
    """
    needs_tally(t, "certified")
    value = float(metric(t))
    if t.approximate is None or isnan(value):
        return value, value
    function = unwrap_metric(metric)
    name = getattr(function, "__name__", "this function")
    refusal = f"{name} has no certified bounds on a compact tally"
    if not hasattr(function, "bounds"):
        raise InputError(f"{refusal}: it is not a metric of howsure.")
    if not t.zero_one:
        raise InputError(
            f"{name} has no certified bounds here: this tally no longer knows the losses inside a bucket."
        )
    find_bounds = BOUNDS.get(function)
    if find_bounds is None:
        raise InputError(f"{refusal}: it looks at single scores.")
    low, high = find_bounds(metric, t, *get_arguments(metric), **get_options(metric))
    least, most = getattr(function, "bounds")  # noqa: B009 - metrics are functions with facts
    low, high = max(low, least), min(high, most)
    if low and isfinite(low):  # nothing that is never negative is rounded below 0
        low -= RELATIVE_ROOM * abs(low) + ABSOLUTE_ROOM
    if isfinite(high):
        high += RELATIVE_ROOM * abs(high) + ABSOLUTE_ROOM
    return low, high


def report_bounds(items: Iterable[ReportNumber], t: Tally) -> dict[str, Bounds]:
    """What a report adds to the entry of each number of a compact tally; nothing for an exact one.

    `{"bounds": [low, high]}` with null for an end that is not finite, or `{"bounds": null,
    "bounds_why": text}`.
    """
    entries: dict[str, Bounds] = {item.name: {} for item in items}
    for item in items if t.approximate else ():
        try:
            ends = certified(item.measure, t)
            if isnan(ends[0]):
                raise InputError("its value is undefined")
            entries[item.name] = {"bounds": [end if isfinite(end) else None for end in ends]}
        except InputError as e:
            entries[item.name] = {"bounds": None, "bounds_why": str(e)}
    return entries


def _find_ties(t: Tally) -> Bools:
    """Which buckets hold a single score, or a single sample."""
    low, high = find_score_ends(as_rows(t))
    return (low == high) | ((t.count == 1) & (not t.weighted))


def _replace_rows(t: Tally, score: Floats, count: Counts, wrong: Counts) -> Tally:
    rows = replace(as_rows(t), edges=None, approximate=None, weights=None)
    return replace(rows, score=score, count=count, loss=wrong, claim=score * count, square=wrong)


def _bound_by_order(metric: Metric, t: Tally, variant: str | None = None) -> Ends:
    # These numbers only fall, or only rise, when a wrong answer moves down the ranks. They are
    # sums of phi(rank) over wrong answers, each spread evenly over its tie block, with a monotone
    # phi: -x for AUGRC, x for AUROC, and for AURC the derivative of x + x (H(n) - H(x)), which
    # falls because its own is -sum_k 2k/(x+k)^3. So right answers first and wrong answers first
    # are the extremes, both without mixed ties, and any other order or tie lies between them.
    if variant not in (None, "expected"):  # their extremes have ties of one side only
        raise InputError(f"certified bounds are known for variant='expected', not for {variant!r}.")
    # Each bucket becomes two rows, its right and its wrong answers; a tie stays one row.
    tied = _find_ties(t)
    right, wrong = np.where(tied, 0, t.count - t.loss), np.where(tied, 0, t.loss)
    count = np.stack((np.where(tied, t.count, 0), right, wrong), axis=1)
    lost = np.stack((np.where(tied, t.loss, 0), np.zeros_like(wrong), wrong), axis=1)
    score = np.arange(np.count_nonzero(count > 0), 0, -1.0)
    ends: list[float] = []
    for counts, losses in ((count, lost), (count[:, ::-1], lost[:, ::-1])):
        rows = counts > 0
        ends.append(metric(_replace_rows(t, score, counts[rows], losses[rows])))
    return min(ends), max(ends)


def _bound_precision(_: Metric, t: Tally, positive: str = "error", method: str = "step") -> Ends:
    # The j-th hit of the search has the precision of a cut with at least j hits. In a bucket the
    # least is that of misses first and then single hits, the greatest that of all hits in one tie.
    if method != "step":
        raise InputError(f"certified bounds are known for method='step', not for {method!r}.")
    tied, hits, misses = _find_ties(t), t.count - t.loss, t.loss
    if positive == "error":  # errors are searched from the bottom up
        tied, hits, misses = tied[::-1], t.loss[::-1], (t.count - t.loss)[::-1]
    found, end = np.cumsum(hits), np.cumsum(hits + misses)
    if found[-1] <= 0:
        return nan, nan
    # After the misses a single hit at rank x has precision 1 - missed / x. Over single ranks 1 / x
    # sums to a harmonic number, over masses to a logarithm; at rank 0 nothing is missed.
    start = np.maximum(end - hits, 0).astype(np.float64)
    if t.weighted:
        inverse_ranks = np.log1p(hits / np.where(start > 0, start, 1.0)) * (start > 0)
    else:
        inverse_ranks = harmonic_rise(start, end.astype(np.float64))
    low = hits - (end - found) * inverse_ranks
    high = hits * found / np.maximum(end - misses, np.finfo(float).tiny)
    one_tie = hits * found / end
    low, high = np.where(tied, one_tie, low).sum(), np.where(tied, one_tie, high).sum()
    return float(low / found[-1]), float(high / found[-1])


def _bound_coverage(metric: Metric, t: Tally, risk: float) -> Ends:
    # Ends of buckets are cuts of the exact data, so what they reach is reached. Inside a bucket
    # most is kept with its right answers first. The accuracy rises up to the last of them and falls
    # from there: either that point is good enough, and wrong answers may follow until the accuracy
    # is used up, or no point of the bucket is. A tie has no cut inside.
    low, accuracy = metric(t), 1.0 - risk
    end = np.cumsum(t.count)
    right = end - np.cumsum(t.loss)
    used_up = (right + 1e-9) / accuracy
    if not t.weighted:
        used_up = np.floor(used_up)
    possible = (right >= accuracy * (end - t.loss) - 1e-9) & ~_find_ties(t)
    most = np.minimum(end, used_up)[possible].max(initial=0.0)
    return low, max(low, float(most / end[-1]))


def _bound_risk(_: Metric, t: Tally, coverage: float) -> Ends:
    # The first cut that keeps this share lies in the bucket that the share falls into, at k samples
    # or later. Right answers first, the risk there falls until they end and rises from then on;
    # wrong answers first, it rises until they end and falls from then on.
    ends, wrong_at = np.cumsum(t.count), np.cumsum(t.loss)
    share = coverage - 1e-12  # the tolerance of risk_at_coverage
    i = int(np.searchsorted(ends / ends[-1], share))
    end, wrong, own = float(ends[i]), float(wrong_at[i]), float(t.loss[i])
    if _find_ties(t)[i]:
        return wrong / end, wrong / end
    k = share * float(ends[-1]) * (1 - 1e-15)  # never beyond the cut for a rounding
    rounding = 1e-12 * float(ends[-1])  # of sums of weights, which a small share would magnify
    if not t.weighted:
        k, rounding = np.ceil(k), 0.0
    late, early = end - own, end - float(t.count[i]) + own  # where right, or wrong answers end
    best, worst = max(k, late), max(k, early)
    low = 1.0
    if best > 0:
        low = (wrong - own + (best - late) - rounding) / best
    return low, (wrong + rounding) / worst if wrong > 0 else 0.0


def _bound_claims(metric: Metric, t: Tally) -> Ends:
    # The loss falls in the score of a right answer and rises in that of a wrong one. So the least
    # has right answers at the upper end of their bucket and wrong ones at the lower, and the
    # greatest the reverse. The order of the rows does not matter to these sums.
    low, high = find_score_ends(as_rows(t))
    low = np.maximum(low, 0.0)
    count = np.concatenate((t.count - t.loss, t.loss))
    wrong = np.concatenate((np.zeros_like(t.loss), t.loss))
    best = _replace_rows(t, np.concatenate((high, low)), count, wrong)
    worst = _replace_rows(t, np.concatenate((low, high)), count, wrong)
    return metric(best), metric(worst)


def _take_value(metric: Metric, t: Tally, *given: object, **options: object) -> Ends:
    # These read nothing but sums that a compact tally keeps. The sums of a bin are exact where no
    # bucket has scores on both sides of an edge of the bins.
    call = signature(unwrap_metric(metric)).bind(t, *given, **options)
    call.apply_defaults()
    if "bins" not in call.arguments:
        return metric(t), metric(t)
    bins = call.arguments["bins"]
    if not isinstance(bins, equal_range):
        kind = type(bins).__name__
        raise InputError(f"{kind} bins follow single scores, which a compact tally has lost.")
    low, high = (np.searchsorted(bins.edges()[1:-1], end) for end in find_score_ends(as_rows(t)))
    if (low != high).any():
        raise InputError("these bins cut through buckets of the compact tally.")
    return metric(t), metric(t)


# All other metrics look at single scores or ranks, which a compact tally has lost.
BOUNDS: dict[Metric, Callable[..., Ends]] = {
    **dict.fromkeys((m.aurc, m.aac, m.e_aurc, m.augrc, m.auroc), _bound_by_order),
    m.aupr: _bound_precision,
    m.coverage_at_risk: _bound_coverage,
    m.risk_at_coverage: _bound_risk,
    **dict.fromkeys((m.correctness_brier, m.correctness_nll), _bound_claims),
    **dict.fromkeys((m.accuracy, m.optimal_aurc, m.signed_calibration_error), _take_value),
    **dict.fromkeys((m.ece, m.mce, m.over_confidence, m.under_confidence), _take_value),
    **dict.fromkeys((m.aece, m.amce, m.debiased_ece, m.rms_calibration_error), _take_value),
}
