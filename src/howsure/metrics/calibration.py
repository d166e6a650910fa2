"""Is the score a probability? Binned calibration errors; the score itself is the claim."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from howsure import _check as check
from howsure._check import Floats
from howsure._columns import Values, chunks, mean_probs
from howsure._tally import Sums, Tally, needs_claims, needs_whole_counts
from howsure.binning import Binning, adaptive, equal_range, equal_size, sums_in
from howsure.curves import bin_table, uncertain_tally
from howsure.metrics._binned_bounds import (
    brier_bounds,
    debiased_bounds,
    ece_bounds,
    mce_bounds,
    nll_bounds,
    over_bounds,
    under_bounds,
)
from howsure.metrics._facts import metric
from howsure.outcomes import Outcomes
from howsure.predictions import Predictions
from howsure.scores.softmax import normalised_entropy


def _binned(t: Tally, bins: Binning) -> Sums:
    needs_claims(t, "calibration")
    return sums_in(bins, t)


def _surplus(s: Sums) -> Floats:
    """Right answers claimed minus right answers given, per bin: count times gap."""
    return s.claim - (s.count - s.loss)


# Numbers of bin sums, bins along the last axis, so that they also take many drawn tables at once.


def _ece(s: Sums) -> Floats:
    return np.abs(_surplus(s)).sum(axis=-1) / s.count.sum(axis=-1)


def _over(s: Sums) -> Floats:
    return _surplus(s).clip(min=0).sum(axis=-1) / s.count.sum(axis=-1)


def _under(s: Sums) -> Floats:
    return (-_surplus(s)).clip(min=0).sum(axis=-1) / s.count.sum(axis=-1)


def _debiased(s: Sums) -> Floats:
    many = s.count >= 2
    n = np.where(many, s.count, 2)
    right = s.count - s.loss
    inside = (_surplus(s) ** 2 / n - right * s.loss / n / (n - 1)) * many
    found = np.sqrt(np.maximum(0.0, inside.sum(axis=-1) / s.count.sum(axis=-1)))
    return np.where(many.any(axis=-1), found, np.nan)


@metric(better="lower", bounds=(0, 1), of_bins=_ece, certify=ece_bounds)
def ece(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""Expected calibration error: the mean gap between confidence and accuracy, bin by bin.

    .. math:: \mathrm{ECE} = \sum_j \frac{n_j}{n} \, |\mathrm{conf}_j - \mathrm{acc}_j|

    Empty bins do not count; ties are never split. Range [0, 1], 0 is perfect. Biased upwards with few samples
    (`debiased_ece`) and blind to gaps of opposite sign inside a bin (`unique()` bins are the upper end).
    Ding et al. 2019, eq. 1; Naeini et al. 2015.

    >>> from howsure import tally
    >>> ece(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0]))
    0.1
    """
    return float(_ece(_binned(t, bins)))


