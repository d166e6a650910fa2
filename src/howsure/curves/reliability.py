"""What is claimed against what happens: bin by bin, and without bins (CORP)."""

from __future__ import annotations

import numpy as np

from howsure._core.checks import Floats
from howsure._core.frozen import frozen
from howsure._core.indices import interpolate_quantiles, repeat_values, sort_distinct, sum_runs
from howsure.binning import Binning, equal_range, find_cuts, sum_bins
from howsure.curves.curve import Curve
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.scores import normalised_entropy
from howsure.tallies.building import find_steps, pool_adjacent_violators, tally
from howsure.tallies.tally import Tally, needs_claims

__all__ = ["BinTable", "Corp", "bin_table", "corp", "reliability", "uncertainty_reliability"]

# Up to this n a bin's accuracy is simulated; above it three moments are exact enough.
SIMULATED_SAMPLES = 300
BIN_DRAWS = 1000
CORP_GROUPS = 200  # groups of neighbours that the band of CORP draws together
CORP_DRAWS = 120
Z95 = 1.6448536269514722
BAND_LEVELS = (0.05, 0.95)


@frozen(eq=False)
class BinTable:
    """One row per non-empty bin, lowest scores first. gap = confidence − accuracy, positive:
    over-confident.

    >>> bin_table(tally([0.9, 0.9, 0.3], correct=[1, 0, 0])).accuracy
    array([0. , 0.5])
    """

    count: Floats
    confidence: Floats
    accuracy: Floats
    gap: Floats
    low: Floats
    high: Floats


def bin_table(t: Tally, bins: Binning | None = None) -> BinTable:
    """Counts, confidence, accuracy and gap of each non-empty bin; the score is the claim.

    >>> bin_table(tally([0.9, 0.8], correct=[1, 0])).gap
    array([ 0.8, -0.1])
    """
    needs_claims(t, "calibration")
    if bins is None:
        bins = equal_range(15)
    sums = sum_bins(bins, t)
    count = np.asarray(sums.count, dtype=np.float64)
    confidence = sums.claim / count
    accuracy = (sums.count - sums.loss) / count
    columns = {
        "count": count,
        "confidence": confidence,
        "accuracy": accuracy,
        "gap": confidence - accuracy,
        "low": sums.low,
        "high": sums.high,
    }
    # A tally has its most trusted samples first, a table its lowest bin.
    return BinTable(**{name: np.ascontiguousarray(c[::-1]) for name, c in columns.items()})


def reliability(
    t: Tally, bins: Binning | None = None, *, consistency: bool = False, seed: int = 0
) -> Curve:
    r"""Accuracy against mean confidence per non-empty bin, lowest confidence first; `.weight` is
    the count.

    With `consistency=True` the band holds 5 % and 95 % quantiles of what the bin's accuracy would
    be were every claim true: outcomes drawn as Bernoulli(score) 1,000 times, or their normal limit
    with skewness in bins of more than 300 samples (Bröcker & Smith 2007); claims do not say how
    graded answers vary, so these have no band. `.threshold` is the lowest score in the bin. Ding et al. 2020, figure 2.

    >>> reliability(tally([0.9, 0.8], correct=[1, 0])).y
    array([0., 1.])
    """
    if bins is None:
        bins = equal_range(15)
    table = bin_table(t, bins)
    low = high = None
    if consistency and t.zero_one:
        low, high = _simulate_bins(t, bins, seed)
    return Curve(
        x=table.confidence,
        y=table.accuracy,
        weight=table.count,
        threshold=table.low,
        low=low,
        high=high,
        labels=("confidence", "accuracy"),
    )


def _simulate_bins(t: Tally, bins: Binning, seed: int) -> tuple[Floats, Floats]:
    """5 % and 95 % quantiles of each bin's accuracy were every claim true, lowest bin first."""
    rng = np.random.default_rng(seed)
    count = t.count
    if not t.equal_weights:
        count = np.maximum(count, 1)  # a row has at least one sample, whatever its weight
    samples = np.round(count).astype(np.int64)
    start = np.searchsorted(t.ends, find_cuts(bins, t)[:-1], side="right")
    end = np.append(start[1:], len(samples))
    ranges: list[tuple[float, float]] = []
    for first, last in zip(start[::-1], end[::-1], strict=True):
        claim, times = t.score[first:last], samples[first:last]
        n = max(1, int(times.sum()))
        if n <= SIMULATED_SAMPLES:
            draws = (rng.random((BIN_DRAWS, n)) < repeat_values(claim, times)[:n]).mean(axis=1)
            low, high = interpolate_quantiles(draws, BAND_LEVELS)
            ranges.append((float(low), float(high)))
            continue
        # Of many samples three moments tell as much.
        mean = float((times * claim).sum()) / n
        variance = float((times * (claim * (1 - claim))).sum())
        third = float((times * (claim * (1 - claim) * (1 - 2 * claim))).sum())
        skew = 0.0
        if variance > 0:
            skew = third / variance**1.5
        # The expansion of Cornish and Fisher, to the skewness.
        quantile = np.array([-Z95, Z95]) + (Z95**2 - 1) / 6 * skew
        low, high = np.clip(mean + np.sqrt(variance) * quantile / n, 0.0, 1.0)
        ranges.append((float(low), float(high)))
    ends = np.array(ranges)
    return ends[:, 0], ends[:, 1]


