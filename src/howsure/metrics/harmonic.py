"""Harmonic numbers of real arguments: what sums over ranks turn into."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats
from howsure.tallies.tally import Blocks, Counts

EULER_GAMMA = 0.57721566490153286
SERIES_START = 32  # from here on three terms of the asymptotic series are exact to 4e-15
NARROW_BLOCK = 500  # ranks, and ranks per block width, above which two moments are exact
CHUNK_BLOCKS = 1 << 15  # blocks at a time: their columns stay near the processor
SAFE_EXPONENT = 1000  # a product that loses fewer powers of two than this is not 0


def _expand(x: Counts) -> tuple[Floats, Floats]:
    """z and the rest of H(x) = gamma + log(z) + rest."""
    x = np.asarray(x, dtype=np.float64)
    small = x < SERIES_START
    z = x + 0.5
    if not small.any():
        return z, _sum_series(z)
    # H(x) = H(x + m) - 1/(x + 1) - ... - 1/(x + m) moves small x to where the series is exact.
    z = z + SERIES_START * small
    added = np.zeros_like(x)
    added[small] = (1.0 / (x[small][:, None] + np.arange(1, SERIES_START + 1))).sum(axis=1)
    return z, _sum_series(z) - added


def _sum_series(z: Floats) -> Floats:
    """H(x) - gamma - log(z) with z = x + 1/2, for x >= SERIES_START."""
    q = 1.0 / (z * z)
    return q * (1 / 24 - q * (7 / 960 - q * (31 / 8064)))


def harmonic(x: Counts) -> Floats:
    r"""H(x) = 1 + 1/2 + ... + 1/x, continued to real x >= 0.

    >>> harmonic(np.array([1.0, 4.0])).round(12)
    array([1.        , 2.08333333])
    """
    z, rest = _expand(x)
    return EULER_GAMMA + np.log(z) + rest


def mean_rank_share(before: Counts, after: Counts) -> Floats:
    r"""The mean of j / (before + j) over j = 1..m with m = after - before.

    It is what one loss, spread evenly over a tie block, adds to the risks inside the block:
    1 - (before / m) (H(after) - H(before)), written so that nothing cancels.

    >>> mean_rank_share(np.array([0.0, 9.0]), np.array([4.0, 10.0]))
    array([1. , 0.1])
    """
    # C order, so that ravel() below gives views and not copies.
    a = np.asarray(before, dtype=np.float64, order="C")
    b = np.asarray(after, dtype=np.float64, order="C")
    out = np.asarray(1.0 / b)  # right for blocks of one sample
    tied = np.flatnonzero(b - a != 1)
    if len(tied):
        out.ravel()[tied] = _share_tie(a.ravel()[tied], b.ravel()[tied])
    return out


def _share_tie(a: Floats, b: Floats) -> Floats:
    """`mean_rank_share` of blocks of several samples."""
    m = b - a
    middle = (a + b + 1) * 0.5
    # Narrow blocks: 1 - a E[1 / (middle + y)], y the ranks counted from the middle, by moments
    # of y. The difference of two harmonic numbers would cancel there.
    per = 1.0 / middle
    q = per * per
    square = m * m
    moments = q * (square - 1) * (1 / 12 + q * (3 * square - 7) * (1 / 240))
    out = per * ((m + 1) * 0.5 - a * moments)
    wide = np.flatnonzero((m * NARROW_BLOCK > middle) | (middle < NARROW_BLOCK))
    out[wide] = 1.0 - a[wide] / m[wide] * harmonic_rise(a[wide], b[wide])
    return out


def harmonic_rise(a: Floats, b: Floats) -> Floats:
    """H(b) - H(a) for a <= b, exact also where it is far smaller than either.

    >>> harmonic_rise(np.array([2.0, 1e9]), np.array([4.0, 1e9 + 1]))
    array([5.83333333e-01, 9.99999999e-10])
    """
    far = a >= SERIES_START
    rise = np.empty_like(a)
    z = a[far] + 0.5
    rise[far] = np.log1p((b[far] - a[far]) / z) + (_sum_series(b[far] + 0.5) - _sum_series(z))
    rise[~far] = harmonic(b[~far]) - harmonic(a[~far])
    return rise


def risk_sum(block: Blocks, n: Counts) -> Floats:
    """The risks at 1..n samples, summed: each loss counts in all of them from its own rank on.

    A loss in a block adds H(n) - H(after) and, inside the block, its `mean_rank_share`. Blocks
    stand along the last axis; other axes are other tables.

    >>> block = Blocks(before=np.array([1]), after=np.array([2]), loss=np.array([1]))
    >>> round(float(risk_sum(block, np.array(4))), 8)  # 1/2 + 1/3 + 1/4
    1.08333333
    """
    # aurc and e_aurc ask for the same sum, so the block keeps it.
    if "risk" in block.kept and np.array_equal(block.kept["risk"][0], n):
        return block.kept["risk"][1]
    last = np.asarray(n, dtype=np.float64)[..., None]
    total = np.zeros(np.shape(n))
    for i in range(0, block.loss.shape[-1], CHUNK_BLOCKS):
        chunk = slice(i, i + CHUNK_BLOCKS)
        before = np.asarray(block.before[..., chunk], dtype=np.float64)
        after = np.asarray(block.after[..., chunk], dtype=np.float64)
        loss = np.asarray(block.loss[..., chunk], dtype=np.float64)
        # H(n) - H(after) = rest_n - rest - log(z / z_n); the logarithms are summed apart.
        z, rest = _expand(after)
        z_n, rest_n = _expand(last)
        later = mean_rank_share(before, after) + (rest_n - rest)
        total = total + ((loss * later).sum(axis=-1) - _sum_logs(z / z_n, loss))
    block.kept["risk"] = np.array(n), total
    return total


def _sum_logs(x: Floats, weight: Floats) -> Floats:
    """The sum of weight log(x) along the last axis.

    Where most weights are 1, as in one table of single errors, many x are multiplied before a
    logarithm is taken, which costs far more than a product.
    """
    odd = np.flatnonzero(weight != 1)
    if x.ndim > 1 or 2 * len(odd) > len(x):
        return (weight * np.log(x)).sum(axis=-1)
    factors = max(1, int(SAFE_EXPONENT / (2 + abs(np.log2(x.min())))))
    products = len(x) // factors
    whole = factors * products
    product = x[:whole].reshape(factors, products).prod(axis=0)
    logs = np.log(product).sum() + np.log(x[whole:]).sum()
    return logs + ((weight[odd] - 1) * np.log(x[odd])).sum()
