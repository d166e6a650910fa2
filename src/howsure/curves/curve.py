"""The one value that all curves are, and the curves of a tally: what accepting and deferring does to
the risk, how well scores find errors or successes, and histograms of correctness: bins with a
weight and a probability of being right (Finlay & Oberman).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.binning import Binning, equal_size, sum_bins
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.scores import normalised_entropy
from howsure.tallies.building import SetTally, tally
from howsure.tallies.tally import Counts, Tally, needs_tally, needs_zero_one

# The ideal diagram has a point for each wrong answer, and counts may be any size.
IDEAL_POINTS = 1 << 20
DIAGRAM_LABELS = ("deferred", "accuracy of the kept")
SUM_TOLERANCE = 1e-9  # of shares that sum to 1, and of means that a refinement keeps
QUANTILE_BINS = 100


@frozen(eq=False)
class Curve:
    """Points (x, y) with what belongs to them: sample counts, thresholds, and a band (low, high)
    around y.

    >>> from howsure import risk_coverage, tally
    >>> c = risk_coverage(tally([0.9, 0.8], correct=[1, 0]))
    >>> len(c), c.labels
    (2, ('coverage', 'risk'))
    """

    x: Floats
    y: Floats
    weight: Floats | None = None
    threshold: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, str] = ("x", "y")

    def __len__(self) -> int:
        return len(self.x)


# ---- accepting and deferring


def risk_coverage(t: Tally | SetTally) -> Curve:
    r"""Risk of the accepted against the share accepted, one point per distinct threshold.

    A sample is accepted where its score is at least the threshold; ties are accepted together, the
    last point has coverage 1, and coverage 0 is no point. Ding et al. 2020, eq. 5–6.

    >>> c = risk_coverage(tally([0.9, 0.8, 0.8], correct=[1, 0, 1]))
    >>> c.x, c.y
    (array([0.33333333, 1. ]), array([0. , 0.33333333]))
    """
    if isinstance(t, SetTally):
        kept, risk = np.cumsum(t.count), t.risk
    else:
        needs_tally(t, "risk_coverage")
        kept = np.cumsum(t.count)
        risk = np.cumsum(t.loss) / kept
    return Curve(
        x=kept / kept[-1],
        y=risk,
        weight=kept.astype(np.float64),
        threshold=t.score,
        labels=("coverage", "risk"),
    )


def threshold_diagram(t: Tally, *, ideal: bool = False) -> Curve:
    r"""Accuracy of the kept against the share deferred, one point per distinct threshold.

    `ideal=True` gives the diagram of a score that knows which answers are right: every wrong answer
    is deferred first, one point for each (2^20 points, spread evenly, where there are more). Vemuri
    2020, chapter 4. See also: `aac`.

    >>> threshold_diagram(tally([0.9, 0.8], correct=[1, 0])).y
    array([1. , 0.5])
    """
    needs_zero_one(t, "threshold_diagram")
    if ideal:
        right, wrong = int(t.n - t.total), int(t.total)
        first, last = max(right, 1), right + wrong
        points = min(IDEAL_POINTS, last - first + 1)
        kept = np.linspace(first, last, points).round()
        return trace_ideal(kept.astype(np.float64), right, wrong)
    c = risk_coverage(t)
    return Curve(
        x=1 - c.x, y=1 - c.y, weight=c.weight, threshold=c.threshold, labels=DIAGRAM_LABELS
    )


def trace_ideal(kept: Floats, right: int, wrong: int) -> Curve:
    """The ideal threshold diagram at these numbers of kept samples."""
    accuracy = np.minimum(right / kept, 1.0)
    return Curve(x=1 - kept / (right + wrong), y=accuracy, weight=kept, labels=DIAGRAM_LABELS)


def rejection(preds: Predictions, thresholds: ArrayLike | None = None) -> Curve:
    r"""Error of the kept against the largest normalised entropy that is kept, :math:`\tilde H \le
    H_\max`.

    All distinct entropies by default; a threshold that keeps nothing has error nan. `.weight`
    counts the kept. Laves et al. 2019, figure 3.

    >>> c = rejection(Predictions.from_probs([[0.9, 0.1], [0.5, 0.5]], [0, 1]))
    >>> c.y, c.weight
    (array([0. , 0.5]), array([1., 2.]))
    """
    needs_predictions(preds, "rejection")
    t = tally(-normalised_entropy(preds), correct=preds.correct, weight=preds.weight)
    c = risk_coverage(t)
    labels = ("largest normalised entropy kept", "error of the kept")
    entropy = 0.0 - t.score
    if thresholds is None:
        return Curve(x=entropy, y=c.y, weight=c.weight, threshold=t.score, labels=labels)
    x = checks.column(thresholds, "thresholds").astype(np.float64)
    row = np.searchsorted(entropy, x, side="right")
    assert c.weight is not None
    error = np.concatenate(([nan], c.y))[row]
    kept = np.concatenate(([0.0], c.weight))[row]
    return Curve(x=x, y=error, weight=kept, threshold=-x, labels=labels)


# ---- finding errors, or successes


def roc(t: Tally, positive: str = "error") -> Curve:
    """True against false positive rate, from (0, 0) to (1, 1); errors are the positives by default.

    Hendrycks & Gimpel 2017. See also: `auroc`, and the warning there.

    >>> roc(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([0., 1., 1., 1.])
    """
    needs_zero_one(t, "roc")
    tp, fp, score = _count_positives(t, positive)
    start = -inf if positive == "error" else inf
    return Curve(
        x=np.concatenate(([0.0], _divide_by_last(fp))),
        y=np.concatenate(([0.0], _divide_by_last(tp))),
        threshold=np.concatenate(([start], score)),
        labels=("false positive rate", "true positive rate"),
    )


def precision_recall(t: Tally, positive: str = "error") -> Curve:
    """Precision against recall, one point per distinct threshold; errors are the positives by
    default.

    See also: `aupr`, and the warning at `auroc`.

    >>> precision_recall(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([1. , 0.5 , 0.33333333])
    """
    needs_zero_one(t, "precision_recall")
    tp, fp, score = _count_positives(t, positive)
    kept = tp + fp
    return Curve(
        x=_divide_by_last(tp),
        y=tp / kept,
        weight=kept.astype(np.float64),
        threshold=score,
        labels=("recall", "precision"),
    )


def _count_positives(t: Tally, positive: str) -> tuple[Counts, Counts, Floats]:
    """Running true and false positives over thresholds, with the scores; errors are found from the
    bottom up.
    """
    if positive not in ("error", "success"):
        raise InputError(f"positive={positive!r}; 'error' or 'success' is needed.")
    wrong, right, score = t.loss, t.count - t.loss, t.score
    if positive == "error":
        return np.cumsum(wrong[::-1]), np.cumsum(right[::-1]), score[::-1]
    return np.cumsum(right), np.cumsum(wrong), score


def _divide_by_last(running: Array) -> Floats:
    """A running count as a share of its total; nan of nothing."""
    if not running[-1]:
        return np.full(len(running), nan)
    return running / running[-1]


# ---- histograms of correctness


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
        right = count_values(where[c], minlength=int(where.max()) + 1)
        return cls.from_counts(count_values(where), right)

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


__all__ = [
    "Curve",
    "Histogram",
    "histogram",
    "odds_by_quantile",
    "odds_ratio",
    "precision_recall",
    "refine",
    "rejection",
    "risk_coverage",
    "roc",
    "threshold_diagram",
]
