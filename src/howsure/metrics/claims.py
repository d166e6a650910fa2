"""Is the score a probability? Numbers that need no bins; the score itself is the claim."""

from __future__ import annotations

from math import inf

import numpy as np

from howsure.metrics.binned_bounds import brier_bounds, nll_bounds
from howsure.metrics.facts import metric
from howsure.tallies.tally import Tally, needs_claims

GRID = 1 << 13


@metric(
    better="lower",
    bounds=(0, 1),
    smooth=False,
    certify="its bandwidth is a fixed point of all single scores",
)
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

    A proper score of the confidence alone. Range [0, 1], 0 is perfect. Brier 1950. See also:
    `brier`.

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
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(right > 0, -right * np.log(r), 0.0) + np.where(
                wrong > 0, -wrong * np.log1p(-r), 0.0
            )
        total += float(cost.sum())
    return total / t.n


__all__ = ["correctness_brier", "correctness_nll", "smooth_ece"]
