"""The band: at which counts of errors a threshold may be accepted, whatever the score looks like.

The most trusted samples are looked at in steps of one per cent. As long as the risk is too high,
the errors among them are at least a walk whose steps are wrong with probability `risk`; a limit at
each step is met by such a walk with probability `delta` in all. Half of delta is spent on limits
that any step may meet by itself (the band); what is left pays for a chain of steps that are
accepted one after the other until the first one fails. See docs/act.md for the proof. Where nothing
may be accepted, `count_labels_for_band` says how many labels would usually be enough.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure._core.checks import Floats, Ints
from howsure._core.indices import sort_distinct
from howsure.bounds import compute_binomial_cdf

Complexes: TypeAlias = NDArray[np.complex128]

BAND_STEPS = 100
LEAST_ROUNDING = 1e-9  # of the number of samples that could show the risk at all
BUDGET_ROUNDING = 1e-12
# Fourier transforms leave noise of some 1e-20 where there is no mass: tails that hold such noise
# would never be cut, and a walk of many samples would be ten times as wide as its distribution.
TAIL_CUT = 1e-18
SURE_SHARE = 1e-3  # of delta: as little is always left for the last rank
HOPELESS_MARGIN = 1e-6
FAST_LENGTHS = (1, 9, 5, 3, 15)  # times a power of two
LONGEST_DIRECT_SUM = 64  # beyond so many states a Fourier transform is faster

# Of the number of labels that would usually be enough.
PREFIXES = 50  # shares of the most trusted samples that are looked at
USUAL_CHANCE = 0.65
BELIEFS = 20  # quantiles of what the risk of a prefix may be
STEPS_PER_DOUBLING = 8
MOST_LABELS = 2**17


class BandLimits(NamedTuple):
    """The most errors among the first `rank` samples that the band and the chain allow; -1: none."""

    rank: Ints
    band: Ints
    chain: Ints


class Mass(NamedTuple):
    """Probabilities of the whole numbers from `start` on."""

    start: int
    p: Floats


class BandStep:
    """The errors among the samples between two ranks: a binomial distribution without its tails.

    Nearly all steps are equal, so its Fourier transform is kept for the next one.
    """

    def __init__(self, samples: int, risk: float) -> None:
        from scipy.special import gammaln, xlogy

        mean = samples * risk
        # Bernstein's bound: beyond this distance both tails are below the cut.
        reach = -log(TAIL_CUT)
        width = sqrt(2 * reach * mean * (1 - risk)) + reach
        low = max(0, int(mean - width))
        x = np.arange(low, min(samples, int(mean + width) + 1) + 1)
        choices = gammaln(samples + 1) - gammaln(x + 1) - gammaln(samples - x + 1)
        chance = np.exp(choices + xlogy(x, risk) + xlogy(samples - x, 1 - risk))
        chance /= chance.sum()  # logarithms of large factorials have few digits left
        self.start, self.p = _cut_tails(low, chance)
        self._spectra: dict[int, Complexes] = {}

    def add_to(self, mass: Mass) -> Mass:
        """The distribution after this step of a walk that was distributed like `mass`."""
        start = mass.start + self.start
        size = len(mass.p) + len(self.p) - 1
        if min(len(mass.p), len(self.p)) <= LONGEST_DIRECT_SUM:
            return _cut_tails(start, np.convolve(mass.p, self.p))
        length, spectrum = self._transform(size)
        total = np.fft.irfft(np.fft.rfft(mass.p, length) * spectrum, length)[:size]
        return _cut_tails(start, total)

    def correlate(self, chance: Floats) -> Floats:
        """The mean of `chance` after this step, for each state from which it stays inside."""
        if min(len(chance), len(self.p)) <= LONGEST_DIRECT_SUM:
            return np.correlate(chance, self.p, mode="valid")
        length, spectrum = self._transform(len(chance))
        total = np.fft.irfft(np.fft.rfft(chance, length) * np.conj(spectrum), length)
        return total[: len(chance) - len(self.p) + 1]

    def _transform(self, size: int) -> tuple[int, Complexes]:
        # The least of these multiples of powers of two: a transform of such a length is fast.
        length = min(k << (-(-size // k) - 1).bit_length() for k in FAST_LENGTHS)
        if length not in self._spectra:
            self._spectra[length] = np.fft.rfft(self.p, length)
        return length, self._spectra[length]


def find_band_row(
    kept: Ints | Floats, errors: Ints | Floats, *, risk: float, delta: float
) -> int | None:
    """The last row that may be accepted, or None.

    `kept` and `errors` count the samples and the errors from the most trusted one to the end of
    each row of a tally. With probability at least 1 − delta the true risk of accepting like this
    row is at most `risk`.

    >>> find_band_row(np.array([100, 200, 300]), np.array([0, 0, 30]), risk=0.05, delta=0.05)
    1
    """
    if risk >= 1:
        return len(kept) - 1
    n = int(kept[-1])
    ranks = list_ranks(n, risk, delta)
    if not len(ranks):
        return None
    # The last rank has at least a thousandth of delta to spend.
    if float(compute_binomial_cdf(errors[-1], n, risk)) <= SURE_SHARE * delta:
        return len(kept) - 1
    # A row belongs to the last rank that it reaches: those of rank i run from begin[i] to end[i].
    begin = np.searchsorted(kept, ranks)
    end = np.append(begin[1:], len(kept))
    # Whatever the limits are, a walk is below that of a rank with probability at most delta.
    chance = compute_binomial_cdf(errors[begin], ranks, risk)
    possible = np.flatnonzero(chance <= delta * (1 + HOPELESS_MARGIN))
    if not len(possible):
        return None
    last_possible = int(possible[-1])

    band = compute_first_limits(n, risk, delta, last_possible + 1)
    few = np.searchsorted(errors, band, side="right")
    few = np.minimum(few, end[: len(band)])
    last = int(few[few > begin[: len(band)]].max(initial=0)) - 1
    # The chain accepts no row but the first of a rank.
    if last >= begin[last_possible]:
        return last

    limits = compute_band_limits(n, risk, delta)
    tested = begin[ranks >= find_chain_start(n, risk, delta)]
    # The row that closes the ties at a rank may reach a later one.
    place = np.searchsorted(ranks, kept[tested], side="right") - 1
    failed = np.flatnonzero(errors[tested] > limits.chain[place])
    accepted = tested[: failed[0]] if len(failed) else tested
    last = max(last, int(accepted.max(initial=-1)))
    return None if last < 0 else last


def list_ranks(n: int, risk: float, delta: float) -> Ints:
    """The numbers of most trusted samples that have limits."""
    least = ceil(log(delta) / log(1 - risk) - LEAST_ROUNDING)
    ranks = sort_distinct(-(-np.arange(1, BAND_STEPS + 1) * n // BAND_STEPS))
    return ranks[ranks >= least]


def find_chain_start(n: int, risk: float, delta: float) -> int:
    """The least rank of the chain: before it a test has little power, and one failure ends it.

    >>> find_chain_start(1000, 0.05, 0.05), find_chain_start(100, 0.05, 0.05)
    (147, 80)
    """
    least = log(delta) / log(1 - risk)
    return min(ceil(2.5 * least), ceil((ceil(least) + n) / 2))


class BandWalk:
    """Forwards: the mass of walks that have met no limit so far, and the limits as they come."""

    def __init__(self, n: int, risk: float, delta: float, ranks: Ints) -> None:
        sizes: list[int] = np.diff(ranks, prepend=0).tolist()
        step_of_size = {m: BandStep(m, risk) for m in set(sizes)}
        self.steps = [step_of_size[m] for m in sizes]
        self.alive: list[Mass] = []
        self.used = 0.0
        band = np.full(len(ranks), -1)
        mass = Mass(0, np.ones(1))
        for i, rank in enumerate(ranks):
            mass = self.steps[i].add_to(mass)
            budget = delta / 2 * sqrt(rank / n) - self.used + BUDGET_ROUNDING
            cumulative = np.cumsum(mass.p)
            absorbed = int(np.searchsorted(cumulative, budget, side="right"))
            if absorbed:
                band[i] = mass.start + absorbed - 1
                self.used += float(cumulative[absorbed - 1])
                mass = Mass(mass.start + absorbed, mass.p[absorbed:])
            elif budget >= 0:
                band[i] = mass.start - 1  # no walk is left there, so it costs nothing
            self.alive.append(mass)
        self.band = np.maximum.accumulate(band)


@lru_cache(maxsize=256)
def compute_first_limits(n: int, risk: float, delta: float, ranks: int) -> Ints:
    """The limits of the band at the first ranks: those of the chain need all later ones, too.

    >>> bool((compute_first_limits(300, 0.1, 0.1, 9) == compute_band_limits(300, 0.1, 0.1).band[:9]).all())
    True
    """
    return BandWalk(n, risk, delta, list_ranks(n, risk, delta)[:ranks]).band


@lru_cache(maxsize=256)
def compute_band_limits(n: int, risk: float, delta: float) -> BandLimits:
    """The limits for n samples.

    >>> limits = compute_band_limits(300, 0.1, 0.1)
    >>> int(limits.band[-1]), int(limits.chain[-1])
    (18, 22)
    """
    ranks = list_ranks(n, risk, delta)
    if not len(ranks):
        empty = np.zeros(0, dtype=np.int64)
        return BandLimits(empty, empty, empty)
    walk = BandWalk(n, risk, delta, ranks)
    alive, band = walk.alive, walk.band

    # Backwards: the chance that a walk from each state meets a later limit of the band.
    chain = band.copy()
    left = delta - walk.used + BUDGET_ROUNDING
    later = np.zeros(len(alive[-1].p))
    for i in reversed(range(len(ranks))):
        if i < len(ranks) - 1:
            later = _meet_later(
                alive[i], alive[i + 1], later, limit=int(band[i + 1]), step=walk.steps[i + 1]
            )
        cost = np.cumsum(alive[i].p * (1 - later))
        affordable = int(np.searchsorted(cost, left, side="right"))
        if affordable:
            chain[i] = max(chain[i], alive[i].start + affordable - 1)
        elif alive[i].start > 0:
            chain[i] = max(chain[i], alive[i].start - 1)
    return BandLimits(ranks, band, np.maximum.accumulate(chain))


def _meet_later(
    here: Mass, following: Mass, later: Floats, *, limit: int, step: BandStep
) -> Floats:
    """For each state of `here` the chance to meet the limit at the next rank or one after it."""
    first = here.start + step.start
    chance = np.zeros(len(here.p) + len(step.p) - 1)
    # The walks that go on are all above the limit.
    chance[: max(0, limit + 1 - first)] = 1.0
    known = following.start - first
    stop = min(known + len(later), len(chance))
    chance[max(0, known) : stop] = later[max(0, -known) : stop - known]
    return np.clip(step.correlate(chance)[: len(here.p)], 0.0, 1.0)


def _cut_tails(start: int, p: Floats) -> Mass:
    there = p > TAIL_CUT
    low = int(there.argmax())
    if not there[low : low + 1].any():
        return Mass(start, p[:0])
    return Mass(start + low, p[low : len(p) - int(there[::-1].argmax())])


def count_labels_for_band(
    kept: Ints | Floats, errors: Ints | Floats, *, risk: float, delta: float
) -> int | None:
    r"""The number of labels with which `method="band"` would probably accept something.

    The risk p of the answers down to a row is believed to be Beta(errors + 1, kept − errors).
    The least N = ceil(2^(i/8)) > n for which, at some row of share s,

    .. math:: E_p\big[ P(\mathrm{Bin}(k, p) \le q_k) \big] \ge 0.65, \quad k \le sN,

    with the limits q of the band at N. None where no row is below `risk` with a probability of
    0.65, or more than 131,072 labels would be needed: these labels cannot tell. No rule can be
    right in every world: at a risk of exactly what is asked for no number suffices.

    >>> rows = np.arange(2, 101, 2)
    >>> count_labels_for_band(rows, np.zeros(50, dtype=np.int64), risk=0.02, delta=0.05)
    1449
    """
    from scipy.special import betainc, betaincc, betaincinv

    n = int(kept[-1])
    if risk >= 1:
        return None  # anything may be accepted already
    ranks = -(-np.arange(1, PREFIXES + 1) * n // PREFIXES)
    rows = sort_distinct(np.searchsorted(kept, ranks))
    a = errors[rows] + 1.0
    b = np.maximum(kept[rows] - errors[rows], 0.5)
    if not (betainc(a, b, risk) >= USUAL_CHANCE).any():
        return None
    share = kept[rows] / n
    quantiles = (np.arange(BELIEFS) + 0.5) / BELIEFS
    belief: Floats = np.asarray(betaincinv(a[:, None], b[:, None], quantiles), dtype=np.float64)

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
        # P(Bin(k, p) <= q)
        met: Floats = np.asarray(betaincc(q + 1.0, k - q, belief[possible]), dtype=np.float64)
        if met.mean(axis=1).max() >= USUAL_CHANCE:
            return labels
    return None
