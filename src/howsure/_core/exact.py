"""Sums of floats that do not depend on their order: exact integers inside, one rounding at the end."""

from __future__ import annotations

import numpy as np

from howsure._core.checks import Array, Floats, Ints

UNIT = 1127  # a sum counts units of 2^-1127, fine enough for every float64
MANY = 1 << 16  # numbers taken together
HALF = 26  # bits of each half of a mantissa or of a fixed-point number
LOW_HALF = (1 << HALF) - 1
BITS_OF_2_52 = np.float64(2.0 ** (2 * HALF)).view(np.uint64)
FIXED_ROWS = 1 << 10  # numbers in [0, 1] whose sum in units of 2^-52 fits into 63 bits


def exact_sum(x: Floats) -> int:
    """The sum of at most 2^26 finite numbers, in units of 2^-1127.

    >>> as_float(exact_sum(np.array([1e16, 1.0, -1e16])))
    1.0
    """
    fraction, exponent = np.frexp(x)
    whole = np.ldexp(fraction, 2 * HALF + 1).astype(np.int64)
    least = int(exponent.min(initial=0))
    # Sums of halves per exponent are whole numbers below 2^53, which float64 holds exactly.
    high = np.bincount(exponent - least, whole >> HALF)
    low = np.bincount(exponent - least, whole & LOW_HALF)
    total = 0
    for i, (h, l) in enumerate(zip(high, low, strict=True)):
        shift = UNIT + least - 2 * HALF - 1 + i
        total += ((int(h) << HALF) + int(l)) << shift
    return total


def as_float(total: int) -> float:
    """The float64 nearest to a sum."""
    return total / (1 << UNIT)


def mean(x: Floats) -> float:
    """The mean of any number of floats, the same for every order of them.

    >>> mean(np.array([0.1] * 10))
    0.1
    """
    if not np.isfinite(x).all():
        return float(x.mean())
    return as_float(sum(exact_sum(x[i : i + MANY]) for i in range(0, len(x), MANY))) / len(x)


def fixed_sums(cell: Array, p: Floats, cells: int) -> Ints:
    """Sums of numbers in [0, 1] per cell as integers of shape (2, cells): multiples of 2^-26, and
    of 2^-52 beyond.

    A number is rounded to a multiple of 2^-52 before it is added, so sums of parts add up in any
    order.

    >>> from_fixed(fixed_sums(np.array([0, 1, 0]), np.array([0.1, 1.0, 0.2]), 2))
    array([0.3, 1. ])
    """
    low = p * 2.0**HALF
    high = np.floor(low)
    low -= high
    low *= 2.0**HALF
    np.rint(low, out=low)
    sums = [np.bincount(cell, half, minlength=cells) for half in (high, low)]
    return np.stack(sums).astype(np.int64)


def fixed_columns(p: Floats) -> Ints:
    """The same sums of whole columns, of fewer than 2^26 rows.

    >>> from_fixed(fixed_columns(np.array([[0.1, 1.0], [0.2, 0.0]])))
    array([0.3, 1. ])
    """
    # Between 2^52 and 2^53 floats are whole numbers, and so are their bits beyond those of 2^52.
    whole = p * 2.0 ** (2 * HALF)
    whole += 2.0 ** (2 * HALF)
    bits = whole.view(np.uint64)
    start = np.arange(0, len(p), FIXED_ROWS)
    few = len(p) <= FIXED_ROWS
    sums = bits.sum(axis=0)[None] if few else np.add.reduceat(bits, start, axis=0)  # modulo 2^64
    rows = np.minimum(FIXED_ROWS, len(p) - start).astype(np.uint64)
    units = (sums - (rows * BITS_OF_2_52)[:, None]).view(np.int64)
    return np.stack([(units >> HALF).sum(axis=0), (units & LOW_HALF).sum(axis=0)])


def from_fixed(sums: Ints) -> Floats:
    """Fixed-point sums as floats; the same however they were split into halves."""
    high, low = sums[0] + (sums[1] >> HALF), sums[1] & LOW_HALF
    return np.ldexp(high.astype(np.float64), -HALF) + np.ldexp(low.astype(np.float64), -2 * HALF)
