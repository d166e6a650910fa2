"""Harmonic numbers of real arguments: what sums over ranks turn into."""

from __future__ import annotations

import numpy as np

from howsure._check import Floats
from howsure._tally import Counts

EULER_GAMMA = 0.57721566490153286
SHIFT = 32  # from here on five terms of the asymptotic series are exact to 1e-15


def _tail(x: Floats) -> Floats:
    """H(x) - log(x) - gamma for x >= SHIFT."""
    q = 1.0 / (x * x)
    return 0.5 / x - q * (1 / 12 - q * (1 / 120 - q / 252))


def harmonic(x: Counts) -> Floats:
    r"""H(x) = 1 + 1/2 + ... + 1/x, continued to real x >= 0.

    >>> harmonic(np.array([1.0, 4.0])).round(12)
    array([1.        , 2.08333333])
    """
    x = np.asarray(x, dtype=np.float64)
    small = x < SHIFT
    if not small.any():
        return np.log(x) + EULER_GAMMA + _tail(x)
    far = np.where(small, x + SHIFT, x)
    out = np.log(far) + EULER_GAMMA + _tail(far)
    steps = x[small][:, None] + np.arange(1, SHIFT + 1)
    out[small] -= (1.0 / steps).sum(axis=1)
    return out


def mean_rank_share(before: Counts, after: Counts) -> Floats:
    r"""The mean of j / (before + j) over j = 1..m with m = after - before.

    It is what one loss, spread evenly over a tie block, adds to the risks inside the block:
    1 - (before / m) (H(after) - H(before)), written so that nothing cancels.

    >>> mean_rank_share(np.array([0.0, 9.0]), np.array([4.0, 10.0]))
    array([1. , 0.1])
    """
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    m = b - a
    out = 1.0 / b  # blocks of one sample
    many = np.flatnonzero(m != 1)
    a, b, m = a[many], b[many], m[many]
    far = a >= SHIFT
    rise = np.empty_like(a)
    rise[far] = np.log1p(m[far] / a[far]) + (_tail(b[far]) - _tail(a[far]))
    rise[~far] = harmonic(b[~far]) - harmonic(a[~far])
    out[many] = 1.0 - a / m * rise
    return out
