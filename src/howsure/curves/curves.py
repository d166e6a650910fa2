"""Curves as data; renderers draw them and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Floats, InputError, Ints
from howsure.binning import Binning, equal_range, equal_size, sums_in
from howsure.curves.histograms import histogram
from howsure.predictions import Predictions
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.build import tally
from howsure.tallies.sets import SetTally
from howsure.tallies.tally import Tally, needs_claims, needs_tally, needs_zero_one

__all__ = [
    "BinTable",
    "Curve",
    "bin_table",
    "odds_by_quantile",
    "odds_ratio",
    "precision_recall",
    "rejection",
    "reliability",
    "risk_coverage",
    "roc",
    "threshold_diagram",
    "uncertainty_reliability",
]

DRAWN = 300  # up to here a bin's accuracy is drawn, beyond it three moments are exact enough
Z95 = 1.6448536269514722


@dataclass(frozen=True, eq=False)
class Curve:
    """Points (x, y) with what belongs to them: sample counts, thresholds, and a band (low, high) around y.

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


@dataclass(frozen=True, eq=False)
class BinTable:
    """One row per non-empty bin, lowest scores first. gap = confidence − accuracy, positive: over-confident.

    >>> bin_table(tally([0.9, 0.9, 0.3], correct=[1, 0, 0])).accuracy
    array([0. , 0.5])
    """

    count: Floats
    confidence: Floats
    accuracy: Floats
    gap: Floats
    low: Floats
    high: Floats


def risk_coverage(t: Tally | SetTally) -> Curve:
    r"""Risk of the accepted against the share accepted, one point per distinct threshold.

    A sample is accepted where its score is at least the threshold; ties are accepted together, the last point
    has coverage 1, and coverage 0 is no point. Ding et al. 2020, eq. 5–6.

    >>> c = risk_coverage(tally([0.9, 0.8, 0.8], correct=[1, 0, 1]))
    >>> c.x, c.y
    (array([0.33333333, 1. ]), array([0. , 0.33333333]))
    """
    if not isinstance(t, SetTally):
        needs_tally(t, "risk_coverage")
    kept = np.cumsum(t.count)
    risk = t.risk if isinstance(t, SetTally) else np.cumsum(t.loss) / kept
    return Curve(kept / kept[-1], risk, kept.astype(np.float64), t.score, labels=("coverage", "risk"))


def threshold_diagram(t: Tally, *, ideal: bool = False) -> Curve:
    r"""Accuracy of the kept against the share deferred, one point per distinct threshold.

    `ideal=True` gives the diagram of a score that knows which answers are right: every wrong answer is
    deferred first. Vemuri 2020, chapter 4. See also: `aac`.

    >>> threshold_diagram(tally([0.9, 0.8], correct=[1, 0])).y
    array([1. , 0.5])
    """
    needs_zero_one(t, "threshold_diagram")
    if ideal:
        right, wrong = int(t.n - t.total), int(t.total)
        return ideal_at(np.arange(max(right, 1), right + wrong + 1, dtype=np.float64), right, wrong)
    c = risk_coverage(t)
    return Curve(1 - c.x, 1 - c.y, c.weight, c.threshold, labels=("deferred", "accuracy of the kept"))


def ideal_at(kept: Floats, right: int, wrong: int) -> Curve:
    """The ideal threshold diagram where so many are kept."""
    y = np.minimum(right / kept, 1.0)
    return Curve(1 - kept / (right + wrong), y, kept, None, labels=("deferred", "accuracy of the kept"))


def _found(t: Tally, positive: str) -> tuple[Array, Array, Floats]:
    """Running true and false positives over thresholds, with the scores; errors are found from the bottom up."""
    if positive not in ("error", "success"):
        raise InputError(f"positive={positive!r}; 'error' or 'success' is needed.")
    wrong, right, score = t.loss, t.count - t.loss, t.score
    if positive == "error":
        return np.cumsum(wrong[::-1]), np.cumsum(right[::-1]), score[::-1]
    return np.cumsum(right), np.cumsum(wrong), score


