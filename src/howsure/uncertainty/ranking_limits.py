"""Limits of the ranking numbers: value, counts and influence → both ends, closed form, no draws.

All functions take `half`, the probability of missing at either end, and counts that may be
effective sizes: weights and clusters divide every count and every sum by a design effect first
(`means.py`).

Fay & Feuer 1997 and Tiwari et al. 2006 for gamma limits of weighted sums of rare events: a large
part of the risk of missing is what was not seen, so the upper end adds what the next error might
weigh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import hypot, inf, log, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from howsure._core.checks import Floats, Ints
from howsure._core.frozen import frozen
from howsure.bounds import compute_proportion_limits
from howsure.uncertainty.influence import Ranks, placements
from howsure.uncertainty.means import Limits, student_quantile

CutFinder: TypeAlias = Callable[[Floats], Floats]  # ranks → the first cut at or after each
BinomialTail: TypeAlias = Callable[  # samples, errors and risk → the chance of no more errors
    [Floats, Floats, float], Floats
]

TAIL_CHUNK_CUTS = 512  # cuts whose exact tails are looked at together


@frozen
class UnseenError:
    """Mean and mean square of what one unseen error may add to n times a number, and the largest
    value.

    `beside` is the same beside many errors that were seen: half of it, where these tell enough of
    what is unseen. Where a few errors that are rarely seen weigh most, it is what an error weighs
    that is drawn in proportion to its weight.
    """

    mean: float
    square: float
    top: float = 1.0
    beside: tuple[float, float] | None = None

    def moments_beside(self, k: float) -> tuple[float, float]:
        """Mean and mean square beside k errors that were seen."""
        later_mean, later_square = self.beside or (self.mean / 2, self.square / 2)
        mean = (self.mean + k * later_mean) / (k + 1)
        square = (self.square + k * later_square) / (k + 1)
        return mean, square


# AURC family: an error adds 1 + ln(n/A), over all ranks A; beside others, as they weigh.
AREA_ERROR = UnseenError(mean=1.0, square=2.0, beside=(2.0, 6.0))
# AUGRC: what an error adds is uniform.
GENERALISED_ERROR = UnseenError(mean=1 / 2, square=1 / 3, top=1 / 2)


@frozen
class NumberSample:
    """A number with what its limits need: n samples, k of them wrong, and the sum of squared
    influences.
    """

    value: float
    n: float
    k: float
    squares: float
    design: float = 1.0  # of clusters, where the counts are not divided by it

    @property
    def m(self) -> float:
        """Right answers."""
        return max(0.0, self.n - self.k)

    def divide(self, design: float) -> NumberSample:
        """As if there were `design` times fewer samples."""
        return replace(
            self, n=self.n / design, k=self.k / design, squares=self.squares / design, design=1.0
        )


def gamma_quantile(mean: float, variance: float, at: float) -> float:
    """Quantile of the gamma distribution with these moments; the mean itself where there is no
    variance.
    """
    from scipy.special import gammaincinv

    if mean <= 0 or variance <= 0:
        return max(0.0, mean)
    return float(gammaincinv(mean * mean / variance, at)) * variance / mean


def _find_high(s: NumberSample, k: float, error: UnseenError, half: float) -> float:
    """The upper end: what was seen, and what one more error would weigh."""
    mean, square = error.moments_beside(k)
    mean += 2 * s.n * s.value / (k + 1)
    square += 2 * s.squares / (k + 1)
    # An unseen error comes with others of its cluster, which are about as many as the root of the
    # design effect.
    mean *= sqrt(s.design)
    variance = (s.squares * s.design + square * s.design**1.5) / s.n**2
    return min(error.top, gamma_quantile(s.value + mean / s.n, variance, 1 - half))


def compute_rare_sum_limits(s: NumberSample, error: UnseenError, half: float) -> Limits:
    """A sum over rare events, divided by n; one that was not seen may weigh what `error` says.

    >>> nothing = NumberSample(value=0.0, n=100, k=0, squares=0.0)
    >>> compute_rare_sum_limits(nothing, UnseenError(1.0, 1.0, top=inf), 0.025)[1] * 100 > 3
    True
    """
    low = gamma_quantile(s.value, s.squares * s.design / s.n**2, half)
    return low, _find_high(s, s.k, error, half)


def compute_gamma_limits(s: NumberSample, error: UnseenError, half: float) -> Limits:
    """AURC and AUGRC. Where wrong answers are the majority, the lower end is the upper end of what
    is missing.

    >>> nothing = NumberSample(value=0.0, n=1000, k=0, squares=0.0)
    >>> low, high = compute_gamma_limits(nothing, AREA_ERROR, 0.025)  # no error seen: at most 5.02/n
    >>> low, round(high, 5)
    (0.0, 0.00502)
    """
    low, high = compute_rare_sum_limits(s, error, half)
    if s.m < s.k:
        missing = replace(s, value=error.top - s.value).divide(s.design)
        most_missing = _find_high(missing, missing.m, replace(error, beside=None), half)
        low = min(low, error.top - most_missing)
    return max(0.0, low), high


def compute_excess_limits(s: NumberSample, half: float) -> Limits:
    """E-AURC; with few right answers each of them may weigh up to ln(n/(m+1))."""
    low, high = compute_rare_sum_limits(s, AREA_ERROR, half)
    if s.m < s.k:
        s = s.divide(s.design)
        a = log(s.n / (s.m + 1))
        high = max(high, _find_high(s, s.m, UnseenError(mean=a, square=a * a + 1), half))
    return max(0.0, low), high


class PlacementSums(NamedTuple):
    """One side of an AUROC: effective answers, and their summed squared placements."""

    size: float
    squares: float


def compute_auroc_limits(r: Ranks, design: float, half: float) -> Limits:
    """Beta limits: DeLong's variance of the placements, with half a placement unseen on either side
    at the far end.
    """
    missed, free, tied = placements(r)
    share = float(np.dot(r.wrong, missed)) / r.k
    of_wrong = float(np.dot(r.wrong, missed**2)) / design
    of_right = float(np.dot(r.free, free**2) + np.dot(r.tied, tied**2)) / design
    sides = (
        PlacementSums(size=r.k / design, squares=of_wrong),
        PlacementSums(size=r.m / design, squares=of_right),
    )
    low = beta_quantile(*_count_one_more(share, sides, (0.0, 0.0)), half)
    high = beta_quantile(*_count_one_more(share, sides, (1 / 2, 1 / 3)), 1 - half)
    return 1.0 - high, 1.0 - low


def _count_one_more(
    share: float, sides: tuple[PlacementSums, PlacementSums], unseen: tuple[float, float]
) -> tuple[float, float]:
    """Mean and variance of 1 − AUROC with one more placement of these moments on either side."""
    first, second = unseen
    weight = sum(1 / (side.size + 1) for side in sides)
    mean = min(1.0, max(0.0, share + (first - share) * weight))
    variance = 0.0
    for side in sides:
        square = (side.squares + second) / (side.size + 1)
        middle = (share * side.size + first) / (side.size + 1)
        variance += (square - middle**2) / (side.size + 2)
    return mean, max(0.0, variance)


def beta_quantile(mean: float, variance: float, at: float) -> float:
    """Quantile of the beta distribution with these moments; the mean where there is none."""
    from scipy.special import betaincinv

    if variance <= 0 or not 0 < mean < 1:
        return mean
    size = mean * (1 - mean) / variance - 1
    if size <= 0:
        return float(at >= 0.5)
    return float(betaincinv(mean * size, (1 - mean) * size, at))


def compute_aupr_limits(s: NumberSample, half: float, own: float = 0.0) -> Limits | None:
    """AUPR with k positives: Student on the log odds where they are the minority, else gamma limits
    of what is missing.

    `own` is what each positive adds to its own precision; without it the value lies a third of a
    standard error too high. None at a value of 1 with few positives: nothing was seen that could
    tell how far the truth is.
    """
    if s.k >= s.n / 2:
        missing = NumberSample(value=1 - s.value, n=s.n, k=s.m, squares=s.squares)
        low, high = compute_gamma_limits(missing, AREA_ERROR, half)
        return 1 - high, 1 - low
    if s.value >= 1:
        return None
    from scipy.special import expit, logit

    fair = max(s.value - own, s.value / 2)
    # Precisions are noisy themselves where few were shown, and the lower the fewer there are.
    wider = 1 + max(2 / s.k, 1 / sqrt(s.k))
    below = 1 + 1.5 / sqrt(s.k)
    error = sqrt(max(0.0, s.squares * wider)) / (s.n * fair * (1 - fair))
    reach = student_quantile(max(1.0, s.k - 1), half) * error
    centre = float(logit(fair))
    return float(expit(centre - below * reach)), max(s.value, float(expit(centre + reach)))


# ---- cuts: coverage at a risk, risk at a coverage


def compute_coverage_limits(
    r: Ranks, *, risk: float, point: float, find_cuts: CutFinder, design: float, half: float
) -> Limits:
    """Largest share accepted at a risk: the last cut surely below it, and the last one that may be.

    Binomial tails: the whole one for the former, mid-p for the latter. Where a score ranks little,
    many cuts between the two are almost as good, and the best of them looks too good: the risk of
    missing is shared out among as many looks as the logarithm of their range counts (boundary
    crossings; Siegmund 1985).

    `find_cuts` gives the first cut at or after a rank: ends inside a wide row of ties move by the
    whole of its error.
    """
    # Only what precedes an error can be an end.
    accepted = np.append(r.before, r.n)
    kept = accepted / design
    missed = np.concatenate(([0.0], r.upto)) / design
    sure = find_last_cut(kept, missed, risk=risk, at=half, tail=binomial_tail)
    possible = find_last_cut(kept, missed, risk=risk, at=1 - half, tail=binomial_mid_tail)
    if sure is not None and possible is not None and possible > sure:
        looks = 1 + log(accepted[possible] / accepted[sure])
        sure = find_last_cut(kept, missed, risk=risk, at=half / looks, tail=binomial_tail)
    low = high = 0.0
    if sure is not None:
        low = float(accepted[sure]) / r.n
    if possible is not None:
        high = float(accepted[possible]) / r.n
    point = min(max(point, low), high)

    below, above = 0.0, 1.0
    if low > 0:
        down = _find_share_error(low, r.n / design, half, side=0)
        below = point - hypot(point - low, down)
        if _ends_wide_row(find_cuts, low, down, r.n):
            below = low - down
    if high < 1:
        up = _find_share_error(high, r.n / design, half, side=1)
        above = point + hypot(high - point, up)
        if _ends_wide_row(find_cuts, high, up, r.n):
            above = high + up
    return max(0.0, below), min(1.0, above)


def _find_share_error(share: float, n: float, half: float, side: int) -> float:
    """How far the share itself may be from the truth, to one side; nothing at 1, where everything
    is accepted.
    """
    if share >= 1:
        return 0.0
    return abs(float(compute_proportion_limits(share * n, n, half)[side]) - share)


def _ends_wide_row(find_cuts: CutFinder, share: float, error: float, n: float) -> bool:
    """Whether the row that ends at this share holds more samples than its error."""
    end = share * n
    rank = np.array([max(0.0, np.floor(end - n * error + 1e-9))])
    return bool(find_cuts(rank)[0] >= end - 1e-6) and rank[0] < end


def find_last_cut(
    kept: Floats, missed: Floats, risk: float, at: float, tail: BinomialTail
) -> int | None:
    """The last cut whose number of errors has a binomial tail (at this risk) of at most `at`.

    Searched from the end; a normal screen leaves out what is far from it, exact tails decide the
    rest.
    """
    from scipy.special import ndtri

    reach = float(ndtri(at))
    start = np.arange(0, len(kept), TAIL_CHUNK_CUTS)
    end = np.minimum(start + TAIL_CHUNK_CUTS, len(kept))
    most_kept = kept[end - 1]
    too_many = np.maximum(missed[start] - most_kept * risk, 0.0)  # at least, in the whole chunk
    possible = too_many <= max(reach + 1.5, 0.0) * np.sqrt(most_kept * risk * (1 - risk))
    for i in np.flatnonzero(possible)[::-1].tolist():
        cuts: Ints = np.arange(int(start[i]), int(end[i]))
        size, wrong = kept[cuts], missed[cuts]
        spread = size * risk * (1 - risk)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(spread > 0, (wrong - size * risk) / np.sqrt(spread), 0.0)
        # The rarer errors are, the worse a normal tail fits.
        slack = np.where(spread > 100, 0.2, np.where(spread > 1, 1.5, inf))
        cuts = cuts[(z <= reach + slack) & (size > 0)][::-1]
        good = np.flatnonzero(tail(kept[cuts], missed[cuts], risk) <= at)
        if len(good):
            return int(cuts[good[0]])
    return None


def binomial_tail(n: Floats, k: Floats, risk: float) -> Floats:
    """P(X <= k) of a binomial variable, continued to counts that are not whole."""
    from scipy.special import betainc

    right = np.maximum(n - k, 0.0)
    return np.where(right > 0, betainc(np.maximum(right, 1e-300), k + 1, 1 - risk), 1.0)


def binomial_mid_tail(n: Floats, k: Floats, risk: float) -> Floats:
    """P(X < k) + P(X = k)/2."""
    from scipy.special import betainc

    right = np.maximum(n - k, 0.0)
    less = np.where(k > 0, betainc(right + 1, np.maximum(k, 1e-300), 1 - risk), 0.0)
    return (binomial_tail(n, k, risk) + less) / 2


def compute_risk_limits(
    r: Ranks, *, coverage: float, find_cuts: CutFinder, design: float, half: float
) -> Limits:
    """Risk at a coverage: Clopper & Pearson, widened by the risks at the cuts that the true share
    may fall on.

    Where the row of such a cut holds more samples than the share is off, it is as likely as the one
    seen, and its own limits count.
    """
    fewer, more = compute_proportion_limits(coverage * r.n / design, r.n / design, half)
    shares = np.array([coverage, float(fewer), float(more)])
    rank = np.minimum(shares * r.n, r.n)
    kept = np.maximum(find_cuts(rank), 1e-300)
    rows = np.searchsorted(r.after, kept * (1 + 1e-12) + 1e-12, side="right")
    wrong = np.concatenate(([0.0], r.upto))[rows]
    low, high = compute_proportion_limits(np.minimum(wrong, kept) / design, kept / design, half)
    if coverage >= 1:
        return float(low[0]), float(high[0])
    value, risk_of_fewer, risk_of_more = wrong / kept
    below = value - hypot(value - low[0], max(0.0, value - risk_of_fewer))
    above = value + hypot(high[0] - value, max(0.0, risk_of_more - value))
    wide = kept - rank > (shares[2] - shares[1]) / 2 * r.n
    if wide[1] or wide[0]:
        below = min(below, float(low[1]))
    if wide[2] or wide[0]:
        above = max(above, float(high[2]))
    return max(0.0, below), min(1.0, above)
