"""What the panel needs of sorted keys: errors with their tie blocks, claims, and sums over the ranks of the errors."""

from __future__ import annotations

from math import log, log1p

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure._core.fast import as_written, compiled

SHIFT, NARROW = 32, 500  # as in howsure.metrics.harmonic
PART = 4096  # keys decoded at a time
SMALL = 1e-250  # a product this small is turned into its logarithm


@compiled
def wrong_positions(keys: Array) -> Ints:
    """Where the lowest bit is set."""
    total = 0
    for i in range(len(keys)):
        total += np.int64(keys[i] & 1)
    found = np.empty(total + 1, dtype=np.int64)  # one more, for the store that is taken back
    at = 0
    for i in range(len(keys)):
        found[at] = i
        at += np.int64(keys[i] & 1)
    return found[:total]


@compiled
def error_blocks(keys: Array, wrong: Ints) -> tuple[Ints, Ints, Ints]:
    """First key, end and number of errors of each tie block with errors, least trusted first."""
    start, end, loss = np.empty_like(wrong), np.empty_like(wrong), np.empty_like(wrong)
    block = -1
    for i in range(len(wrong)):
        at = wrong[i]
        if block >= 0 and keys[at] == keys[end[block] - 1]:
            end[block] += 1
            loss[block] += 1
            continue
        block += 1
        start[block], end[block], loss[block] = first_of(keys, at), at + 1, 1
    return start[: block + 1], end[: block + 1], loss[: block + 1]


@compiled
def first_of(keys: Array, at: int) -> int:
    """Where the tie block of a key begins."""
    first = at
    while first > 0 and keys[first - 1] >> 1 == keys[at] >> 1:
        first -= 1
    return first


@compiled
def claims32(keys: Array, start: Ints) -> Floats:
    """Summed float32 scores of the bins that start at these ascending positions."""
    total = np.zeros(len(start))
    bits = np.empty(PART, dtype=np.uint32)
    score = bits.view(np.float32)
    for b in range(len(start)):
        end = start[b + 1] if b + 1 < len(start) else len(keys)
        for i in range(start[b], end, PART):
            size = min(PART, end - i)
            for j in range(size):
                bits[j] = keys[i + j] >> 1
            part = 0.0
            for j in range(size):
                part += np.float64(score[j])
            total[b] += part
    return total


@as_written
def first_full(keys: Array, start: int, z: float) -> int:
    """`howsure.binning._first_full` on the keys of float32 scores."""
    bits = np.empty(2, dtype=np.uint32)
    score = bits.view(np.float32)
    n = len(keys)
    bits[0] = keys[n - 1 - start] >> 1
    low, high = start + 1, n
    while low < high:
        i = (low + high) // 2
        bits[1] = keys[n - i] >> 1
        width = np.float64(score[0]) - np.float64(score[1])
        if width > 0 and i - start > 0.25 * (z / width) ** 2:
            high = i
        else:
            low = i + 1
    return low


@compiled
def error_precision(before: Ints, loss: Ints, n: float) -> float:
    """Average precision of finding errors, times their number; blocks most trusted first."""
    found, area = 0.0, 0.0
    for i in range(len(loss) - 1, -1, -1):
        found += loss[i]
        area += found * loss[i] / (n - before[i])
    return area


@compiled
def middle_sum(before: Ints, after: Ints, loss: Ints) -> int:
    """Each loss times twice the middle rank of its block, summed."""
    total = 0
    for i in range(len(loss)):
        total += loss[i] * (before[i] + after[i])
    return total


@compiled
def tail(z: float) -> float:
    """H(x) - gamma - log(z) with z = x + 1/2, for x of at least SHIFT."""
    q = 1.0 / (z * z)
    return q * (1 / 24 - q * (7 / 960 - q * (31 / 8064)))


@compiled
def parts(x: float) -> tuple[float, float]:
    """z and the rest of H(x) = gamma + log(z) + rest."""
    if x >= SHIFT:
        return x + 0.5, tail(x + 0.5)
    added = 0.0
    for i in range(1, SHIFT + 1):
        added += 1.0 / (x + i)
    return x + 0.5 + SHIFT, tail(x + 0.5 + SHIFT) - added


@compiled
def wide_share(a: float, b: float) -> float:
    """1 - a / m (H(b) - H(a)), with nothing cancelling where a is large."""
    m = b - a
    if a >= SHIFT:
        return 1.0 - a / m * (log1p(m / (a + 0.5)) + (tail(b + 0.5) - tail(a + 0.5)))
    (z_a, rest_a), (z_b, rest_b) = parts(a), parts(b)
    return 1.0 - a / m * (log(z_b / z_a) + rest_b - rest_a)


@compiled
def rank_share(a: float, b: float) -> float:
    """`mean_rank_share` of one tie block."""
    m, middle = b - a, (a + b + 1) * 0.5
    if m == 1:
        return 1.0 / b
    if m * NARROW > middle or middle < NARROW:
        return wide_share(a, b)
    q, square = 1.0 / (middle * middle), m * m
    moments = q * (square - 1) * (1 / 12 + q * (3 * square - 7) * (1 / 240))
    return ((m + 1) * 0.5 - a * moments) / middle


@compiled
def risk_sum(before: Ints, after: Ints, loss: Ints, n: float) -> float:
    """`howsure.metrics.harmonic.risk_sum` of one table; many factors are multiplied before a logarithm is taken."""
    z_n, rest_n = parts(n)
    total, logs, product = 0.0, 0.0, 1.0
    for i in range(len(loss)):
        z, rest = parts(np.float64(after[i]))
        share = rank_share(np.float64(before[i]), np.float64(after[i]))
        total += loss[i] * (share + (rest_n - rest))
        ratio = z / z_n
        if loss[i] == 1:
            product *= ratio
            if product < SMALL:
                logs += log(product)
                product = 1.0
        else:
            logs += loss[i] * log(ratio)
    return total - logs - log(product)
