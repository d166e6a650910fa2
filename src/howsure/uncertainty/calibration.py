"""Limits of calibration errors: sums in bins → both ends, and what a perfectly calibrated model
would show.

A bin's gap is mean claim minus accuracy. Every bin adds the size of its noise to an ECE, so plain
resampling lies above the truth. Here the noise is bounded from both sides: upwards |g + eps| >= |g|
+ sign(g) eps holds for any noise, and downwards a bin whose sign is not clear may be all noise.
"""

from __future__ import annotations

from functools import cached_property
from math import inf, sqrt
from typing import Literal

import numpy as np

from howsure._core.check import Bools, Floats
from howsure._core.frozen import frozen
from howsure.uncertainty.means import bent, student

__all__ = [
    "Bins",
    "ece_limits",
    "noise_floor",
    "over_limits",
    "rms_limits",
    "under_limits",
    "without_noise",
]

Limits = tuple[float, float]
Part = Literal["all", "over", "under"]
CLEAR = 3.5  # standard errors from which on the sign of a gap is taken as known
HALF_NORMAL = (
    0.7978845608,
    0.3633802276,
    0.2180136146,
)  # mean, variance and third central moment of |Z|
POSITIVE_PART = (0.3989422804, 0.3408450569, 0.3264584121)  # of max(0, Z)


@frozen(eq=False)
class Bins:
    """Samples, summed claims and right answers of each bin; `design` as many times fewer samples
    count.

    `squares` are the squared gaps of single samples, summed in each bin, where they are known.
    """

    count: Floats
    claim: Floats
    right: Floats
    design: float = 1.0
    squares: Floats | None = None

    @cached_property
    def share(self) -> Floats:
        """Of the samples."""
        return self.count / self.count.sum()

    @cached_property
    def gap(self) -> Floats:
        """Mean claim minus accuracy; positive is over-confident."""
        return (self.claim - self.right) / self.count

    @property
    def size(self) -> Floats:
        """Effective samples."""
        return self.count / self.design

    @cached_property
    def claimed(self) -> Floats:
        """Variance of an outcome if claims are true, at the mean claim of the bin, which is never
        too small.
        """
        mean = np.clip(self.claim / self.count, 0.0, 1.0)
        return mean * (1 - mean)

    @cached_property
    def shrunk(self) -> Floats:
        """Variance of an outcome, the accuracy shrunk by two imagined samples."""
        p = (self.right / self.design + 1) / (self.size + 2)
        return p * (1 - p)

    @cached_property
    def seen(self) -> Floats:
        """Variance of the gap of single samples, as it was seen: that of outcomes alone where
        claims are forgotten.
        """
        accuracy = np.clip(self.right / self.count, 0.0, 1.0)
        if self.squares is None:
            return accuracy * (1 - accuracy)
        return np.maximum(0.0, self.squares / self.count - self.gap**2)

    @cached_property
    def differing(self) -> Floats:
        """The same with the accuracy shrunk by two imagined samples."""
        accuracy = np.clip(self.right / self.count, 0.0, 1.0)
        return np.maximum(0.0, self.shrunk + self.seen - accuracy * (1 - accuracy))

    @cached_property
    def error(self) -> Floats:
        """Standard error of each gap, times the bin's share."""
        return self.share * np.sqrt(self.differing / self.size)

    @cached_property
    def third(self) -> Floats:
        """Third central moment of each gap: that of the accuracy, shrunk, with the other sign."""
        p = (self.right / self.design + 1) / (self.size + 2)
        return -self.shrunk * (1 - 2 * p) / self.size**2

    @cached_property
    def null_error(self) -> Floats:
        """The same where the gap may be nothing but noise."""
        return self.share * np.sqrt(np.maximum(self.claimed, self.shrunk) / self.size)

    @cached_property
    def sign(self) -> Floats:
        """+1 clearly over-confident, −1 clearly under-confident, 0 unclear."""
        clear = np.abs(self.share * self.gap) > CLEAR * self.null_error
        return np.where(clear, np.sign(self.gap), 0.0)


def ece_limits(b: Bins, half: float) -> Limits:
    """Limits of the ECE at these bins.

    >>> low, high = ece_limits(Bins(np.array([500.0]), np.array([450.0]), np.array([400.0])), 0.025)
    >>> low < 0.1 < high
    True
    """
    size, unclear = b.share * np.abs(b.gap), b.sign == 0
    return _limits(b, size, np.ones(len(size), dtype=bool), unclear, HALF_NORMAL, half)


def over_limits(b: Bins, half: float) -> Limits:
    """Limits of the over-confident part; bins that are clearly under-confident have no share in it."""
    return _limits(
        b, b.share * np.maximum(b.gap, 0.0), b.sign >= 0, b.sign == 0, POSITIVE_PART, half
    )


def under_limits(b: Bins, half: float) -> Limits:
    """Limits of the under-confident part."""
    return _limits(
        b, b.share * np.maximum(-b.gap, 0.0), b.sign <= 0, b.sign == 0, POSITIVE_PART, half
    )


