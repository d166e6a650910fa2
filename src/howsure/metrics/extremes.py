"""The least and the greatest value of a ranking metric when only the counts of each bucket are
known.

Of a compact tally we know for every bucket how many samples stand before it and how many right and
wrong answers are in it. Their order inside the bucket, and which of them were tied, is lost, but
for a bucket that holds a single score, such as exactly 1, or a single sample: that is one tie. The
ends of a bucket are cuts of the exact data all the same, for scores of two buckets differ. Each
function here states what order and which ties are the extreme ones and why, so the pair holds for
whatever the data were. Weights are masses on the same axis: sums over ranks become integrals, and
everything said holds for them too.

Words: a bucket has `hits` (what is counted: wrong answers, or the positives of precision) and
`misses`; `before` it stand so many samples with `found` hits. B = before + hits + misses is its
end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import nan

import numpy as np

from howsure._core.check import Bools, Floats
from howsure._core.frozen import frozen
from howsure.metrics.harmonic import harmonic_rise
from howsure.tallies.rows import as_rows, score_ends
from howsure.tallies.tally import Blocks, Counts, Tally

Pair = tuple[float, float]


@frozen(eq=False)
class Buckets:
    """Buckets in the order in which samples are taken."""

    hits: Floats
    misses: Floats
    tied: Bools  # all samples of the bucket have one score
    whole: bool  # samples count 1 each, so sums over ranks are harmonic numbers and not logarithms

    @cached_property
    def end(self) -> Floats:
        """Samples up to the end of each bucket."""
        return np.cumsum(self.hits + self.misses)

    @cached_property
    def before(self) -> Floats:
        """Samples before each bucket."""
        return self.end - self.hits - self.misses

    @cached_property
    def found(self) -> Floats:
        """Hits before each bucket."""
        return np.cumsum(self.hits) - self.hits

    @cached_property
    def late(self) -> Floats:
        """Where the hits of a bucket begin when its misses come first."""
        return self.end - self.hits

    @cached_property
    def early(self) -> Floats:
        """Where the hits of a bucket end when they come first."""
        return self.before + self.hits

    def but_ties(self, low: Floats, high: Floats, tied: Floats) -> tuple[float, float]:
        """Sums of two limits over the buckets, and of the value itself where a bucket is one tie."""
        return float(np.where(self.tied, tied, low).sum()), float(
            np.where(self.tied, tied, high).sum()
        )

    def rise(self, a: Floats, b: Floats) -> Floats:
        """The sum of 1/rank from a to b."""
        return harmonic_rise(a, b) if self.whole else log_rise(a, b)


def log_rise(a: Floats, b: Floats) -> Floats:
    """log(b / a), and 0 at a = 0, where all that it is multiplied by is 0."""
    start = np.where(a > 0, a, 1.0)
    return np.where(a > 0, np.log1p((b - a) / start), 0.0)


def share(part: Floats, whole: Floats, empty: float = 0.0) -> Floats:
    """part / whole, or `empty` where there is nothing."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), empty)


def wrong_from_top(t: Tally) -> Buckets:
    """Wrong answers are counted, the most trusted samples come first: the risk–coverage curve."""
    wrong = np.asarray(t.loss, dtype=np.float64)
    low, high = score_ends(as_rows(t))
    alone = (t.count == 1) & (not t.weighted)
    return Buckets(wrong, t.count - wrong, (low == high) | alone, not t.weighted)


def retrieved(t: Tally, positive: str) -> Buckets:
    """Positives in the order in which precision and recall find them: errors from the bottom up."""
    b = wrong_from_top(t)
    if positive == "error":
        return Buckets(b.hits[::-1], b.misses[::-1], b.tied[::-1], b.whole)
    return Buckets(b.misses, b.hits, b.tied, b.whole)


def of_order(t: Tally, number: Callable[[Blocks, Counts], Floats]) -> Pair:
    r"""Bounds of a number that falls (or rises) whenever a wrong answer moves down the ranks.

    AURC, E-AURC, AUGRC and AUROC are :math:`\int \varphi(x)\,dW(x)` with W the wrong mass at rank
    x, spread evenly over its tie block, and a monotone :math:`\varphi`: :math:`-x` for AUGRC,
    :math:`x` for AUROC, and for AURC the derivative of :math:`x + x (H(n) - H(x))`, which falls
    because its own is :math:`-\sum_k 2k/(x+k)^3`. So in every bucket right answers first and wrong
    answers first are the extremes, both without mixed ties, and any other order or tie lies between
    them.
    """
    b = wrong_from_top(t)
    keep = b.hits > 0
    later = Blocks(np.where(b.tied, b.before, b.late)[keep], b.end[keep], b.hits[keep])
    sooner = Blocks(b.before[keep], np.where(b.tied, b.end, b.early)[keep], b.hits[keep])
    low, high = sorted(float(number(block, np.array(t.n))) for block in (later, sooner))
    return low, high


def step_area(b: Buckets) -> Pair:
    """Bounds of the step AURC: each sample has the risk at the end of its tie block.

    At a cut c inside a bucket at least max(0, c - late) and at most min(hits, c - before) hits are
    in. The least risk (found + max(0, c - late)) / c falls until c = late and rises from there, so
    a sample before that has at least the risk there, reached when all misses are one tie, and a
    later one the risk at its own rank. The greatest risk rises until c = early and falls from
    there: all hits are one tie, the misses follow singly.
    """
    risen, total = b.late - b.found, b.found + b.hits
    low = b.misses * share(b.found, b.late) + b.hits - risen * b.rise(b.late, b.end)
    high = b.hits * share(total, b.early) + total * b.rise(b.early, b.end)
    low, high = b.but_ties(low, high, (b.hits + b.misses) * total / b.end)
    return low / b.end[-1], high / b.end[-1]


