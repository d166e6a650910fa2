"""Are the probabilities of all classes honest? Calibration errors of the entropy and of each class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Floats, Ints
from howsure._core.exact import fixed_columns, fixed_sums, from_fixed
from howsure._core.frozen import frozen
from howsure.binning import Binning, equal_range
from howsure.curves.reliability import uncertain_tally
from howsure.metrics.binary import positive_tally
from howsure.metrics.calibration import ece, mce
from howsure.metrics.facts import metric
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import Values, chunks, mean_probs
from howsure.predictions.outcomes import Outcomes
from howsure.scores.softmax import normalised_entropy
from howsure.tallies.tally import Tally


def _uncertain(preds: Predictions, bins: int = 15) -> tuple[Outcomes, Callable[[Tally], float]]:
    outcomes = Outcomes.of(preds, normalised_entropy(preds), correct=~preds.correct)
    return outcomes, partial(ece, bins=equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", through=_uncertain)
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
    return ece(uncertain_tally(preds), equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", smooth=False)
def muce(preds: Predictions, bins: int = 15) -> float:
    r"""The largest gap of `uce`, :math:`\max_m |\mathrm{err}_m - \mathrm{uncert}_m|` over non-empty
    bins.

    Range [0, 1], 0 is perfect. Laves et al. 2019.

    >>> muce(Predictions.from_probs([[0.5, 0.5]], [1]))
    0.0
    """
    needs_predictions(preds, "muce")
    return mce(uncertain_tally(preds), equal_range(bins))


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
    if not isinstance(bins, int):
        k = preds.needs_vector("classwise_ece")
        return float(np.mean([ece(positive_tally(preds, c), bins) for c in range(k)]))
    return class_cells(preds, bins).mean_gap()


@frozen(eq=False)
class Cells:
    """Summed probabilities, and samples of the class, in every bin of every class; sums of parts
    add up.

    Without weights probabilities are summed in fixed point (shape (2, k · bins)) and samples are
    counted, so the sum of parts is the same to the last bit in any order.
    """

    claim: Array
    true: Array
    weight: float  # of all samples
    k: int

    def __add__(self, other: Cells) -> Cells:
        return Cells(
            self.claim + other.claim, self.true + other.true, self.weight + other.weight, self.k
        )

    def mean_gap(self) -> float:
        """The class-wise ECE."""
        claim = from_fixed(self.claim) if self.claim.ndim == 2 else self.claim
        return float(np.abs(claim - self.true).sum() / self.weight / self.k)


def class_cells(preds: Predictions, bins: int = 15) -> Cells:
    """The sums behind `classwise_ece`, chunk by chunk.

    >>> round(class_cells(Predictions.from_probs([[0.8, 0.2]] * 5, [0] * 4 + [1])).mean_gap(), 1)
    0.0
    """
    check.at_least(bins, 1, "the number of bins")
    preds.needs_vector("classwise_ece")
    edges = equal_range(bins).edges()
    parts = (_cells(preds, rows, edges) for rows in chunks(preds.n, bins))
    return reduce(Cells.__add__, parts)


def _cells(preds: Predictions, part: slice, edges: Floats) -> Cells:
    """The sums of some rows. Of many classes most probabilities are in the first bin: those are
    summed as columns.
    """
    k, bins, weight = preds.values.shape[-1], len(edges) - 1, preds.weight
    cells, offset, labels = k * bins, np.arange(k, dtype=np.int64) * bins, preds.labels[part]
    own, where, later, of = (list[Array]() for _ in range(4))
    claim = np.zeros((2, cells), np.int64) if weight is None else np.zeros(cells)
    for rows in chunks(len(labels), k * preds.samples):
        p, y = _probs(preds, slice(part.start + rows.start, part.start + rows.stop)), labels[rows]
        own.append(_bins(p[np.arange(len(p)), y], edges) + offset[y])
        large = np.flatnonzero(p.ravel() > edges[1])
        later.append(p.ravel()[large])
        where.append(_bins(later[-1], edges) + offset[large % k])
        p.ravel()[large] = 0.0
        if weight is None:
            claim[:, ::bins] += fixed_columns(p)
        else:
            w = weight[part][rows]
            of.append(w[large // k])
            claim[::bins] += w @ p
    at, p, mine = np.concatenate(where), np.concatenate(later), np.concatenate(own)
    if weight is None:
        return Cells(
            claim + fixed_sums(at, p, cells),
            np.bincount(mine, minlength=cells),
            float(len(labels)),
            k,
        )
    claim += np.bincount(at, p * np.concatenate(of), cells)
    return Cells(claim, np.bincount(mine, weight[part], cells), float(weight[part].sum()), k)


def _probs(preds: Predictions, rows: slice) -> Floats:
    """The probabilities of some rows, in [0, 1]; those of logits without a second sum over the
    classes.
    """
    values = preds.values
    if preds.kind == "logits" and values.ndim == 2:
        p = values[rows].astype(np.float64)
        p -= preds.columns.max_logit[rows, None]
        np.exp(p, out=p)
        p *= preds.columns.max_prob[rows, None]
        return p
    part = values[:, rows] if values.ndim == 3 else values[rows]
    return mean_probs(Values(part, preds.kind == "logits"))


def _bins(p: Floats, edges: Floats) -> Ints:
    """The number of the bin (edge, next edge] of each p, 0 in the first: a guess that is a rounding
    off at most.
    """
    guess = (p * (len(edges) - 1)).astype(np.int64)
    np.minimum(guess, len(edges) - 2, out=guess)
    guess += p > edges[1:][guess]
    guess -= p <= edges[guess]
    return np.maximum(guess, 0, out=guess)


__all__ = ["classwise_ece", "muce", "uce"]