def roc(t: Tally, positive: str = "error") -> Curve:
    """True against false positive rate, from (0, 0) to (1, 1); errors are the positives by default.

    Hendrycks & Gimpel 2017. See also: `auroc`, and the warning there.

    >>> roc(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([0., 1., 1., 1.])
    """
    needs_zero_one(t, "roc")
    tp, fp, score = _found(t, positive)
    rate: Callable[[Floats], Floats] = lambda c: np.concatenate(([0.0], c / c[-1] if c[-1] else np.full(len(c), nan)))
    start = [-inf if positive == "error" else inf]
    return Curve(
        rate(fp),
        rate(tp),
        None,
        np.concatenate((start, score)),
        labels=("false positive rate", "true positive rate"),
    )


def precision_recall(t: Tally, positive: str = "error") -> Curve:
    """Precision against recall, one point per distinct threshold; errors are the positives by default.

    See also: `aupr`, and the warning at `auroc`.

    >>> precision_recall(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([1. , 0.5 , 0.33333333])
    """
    needs_zero_one(t, "precision_recall")
    tp, fp, score = _found(t, positive)
    recall = tp / tp[-1] if tp[-1] else np.full(len(tp), nan)
    return Curve(recall, tp / (tp + fp), (tp + fp).astype(np.float64), score, labels=("recall", "precision"))


def bin_table(t: Tally, bins: Binning | None = None) -> BinTable:
    """Counts, confidence, accuracy and gap of each non-empty bin; the score is the claim.

    >>> bin_table(tally([0.9, 0.8], correct=[1, 0])).gap
    array([ 0.8, -0.1])
    """
    needs_claims(t, "calibration")
    sums = sums_in(equal_range(15) if bins is None else bins, t)
    count = np.asarray(sums.count, dtype=np.float64)
    confidence, accuracy = sums.claim / count, (sums.count - sums.loss) / count
    table = (count, confidence, accuracy, confidence - accuracy, sums.low, sums.high)
    return BinTable(*(np.ascontiguousarray(column[::-1]) for column in table))


def reliability(t: Tally, bins: Binning | None = None, *, consistency: bool = False, seed: int = 0) -> Curve:
    r"""Accuracy against mean confidence per non-empty bin, lowest confidence first; `.weight` is the count.

    With `consistency=True` the band holds 5 % and 95 % quantiles of what the bin's accuracy would be were
    every claim true: outcomes drawn as Bernoulli(score) 1,000 times, or their normal limit with skewness in
    bins of more than 300 samples (Bröcker & Smith 2007).
    `.threshold` is the lowest score in the bin. Ding et al. 2020, figure 2.

    >>> reliability(tally([0.9, 0.8], correct=[1, 0])).y
    array([0., 1.])
    """
    table = bin_table(t, bins)
    low = high = None
    if consistency:
        low, high = _consistency(t, equal_range(15) if bins is None else bins, seed)
    labels = ("confidence", "accuracy")
    return Curve(table.confidence, table.accuracy, table.count, table.low, low, high, labels)


def _consistency(t: Tally, bins: Binning, seed: int) -> tuple[Floats, Floats]:
    """Quantiles of a bin's accuracy under the claims, lowest bin first."""
    rng = np.random.default_rng(seed)
    score, count = t.score, t.count
    start = np.searchsorted(np.cumsum(count), bins.cuts(t)[:-1], side="right")
    rows = [slice(a, b) for a, b in zip(start, [*start[1:], len(score)], strict=True)]
    found = [_claimed_quantiles(score[r], np.round(count[r]).astype(np.int64), rng) for r in reversed(rows)]
    low, high = np.transpose(found)
    return low, high


