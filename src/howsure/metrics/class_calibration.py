"""Are the probabilities of all classes honest? Calibration errors of the entropy and of each class."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Floats, Ints
from howsure._core.exact import fixed_columns, fixed_sums, from_fixed
from howsure._core.frozen import frozen
from howsure.binning import Binning, equal_range
from howsure.curves.reliability import tally_uncertainty
from howsure.metrics.binary import positive_tally
from howsure.metrics.calibration_error import ece, mce
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.predictions.columns import RawValues, average_probs, iterate_chunks
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.scores.softmax import normalised_entropy

__all__ = ["classwise_ece", "muce", "uce"]


def _claim_error(preds: Predictions, bins: int = 15) -> OutcomesWithMetric:
    outcomes = Outcomes.of(preds, normalised_entropy(preds), correct=~preds.correct)
    return outcomes, partial(ece, bins=equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", through=_claim_error)
def uce(preds: Predictions, bins: int = 15) -> float:
    r"""Uncertainty calibration error: mean gap between error rate and normalised entropy, in M
    equal bins.

    .. math:: \mathrm{UCE} = \sum_m \frac{n_m}{n} \, |\mathrm{err}_m - \mathrm{uncert}_m|

    Entropy 0 belongs to the first bin. Range [0, 1]. UCE = 0 and ECE = 0 are different and in general
    incompatible goals: p = 0.9 in two classes with 90 % right has ECE 0 and UCE 0.369. Laves et al. 2019, eq. 7.

    >>> round(uce(Predictions.from_probs([[0.9, 0.1]] * 10, [0] * 9 + [1])), 3)
    0.369
    """
    needs_predictions(preds, "uce")
    return ece(tally_uncertainty(preds), equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", smooth=False)
def muce(preds: Predictions, bins: int = 15) -> float:
    r"""The largest gap of `uce`, :math:`\max_m |\mathrm{err}_m - \mathrm{uncert}_m|` over non-empty
    bins.

    Range [0, 1], 0 is perfect. Laves et al. 2019.

    >>> muce(Predictions.from_probs([[0.5, 0.5]], [1]))
    0.0
    """
    needs_predictions(preds, "muce")
    return mce(tally_uncertainty(preds), equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", smooth=False)
def classwise_ece(preds: Predictions, bins: int | Binning = 15) -> float:
    r"""`ece` of each class's probability against that class, in M equal bins, averaged over the
    classes.

    Equal bins take one pass of bin sums, no sort; another binning (`equal_size(15)`, `adaptive()`)
    sorts each class. Range [0, 1], 0 is perfect. Kull et al. 2019.

    >>> round(classwise_ece(Predictions.from_probs([[0.8, 0.2]] * 5, [0] * 4 + [1])), 1)
    0.0
    """
    needs_predictions(preds, "classwise_ece")
    if isinstance(bins, int):
        return sum_classes(preds, bins).mean_gap()
    k = preds.needs_vector("classwise_ece")
    return float(np.mean([ece(positive_tally(preds, c), bins) for c in range(k)]))


@frozen(eq=False)
class ClassBinSums:
    """Summed probabilities, and samples of the class, in every bin of every class; `+` merges the
    sums of two parts.

    Without weights probabilities are summed in fixed point (shape (2, k · bins)) and samples are
    counted, so the sum of parts is the same to the last bit in any order.
    """

    claim: Array
    true: Array
    weight: float  # of all samples
    k: int

    def __add__(self, other: ClassBinSums) -> ClassBinSums:
        return ClassBinSums(
            claim=self.claim + other.claim,
            true=self.true + other.true,
            weight=self.weight + other.weight,
            k=self.k,
        )

    def mean_gap(self) -> float:
        """The class-wise ECE."""
        claim = self.claim
        if claim.ndim == 2:
            claim = from_fixed(claim)
        return float(np.abs(claim - self.true).sum() / self.weight / self.k)


def sum_classes(preds: Predictions, bins: int = 15) -> ClassBinSums:
    """The sums behind `classwise_ece`, chunk by chunk.

    >>> round(sum_classes(Predictions.from_probs([[0.8, 0.2]] * 5, [0] * 4 + [1])).mean_gap(), 1)
    0.0
    """
    check.at_least(bins, 1, "the number of bins")
    preds.needs_vector("classwise_ece")
    edges = equal_range(bins).edges()
    parts = (_sum_rows(preds, rows, edges) for rows in iterate_chunks(preds.n, bins))
    return reduce(ClassBinSums.__add__, parts)


def _sum_rows(preds: Predictions, part: slice, edges: Floats) -> ClassBinSums:
    """The sums of some rows.

    Of many classes most probabilities are in the first bin. Those are summed as columns, and only
    the larger ones are sorted into bins.
    """
    k, bins, weight = preds.values.shape[-1], len(edges) - 1, preds.weight
    cells = k * bins  # cell c · bins + b is bin b of class c
    first_cell = np.arange(k, dtype=np.int64) * bins
    labels = preds.labels[part]
    label_cells: list[Array] = []
    large_probs: list[Array] = []
    large_cells: list[Array] = []
    large_weights: list[Array] = []
    claim = np.zeros((2, cells), np.int64) if weight is None else np.zeros(cells)
    for rows in iterate_chunks(len(labels), k * preds.samples):
        p = _read_probs(preds, slice(part.start + rows.start, part.start + rows.stop))
        y = labels[rows]
        label_cells.append(find_bins(p[np.arange(len(p)), y], edges) + first_cell[y])
        flat = p.ravel()
        large = np.flatnonzero(flat > edges[1])
        large_probs.append(flat[large])
        large_cells.append(find_bins(large_probs[-1], edges) + first_cell[large % k])
        flat[large] = 0.0
        if weight is None:
            claim[:, ::bins] += fixed_columns(p)
        else:
            w = weight[part][rows]
            large_weights.append(w[large // k])
            claim[::bins] += w @ p
    at, values = np.concatenate(large_cells), np.concatenate(large_probs)
    own = np.concatenate(label_cells)
    if weight is None:
        claim = claim + fixed_sums(at, values, cells)
        true = np.bincount(own, minlength=cells)
        return ClassBinSums(claim=claim, true=true, weight=float(len(labels)), k=k)
    w = weight[part]
    claim += np.bincount(at, values * np.concatenate(large_weights), cells)
    return ClassBinSums(claim=claim, true=np.bincount(own, w, cells), weight=float(w.sum()), k=k)


def _read_probs(preds: Predictions, rows: slice) -> Floats:
    """The probabilities of some rows, in [0, 1]."""
    values = preds.values
    if preds.kind == "logits" and values.ndim == 2:
        # The columns know the largest logit and its probability: no second sum over the classes.
        p = values[rows].astype(np.float64)
        p -= preds.columns.max_logit[rows, None]
        np.exp(p, out=p)
        p *= preds.columns.max_prob[rows, None]
        return p
    part = values[:, rows] if values.ndim == 3 else values[rows]
    return average_probs(RawValues(part, preds.kind == "logits"))


def find_bins(p: Floats, edges: Floats) -> Ints:
    """The number of the bin (edge, next edge] of each p; a p of 0 belongs to the first."""
    # The product is a rounding off at most, so one comparison with each edge repairs it.
    guess = (p * (len(edges) - 1)).astype(np.int64)
    np.minimum(guess, len(edges) - 2, out=guess)
    guess += p > edges[1:][guess]
    guess -= p <= edges[guess]
    return np.maximum(guess, 0, out=guess)