def tally_uncertainty(preds: Predictions) -> Tally:
    """Normalised entropy as the claim of being wrong: UCE is the ECE of this tally."""
    return tally(normalised_entropy(preds), correct=~preds.correct, weight=preds.weight)


def uncertainty_reliability(preds: Predictions, bins: int = 15) -> Curve:
    """Error rate against normalised entropy per non-empty bin of equal range. Laves et al. 2019,
    figure 1.

    >>> uncertainty_reliability(Predictions.from_probs([[0.5, 0.5]], [1])).y
    array([1.])
    """
    needs_predictions(preds, "uncertainty_reliability")
    c = reliability(tally_uncertainty(preds), equal_range(bins))
    labels = ("normalised entropy", "error")
    return Curve(x=c.x, y=c.y, weight=c.weight, threshold=c.threshold, labels=labels)


@frozen(eq=False)
class Corp:
    """The curve, and the parts of the Brier score of the confidence:

    score = miscalibration − discrimination + uncertainty. Miscalibration is what the isotonic map
    would save, discrimination what the map then gains over saying the accuracy every time.

    >>> from howsure import tally
    >>> parts = corp(tally([0.9, 0.8, 0.6, 0.6], correct=[1, 1, 0, 1]))
    >>> round(parts.score, 4), round(parts.miscalibration - parts.discrimination + parts.uncertainty, 4)
    (0.1425, 0.1425)
    """

    curve: Curve
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def corp(t: Tally, *, band: bool = True, seed: int = 0) -> Corp:
    r"""The isotonic reliability curve: accuracy as the best map of the confidence that never falls,
    without bins.

    .. math:: S = \underbrace{S - S_{\mathrm{iso}}}_{\mathrm{MCB}}
        - \underbrace{(S_{\bar y} - S_{\mathrm{iso}})}_{\mathrm{DSC}} + \underbrace{S_{\bar y}}_{\mathrm{UNC}},
        \quad S \text{ the Brier score of the confidence}

    The curve has both ends of every step, lowest confidence first; `.weight` counts the samples of
    the step. The band holds 5 % and 95 % quantiles, point by point, of the same curve were every
    claim true: outcomes drawn as claimed, neighbours in 200 groups, 120 times; none for samples
    with different weights and for graded answers. Dimitriadis, Gneiting & Jordan 2021, equations 2 to 4.

    >>> from howsure import tally
    >>> c = corp(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]), band=False).curve
    >>> c.x, c.y
    (array([0.6, 0.7, 0.8, 0.9]), array([0. , 0.5, 0.5, 1. ]))
    """
    needs_claims(t, "corp")
    step = pool_adjacent_violators(t)
    count = step.count[::-1].astype(np.float64)
    value = ((step.count - step.loss) / step.count)[::-1]
    ends = np.stack((step.low[::-1], step.high[::-1]), axis=1)
    # A step of a single score is one point, the others are two.
    keep = np.stack((np.ones(len(value), dtype=bool), ends[:, 0] < ends[:, 1]), axis=1)
    points = keep.sum(axis=1)
    x = ends[keep]
    low = high = None
    if band and t.equal_weights and t.zero_one:
        low, high = _simulate_corp(t, x, seed)
    curve = Curve(
        x=x,
        y=repeat_values(value, points),
        weight=repeat_values(count, points),
        threshold=x,
        low=low,
        high=high,
        labels=("confidence", "accuracy"),
    )
    n = float(t.n)
    accuracy = float((t.n - t.total) / t.n)
    score = sum_squared_errors(t) / n
    # What grades deviate less than right and wrong of the same mean would; 0 for right and wrong.
    graded = (float(t.total) - t.total_square) / n
    best = float((count * value * (1 - value)).sum() / n) - graded
    flat = accuracy * (1 - accuracy) - graded
    return Corp(
        curve=curve,
        score=score,
        miscalibration=score - best,
        discrimination=flat - best,
        uncertainty=flat,
    )


def sum_squared_errors(t: Tally) -> float:
    """The squared distances between claim and outcome, summed over the samples."""
    # A grade g counts as right to that share, which adds g(1 − g) to its squared distance.
    total = t.total_square - float(t.total)
    for r, count, wrong in t.pieces():
        total += float(((count - wrong) * (1 - r) ** 2 + wrong * r**2).sum())
    return total


def _simulate_corp(t: Tally, x: Floats, seed: int) -> tuple[Floats, Floats]:
    """Quantiles of the curve at x were every claim true."""
    n = float(t.n)
    even = np.linspace(0, n, min(CORP_GROUPS, int(n)) + 1)[1:]
    cuts = sort_distinct(t.cut_at(sort_distinct(np.ceil(even).astype(np.int64))))
    sums = t.between(np.concatenate(([0], cuts)))
    size = np.round(sums.count).astype(np.int64)
    claim = np.clip(sums.claim / sums.count, 0.0, 1.0)
    wrong = np.random.default_rng(seed).binomial(size, 1 - claim, (CORP_DRAWS, len(size)))
    # The isotonic accuracy of every group, most trusted first, for each draw.
    curves = np.empty(wrong.shape)
    for curve, row in zip(curves, wrong, strict=True):
        first = find_steps(size, row)
        rate = sum_runs(row, first) / sum_runs(size, first)
        curve[:] = 1 - repeat_values(rate, np.diff(np.append(first, len(size))))
    ends = interpolate_quantiles(curves, BAND_LEVELS)
    low, high = ends[0, ::-1], ends[1, ::-1]
    return np.interp(x, claim[::-1], low), np.interp(x, claim[::-1], high)
