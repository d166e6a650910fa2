"""Limits of the ranking numbers: value, counts and influence → both ends, closed form, no draws.

All functions take `half`, the probability of missing at either end, and counts that may be
effective sizes: weights and clusters divide every count and every sum by a design effect first
(`clusters.py`).

Fay & Feuer 1997 and Tiwari et al. 2006 for gamma limits of weighted sums of rare events: a large
part of the risk of missing is what was not seen, so the upper end adds what the next error might
weigh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import hypot, inf, log, sqrt

import numpy as np

from howsure._core.check import Bools, Floats, Ints
from howsure._core.frozen import frozen
from howsure.bounds import proportion_limits
from howsure.uncertainty.influence import Ranks, placements
from howsure.uncertainty.means import student

__all__ = [
    "AREA",
    "GENERALISED",
    "Sample",
    "Unit",
    "auroc_limits",
    "average_precision_limits",
    "coverage_limits",
    "excess_limits",
    "gamma_limits",
    "gamma_quantile",
    "rare_sum_limits",
    "risk_limits",
]

Limits = tuple[float, float]
Cuts = Callable[[Floats], Floats]  # ranks → the first cut at or after each
Tail = Callable[
    [Floats, Floats, float], Floats
]  # samples, errors and risk → the chance of no more errors
CHUNK = 512  # candidates whose exact tails are looked at together


@frozen
class Unit:
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

    def unseen(self, k: float) -> tuple[float, float]:
        """Mean and mean square beside k errors."""
        many = self.beside or (self.mean / 2, self.square / 2)
        mean, square = (
            (one + k * later) / (k + 1)
            for one, later in zip((self.mean, self.square), many, strict=True)
        )
        return mean, square


AREA = Unit(
    1.0, 2.0, beside=(2.0, 6.0)
)  # AURC family: 1 + ln(n/A) over all ranks A; beside others, as they weigh
GENERALISED = Unit(1 / 2, 1 / 3, 1 / 2)  # AUGRC: uniform


@frozen
class Sample:
    """A number with what its limits need: n samples, k of them wrong, and the sum of squared
    influences.
    """

    value: float
    n: float
    k: float
    squares: float

    @property
    def m(self) -> float:
        """Right answers."""
        return max(0.0, self.n - self.k)

    def over(self, design: float) -> Sample:
        """As if there were `design` times fewer samples."""
        return replace(self, n=self.n / design, k=self.k / design, squares=self.squares / design)


def gamma_quantile(mean: float, variance: float, at: float) -> float:
    """Quantile of the gamma distribution with these moments; the mean itself where there is no
    variance.
    """
    from scipy.special import gammaincinv

    if mean <= 0 or variance <= 0:
        return max(0.0, mean)
    return float(gammaincinv(mean * mean / variance, at)) * variance / mean


def _low(s: Sample, half: float) -> float:
    return gamma_quantile(s.value, s.squares / s.n**2, half)


def _high(s: Sample, k: float, unit: Unit, half: float) -> float:
    """The upper end: what was seen, and what one more error would weigh."""
    mean, square = unit.unseen(k)
    mean, square = mean + 2 * s.n * s.value / (k + 1), square + 2 * s.squares / (k + 1)
    high = gamma_quantile(s.value + mean / s.n, (s.squares + square) / s.n**2, 1 - half)
    return min(unit.top, high)


def rare_sum_limits(s: Sample, unit: Unit, half: float) -> Limits:
    """A sum over rare events, divided by n; one that was not seen may weigh what `unit` says.

    >>> rare_sum_limits(Sample(0.0, 100, 0, 0.0), Unit(1.0, 1.0, inf), 0.025)[1] * 100 > 3
    True
    """
    return _low(s, half), _high(s, s.k, unit, half)


def gamma_limits(s: Sample, unit: Unit, half: float) -> Limits:
    """AURC and AUGRC. Where wrong answers are the majority, the lower end is the upper end of what
    is missing.

    >>> low, high = gamma_limits(Sample(0.0, 1000, 0, 0.0), AREA, 0.025)  # no error seen: at most 5.02/n
    >>> low, round(high, 5)
    (0.0, 0.00502)
    """
    low, high = _low(s, half), _high(s, s.k, unit, half)
    if s.m < s.k:
        low = min(
            low,
            unit.top
            - _high(replace(s, value=unit.top - s.value), s.m, replace(unit, beside=None), half),
        )
    return max(0.0, low), high


def excess_limits(s: Sample, half: float) -> Limits:
    """E-AURC; with few right answers each of them may weigh up to ln(n/(m+1))."""
    low, high = _low(s, half), _high(s, s.k, AREA, half)
    if s.m < s.k:
        a = log(s.n / (s.m + 1))
        high = max(high, _high(s, s.m, Unit(a, a * a + 1), half))
    return max(0.0, low), high


def auroc_limits(r: Ranks, design: float, half: float) -> Limits:
    """Beta limits: DeLong's variance of the placements, with half a placement unseen on either side
    at the far end.
    """
    missed, free, tied = placements(r)
    k, m = r.k / design, r.m / design
    share = float(np.dot(r.wrong, missed)) / r.k
    of_wrong = float(np.dot(r.wrong, missed**2)) / design
    of_right = float(np.dot(r.free, free**2) + np.dot(r.tied, tied**2)) / design
    ends = [
        _misplaced(share, k, m, of_wrong, of_right, *unseen)
        for unseen in ((0.0, 0.0), (1 / 2, 1 / 3))
    ]
    low, high = (_beta_quantile(*end, at) for end, at in zip(ends, (half, 1 - half), strict=True))
    return 1.0 - high, 1.0 - low


def _misplaced(
    a: float, k: float, m: float, wrong: float, right: float, h1: float, h2: float
) -> tuple[float, float]:
    """Mean and variance of 1 − AUROC with one more placement of moments h1 and h2 on either side."""
    mean = min(1.0, max(0.0, a + (h1 - a) * (1 / (k + 1) + 1 / (m + 1))))
    spread = [
        ((z + h2) / (c + 1) - ((a * c + h1) / (c + 1)) ** 2) / (c + 2)
        for z, c in ((wrong, k), (right, m))
    ]
    return mean, max(0.0, sum(spread))


def _beta_quantile(mean: float, variance: float, at: float) -> float:
    """Quantile of the beta distribution with these moments; the mean where there is none."""
    from scipy.special import betaincinv

    if variance <= 0 or not 0 < mean < 1:
        return mean
    size = mean * (1 - mean) / variance - 1
    if size <= 0:
        return 0.0 if at < 0.5 else 1.0
    return float(betaincinv(mean * size, (1 - mean) * size, at))


def average_precision_limits(s: Sample, half: float, own: float = 0.0) -> Limits | None:
    """AUPR with k positives: Student on the log odds where they are the minority, else gamma limits
    of what is missing.

    `own` is what each positive adds to its own precision; without it the value lies a third of a
    standard error too high. None at a value of 1 with few positives: nothing was seen that could
    tell how far the truth is.
    """
    if s.k >= s.n / 2:
        low, high = gamma_limits(Sample(1 - s.value, s.n, s.m, s.squares), AREA, half)
        return 1 - high, 1 - low
    if s.value >= 1:
        return None
    from scipy.special import expit, logit

    fair = max(s.value - own, s.value / 2)
    wider = 1 + max(2 / s.k, 1 / sqrt(s.k))  # precisions are noisy themselves where few were shown
    reach = (
        student(max(1.0, s.k - 1), half)
        * sqrt(max(0.0, s.squares * wider))
        / (s.n * fair * (1 - fair))
    )
    centre, below = float(logit(fair)), 1 + 1.5 / sqrt(s.k)  # and the lower the fewer there are
    return float(expit(centre - below * reach)), max(s.value, float(expit(centre + reach)))


def coverage_limits(
    r: Ranks, risk: float, point: float, cut_at: Cuts, design: float, half: float
) -> Limits:
    """Largest share accepted at a risk: the last cut surely below it, and the last one that may be.

    Binomial tails: the whole one for the former, mid-p for the latter. Where a score ranks little,
    many cuts between the two are almost as good, and the best of them looks too good: the risk of
    missing is shared out among as many looks as the logarithm of their range counts (boundary
    crossings; Siegmund 1985).

    `cut_at` gives the first cut at or after a rank: ends inside a wide row of ties move by the
    whole of its error.
    """
    kept, missed = (
        np.append(r.before, r.n),
        np.concatenate(([0.0], r.upto)),
    )  # only what precedes an error can be an end
    scaled = (kept, missed) if design == 1 else (kept / design, missed / design)
    sure = _last_below(*scaled, risk, half, _tail)
    possible = _last_below(*scaled, risk, 1 - half, _mid_tail)
    if sure is not None and possible is not None and possible > sure:
        looks = 1 + log(kept[possible] / kept[sure])
        sure = _last_below(*scaled, risk, half / looks, _tail)
    low = 0.0 if sure is None else float(kept[sure]) / r.n
    high = 0.0 if possible is None else float(kept[possible]) / r.n
    point = min(max(point, low), high)
    down = _share_error(low, r.n / design, half, side=0)
    up = _share_error(high, r.n / design, half, side=1)
    below = low - down if _wide(cut_at, low, down, r.n) else point - hypot(point - low, down)
    above = high + up if _wide(cut_at, high, up, r.n) else point + hypot(high - point, up)
    return max(0.0, below) if low > 0 else 0.0, min(1.0, above) if high < 1 else 1.0


def _share_error(share: float, n: float, half: float, side: int) -> float:
    """How far the share itself may be from the truth, to one side; nothing at 1, where everything
    is accepted.
    """
    if share >= 1:
        return 0.0
    return abs(float(proportion_limits(share * n, n, half)[side]) - share)


def _wide(cut_at: Cuts, share: float, error: float, n: float) -> bool:
    """Whether the row that ends at this share holds more samples than its error."""
    end = share * n
    rank = np.array([max(0.0, np.floor(end - n * error + 1e-9))])
    return bool(cut_at(rank)[0] >= end - 1e-6) and rank[0] < end


def _last_below(kept: Floats, missed: Floats, risk: float, at: float, tail: Tail) -> int | None:
    """The last cut whose number of errors has a binomial tail (at this risk) of at most `at`.

    Searched from the end; a normal screen leaves out what is far from it, exact tails decide the
    rest.
    """
    from scipy.special import ndtri

    reach = float(ndtri(at))
    start = np.arange(0, len(kept), CHUNK)
    end = np.minimum(start + CHUNK, len(kept))
    over = np.maximum(
        missed[start] - kept[end - 1] * risk, 0.0
    )  # at least so many too many in the whole stretch
    may = over <= max(reach + 1.5, 0.0) * np.sqrt(kept[end - 1] * risk * (1 - risk))
    for i in np.flatnonzero(may)[::-1].tolist():
        every: Ints = np.arange(int(start[i]), int(end[i]))
        rows = every[_screened(kept[every], missed[every], risk, reach)][::-1]
        good = np.flatnonzero(tail(kept[rows], missed[rows], risk) <= at)
        if len(good):
            return int(rows[good[0]])
    return None


def _screened(kept: Floats, missed: Floats, risk: float, reach: float) -> Bools:
    """Cuts that are not clearly above the risk."""
    spread = kept * risk * (1 - risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(spread > 0, (missed - kept * risk) / np.sqrt(spread), 0.0)
    slack = np.where(
        spread > 100, 0.2, np.where(spread > 1, 1.5, inf)
    )  # no normal tail where errors are rare
    return (z <= reach + slack) & (kept > 0)


def _tail(n: Floats, k: Floats, risk: float) -> Floats:
    """P(X <= k) of a binomial variable, continued to counts that are not whole."""
    from scipy.special import betainc

    right = np.maximum(n - k, 0.0)
    return np.where(right > 0, betainc(np.maximum(right, 1e-300), k + 1, 1 - risk), 1.0)


def _mid_tail(n: Floats, k: Floats, risk: float) -> Floats:
    """P(X < k) + P(X = k)/2."""
    from scipy.special import betainc

    right = np.maximum(n - k, 0.0)
    less = np.where(k > 0, betainc(right + 1, np.maximum(k, 1e-300), 1 - risk), 0.0)
    return (_tail(n, k, risk) + less) / 2


def risk_limits(r: Ranks, coverage: float, cut_at: Cuts, design: float, half: float) -> Limits:
    """Risk at a coverage: Clopper & Pearson, widened by the risks at the cuts that the true share
    may fall on.

    Where the row of such a cut holds more samples than the share is off, it is as likely as the one
    seen, and its own limits count.
    """
    near = [
        coverage,
        *(float(s) for s in proportion_limits(coverage * r.n / design, r.n / design, half)),
    ]
    rank = np.minimum(np.array(near) * r.n, r.n)
    kept = np.maximum(cut_at(rank), 1e-300)
    wrong = np.concatenate(([0.0], r.upto))[
        np.searchsorted(r.after, kept * (1 + 1e-12) + 1e-12, side="right")
    ]
    value, less, more = wrong / kept
    low, high = proportion_limits(np.minimum(wrong, kept) / design, kept / design, half)
    if coverage >= 1:
        return float(low[0]), float(high[0])
    below = value - hypot(value - low[0], max(0.0, value - less))
    above = value + hypot(high[0] - value, max(0.0, more - value))
    wide = kept - rank > (near[2] - near[1]) / 2 * r.n
    if wide[1] or wide[0]:
        below = min(below, float(low[1]))
    if wide[2] or wide[0]:
        above = max(above, float(high[2]))
    return max(0.0, below), min(1.0, above)