def trapezoid_area(b: Buckets) -> Pair:
    """Bounds of the trapezoid AURC: points of the curve joined by lines.

    The points obey the limits of `step_area`, and both ends of a bucket are points, so the line
    stays above the convex envelope of the least risk and below the concave envelope of the
    greatest. The first is found / x up to `late`, convex and falling, and from there the chord; the
    second is 1 - (before - found) / x up to `early`, concave and rising, and from there the chord.
    The flat start obeys both: the first bucket has no falling part.
    """
    total, at_end = b.found + b.hits, (b.found + b.hits) / b.end
    fall = b.found * log_rise(b.before, b.late)
    low = fall + b.hits * (share(b.found, b.late, 1.0) + at_end) / 2
    climb = b.hits - (b.before - b.found) * log_rise(b.before, b.early)
    high = climb + b.misses * (share(total, b.early) + at_end) / 2
    at_start = np.where(b.before > 0, share(b.found, b.before), at_end)
    low, high = b.but_ties(low, high, (b.hits + b.misses) * (at_start + at_end) / 2)
    return low / b.end[-1], high / b.end[-1]


def precision_area(b: Buckets, method: str) -> Pair:
    """Bounds of the area under the precision–recall curve.

    Where f hits are found, between before + f - found and late + f - found samples have been taken,
    so precision lies between f / (f + negatives up to the bucket's end) and f / (f + negatives
    before the bucket), both rising and concave in f. `step`: the j-th hit has the precision of a
    cut with at least j hits. The least is that of misses first and single hits; the greatest is
    that of all hits in one tie. `trapezoid`: the line through such points stays below the concave
    greatest and above the chord of the least. `davis_goadrich`: the negatives, being interpolated,
    stay between those before and those up to the end; so does the flat start. nan without
    positives.
    """
    positives = b.hits.sum()
    if positives <= 0:
        return nan, nan
    total = b.found + b.hits
    least = b.hits - (b.late - b.found) * (b.rise if method == "step" else log_rise)(b.late, b.end)
    chord = b.hits * (share(b.found, b.late, 1.0) + total / b.end) / 2
    tied = b.hits * share(total, b.early)
    greatest = b.hits - (b.before - b.found) * log_rise(b.before, b.early)
    low = chord if method == "trapezoid" else least
    high = tied if method == "step" else greatest
    low, high = b.but_ties(low, high, _tied_precision(b, method))
    return low / positives, high / positives


def _tied_precision(b: Buckets, method: str) -> Floats:
    """What a bucket adds to the area when it is one tie."""
    at_end = (b.found + b.hits) / b.end
    if method == "step":
        return b.hits * at_end
    if method == "trapezoid":
        return b.hits * (share(b.found, b.before, 1.0) + at_end) / 2
    rate = share(
        b.hits, b.hits + b.misses
    )  # hits per sample, so `found` hits lag behind by the rest
    return rate * b.hits + (rate * b.found - rate**2 * b.before) * log_rise(b.before, b.end)


def widest(b: Buckets, accuracy: float) -> Pair:
    """Bounds of the largest share that can be kept at this accuracy.

    Ends of buckets are cuts of the exact data, so the best of them is reached. Inside a bucket most
    is kept with its right answers first; accuracy then rises to their end and falls from there, so
    either that point is good enough, and wrong answers may follow until the accuracy is used up, or
    no point of the bucket is.
    """
    right = b.late - b.found  # up to the end of the bucket
    sure = b.end[right >= accuracy * b.end - 1e-9]
    used_up = np.floor((right + 1e-9) / accuracy) if b.whole else (right + 1e-9) / accuracy
    inside = np.where(b.tied, 0.0, np.minimum(b.end, used_up))  # a tie has no cut inside
    possible = inside[right >= accuracy * b.late - 1e-9]
    low, high = (float(kept.max(initial=0.0) / b.end[-1]) for kept in (sure, possible))
    return low, max(low, high)


def at_coverage(b: Buckets, coverage: float) -> Pair:
    """Bounds of the risk at the first cut that keeps at least this share.

    That cut lies in the bucket that this coverage falls into, at k samples or later; its risk is at
    least the least one of `step_area` from k on, and at most the greatest.
    """
    share_of_all = coverage - 1e-12  # the tolerance of `risk_at_coverage`
    i = int(np.searchsorted(b.end / b.end[-1], share_of_all))
    wanted = share_of_all * b.end[-1] * (1 - 1e-15)  # never beyond the cut for a rounding
    before, found, hits, late, early, end = map(
        float, (b.before[i], b.found[i], b.hits[i], b.late[i], b.early[i], b.end[i])
    )
    if b.tied[i]:
        return (found + hits) / end, (found + hits) / end
    k = max(np.ceil(wanted) if b.whole else wanted, before)
    least = max(k, late)
    low = (found + least - late) / least if least > 0 else 1.0
    high = (found + hits) / max(k, early) if hits + found > 0 else 0.0
    return low, high
