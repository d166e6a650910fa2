"""Harmonic numbers of real arguments: what sums over ranks turn into."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats
from howsure.tallies.tally import Blocks, Counts

EULER_GAMMA = 0.57721566490153286
SHIFT = 32  # from here on three terms of the asymptotic series are exact to 4e-15
NARROW = 500  # from here on, in ranks and in ranks per block width, two moments around the middle are exact
CHUNK = 1 << 15  # blocks at a time: their columns stay near the processor
EXPONENTS = 1000  # a product of numbers that together lose fewer powers of two than this is no 0


def _parts(x: Counts) -> tuple[Floats, Floats]:
    """z and the rest of H(x) = gamma + log(z) + rest; small x are first moved up by SHIFT."""
    x = np.asarray(x, dtype=np.float64)
    small = x < SHIFT
    z = x + 0.5
    if not small.any():
        return z, _tail(z)
    z, added = z + SHIFT * small, np.zeros_like(x)
    added[small] = (1.0 / (x[small][:, None] + np.arange(1, SHIFT + 1))).sum(axis=1)
    return z, _tail(z) - added


def _tail(z: Floats) -> Floats:
    """H(x) - gamma - log(z) with z = x + 1/2, for x >= SHIFT."""
    q = 1.0 / (z * z)
    return q * (1 / 24 - q * (7 / 960 - q * (31 / 8064)))


def harmonic(x: Counts) -> Floats:
    r"""H(x) = 1 + 1/2 + ... + 1/x, continued to real x >= 0.

    >>> harmonic(np.array([1.0, 4.0])).round(12)
    array([1.        , 2.08333333])
    """
    z, rest = _parts(x)
    return EULER_GAMMA + np.log(z) + rest


def mean_rank_share(before: Counts, after: Counts) -> Floats:
    r"""The mean of j / (before + j) over j = 1..m with m = after - before.

    It is what one loss, spread evenly over a tie block, adds to the risks inside the block:
    1 - (before / m) (H(after) - H(before)), written so that nothing cancels.

    >>> mean_rank_share(np.array([0.0, 9.0]), np.array([4.0, 10.0]))
    array([1. , 0.1])
    """
    a, b = (
        np.asarray(x, dtype=np.float64, order="C") for x in (before, after)
    )  # so that flat views are views
    out = np.asarray(1.0 / b)  # blocks of one sample
    many = np.flatnonzero(b - a != 1)
    if len(many):
        out.ravel()[many] = _tied_share(a.ravel()[many], b.ravel()[many])
    return out


def _tied_share(a: Floats, b: Floats) -> Floats:
    m, middle = b - a, (a + b + 1) * 0.5
    out = _narrow_share(a, m, middle)
    wide = np.flatnonzero((m * NARROW > middle) | (middle < NARROW))
    out[wide] = _wide_share(a[wide], b[wide], m[wide])
    return out


def _narrow_share(a: Floats, m: Floats, middle: Floats) -> Floats:
    """1 - a E[1 / (middle + y)], y the ranks counted from the middle, by the moments of y."""
    per = 1.0 / middle
    q, square = per * per, m * m
    moments = q * (square - 1) * (1 / 12 + q * (3 * square - 7) * (1 / 240))
    return per * ((m + 1) * 0.5 - a * moments)


def _wide_share(a: Floats, b: Floats, m: Floats) -> Floats:
    return 1.0 - a / m * harmonic_rise(a, b)


def harmonic_rise(a: Floats, b: Floats) -> Floats:
    """H(b) - H(a) for a <= b, exact also where it is far smaller than either.

    >>> harmonic_rise(np.array([2.0, 1e9]), np.array([4.0, 1e9 + 1]))
    array([5.83333333e-01, 9.99999999e-10])
    """
    far = a >= SHIFT
    rise = np.empty_like(a)
    z = a[far] + 0.5
    rise[far] = np.log1p((b[far] - a[far]) / z) + (_tail(b[far] + 0.5) - _tail(z))
    rise[~far] = harmonic(b[~far]) - harmonic(a[~far])
    return rise


def risk_sum(block: Blocks, n: Counts) -> Floats:
    """The risks at 1..n samples, summed: each loss counts in all of them from its own rank on.

    A loss in a block adds H(n) - H(after) and, inside the block, its `mean_rank_share`. Blocks
    stand along the last axis; other axes are other tables.

    >>> round(float(risk_sum(Blocks(np.array([1]), np.array([2]), np.array([1])), np.array(4))), 8)  # 1/2 + 1/3 + 1/4
    1.08333333
    """
    if "risk" in block.kept and np.array_equal(block.kept["risk"][0], n):
        return block.kept["risk"][1]  # aurc and e_aurc ask for the same sum
    total = _chunked_risk_sum(block, n)
    block.kept["risk"] = np.array(n), total
    return total


def _chunked_risk_sum(block: Blocks, n: Counts) -> Floats:
    last = np.asarray(n, dtype=np.float64)[..., None]
    total = np.zeros(np.shape(n))
    for i in range(0, block.loss.shape[-1], CHUNK):
        columns = (block.before, block.after, block.loss)
        before, after, loss = (np.asarray(c[..., i : i + CHUNK], dtype=np.float64) for c in columns)
        total = total + _risk_sum(Blocks(before, after, loss), last)
    return total


def _risk_sum(block: Blocks, n: Floats) -> Floats:
    (z, rest), (z_n, rest_n) = _parts(block.after), _parts(n)
    later = mean_rank_share(block.before, block.after) + (rest_n - rest)
    return (block.loss * later).sum(axis=-1) - _log_sum(z / z_n, block.loss)


def _log_sum(x: Floats, weight: Floats) -> Floats:
    """The sum of weight log(x) along the last axis. Of one table, most weights being 1, many x are
    multiplied before a logarithm is taken, which costs far more than a product."""
    odd = np.flatnonzero(weight != 1)
    if x.ndim > 1 or 2 * len(odd) > len(x):
        return (weight * np.log(x)).sum(axis=-1)
    size = max(1, int(EXPONENTS / (2 + abs(np.log2(x.min())))))
    many = len(x) // size
    whole = size * many
    logs = np.log(x[:whole].reshape(size, many).prod(axis=0)).sum() + np.log(x[whole:]).sum()
    return logs + ((weight[odd] - 1) * np.log(x[odd])).sum()
