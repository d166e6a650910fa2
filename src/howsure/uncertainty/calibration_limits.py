"""Limits of calibration errors: sums in bins → both ends, and what a perfectly calibrated model
would show.

A bin's gap is mean claim minus accuracy. Every bin adds the size of its noise to an ECE, so plain
resampling lies above the truth. Here the noise is bounded from both sides: upwards |g + eps| >= |g|
+ sign(g) eps holds for any noise, and downwards a bin whose sign is not clear may be all noise.
"""

from __future__ import annotations

from functools import cached_property
from math import inf, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from howsure._core.checks import Floats
from howsure._core.frozen import frozen
from howsure.uncertainty.means import Limits, invert_hall, student_quantile

GapPart: TypeAlias = Literal["all", "over", "under"]  # which gaps an error counts

CLEAR_SIGN_ERRORS = 3.5  # standard errors beyond which the sign of a gap is taken as known


class NoiseMoments(NamedTuple):
    """Mean, variance and third central moment of a one-sided standard noise."""

    mean: float
    variance: float
    third: float


HALF_NORMAL = NoiseMoments(mean=0.7978845608, variance=0.3633802276, third=0.2180136146)  # |Z|
POSITIVE_PART = NoiseMoments(
    mean=0.3989422804, variance=0.3408450569, third=0.3264584121
)  # max(0, Z)


@frozen(eq=False)
class BinCounts:
    """Samples, summed claims and right answers of each bin.

    `design` is the design effect: as many times fewer samples count. `squares` are the squared gaps
    of single samples, summed in each bin, where they are known; `graded` the sample variances of
    losses that are not 0 or 1.
    """

    count: Floats
    claim: Floats
    right: Floats
    design: float = 1.0
    squares: Floats | None = None
    graded: Floats | None = None

    @cached_property
    def share(self) -> Floats:
        """The share of the samples in each bin."""
        return self.count / self.count.sum()

    @cached_property
    def gap(self) -> Floats:
        """Mean claim minus accuracy; positive is over-confident."""
        return (self.claim - self.right) / self.count

    @property
    def size(self) -> Floats:
        """Effective samples in each bin."""
        return self.count / self.design

    @cached_property
    def _shrunk_accuracy(self) -> Floats:
        """Accuracy with one right and one wrong answer imagined, so that it is never 0 or 1."""
        return (self.right / self.design + 1) / (self.size + 2)

    @cached_property
    def claimed_variance(self) -> Floats:
        """Variance of an outcome if claims are true.

        It is taken at the mean claim of the bin, where it is never too small.
        """
        if self.graded is not None:  # claims say nothing about how grades vary
            return self.graded
        mean = np.clip(self.claim / self.count, 0.0, 1.0)
        return mean * (1 - mean)

    @cached_property
    def shrunk_variance(self) -> Floats:
        """Variance of an outcome at the shrunk accuracy."""
        if self.graded is not None:
            return self.graded
        return self._shrunk_accuracy * (1 - self._shrunk_accuracy)

    @cached_property
    def _plain_variance(self) -> Floats:
        if self.graded is not None:
            return self.graded * (1 - 1 / np.maximum(self.count, 2))
        accuracy = np.clip(self.right / self.count, 0.0, 1.0)
        return accuracy * (1 - accuracy)

    @cached_property
    def observed_variance(self) -> Floats:
        """Variance of the gaps of single samples; of outcomes alone where claims are forgotten."""
        if self.squares is None:
            return self._plain_variance
        return np.maximum(0.0, self.squares / self.count - self.gap**2)

    @cached_property
    def gap_variance(self) -> Floats:
        """The same at the shrunk accuracy."""
        return np.maximum(0.0, self.shrunk_variance + self.observed_variance - self._plain_variance)

    @cached_property
    def error(self) -> Floats:
        """Standard error of each gap, times the bin's share."""
        return self.share * np.sqrt(self.gap_variance / self.size)

    @cached_property
    def null_error(self) -> Floats:
        """The same where the gap may be nothing but noise."""
        variance = np.maximum(self.claimed_variance, self.shrunk_variance)
        return self.share * np.sqrt(variance / self.size)

    @cached_property
    def third_moment(self) -> Floats:
        """Third central moment of each gap: that of the shrunk accuracy, with the other sign."""
        return -self.shrunk_variance * (1 - 2 * self._shrunk_accuracy) / self.size**2

    @cached_property
    def sign(self) -> Floats:
        """+1 clearly over-confident, −1 clearly under-confident, 0 unclear."""
        clear = np.abs(self.share * self.gap) > CLEAR_SIGN_ERRORS * self.null_error
        return np.where(clear, np.sign(self.gap), 0.0)


