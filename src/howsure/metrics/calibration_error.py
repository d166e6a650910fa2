"""Is the score a probability? Calibration errors over bins of the score, which is itself the claim;
errors that need no bins; and those of predictions: of their entropy, and of every class.
"""

from __future__ import annotations

from functools import partial, reduce
from math import inf

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.binning import (
    Binning,
    adaptive,
    compute_grade_variance,
    equal_range,
    equal_size,
    sum_bins,
)
from howsure.curves.reliability import bin_table, sum_squared_errors, tally_uncertainty
from howsure.metrics.binary import positive_tally
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.predictions.columns import RawValues, average_probs, iterate_chunks
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.scores import normalised_entropy
from howsure.tallies.tally import RangeSums, Tally, needs_claims, needs_whole_counts

SMOOTH_CELLS = 1 << 13  # of the grid on which smooth_ece smooths residuals


# ---- over bins
# Numbers of bin sums first. Bins stand along the last axis, so that many resampled tables are
# computed at once.


def _sum_bins(t: Tally, bins: Binning) -> RangeSums:
    needs_claims(t, "calibration")
    return sum_bins(bins, t)


def _compute_surplus(s: RangeSums) -> Floats:
    """Right answers claimed minus right answers given, per bin: count times gap."""
    return s.claim - (s.count - s.loss)


def _compute_ece(s: RangeSums) -> Floats:
    return np.abs(_compute_surplus(s)).sum(axis=-1) / s.count.sum(axis=-1)


def _compute_over(s: RangeSums) -> Floats:
    return _compute_surplus(s).clip(min=0).sum(axis=-1) / s.count.sum(axis=-1)


def _compute_under(s: RangeSums) -> Floats:
    return (-_compute_surplus(s)).clip(min=0).sum(axis=-1) / s.count.sum(axis=-1)


def _compute_rms(s: RangeSums) -> Floats:
    return np.sqrt((_compute_surplus(s) ** 2 / s.count).sum(axis=-1) / s.count.sum(axis=-1))


def _compute_debiased(s: RangeSums) -> Floats:
    # A bin of one sample says nothing about its variance, so it adds nothing.
    several = s.count >= 2
    n = np.where(several, s.count, 2)
    if s.square is None:
        noise = (s.count - s.loss) * s.loss / n / (n - 1)
    else:
        noise = compute_grade_variance(n, s.loss, s.square)
    square = (_compute_surplus(s) ** 2 / n - noise) * several
    error = np.sqrt(np.maximum(0.0, square.sum(axis=-1) / s.count.sum(axis=-1)))
    return np.where(several.any(axis=-1), error, np.nan)


@metric(better="lower", bounds=(0, 1), of_bins=_compute_ece)
def ece(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""Expected calibration error: the mean gap between confidence and accuracy, bin by bin.

    .. math:: \mathrm{ECE} = \sum_j \frac{n_j}{n} \, |\mathrm{conf}_j - \mathrm{acc}_j|

    Empty bins do not count; ties are never split. Range [0, 1], 0 is perfect. Biased upwards with few samples
    (`debiased_ece`) and blind to gaps of opposite sign inside a bin (`unique()` bins are the upper end).
    Ding et al. 2019, eq. 1; Naeini et al. 2015.

    >>> from howsure import tally
    >>> round(ece(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])), 1)
    0.1
    """
    return float(_compute_ece(_sum_bins(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_compute_rms)
def rms_calibration_error(t: Tally, bins: Binning = equal_size(15)) -> float:
    r"""Root mean square gap between confidence and accuracy.

    .. math:: \sqrt{\sum_j w_j (\mathrm{conf}_j - \mathrm{acc}_j)^2}

    Not debiased (`debiased_ece` is). Range [0, 1], 0 is perfect; large gaps count more than in `ece`.
    Nguyen & O'Connor 2015; Hendrycks et al. 2019.

    >>> from howsure import tally
    >>> round(rms_calibration_error(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])), 3)
    0.1
    """
    return float(_compute_rms(_sum_bins(t, bins)))


@metric(better="lower", bounds=(0, 1), smooth=False)
def mce(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""Maximum calibration error: the largest gap, :math:`\max_j |\mathrm{conf}_j -
    \mathrm{acc}_j|`.

    Over non-empty bins. Range [0, 1], 0 is perfect. One nearly empty bin can decide it: prefer
    `amce`. Ding et al. 2019, eq. 2.

    >>> from howsure import tally
    >>> round(mce(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])), 1)
    0.1
    """
    return float(np.abs(bin_table(t, bins).gap).max())