def _claimed_quantiles(claim: Floats, count: Ints, rng: np.random.Generator) -> tuple[float, float]:
    """5 % and 95 % quantiles of the mean of Bernoulli(claim): by drawing, for many samples by three moments."""
    n = max(1, int(count.sum()))
    if n <= DRAWN:
        draws = (rng.random((1000, n)) < np.repeat(claim, count)[:n]).mean(axis=1)
        low, high = np.quantile(draws, [0.05, 0.95])
        return float(low), float(high)
    mean = float((count * claim).sum()) / n
    variance = float((count * (claim * (1 - claim))).sum())
    third = float((count * (claim * (1 - claim) * (1 - 2 * claim))).sum())
    skew = third / variance**1.5 if variance > 0 else 0.0
    spread = np.sqrt(variance) * (np.array([-Z95, Z95]) + (Z95**2 - 1) / 6 * skew)  # Cornish and Fisher
    low, high = np.clip(mean + spread / n, 0.0, 1.0)
    return float(low), float(high)


def uncertain_tally(preds: Predictions) -> Tally:
    """Normalised entropy as the claim of being wrong: UCE is the ECE of this tally."""
    return tally(normalised_entropy(preds), correct=~preds.correct, weight=preds.weight)


def uncertainty_reliability(preds: Predictions, bins: int = 15) -> Curve:
    """Error rate against normalised entropy per non-empty bin of equal range. Laves et al. 2019, figure 1.

    >>> uncertainty_reliability(Predictions.from_probs([[0.5, 0.5]], [1])).y
    array([1.])
    """
    c = reliability(uncertain_tally(preds), equal_range(bins))
    return Curve(c.x, c.y, c.weight, c.threshold, labels=("normalised entropy", "error"))


def rejection(preds: Predictions, thresholds: Any = None) -> Curve:
    r"""Error of the kept against the largest normalised entropy that is kept, :math:`\tilde H \le H_\max`.

    All distinct entropies by default; a threshold that keeps nothing has error nan. `.weight` counts the
    kept. Laves et al. 2019, figure 3.

    >>> c = rejection(Predictions.from_probs([[0.9, 0.1], [0.5, 0.5]], [0, 1]))
    >>> c.y, c.weight
    (array([0. , 0.5]), array([1., 2.]))
    """
    t = tally(-normalised_entropy(preds), correct=preds.correct, weight=preds.weight)
    c = risk_coverage(t)
    labels = ("largest normalised entropy kept", "error of the kept")
    if thresholds is None:
        return Curve(0.0 - t.score, c.y, c.weight, t.score, labels=labels)
    x = check.column(thresholds, "thresholds").astype(np.float64)
    row = np.searchsorted(0.0 - t.score, x, side="right")
    assert c.weight is not None
    y = np.concatenate(([nan], c.y))[row]
    return Curve(x, y, np.concatenate(([0.0], c.weight))[row], -x, labels=labels)


def odds_ratio(p: Any, a: float) -> Any:
    r"""How much better a bet becomes when the probability is known to be p instead of a.

    .. math:: S(p, a) = \max\Big(\frac{O(p)}{O(a)}, \frac{O(a)}{O(p)}\Big), \quad O(p) = \frac{p}{1-p}

    1 where p = a, also at 0 and 1; otherwise inf if p or a is 0 or 1. Finlay & Oberman, definition 2.

    >>> odds_ratio(15 / 16, 0.5)
    15.0
    """
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all() or not 0 <= a <= 1:
        raise InputError("odds_ratio needs probabilities in [0, 1].")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p * (1 - a) / ((1 - p) * a)
        score = np.maximum(ratio, 1 / ratio)
    score = np.where((p == 0) | (p == 1) | (a in (0, 1)), inf, score)
    score = np.where(p == a, 1.0, score)
    return float(score) if score.ndim == 0 else score


def odds_by_quantile(t: Tally, m: int = 100) -> Curve:
    """The odds ratio of each bin of equal size, most trusted first. Finlay & Oberman, figure 3.

    >>> odds_by_quantile(tally([0.9, 0.8, 0.7], correct=[1, 1, 1])).y
    array([1., 1., 1.])
    """
    h = histogram(t, equal_size(m))
    y = np.where(h.at_base, 1.0, odds_ratio(h.p, h.base))
    assert h.count is None or len(h.count) == len(y)
    middle = np.cumsum(h.weight) - h.weight / 2
    return Curve(middle, y, h.weight * float(t.n), labels=("quantile, most trusted first", "odds ratio"))
