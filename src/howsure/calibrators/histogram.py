"""Histogram binning: replace a probability by how often it came true."""

from __future__ import annotations

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure.binning import equal_range
from howsure.calibrators._classes import Map, answered, record, samples_of
from howsure.calibrators._fitted import Fitted, needs_samples
from howsure.calibrators._logits import probabilities
from howsure.predictions import Predictions, needs_predictions


@frozen(eq=False)
class HistogramBinning:
    r"""For each class, M equal bins of its probability; each bin answers with the share of that
    class in it.

    .. math:: \theta_{km} = \frac{\sum_i 1[y_i = k,\ p_{ik} \in B_m]}{\sum_i 1[p_{ik} \in B_m]}

    Bin m is ((m−1)/M, m/M], and 0 belongs to the first; an empty bin answers with its middle. Rows are divided by
    their sum, so more than M confidences occur; a row of zeros keeps what it was. Answers may change, and the ranking
    inside a bin is lost. Shares of exactly 0 and 1 occur unless `floor` keeps them away. Zadrozny & Elkan 2001; Vemuri
    2020, chapter 5.

    >>> preds = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 2, [0, 0, 0, 1, 1, 1])
    >>> HistogramBinning.fit(preds, bins=2)(preds).probs[[0, 4]]
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """

    share: Floats  # (k, bins): how often the class came true in each bin
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        if (
            self.share.ndim != 2
            or not self.share.size
            or not ((self.share >= 0) & (self.share <= 1)).all()
        ):
            raise InputError("share needs one row of numbers in [0, 1] for each class.")

    @classmethod
    def fit(cls, preds: Predictions, *, bins: int = 15, floor: float = 0.0) -> HistogramBinning:
        """Count, bin by bin, all classes in one pass.

        `floor` bounds the shares away from 0 and 1: a bin of c samples counts at least `floor` of
        them as the class and as another one. 0.5 is half a sample.
        """
        needs_predictions(preds, "HistogramBinning.fit")
        check.at_least(bins, 1, "the number of bins")
        needs_samples(preds, "HistogramBinning")
        least, k = samples_of(preds, floor), preds.k or 0
        total, right = np.zeros(k * bins), np.zeros(k * bins)
        for rows, p in probabilities(preds):
            w = None if preds.weight is None else preds.weight[rows]
            place, y = _place(p, bins), preds.labels[rows]
            total += np.bincount(
                place.ravel(), None if w is None else np.tile(w, k), minlength=k * bins
            )
            right += np.bincount(place[y, np.arange(len(y))], w, minlength=k * bins)
        made = cls(_shares(total.reshape(k, bins), right.reshape(k, bins), least))
        return cls(made.share, record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions as the bins answer, as probabilities."""
        needs_predictions(preds, "HistogramBinning")
        preds.needs_vector("histogram binning")
        k, bins = self.share.shape
        answer: Map = lambda p: self.share.ravel()[_place(p, bins)]
        return answered(preds, k, self.fitted, "HistogramBinning", answer)


def _place(p: Floats, bins: int) -> Array:
    """The bin of each probability, those of a class after those of the one before."""
    edges = equal_range(bins).edges()
    at = np.minimum((p * bins).astype(np.int32), bins - 1)  # a product is rounded: the edges decide
    at -= p <= np.concatenate(([-1.0], edges[1:-1]))[at]
    at += p > np.concatenate((edges[1:-1], [2.0]))[at]
    return at + bins * np.arange(len(p))[:, None]


def _shares(total: Floats, right: Floats, least: float) -> Floats:
    """How often a class came true in each of its bins; the middle of an empty one."""
    bins, some = total.shape[1], total > 0
    half = np.minimum(least, total / 2)
    counted = np.clip(right, half, total - half) / np.where(some, total, 1.0)
    middle = (np.arange(bins, dtype=np.float64) + 0.5) / bins
    return np.where(some, np.minimum(counted, 1.0), middle)