@metric(better="lower", bounds=(0, 1), of_bins=_compute_ece)
def aece(t: Tally, bins: Binning = adaptive()) -> float:
    r"""`ece` with Ding's adaptive bins: as narrow as the samples allow.

    Range [0, 1], 0 is perfect. Ding et al. 2020, section 4.2. See also: `binning.adaptive`.

    >>> from howsure import tally
    >>> aece(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0]))
    0.0
    """
    return ece(t, bins)


@metric(better="lower", bounds=(0, 1), smooth=False)
def amce(t: Tally, bins: Binning = adaptive()) -> float:
    r"""`mce` with Ding's adaptive bins, none of which is too thin to read.

    Range [0, 1], 0 is perfect. Ding et al. 2020, section 4.2.

    >>> from howsure import tally
    >>> amce(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0]))
    0.0
    """
    return mce(t, bins)


@metric(better="zero", bounds=(-1, 1))
def signed_calibration_error(t: Tally) -> float:
    r"""Mean confidence minus accuracy: positive is over-confident.

    .. math:: \frac1n \sum_i (r_i - c_i)

    The same for all binnings. Range [-1, 1], 0 is best. Ding et al. 2020, figure 2.

    >>> from howsure import tally
    >>> signed_calibration_error(tally([0.9, 0.9], correct=[1, 0]))
    0.4
    """
    needs_claims(t, "signed_calibration_error")
    sums = t.between(np.array([0, t.n]))
    return float((sums.claim[0] - (t.n - t.total)) / t.n)