def _limits(
    b: Bins, size: Floats, counts: Bools, unclear: Bools, noise: Moments, half: float
) -> Limits:
    """Of many bins some are noise, which makes up for what is unseen; bins that follow the sample
    may be few.

    The upper end is bent by the skewness of the accuracies (Hall 1992).
    """
    value, n = float(size.sum()), float(b.size.sum())
    spread = (
        max(0.0, float((size**2 / b.share).sum()) - value**2) / n
    )  # shares of the bins are observed, not known
    clear = counts & ~unclear
    variance = float((b.error[clear] ** 2).sum()) + spread
    right = float(b.right.sum())
    rare = (
        inf if b.squares is None else max(1.0, min(right, float(b.count.sum()) - right) / b.design)
    )
    error = b.error if b.squares is None else np.maximum(b.error, b.null_error)
    above = variance + float((error[unclear] ** 2).sum())
    third = float((np.sign(b.gap) * b.share**3 * b.third)[counts].sum())
    skew = max(0.0, third) / above**1.5 if above > 0 else 0.0
    upper = value - bent(-student(rare, half), skew) * sqrt(above)
    excess = _upper_quantile(b.null_error[unclear], noise, variance, half)
    return max(0.0, value - excess), min(1.0, upper)


Moments = tuple[float, float, float]


def _upper_quantile(scale: Floats, noise: Moments, variance: float, half: float) -> float:
    """Upper quantile of a sum of scaled one-sided noises and one normal, by three moments (a
    shifted gamma).
    """
    first, second, third = (m * float((scale**i).sum()) for i, m in enumerate(noise, start=1))
    return first + three_moments(second + variance, third, 1 - half)


def three_moments(variance: float, third: float, at: float) -> float:
    """Quantile of the shifted gamma distribution with mean 0, this variance and this third central
    moment.

    >>> round(three_moments(1.0, 0.0, 0.975), 2)
    1.96
    """
    from scipy.special import gammaincinv, ndtri

    sd = sqrt(variance)
    skew = third / sd**3 if sd > 0 else 0.0
    if skew < 1e-3:
        return float(ndtri(at)) * sd
    shape = 4 / skew**2
    return sd * (float(gammaincinv(shape, at)) - shape) / sqrt(shape)


def rms_limits(b: Bins, half: float) -> Limits:
    """Limits of the root mean squared gap at these bins (`debiased_ece`, `rms_calibration_error`).

    The lower end is that of the unbiased estimate of its square. The upper end is the root of the
    plain square, plus the noise along the gaps that were seen: |g + eps| >= |g| + eps·g/|g| holds
    for any noise.
    """
    from scipy.special import ndtri

    w, g, noise = b.share, b.gap, b.differing / b.size
    square = float((w * g**2).sum())
    spread = max(0.0, float((w * g**4).sum()) - square**2) / float(b.size.sum())
    along = (
        (float((w**2 * g**2 * noise).sum()) + spread / 4) / square
        if square > 0
        else float((w * noise).sum())
    )
    high = sqrt(square) - float(ndtri(half)) * sqrt(along)
    many = b.size >= 2  # one sample does not tell its noise
    w, g, noise = w[many], g[many], noise[many]
    true = np.maximum(0.0, g**2 - noise)
    below = float((w**2 * (2 * noise**2 + 4 * true * noise)).sum()) + spread
    third = float((w**3 * (8 * noise**3 + 24 * true * noise**2)).sum())
    bias = float((w * b.seen[many] / (b.size[many] - 1)).sum())
    low = float((w * g**2).sum()) - bias - three_moments(below, third, 1 - half)
    return sqrt(max(0.0, low)), min(1.0, high)


def without_noise(b: Bins, part: Part) -> float:
    """The error with the expected noise of each bin taken off: all of it at a gap of 0, none at a
    clear one.
    """
    first = (HALF_NORMAL if part == "all" else POSITIVE_PART)[0]
    signed = b.share * (-b.gap if part == "under" else b.gap)
    size = np.abs(signed) if part == "all" else np.maximum(signed, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(b.null_error > 0, signed / b.null_error, np.inf)
    noise = (
        first * b.null_error * np.sqrt(2) * np.exp(-z * z / 2)
    )  # its mean is that of the noise where there is no gap
    return max(0.0, float((size - noise).sum()))


def noise_floor(b: Bins) -> float:
    """The ECE that a perfectly calibrated model shows on average with these claims and so many
    samples.

    The mean absolute deviation of a binomial number (De Moivre) at the mean claim of each bin.

    >>> round(noise_floor(Bins(np.array([1.0]), np.array([0.5]), np.array([1.0]))), 3)
    0.5
    """
    from scipy.special import gammaln, xlogy

    n, p = b.size, np.clip(b.claim / b.count, 0.0, 1.0)
    v = np.minimum(np.floor(n * p) + 1, n)
    log = (
        gammaln(n + 1) - gammaln(v + 1) - gammaln(n - v + 1) + xlogy(v, p) + xlogy(n - v + 1, 1 - p)
    )
    return float((b.share * 2 * v * np.exp(log) / n).sum())
