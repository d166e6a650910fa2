"""Histogram binning: replace a probability by how often it came true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howsure._core import check
from howsure._core.check import Floats, InputError, Ints
from howsure.binning import equal_range
from howsure.calibrators._classes import Map, answered, record
from howsure.calibrators._fitted import Fitted, needs_samples
from howsure.predictions import Predictions


@dataclass(frozen=True, eq=False)
class HistogramBinning:
    r"""For each class, M equal bins of its probability; each bin answers with the share of that class in it.

    .. math:: \theta_{km} = \frac{\sum_i 1[y_i = k,\ p_{ik} \in B_m]}{\sum_i 1[p_{ik} \in B_m]}

    Bin m is ((m−1)/M, m/M], and 0 belongs to the first; an empty bin answers with its middle. Rows are divided by
    their sum, so more than M confidences occur; a row of zeros keeps what it was. Answers may change, and the ranking
    inside a bin is lost. Zadrozny & Elkan 2001; Vemuri 2020, chapter 5.

    >>> preds = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 2, [0, 0, 0, 1, 1, 1])
    >>> HistogramBinning.fit(preds, bins=2)(preds).probs[[0, 4]]
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """

    share: Floats  # (k, bins): how often the class came true in each bin
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        if self.share.ndim != 2 or not self.share.size or not ((self.share >= 0) & (self.share <= 1)).all():
            raise InputError("share needs one row of numbers in [0, 1] for each class.")

    @classmethod
    def fit(cls, preds: Predictions, *, bins: int = 15) -> HistogramBinning:
        """Count, bin by bin."""
        check.at_least(bins, 1, "the number of bins")
        needs_samples(preds, "HistogramBinning")
        p = np.clip(preds.probs, 0.0, 1.0)
        w = np.ones(preds.n) if preds.weight is None else preds.weight  # whole counts keep ties between classes
        theta = [_came_true(_bin_of(p[:, j], bins), preds.labels == j, w, bins) for j in range(p.shape[1])]
        made = cls(np.stack(theta))
        return cls(made.share, record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions as the bins answer, as probabilities."""
        preds.needs_vector("histogram binning")
        k, bins = self.share.shape
        answer: Map = lambda p, j: self.share[j][_bin_of(p, bins)]
        return answered(preds, k, self.fitted, "HistogramBinning", answer)


def _bin_of(p: Floats, bins: int) -> Ints:
    return np.searchsorted(equal_range(bins).edges()[1:-1], p, side="left")


def _came_true(where: Ints, hit: check.Bools, w: Floats, bins: int) -> Floats:
    total = np.bincount(where, w, minlength=bins)
    right = np.bincount(where, w * hit, minlength=bins)
    middle = (np.arange(bins) + 0.5) / bins
    return np.where(total > 0, np.minimum(right / np.where(total > 0, total, 1.0), 1.0), middle)