@metric(better="lower", bounds=(0, 1), smooth=False, certify=mce_bounds)
def mce(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""Maximum calibration error: the largest gap, :math:`\max_j |\mathrm{conf}_j - \mathrm{acc}_j|`.

    Over non-empty bins. Range [0, 1], 0 is perfect. One nearly empty bin can decide it: prefer `amce`.
    Ding et al. 2019, eq. 2.

    >>> from howsure import tally
    >>> mce(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0]))
    0.1
    """
    return float(np.abs(bin_table(t, bins).gap).max())


@metric(better="lower", bounds=(0, 1), of_bins=_ece, certify=partial(ece_bounds, bins=adaptive()))
def aece(t: Tally, bins: Binning = adaptive()) -> float:
    r"""`ece` with Ding's adaptive bins: as narrow as the samples allow.

    Range [0, 1], 0 is perfect. Ding et al. 2020, section 4.2. See also: `binning.adaptive`.

    >>> from howsure import tally
    >>> aece(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0]))
    0.0
    """
    return ece(t, bins)


@metric(better="lower", bounds=(0, 1), smooth=False, certify=partial(mce_bounds, bins=adaptive()))
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


@metric(better="lower", bounds=(0, 1), of_bins=_over, certify=over_bounds)
def over_confidence(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""The part of `ece` from bins that claim too much, :math:`\sum_j \frac{n_j}{n} \max(\mathrm{gap}_j, 0)`.

    over − under is the signed error, over + under the ECE. Range [0, 1], 0 is perfect. Ding et al. 2020, figure 2.

    >>> from howsure import tally
    >>> over_confidence(tally([0.9, 0.9], correct=[1, 0]))
    0.4
    """
    return float(_over(_binned(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_under, certify=under_bounds)
def under_confidence(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""The part of `ece` from bins that claim too little, :math:`\sum_j \frac{n_j}{n} \max(-\mathrm{gap}_j, 0)`.

    Range [0, 1], 0 is perfect. Ding et al. 2020, figure 2. See also: `over_confidence`.

    >>> from howsure import tally
    >>> under_confidence(tally([0.6, 0.6], correct=[1, 1]))
    0.4
    """
    return float(_under(_binned(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_debiased, certify=debiased_bounds)
def debiased_ece(t: Tally, bins: Binning = equal_size(15)) -> float:
    r"""L2 calibration error with the variance of the accuracies subtracted.

    .. math:: \sqrt{\max\Big(0, \sum_j w_j \Big[g_j^2 - \frac{a_j (1 - a_j)}{n_j - 1}\Big]\Big)}

    with gap g and accuracy a, over bins of at least two samples; nan where there are none. Range [0, 1],
    0 is perfect. Near 0 for a calibrated model, where the ECE is not. Kumar, Liang & Ma 2019.

    >>> from howsure import tally
    >>> debiased_ece(tally([0.5] * 4, correct=[1, 1, 0, 0]))
    0.0
    """
    needs_whole_counts(t, "debiased_ece", "ece")
    return float(_debiased(_binned(t, bins)))


GRID = 1 << 13


@metric(better="lower", bounds=(0, 1), smooth=False, certify="its bandwidth is a fixed point of all single scores")
def smooth_ece(t: Tally) -> float:
    r"""Calibration error without bins: residuals smoothed by a reflected Gaussian kernel.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i K_\sigma(u, r_i)\,(c_i - r_i) \Big| du

    at the bandwidth where it equals :math:`\sigma` itself. Residuals are put on a grid of 8,192 cells; the
    reflected kernel is diagonal in the cosine basis. Range [0, 1], 0 is perfect. Błasiok & Nakkiran 2023.

    >>> from howsure import tally
    >>> smooth_ece(tally([0.8] * 10, correct=[1] * 10))
    0.2
    """
    needs_claims(t, "smooth_ece")
    mass = np.zeros(GRID)
    for r, count, wrong in t.pieces():
        cell = np.minimum((r * GRID).astype(np.int64), GRID - 1)
        mass += np.bincount(cell, count - wrong - r * count, minlength=GRID)
    mass /= t.n
    wave = np.fft.rfft(np.concatenate((mass, mass[::-1])))
    damp = -0.5 * (np.pi * np.arange(len(wave))) ** 2

    def smoothed(sigma: float) -> float:
        field = np.fft.irfft(wave * np.exp(damp * sigma**2))[:GRID]
        return float(np.abs(field).sum())

    low, high = 0.0, 1.0
    for _ in range(40):  # smoothed() falls in sigma, so the fixed point is where it crosses sigma
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    return smoothed(high)


@metric(better="lower", bounds=(0, 1), certify=brier_bounds)
def correctness_brier(t: Tally) -> float:
    r"""Mean squared distance between claim and outcome, :math:`\frac1n \sum_i (r_i - c_i)^2`.

    A proper score of the confidence alone. Range [0, 1], 0 is perfect. Brier 1950. See also: `brier`.

    >>> from howsure import tally
    >>> correctness_brier(tally([0.9, 0.6], correct=[1, 0]))
    0.185
    """
    needs_claims(t, "correctness_brier")
    total = 0.0
    for r, count, wrong in t.pieces():
        total += float(((count - wrong) * (1 - r) ** 2 + wrong * r**2).sum())
    return total / t.n


@metric(better="lower", bounds=(0, inf), certify=nll_bounds)
def correctness_nll(t: Tally) -> float:
    r"""Mean log loss of the confidence: :math:`-\log r` where right, :math:`-\log(1-r)` where wrong.

    inf where a claim of exactly 1 is wrong or of exactly 0 is right. Range [0, inf), 0 is perfect. Good 1952.

    >>> from howsure import tally
    >>> correctness_nll(tally([0.5], correct=[1]))
    0.693
    """
    needs_claims(t, "correctness_nll")
    total = 0.0
    for r, count, wrong in t.pieces():
        right = count - wrong
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(right > 0, -right * np.log(r), 0.0) + np.where(wrong > 0, -wrong * np.log1p(-r), 0.0)
        total += float(cost.sum())
    return total / t.n


def _uncertain(preds: Predictions, bins: int = 15) -> tuple[Outcomes, Callable[[Tally], float]]:
    outcomes = Outcomes.of(preds, normalised_entropy(preds), correct=~preds.correct)
    return outcomes, partial(ece, bins=equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", through=_uncertain)
def uce(preds: Predictions, bins: int = 15) -> float:
    r"""Uncertainty calibration error: mean gap between error rate and normalised entropy, in M equal bins.

    .. math:: \mathrm{UCE} = \sum_m \frac{n_m}{n} \, |\mathrm{err}_m - \mathrm{uncert}_m|

    Entropy 0 belongs to the first bin. Range [0, 1]. UCE = 0 and ECE = 0 are different and in general
    incompatible goals: p = 0.9 in two classes with 90 % right has ECE 0 and UCE 0.369. Laves et al. 2019, eq. 7.

    >>> uce(Predictions.from_probs([[0.9, 0.1]] * 10, [0] * 9 + [1]))
    0.369
    """
    return ece(uncertain_tally(preds), equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", smooth=False)
def muce(preds: Predictions, bins: int = 15) -> float:
    r"""The largest gap of `uce`, :math:`\max_m |\mathrm{err}_m - \mathrm{uncert}_m|` over non-empty bins.

    Range [0, 1], 0 is perfect. Laves et al. 2019.

    >>> muce(Predictions.from_probs([[0.5, 0.5]], [1]))
    0.0
    """
    return mce(uncertain_tally(preds), equal_range(bins))


@metric(better="lower", bounds=(0, 1), takes="predictions", smooth=False)
def classwise_ece(preds: Predictions, bins: int = 15) -> float:
    r"""`ece` of each class's probability against that class, in M equal bins, averaged over the classes.

    One pass of bin sums, no sort. Range [0, 1], 0 is perfect. Kull et al. 2019.

    >>> classwise_ece(Predictions.from_probs([[0.8, 0.2]] * 5, [0] * 4 + [1]))
    0.0
    """
    check.at_least(bins, 1, "the number of bins")
    preds.needs_vector("classwise_ece")
    k, labels = preds.values.shape[-1], preds.labels
    weight = np.ones(preds.n) if preds.weight is None else preds.weight
    gap = np.zeros(k * bins)  # summed claim minus summed outcome per class and bin
    edges = equal_range(bins).edges()[1:-1]
    offset = np.arange(k) * bins
    for rows in chunks(preds.n, k * preds.samples):
        part = preds.values[:, rows] if preds.samples > 1 or preds.values.ndim == 3 else preds.values[rows]
        p = np.clip(mean_probs(Values(part, preds.kind == "logits")), 0.0, 1.0)
        where = np.searchsorted(edges, p.ravel(), side="left").reshape(p.shape) + offset
        w = weight[rows]
        gap += np.bincount(where.ravel(), (p * w[:, None]).ravel(), minlength=k * bins)
        of_label = where[np.arange(len(p)), labels[rows]]
        gap -= np.bincount(of_label, w, minlength=k * bins)
    return float(np.abs(gap).sum() / weight.sum() / k)


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
    "signed_calibration_error",
    "smooth_ece",
    "uce",
    "under_confidence",
]
