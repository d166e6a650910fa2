"""Is the score a probability? Binned calibration errors; the score itself is the claim."""

from __future__ import annotations

from functools import partial

import numpy as np

from howsure._core.check import Floats
from howsure.binning import Binning, adaptive, equal_range, equal_size, sums_in
from howsure.curves import bin_table
from howsure.metrics.binned_bounds import (
    debiased_bounds,
    ece_bounds,
    mce_bounds,
    over_bounds,
    under_bounds,
)
from howsure.metrics.facts import metric
from howsure.tallies.tally import Sums, Tally, needs_claims, needs_whole_counts


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
    >>> round(ece(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])), 1)
    0.1
    """
    return float(_ece(_binned(t, bins)))


def _rms(s: Sums) -> Floats:
    return np.sqrt((_surplus(s) ** 2 / s.count).sum(axis=-1) / s.count.sum(axis=-1))


@metric(better="lower", bounds=(0, 1), of_bins=_rms)
def rms_calibration_error(t: Tally, bins: Binning = equal_size(15)) -> float:
    r"""Root mean square gap between confidence and accuracy.

    .. math:: \sqrt{\sum_j w_j (\mathrm{conf}_j - \mathrm{acc}_j)^2}

    Not debiased (`debiased_ece` is). Range [0, 1], 0 is perfect; large gaps count more than in `ece`.
    Nguyen & O'Connor 2015; Hendrycks et al. 2019.

    >>> from howsure import tally
    >>> round(rms_calibration_error(tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])), 3)
    0.1
    """
    return float(_rms(_binned(t, bins)))


@metric(better="lower", bounds=(0, 1), smooth=False, certify=mce_bounds)
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
    r"""The part of `ece` from bins that claim too much, :math:`\sum_j \frac{n_j}{n}
    \max(\mathrm{gap}_j, 0)`.

    over − under is the signed error, over + under the ECE. Range [0, 1], 0 is perfect. Ding et al.
    2020, figure 2.

    >>> from howsure import tally
    >>> over_confidence(tally([0.9, 0.9], correct=[1, 0]))
    0.4
    """
    return float(_over(_binned(t, bins)))


@metric(better="lower", bounds=(0, 1), of_bins=_under, certify=under_bounds)
def under_confidence(t: Tally, bins: Binning = equal_range(15)) -> float:
    r"""The part of `ece` from bins that claim too little, :math:`\sum_j \frac{n_j}{n}
    \max(-\mathrm{gap}_j, 0)`.

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


__all__ = [
    "aece",
    "amce",
    "debiased_ece",
    "ece",
    "mce",
    "over_confidence",
    "rms_calibration_error",
    "signed_calibration_error",
    "under_confidence",
]