def compute_error_limits(bins: BinCounts, half: float, part: GapPart = "all") -> Limits:
    """Limits of the ECE at these bins, or of its over- or under-confident part.

    Of many bins some are noise, which makes up for what is unseen; bins that follow the sample may
    be few. The upper end is bent by the skewness of the accuracies (Hall 1992).

    >>> bins = BinCounts(count=np.array([500.0]), claim=np.array([450.0]), right=np.array([400.0]))
    >>> low, high = compute_error_limits(bins, 0.025)
    >>> low < 0.1 < high
    True
    """
    signed, noise = _take_part(bins, part)
    if part == "all":
        size, counts = np.abs(signed), np.ones(len(signed), dtype=bool)
    elif part == "over":
        size, counts = np.maximum(signed, 0.0), bins.sign >= 0
    else:
        size, counts = np.maximum(signed, 0.0), bins.sign <= 0
    value = float(size.sum())
    unclear = bins.sign == 0
    # The shares of the bins are observed, not known, which spreads the value further.
    spread = max(0.0, float((size**2 / bins.share).sum()) - value**2) / float(bins.size.sum())
    variance = float((bins.error[counts & ~unclear] ** 2).sum()) + spread

    freedom, error = inf, bins.error
    if bins.squares is not None:
        right = float(bins.right.sum())
        rarer = min(right, float(bins.count.sum()) - right)
        freedom = max(1.0, rarer / bins.design)
        error = np.maximum(bins.error, bins.null_error)
    above = variance + float((error[unclear] ** 2).sum())
    third = float((np.sign(bins.gap) * bins.share**3 * bins.third_moment)[counts].sum())
    skew = 0.0
    if above > 0:
        skew = max(0.0, third) / above**1.5
    high = value - invert_hall(-student_quantile(freedom, half), skew) * sqrt(above)

    # Unclear bins may be all noise: the lower end takes off an upper quantile of its sum.
    scale = bins.null_error[unclear]
    mean = noise.mean * float(scale.sum())
    noise_variance = noise.variance * float((scale**2).sum())
    noise_third = noise.third * float((scale**3).sum())
    excess = mean + shifted_gamma_quantile(noise_variance + variance, noise_third, 1 - half)
    return max(0.0, value - excess), min(1.0, high)


def _take_part(bins: BinCounts, part: GapPart) -> tuple[Floats, NoiseMoments]:
    """Gaps times shares, positive where they count to this part, and the noise of one of them."""
    signed = bins.share * bins.gap
    if part == "all":
        return signed, HALF_NORMAL
    if part == "under":
        signed = -signed
    return signed, POSITIVE_PART


def shifted_gamma_quantile(variance: float, third: float, at: float) -> float:
    """Quantile of the shifted gamma distribution of mean 0 with these second and third moments.

    >>> round(shifted_gamma_quantile(1.0, 0.0, 0.975), 2)
    1.96
    """
    from scipy.special import gammaincinv, ndtri

    sd = sqrt(variance)
    skew = 0.0
    if sd > 0:
        skew = third / sd**3
    if skew < 1e-3:
        return float(ndtri(at)) * sd
    shape = 4 / skew**2
    return sd * (float(gammaincinv(shape, at)) - shape) / sqrt(shape)


def compute_rms_limits(bins: BinCounts, half: float) -> Limits:
    """Limits of the root mean squared gap at these bins (`debiased_ece`, `rms_calibration_error`).

    The lower end is that of the unbiased estimate of its square. The upper end is the root of the
    plain square, plus the noise along the gaps that were seen: |g + eps| >= |g| + eps·g/|g| holds
    for any noise.
    """
    from scipy.special import ndtri

    share, gap, noise = bins.share, bins.gap, bins.gap_variance / bins.size
    square = float((share * gap**2).sum())
    spread = max(0.0, float((share * gap**4).sum()) - square**2) / float(bins.size.sum())
    if square > 0:
        along = (float((share**2 * gap**2 * noise).sum()) + spread / 4) / square
    else:
        along = float((share * noise).sum())
    high = sqrt(square) - float(ndtri(half)) * sqrt(along)

    several = bins.size >= 2  # one sample does not tell its noise
    share, gap, noise = share[several], gap[several], noise[several]
    true = np.maximum(0.0, gap**2 - noise)
    variance = float((share**2 * (2 * noise**2 + 4 * true * noise)).sum()) + spread
    third = float((share**3 * (8 * noise**3 + 24 * true * noise**2)).sum())
    bias = float((share * bins.observed_variance[several] / (bins.size[several] - 1)).sum())
    unbiased = float((share * gap**2).sum()) - bias
    low = unbiased - shifted_gamma_quantile(variance, third, 1 - half)
    return sqrt(max(0.0, low)), min(1.0, high)


def subtract_noise(bins: BinCounts, part: GapPart) -> float:
    """The error with the expected noise of each bin taken off: all of it at a gap of 0, none at a
    clear one.
    """
    signed, moments = _take_part(bins, part)
    size = np.maximum(signed, 0.0)
    if part == "all":
        size = np.abs(signed)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(bins.null_error > 0, signed / bins.null_error, np.inf)
    # Where there is no gap, z is normal, and the mean of this weight is that of the noise.
    noise = moments.mean * bins.null_error * np.sqrt(2) * np.exp(-z * z / 2)
    return max(0.0, float((size - noise).sum()))


def compute_noise_floor(bins: BinCounts) -> float:
    """The ECE that a perfectly calibrated model shows on average with these claims and so many
    samples.

    The mean absolute deviation of a binomial number (De Moivre) at the mean claim of each bin.

    >>> bin = BinCounts(count=np.array([1.0]), claim=np.array([0.5]), right=np.array([1.0]))
    >>> round(compute_noise_floor(bin), 3)
    0.5
    """
    from scipy.special import gammaln, xlogy

    if bins.graded is not None:
        return HALF_NORMAL.mean * float(bins.null_error.sum())
    n = bins.size
    p = np.clip(bins.claim / bins.count, 0.0, 1.0)
    v = np.minimum(np.floor(n * p) + 1, n)
    choose = gammaln(n + 1) - gammaln(v + 1) - gammaln(n - v + 1)
    log = choose + xlogy(v, p) + xlogy(n - v + 1, 1 - p)
    return float((bins.share * 2 * v * np.exp(log) / n).sum())