@metric(better="lower", bounds=(0, 1), of_bins=_compute_over)
def over_confidence(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""The part of `ece` from bins that claim too much, :math:`\sum_j \frac{n_j}{n}
    \max(\mathrm{gap}_j, 0)`.

    over − under is the signed error, over + under the ECE. Range [0, 1], 0 is perfect.
    Ding et al. 2020, figure 2.

    >>> from howsure import tally
    >>> over_confidence(tally([0.9, 0.9], correct=[1, 0]))
    0.4
    """
    return float(_compute_over(_sum_bins(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_compute_under)
def under_confidence(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""The part of `ece` from bins that claim too little, :math:`\sum_j \frac{n_j}{n}
    \max(-\mathrm{gap}_j, 0)`.

    Range [0, 1], 0 is perfect. Ding et al. 2020, figure 2. See also: `over_confidence`.

    >>> from howsure import tally
    >>> under_confidence(tally([0.6, 0.6], correct=[1, 1]))
    0.4
    """
    return float(_compute_under(_sum_bins(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_compute_debiased)
def debiased_ece(t: Tally, bins: Binning = equal_size(15)) -> float:
    r"""L2 calibration error with the variance of the accuracies subtracted.

    .. math:: \sqrt{\max\Big(0, \sum_j w_j \Big[g_j^2 - \frac{a_j (1 - a_j)}{n_j - 1}\Big]\Big)}

    with gap g and accuracy a, over bins of at least two samples; nan where there are none. Of graded
    answers the sample variance of the losses over n is subtracted. Range [0, 1], 0 is perfect.
    Near 0 for a calibrated model, where the ECE is not. Kumar, Liang & Ma 2019.

    >>> from howsure import tally
    >>> debiased_ece(tally([0.5] * 4, correct=[1, 1, 0, 0]))
    0.0
    """
    needs_whole_counts(t, "debiased_ece", "ece")
    return float(_compute_debiased(_sum_bins(t, bins)))


# ---- without bins


@metric(better="lower", bounds=(0, 1), smooth=False)
def smooth_ece(t: Tally) -> float:
    r"""Calibration error without bins: residuals smoothed by a reflected Gaussian kernel.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i K_\sigma(u, r_i)\,(c_i - r_i) \Big| du

    at the bandwidth where it equals :math:`\sigma` itself. Residuals are put on a grid of 8,192 cells; the
    reflected kernel is diagonal in the cosine basis. Range [0, 1], 0 is perfect. Błasiok & Nakkiran 2023.

    >>> from howsure import tally
    >>> round(smooth_ece(tally([0.8] * 10, correct=[1] * 10)), 1)
    0.2
    """
    needs_claims(t, "smooth_ece")
    residual = np.zeros(SMOOTH_CELLS)
    for r, count, wrong in t.pieces():
        cell = np.minimum((r * SMOOTH_CELLS).astype(np.int64), SMOOTH_CELLS - 1)
        residual += count_values(cell, count - wrong - r * count, minlength=SMOOTH_CELLS)
    residual /= t.n
    # Mirrored, the residuals are periodic: smoothing is then a product in the Fourier domain.
    wave = np.fft.rfft(np.concatenate((residual, residual[::-1])))
    damping = -0.5 * (np.pi * np.arange(len(wave))) ** 2

    def smooth(sigma: float) -> float:
        field = np.fft.irfft(wave * np.exp(damping * sigma**2))[:SMOOTH_CELLS]
        return float(np.abs(field).sum())

    # smooth() falls in sigma, so the fixed point is where it crosses sigma.
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if smooth(middle) > middle:
            low = middle
        else:
            high = middle
    return smooth(high)


@metric(better="lower", bounds=(0, 1))
def correctness_brier(t: Tally) -> float:
    r"""Mean squared distance between claim and outcome, :math:`\frac1n \sum_i (r_i - c_i)^2`.

    A proper score of the confidence alone. Range [0, 1], 0 is perfect. Brier 1950. See also:
    `brier`.

    >>> from howsure import tally
    >>> correctness_brier(tally([0.9, 0.6], correct=[1, 0]))
    0.185
    """
    needs_claims(t, "correctness_brier")
    return sum_squared_errors(t) / t.n


@metric(better="lower", bounds=(0, inf))
def correctness_nll(t: Tally) -> float:
    r"""Mean log loss of the confidence: :math:`-\log r` where right, :math:`-\log(1-r)` where
    wrong.

    inf where a claim of exactly 1 is wrong or of exactly 0 is right. Range [0, inf), 0 is perfect.
    Good 1952.

    >>> from howsure import tally
    >>> round(correctness_nll(tally([0.5], correct=[1])), 3)
    0.693
    """
    needs_claims(t, "correctness_nll")
    total = 0.0
    for r, count, wrong in t.pieces():
        right = count - wrong
        # 0 · log(0) is 0 here: a claim that nobody made costs nothing.
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(right > 0, -right * np.log(r), 0.0)
            cost += np.where(wrong > 0, -wrong * np.log1p(-r), 0.0)
        total += float(cost.sum())
    return total / t.n


# ---- of predictions


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

    Without weights samples are counted in whole numbers.
    """

    claim: Floats
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
        return float(np.abs(self.claim - self.true).sum() / self.weight / self.k)


def sum_classes(preds: Predictions, bins: int = 15) -> ClassBinSums:
    """The sums behind `classwise_ece`, chunk by chunk.

    >>> round(sum_classes(Predictions.from_probs([[0.8, 0.2]] * 5, [0] * 4 + [1])).mean_gap(), 1)
    0.0
    """
    checks.at_least(bins, 1, "the number of bins")
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
    claim = np.zeros(cells)
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
            claim[::bins] += p.sum(axis=0)
        else:
            w = weight[part][rows]
            large_weights.append(w[large // k])
            claim[::bins] += w @ p
    at, values = np.concatenate(large_cells), np.concatenate(large_probs)
    own = np.concatenate(label_cells)
    if weight is None:
        claim += count_values(at, values, cells)
        true = count_values(own, minlength=cells)
        return ClassBinSums(claim=claim, true=true, weight=float(len(labels)), k=k)
    w = weight[part]
    claim += count_values(at, values * np.concatenate(large_weights), cells)
    return ClassBinSums(claim=claim, true=count_values(own, w, cells), weight=float(w.sum()), k=k)


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
    return average_probs(RawValues(part, preds.kind == "logits", preds.rounded))


def find_bins(p: Floats, edges: Floats) -> Ints:
    """The number of the bin (edge, next edge] of each p; a p of 0 belongs to the first."""
    # The product is a rounding off at most, so one comparison with each edge repairs it.
    guess = (p * (len(edges) - 1)).astype(np.int64)
    np.minimum(guess, len(edges) - 2, out=guess)
    guess += p > edges[1:][guess]
    guess -= p <= edges[guess]
    return np.maximum(guess, 0, out=guess)


__all__ = [
    "aece",
    "amce",
    "classwise_ece",
    "correctness_brier",
    "correctness_nll",
    "debiased_ece",
    "ece",
    "mce",
    "muce",
    "over_confidence",
    "rms_calibration_error",
    "signed_calibration_error",
    "smooth_ece",
    "uce",
    "under_confidence",
]
