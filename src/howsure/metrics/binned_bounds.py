"""Certified bounds of calibration metrics and of the expected odds ratio, from sums that are known
within limits.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.binning import Binning, equal_range, equal_size
from howsure.metrics.loose_bins import LooseBins, Pair, Span, claims_of, loose
from howsure.tallies.rows import as_rows
from howsure.tallies.tally import Tally


def ece_bounds(t: Tally, bins: Binning = equal_range(15)) -> Pair:
    """The sizes of the surpluses, summed; each is least and greatest where its limits say."""
    return _mean(loose(t, bins).surplus.size, t)


def over_bounds(t: Tally, bins: Binning = equal_range(15)) -> Pair:
    """The positive parts of the surpluses, summed."""
    return _mean(loose(t, bins).surplus.clip(0.0, inf), t)


def under_bounds(t: Tally, bins: Binning = equal_range(15)) -> Pair:
    """The negative parts of the surpluses, summed."""
    s = loose(t, bins).surplus
    return _mean(Span(-s.high, -s.low).clip(0.0, inf), t)


def mce_bounds(t: Tally, bins: Binning = equal_range(15)) -> Pair:
    """The largest gap is at least that of each bin, 0 where none of its samples is sure, and at
    most the largest.
    """
    gap = loose(t, bins).gap.size
    return float(gap.low.max()), float(gap.high.max())


def debiased_bounds(t: Tally, bins: Binning = equal_size(15)) -> Pair:
    """Squared surplus over count, minus the variance of the accuracy; a bin of one sample adds 0."""
    found = loose(t, bins)
    few, many = np.maximum(found.count.low, 2.0), np.maximum(found.count.high, 2.0)
    size, noise = found.surplus.size, _variance(found, few, many)
    inside = Span(size.low**2 / many - noise.high, size.high**2 / few - noise.low)
    thin, some = found.count.low < 2, found.count.high >= 2
    low = np.where(thin, np.minimum(0.0, inside.low), inside.low) * some
    high = np.where(thin, np.maximum(0.0, inside.high), inside.high) * some
    ends = (max(0.0, end) for end in _mean(Span(low, high), t))
    return sqrt(next(ends)), sqrt(next(ends))


def _variance(found: LooseBins, few: Floats, many: Floats) -> Span:
    """a (1 - a) n / (n - 1) with the accuracy a; a (1 - a) is greatest at one half and least at the
    ends.
    """
    least, most = found.accuracy.low, found.accuracy.high
    middle = np.clip(0.5, least, most)
    low = np.minimum(least * (1 - least), most * (1 - most))
    return Span(low * many / (many - 1), middle * (1 - middle) * few / (few - 1))


def brier_bounds(t: Tally) -> Pair:
    """Every score at the end of its bucket that suits right answers best and wrong ones worst, and
    the reverse.
    """
    rows = as_rows(t)
    (low, high), right = claims_of(rows), rows.count - rows.loss
    return _mean(
        Span(
            right * (1 - high) ** 2 + rows.loss * low**2,
            right * (1 - low) ** 2 + rows.loss * high**2,
        ),
        t,
    )


def nll_bounds(t: Tally) -> Pair:
    """As `brier_bounds`: the loss falls in the score for right answers and rises for wrong ones."""
    rows = as_rows(t)
    (low, high), right = claims_of(rows), rows.count - rows.loss
    with np.errstate(divide="ignore", invalid="ignore"):
        of_right, of_wrong = (
            Span(-np.log(high), -np.log(low)),
            Span(-np.log1p(-low), -np.log1p(-high)),
        )
        ends = [
            np.where(right > 0, right * r, 0.0) + np.where(rows.loss > 0, rows.loss * w, 0.0)
            for r, w in ((of_right.low, of_wrong.low), (of_right.high, of_wrong.high))
        ]
    return _mean(Span(*ends), t)


def eor_bounds(
    t: Tally, degenerate: str = "inf", cap: float | None = None, base: float | None = None
) -> Pair:
    """Odds of every bin within limits against the odds of the whole.

    A ratio is at least 1 and the weights sum to 1, so the mean is 1 plus what each bin adds: at
    least its sure weight times its least ratio less 1, at most its greatest weight times its
    greatest ratio less 1. A mean is also never beyond the largest ratio.
    """
    if degenerate in ("drop", "merge"):
        raise InputError(
            f"degenerate={degenerate!r} follows single bins; bounds are known for 'inf', 'smooth', 'cap'."
        )
    extra = 0.5 if degenerate == "smooth" else 0.0
    if t.total in (0, t.n) and base is None and not extra:
        return 1.0, 1.0  # every bin is at the base
    found = loose(t, equal_size(100))
    low, high = _base(t, found, extra) if base is None else (base, base)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least = np.log((found.right.low + extra) / (found.loss.high + extra))
        most = np.log((found.right.high + extra) / (found.loss.low + extra))
        apart = Span(
            least - np.log(np.divide(high, 1 - high)), most - np.log(np.divide(low, 1 - low))
        ).size
        ratio = Span(np.exp(np.nan_to_num(apart.low, nan=0.0, posinf=inf)), np.exp(apart.high))
    ratio = Span(ratio.low, np.nan_to_num(ratio.high, nan=inf, posinf=inf)).clip(
        1.0, inf if cap is None else cap
    )
    weight = found.count
    gain = Span(weight.low * (ratio.low - 1), weight.high * (ratio.high - 1))
    low, high = _mean(gain, t)
    return 1 + low, min(1 + high, float(ratio.high.max()))


def _base(t: Tally, found: LooseBins, extra: float) -> Pair:
    """The mean accuracy of the bins; smoothing moves each bin's right answers by n (1/2 - p) / (n +
    1).
    """
    accuracy = float(1 - t.total / t.n)
    if not extra:
        return accuracy, accuracy
    few, many = found.count.low / (found.count.low + 1), found.count.high / (found.count.high + 1)
    down, up = 0.5 - found.accuracy.high, 0.5 - found.accuracy.low
    moved = Span(np.minimum(down * few, down * many), np.maximum(up * few, up * many))
    low, high = _mean(moved, t)
    return accuracy + low, accuracy + high


def _mean(span: Span, t: Tally) -> Pair:
    low, high = span.total()
    return low / float(t.n), high / float(t.n)
