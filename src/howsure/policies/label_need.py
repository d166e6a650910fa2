"""How many labels would usually be enough for a promise that these labels do not carry.

No rule can be right in every world: at a risk of exactly what is asked for no number suffices.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from howsure._core.checks import Floats, Ints
from howsure.policies.band import compute_band_limits, find_chain_start

PREFIXES = 50  # shares of the most trusted samples that are looked at
USUAL_CHANCE = 0.65
BELIEFS = 20  # quantiles of what the risk of a prefix may be
STEPS_PER_DOUBLING = 8
MOST_LABELS = 2**17


def count_labels_for_band(
    kept: Ints | Floats, errors: Ints | Floats, *, risk: float, delta: float
) -> int | None:
    r"""The number of labels with which `method="band"` would probably accept something.

    The risk p of the answers down to a row is believed to be Beta(errors + 1, kept − errors).
    The least N = ceil(2^(i/8)) > n for which, at some row of share s,

    .. math:: E_p\big[ P(\mathrm{Bin}(k, p) \le q_k) \big] \ge 0.65, \quad k \le sN,

    with the limits q of the band at N. None where no row is below `risk` with a probability of
    0.65, or more than 131,072 labels would be needed: these labels cannot tell.

    >>> rows = np.arange(2, 101, 2)
    >>> count_labels_for_band(rows, np.zeros(50, dtype=np.int64), risk=0.02, delta=0.05)
    1449
    """
    from scipy.special import betainc, betaincc, betaincinv

    n = int(kept[-1])
    if risk >= 1:
        return None  # anything may be accepted already
    ranks = -(-np.arange(1, PREFIXES + 1) * n // PREFIXES)
    rows = np.unique(np.searchsorted(kept, ranks))
    a = errors[rows] + 1.0
    b = np.maximum(kept[rows] - errors[rows], 0.5)
    if not (betainc(a, b, risk) >= USUAL_CHANCE).any():
        return None
    share = kept[rows] / n
    quantiles = (np.arange(BELIEFS) + 0.5) / BELIEFS
    belief = betaincinv(a[:, None], b[:, None], quantiles)

    first = ceil(STEPS_PER_DOUBLING * log(n, 2))
    last = STEPS_PER_DOUBLING * (MOST_LABELS.bit_length() - 1)
    for i in range(first, last):
        labels = ceil(2 ** (i / STEPS_PER_DOUBLING))
        limits = compute_band_limits(labels, risk, delta)
        if labels <= n or not len(limits.rank):
            continue
        # A hair more, so that shares such as 0.58 reach their own rank in spite of rounding.
        reached = share * labels * (1 + 1e-12)
        place = np.searchsorted(limits.rank, reached, side="right") - 1
        limit = np.where(place >= 0, limits.band[place], -1)
        # The chain begins at one row only, and where it fails it ends.
        begun = np.flatnonzero(reached >= find_chain_start(labels, risk, delta))
        if len(begun) and place[begun[0]] >= 0:
            at = begun[0]
            limit[at] = max(limit[at], limits.chain[place[at]])
        possible = limit >= 0
        if not possible.any():
            continue
        q = limit[possible][:, None]
        k = limits.rank[place[possible]][:, None]
        met = betaincc(q + 1.0, k - q, belief[possible])  # P(Bin(k, p) <= q)
        if met.mean(axis=1).max() >= USUAL_CHANCE:
            return labels
    return None
