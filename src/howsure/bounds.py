"""Upper bounds on a mean from a sample: sums → a number that the truth exceeds with probability at
most delta.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, e, inf, log

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Floats, InputError

__all__ = [
    "betting",
    "clopper_pearson",
    "clopper_pearson_interval",
    "group_betting",
    "hoeffding_bentkus",
]

# Shares of the largest possible stake; the capital is the mean over all.
STAKES = np.array([0.999, 0.97, 0.9, 0.75, 0.5, 0.25])


def clopper_pearson(errors: float, n: float, delta: float) -> float:
    r"""The largest error rate that still explains this few errors with probability `delta`.

    .. math:: b \text{ with } P(\mathrm{Bin}(n, b) \le k) = \delta, \quad b = \mathrm{Beta}^{-1}(1-\delta;\, k+1,\, n-k)

    1 for n = 0 or where every answer is wrong. Exact for independent 0/1 losses, never anti-conservative.
    Range (0, 1]. Clopper & Pearson 1934; as used by Geifman & El-Yaniv 2017.

    >>> round(clopper_pearson(0, 100, 0.05), 4)
    0.0295
    >>> clopper_pearson(3, 3, 0.05)
    1.0
    """
    check_proportion(delta, "delta")
    _check_counts(errors, n)
    return float(compute_proportion_limits(errors, n, delta)[1])


def clopper_pearson_interval(
    successes: float, n: float, level: float = 0.95
) -> tuple[float, float]:
    """Both limits of a proportion, each missed with probability at most (1 − level)/2; (0, 1) for n
    = 0.

    Clopper & Pearson 1934.

    >>> tuple(round(x, 3) for x in clopper_pearson_interval(95, 100))
    (0.887, 0.984)
    """
    half = (1 - check_proportion(level, "level")) / 2
    _check_counts(successes, n)
    low, high = compute_proportion_limits(successes, n, half)
    return float(low), float(high)


def compute_proportion_limits(
    successes: Array | float, n: Array | float, half: float
) -> tuple[Floats, Floats]:
    """Clopper & Pearson limits of many proportions, each end missed with probability at most
    `half`; (0, 1) at n = 0.

    Counts need not be whole: effective counts of weighted or clustered samples are read by the same
    beta quantiles.

    >>> low, high = compute_proportion_limits(np.array([95]), np.array([100]), 0.025)
    >>> low.round(3), high.round(3)
    (array([0.887]), array([0.984]))
    """
    from scipy.special import betaincinv

    k, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    # The beta quantiles do not exist where none or all succeed: there the limit is 0 or 1.
    low, high = np.zeros(k.shape), np.ones(k.shape)
    some, less = k > 0, k < n
    low[some] = betaincinv(k[some], n[some] - k[some] + 1, half)
    high[less] = betaincinv(k[less] + 1, n[less] - k[less], 1 - half)
    return low, high


def hoeffding_bentkus(mean: float, n: int, delta: float) -> float:
    r"""Upper bound for losses anywhere in [0, 1], from their mean alone.

    .. math:: p(r) = \min\big(e^{-n\,\mathrm{kl}(\min(\bar\ell, r), r)},\;
        e \cdot P(\mathrm{Bin}(n, r) \le \lceil n \bar\ell \rceil)\big)

    and the bound is the r with p(r) = delta. 1 for n = 0. Wider than `clopper_pearson`, which 0/1 losses allow.
    Range (0, 1]. Bates et al. 2021, theorem 2; Angelopoulos et al. 2021.

    >>> round(hoeffding_bentkus(0.05, 1000, 0.1), 4)
    0.064
    """
    check_proportion(delta, "delta")
    checks.within(checks.real(n, "n"), 0, 2**62, "n")
    if not 0 <= checks.real(mean, "mean") <= 1:
        raise InputError(
            f"mean is {mean:g}; losses must lie in [0, 1]. Divide them by their largest possible value."
        )
    if n == 0 or mean >= 1:
        return 1.0

    def p_value(risk: float) -> float:
        divergence = (1 - mean) * log((1 - mean) / (1 - risk))
        if mean > 0:
            divergence += mean * log(mean / risk)
        bentkus = e * float(compute_binomial_cdf(ceil(n * mean - 1e-9), n, risk))
        return min(float(np.exp(-n * divergence)), bentkus)

    # p falls in the risk, so bisection finds the last risk that is not rejected.
    return _bisect(lambda risk: risk >= 1 or p_value(risk) < delta, low=mean, steps=60)


def compute_binomial_cdf(k: ArrayLike, n: ArrayLike, p: float) -> Floats:
    """The probability of at most k of n, each with probability p. SciPy's `bdtr` takes no n beyond
    32 bits.

    >>> round(float(compute_binomial_cdf(10**8, 10**10, 0.01)), 4)
    0.5
    """
    from scipy.special import betainc

    least = np.asarray(k, dtype=np.float64)
    others = np.asarray(n, dtype=np.float64) - least
    # Of n of n the probability is 1, and so is the limit of the integral.
    return np.asarray(betainc(np.maximum(others, 1e-300), least + 1, 1 - p), dtype=np.float64)


def _bisect(is_above: Callable[[float], bool], low: float, steps: int) -> float:
    """The upper end of the bracket around the number in [low, 1] from which on `is_above` holds."""
    high = 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return high


def betting(losses: ArrayLike, delta: float) -> float:
    r"""Upper bound for losses anywhere in [0, 1] that gains from a small variance.

    For each candidate mean m a gambler bets that the losses are below it,
    :math:`W_m = \prod_i (1 + \lambda_i (m - \ell_i))`, with stakes that look only at earlier losses; m is refused
    once the capital reaches 1/delta. The losses must be in an order that does not depend on them:
    as collected, or shuffled, never sorted. 1 for no losses. Range (0, 1]. Waudby-Smith & Ramdas
    2024, section 4.

    >>> round(betting([0.1, 0.0, 0.2, 0.1] * 50, 0.1), 4)
    0.1156
    """
    check_proportion(delta, "delta")
    x = checks.finite(checks.floats(losses, "losses"), "losses").astype(np.float64).reshape(-1)
    if len(x) and (x.min() < 0 or x.max() > 1):
        raise InputError(
            f"losses reach {x.max():g}; they must lie in [0, 1]. Divide by the largest possible loss."
        )
    if not len(x):
        return 1.0
    # The stake before each loss comes from the mean and variance of the earlier ones (predictable
    # plug-in), so it never looks ahead.
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (i + 1)
    variance_before = np.concatenate(([0.25], variance[:-1]))
    stake = np.sqrt(-2 * log(delta) / (len(x) * variance_before))

    def is_refused(m: float) -> bool:
        bet = stake
        if m < 1:  # a loss of 1 costs at most 3/4 of the capital
            bet = np.minimum(stake, 0.75 / (1 - m))
        return bool(np.cumsum(np.log1p(bet * (m - x))).max() >= -log(delta))

    if not is_refused(1.0):
        return 1.0
    # The capital grows with m, so bisection finds the last m that is not refused.
    return _bisect(is_refused, low=0.0, steps=40)


def group_betting(loss: ArrayLike, kept: ArrayLike, size: ArrayLike, delta: float) -> float:
    r"""Upper bound on the risk where samples come in independent groups (patients, images,
    questions).

    `loss` and `kept` are the summed loss and the number of the accepted samples of each group,
    `size` is how many samples it has. For a candidate risk r a group adds
    :math:`Z_g = (\mathrm{loss}_g - r\,\mathrm{kept}_g) / \mathrm{size}_g`, at most 1 − r, with a mean
    of at least 0 where the true risk is r or more; so

    .. math:: E = \frac1L \sum_\gamma \prod_g \Big( 1 - \gamma \frac{Z_g}{1 - r} \Big)

    exceeds 1/delta with probability at most delta, whatever happens inside the groups. The bound is the r with
    E = 1/delta. It depends on no order. With the size of each group the risk is that of a random answer in a random
    group; with one size for all, no smaller than any group can be, it is that of a random answer. 1 for no group.
    Range (0, 1]. Waudby-Smith & Ramdas 2024, for sums.

    >>> round(group_betting([0] * 60, [5] * 60, 5, 0.05), 4)
    0.0584
    """
    check_proportion(delta, "delta")
    columns = [
        checks.finite(checks.floats(x, name), name).astype(np.float64)
        for x, name in ((loss, "loss"), (kept, "kept"), (size, "size"))
    ]
    lost, n, size = (np.ravel(column) for column in np.broadcast_arrays(*columns))
    if ((lost > n + 1e-9) | (lost < 0) | (n > size)).any():
        raise InputError(
            "losses must lie in [0, 1], and no group can have more accepted samples than its size."
        )
    some = size > 0
    mean, share = lost[some] / size[some], n[some] / size[some]

    def is_refused(risk: float) -> bool:
        worth = (mean - risk * share) / (1 - risk)
        log_capital = np.log1p(-np.outer(STAKES, np.minimum(worth, 1.0))).sum(axis=1)
        return bool(np.logaddexp.reduce(log_capital) - log(len(STAKES)) >= -log(delta))

    if not len(share) or not is_refused(1 - 1e-12):
        return 1.0
    # The capital grows with the risk.
    return _bisect(is_refused, low=0.0, steps=40)


def check_proportion(x: float, name: str) -> float:
    """A number strictly between 0 and 1."""
    x = checks.real(x, name)
    if not 0 < x < 1:
        raise InputError(f"{name} is {x:g}; a number strictly between 0 and 1 is needed, 0.05 say.")
    return float(x)


def _check_counts(errors: float, n: float) -> None:
    errors, n = checks.real(errors, "errors"), checks.real(n, "n")
    if not 0 <= errors <= n < inf:
        raise InputError(f"{errors:g} of {n:g} is not a count; errors must lie between 0 and n.")
