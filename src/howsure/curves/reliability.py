"""What is claimed against what happens, bin by bin."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats, Ints
from howsure._core.frozen import frozen
from howsure.binning import Binning, cuts_of, equal_range, sums_in
from howsure.curves.curve import Curve
from howsure.predictions import Predictions, needs_predictions
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.build import tally
from howsure.tallies.tally import Tally, needs_claims

__all__ = ["BinTable", "bin_table", "reliability", "uncertainty_reliability"]

DRAWN = 300  # up to this n a bin's accuracy is drawn; above it three moments are exact enough
Z95 = 1.6448536269514722


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
    sums = sums_in(equal_range(15) if bins is None else bins, t)
    count = np.asarray(sums.count, dtype=np.float64)
    confidence, accuracy = sums.claim / count, (sums.count - sums.loss) / count
    table = (count, confidence, accuracy, confidence - accuracy, sums.low, sums.high)
    return BinTable(*(np.ascontiguousarray(column[::-1]) for column in table))


def reliability(
    t: Tally, bins: Binning | None = None, *, consistency: bool = False, seed: int = 0
) -> Curve:
    r"""Accuracy against mean confidence per non-empty bin, lowest confidence first; `.weight` is
    the count.

    With `consistency=True` the band holds 5 % and 95 % quantiles of what the bin's accuracy would
    be were every claim true: outcomes drawn as Bernoulli(score) 1,000 times, or their normal limit
    with skewness in bins of more than 300 samples (Bröcker & Smith 2007). `.threshold` is the
    lowest score in the bin. Ding et al. 2020, figure 2.

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
    score, count = (
        t.score,
        t.count if t.equal_weights else np.maximum(t.count, 1),
    )  # at least one sample in a row
    start = np.searchsorted(t.ends, cuts_of(bins, t)[:-1], side="right")
    rows = [slice(a, b) for a, b in zip(start, [*start[1:], len(score)], strict=True)]
    found = [
        _claimed_quantiles(score[r], np.round(count[r]).astype(np.int64), rng)
        for r in reversed(rows)
    ]
    low, high = np.transpose(found)
    return low, high


def _claimed_quantiles(claim: Floats, count: Ints, rng: np.random.Generator) -> tuple[float, float]:
    """5 % and 95 % quantiles of the mean of Bernoulli(claim): by drawing, for many samples by three
    moments.
    """
    n = max(1, int(count.sum()))
    if n <= DRAWN:
        draws = (rng.random((1000, n)) < np.repeat(claim, count)[:n]).mean(axis=1)
        low, high = np.quantile(draws, [0.05, 0.95])
        return float(low), float(high)
    mean = float((count * claim).sum()) / n
    variance = float((count * (claim * (1 - claim))).sum())
    third = float((count * (claim * (1 - claim) * (1 - 2 * claim))).sum())
    skew = third / variance**1.5 if variance > 0 else 0.0
    spread = np.sqrt(variance) * (
        np.array([-Z95, Z95]) + (Z95**2 - 1) / 6 * skew
    )  # Cornish and Fisher
    low, high = np.clip(mean + spread / n, 0.0, 1.0)
    return float(low), float(high)


def uncertain_tally(preds: Predictions) -> Tally:
    """Normalised entropy as the claim of being wrong: UCE is the ECE of this tally."""
    return tally(normalised_entropy(preds), correct=~preds.correct, weight=preds.weight)


def uncertainty_reliability(preds: Predictions, bins: int = 15) -> Curve:
    """Error rate against normalised entropy per non-empty bin of equal range. Laves et al. 2019,
    figure 1.

    >>> uncertainty_reliability(Predictions.from_probs([[0.5, 0.5]], [1])).y
    array([1.])
    """
    needs_predictions(preds, "uncertainty_reliability")
    c = reliability(uncertain_tally(preds), equal_range(bins))
    return Curve(c.x, c.y, c.weight, c.threshold, labels=("normalised entropy", "error"))
