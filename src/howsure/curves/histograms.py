"""Histograms of correctness: bins with a weight and a probability of being right (Finlay &
Oberman).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.binning import Binning, equal_size, sum_bins
from howsure.curves.curve import Curve
from howsure.tallies.tally import Counts, Tally, needs_zero_one

__all__ = ["Histogram", "histogram", "odds_by_quantile", "odds_ratio", "refine"]

SUM_TOLERANCE = 1e-9  # of shares that sum to 1, and of means that a refinement keeps
QUANTILE_BINS = 100


@frozen(eq=False)
class Histogram:
    """Bins of weight w_i in which the answer is right with probability p_i.

    Weights are divided by their sum and empty bins are dropped. Histograms made from data also keep
    their counts, so that a bin can be compared with the base rate exactly. Finlay & Oberman,
    definition 1.

    >>> Histogram(weight=[1, 1], p=[0.5, 0.9]).base
    0.7
    """

    weight: Floats
    p: Floats
    count: Counts | None
    right: Counts | None

    def __init__(
        self,
        weight: ArrayLike,
        p: ArrayLike,
        count: Counts | None = None,
        right: Counts | None = None,
    ):
        w = checks.weights(weight, len(np.atleast_1d(np.asarray(weight))))
        q = checks.column(p, "p").astype(np.float64)
        checks.same_length(q, "p", len(w), "weight")
        bad = ~((q >= 0) & (q <= 1))
        if bad.any():
            i = checks.find_first(bad)
            raise InputError(f"p[{i}] is {q[i]:g}; a probability lies in [0, 1].")
        keep = w > 0
        columns = {"weight": w[keep] / w.sum(), "p": q[keep], "count": count, "right": right}
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    @classmethod
    def from_counts(cls, count: ArrayLike, right: ArrayLike) -> Histogram:
        """Bins of `count` samples of which `right` are right; empty bins are dropped."""
        n, k = np.asarray(count), np.asarray(right)
        checks.same_length(k, "right", len(n), "count")
        impossible = (k < 0) | (k > n)
        if impossible.any():
            i = checks.find_first(impossible)
            raise InputError(f"bin {i} has {k[i]:g} right of {n[i]:g}; that is impossible.")
        n, k = n[n > 0], k[n > 0]
        return cls(weight=n, p=k / n, count=n, right=k)

    @classmethod
    def from_bins(cls, bin_of_each_sample: ArrayLike, correct: ArrayLike) -> Histogram:
        """From any discrete bins: people's easy, typical and hard, or two scores crossed.

        Bins come in sorted order. A two-dimensional array crosses its columns.

        >>> Histogram.from_bins(["hard", "easy", "easy"], [0, 1, 1]).p
        array([1., 0.])
        """
        bins = np.asarray(bin_of_each_sample)
        c = checks.zero_one(correct, "correct")
        checks.same_length(bins, "bins", len(c), "correct")
        _, where = np.unique(bins, axis=0, return_inverse=True)
        where = where.reshape(-1)
        right = np.bincount(where[c], minlength=int(where.max()) + 1)
        return cls.from_counts(np.bincount(where), right)

    @property
    def base(self) -> float:
        """Overall probability of being right."""
        if self.count is not None and self.right is not None:
            return float(self.right.sum() / self.count.sum())
        # Rounding must not move a mean outside its values.
        return float(np.clip(np.dot(self.weight, self.p), self.p.min(), self.p.max()))

    @property
    def at_base(self) -> Bools:
        """Which bins are exactly as good as the whole; decided in counts where they are known."""
        if self.count is not None and self.right is not None:
            return self.right * self.count.sum() == self.right.sum() * self.count
        return self.p == self.base

    @property
    def relative_variance(self) -> Floats:
        """sqrt(p (1-p) / n) / min(p, 1-p) of each bin, inf at 0 or 1; above 0.5 a bin is too fine
        to read.

        Finlay & Oberman, section 2.1.
        """
        if self.count is None:
            raise InputError("the relative variance needs counts; make the histogram from data.")
        spread = np.sqrt(self.p * (1 - self.p) / self.count)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread > 0, spread / np.minimum(self.p, 1 - self.p), np.inf)

    def reversed(self) -> Histogram:
        """The same bins in opposite order; only `histogram_auroc` looks at the order."""
        return self.select(slice(None, None, -1))

    def select(self, bins: slice | Ints | Bools) -> Histogram:
        """Some of the bins, their weights divided by their sum."""
        count = right = None
        if self.count is not None and self.right is not None:
            count, right = self.count[bins], self.right[bins]
        return Histogram(weight=self.weight[bins], p=self.p[bins], count=count, right=right)

    def __len__(self) -> int:
        return len(self.p)


def histogram(t: Tally, bins: Binning | None = None) -> Histogram:
    """The histogram of a tally, most trusted bin first; 100 bins of equal size by default.

    >>> from howsure import tally
    >>> histogram(tally([0.9, 0.8, 0.2, 0.1], correct=[1, 1, 1, 0]), bins=equal_size(2)).p
    array([1. , 0.5])
    """
    needs_zero_one(t, "histogram")
    if bins is None:
        bins = equal_size(QUANTILE_BINS)
    sums = sum_bins(bins, t)
    return Histogram.from_counts(sums.count, sums.count - sums.loss)


def refine(h: Histogram, i: int, b: ArrayLike, q: ArrayLike) -> Histogram:
    """Split bin i into parts with shares `b` and probabilities `q` that average to the bin's own.

    Any convex score can only grow under refinement. Finlay & Oberman, definition 3 and theorem 1.

    >>> refine(Histogram([1], [0.5]), 0, [0.5, 0.5], [0.1, 0.9]).p
    array([0.1, 0.9])
    """
    share = checks.column(b, "b").astype(np.float64)
    rate = checks.column(q, "q").astype(np.float64)
    checks.same_length(rate, "q", len(share), "b")
    if not -len(h) <= i < len(h):
        raise InputError(f"bin {i} does not exist; the histogram has {len(h)} bins.")
    if (share <= 0).any() or abs(share.sum() - 1) > SUM_TOLERANCE:
        raise InputError(f"b must be positive and sum to 1; it sums to {share.sum():g}.")
    mean = np.dot(share, rate)
    if abs(mean - h.p[i]) > SUM_TOLERANCE:
        raise InputError(
            f"the parts average to {mean:g}, the bin has {h.p[i]:g}; refinement keeps the mean."
        )
    i %= len(h)
    weight = np.concatenate((h.weight[:i], h.weight[i] * share, h.weight[i + 1 :]))
    return Histogram(weight=weight, p=np.concatenate((h.p[:i], rate, h.p[i + 1 :])))


@overload
def odds_ratio(p: float, a: float) -> float: ...


@overload
def odds_ratio(p: Floats | Sequence[float], a: float) -> Floats: ...


def odds_ratio(p: float | Floats | Sequence[float], a: float) -> float | Floats:
    r"""How much better a bet becomes when the probability is known to be p instead of a.

    .. math:: S(p, a) = \max\Big(\frac{O(p)}{O(a)}, \frac{O(a)}{O(p)}\Big), \quad O(p) = \frac{p}{1-p}

    1 where p = a, also at 0 and 1; otherwise inf if p or a is 0 or 1. Finlay & Oberman, definition 2.

    >>> odds_ratio(15 / 16, 0.5)
    15.0
    """
    known = np.asarray(p, dtype=np.float64)
    if not ((known >= 0) & (known <= 1)).all() or not 0 <= a <= 1:
        raise InputError("odds_ratio needs probabilities in [0, 1].")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = known * (1 - a) / ((1 - known) * a)
        score = np.maximum(ratio, 1 / ratio)
    score = np.where((known == 0) | (known == 1) | (a in (0, 1)), inf, score)
    score = np.where(known == a, 1.0, score)
    if score.ndim == 0:
        return float(score)
    return score


def odds_by_quantile(t: Tally, m: int = QUANTILE_BINS) -> Curve:
    """The odds ratio of each bin of equal size, most trusted first. Finlay & Oberman, figure 3.

    >>> from howsure import tally
    >>> odds_by_quantile(tally([0.9, 0.8, 0.7], correct=[1, 1, 1])).y
    array([1., 1., 1.])
    """
    h = histogram(t, equal_size(m))
    return Curve(
        x=np.cumsum(h.weight) - h.weight / 2,
        y=np.where(h.at_base, 1.0, odds_ratio(h.p, h.base)),
        weight=h.weight * float(t.n),
        labels=("quantile, most trusted first", "odds ratio"),
    )
