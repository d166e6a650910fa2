"""DriftMonitor: alarms on drift of scores and coverage, without labels, with a stated lifetime
false-alarm rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure.bounds import check_proportion
from howsure.policies.policy import Decisions

BET_WINDOW = 100  # fresh bets start every so many samples, so that a late change is found too
# Shares of its capital that a gambler bets, on either side.
STAKES = np.array([side * share for share in (0.05, 0.15, 0.4, 0.8) for side in (1, -1)])
# A tail of the p-values, and the share that a gambler believes to be there: outliers.
TAIL_BETS = ((0.005, 0.05), (0.01, 0.05), (0.02, 0.1), (0.05, 0.15), (0.05, 0.4))
TAIL_EDGES = (0.005, 0.01, 0.02)  # further edges of bins at the low end, for outliers
MIN_REFERENCE = 20  # samples
REMEMBERED_BURSTS = 1 << 12  # bursts that are known again
TIE_BLOCK = 1000  # samples whose ties are broken by one random generator
MAX_LOG_CAPITAL = 1e15


@frozen(eq=False)
class Evidence:
    """Counts of categories so far, and the log capital of each gambler who bets against
    exchangeability.
    """

    counts: Ints
    capital: Floats  # log; -inf before the first bets
    first: int | None = None  # the sample at which the alarm was raised
    start: Ints | None = None  # the counts of the reference

    def __post_init__(self) -> None:
        counts, capital = self.counts, self.capital
        if counts.ndim != 1 or not counts.size or not ((counts >= 0) & (counts < 2**53)).all():
            raise InputError(
                "counts", got="are not numbers of samples", hint="make the drift monitor again"
            )
        if capital.ndim != 1 or not capital.size or not (capital <= MAX_LOG_CAPITAL).all():
            raise InputError(
                "capital", got="is not a list of logs", hint="make the drift monitor again"
            )
        if self.first is not None:
            checks.within(self.first, 1, 2**62, "first")

    def see(self, category: Ints, u: Floats, seen: int, level: float) -> Evidence:
        """The evidence after more samples; windows are cut where fresh bets start."""
        p = conformal_p(self.counts, category, u)
        capital, first, at = self.capital, self.first, 0
        while at < len(p):
            window, offset = divmod(seen + at, BET_WINDOW)
            if offset == 0:
                # Log stake of each gambler who starts now; all stakes of all time sum to 1.
                stake = -log((window + 1) * (window + 2)) - log(len(capital))
                capital = np.logaddexp(capital, stake)
            stop = min(len(p), at + BET_WINDOW - offset)
            gains = compute_log_gains(p[at:stop])[:, : len(capital)]
            # One sum after another, so that how the stream is cut changes no bit.
            path = np.cumsum(np.vstack((capital, gains)), axis=0)[1:]
            over = np.flatnonzero(np.logaddexp.reduce(path, axis=1) >= level)
            if first is None and len(over):
                first = seen + at + int(over[0]) + 1
            capital, at = path[-1], stop
        counts = self.counts + count_values(category, minlength=len(self.counts))
        return Evidence(counts=counts, capital=capital, first=first, start=self.start)

    def reset(self) -> Evidence:
        """Only the reference, before the first bets."""
        counts = self.counts if self.start is None else self.start
        capital = np.full_like(self.capital, -np.inf)
        return Evidence(counts=counts, capital=capital, start=self.start)


@frozen(eq=False)
class DriftMonitor:
    r"""Whether the stream still looks like the reference data, judged at any time, as often as you
    like.

    Each sample is ranked among the reference and all samples before it; under no change these ranks
    are independent and uniform (conformal p-values, smoothed at ties), and no gambler who bets on
    them can multiply his stake by 1/rate with more than probability `rate` *over the whole
    lifetime* (Ville). Half of `false_alarms` is spent on the score (20 bins and a finer low end,
    where some gamblers look for outliers), half on the coverage. Fresh bets start every 100 samples
    with weights that sum to 1. Memory is constant, and how the stream is cut into calls changes no
    bit. Stated for exchangeable streams: where rows come in bursts that share their fate, give
    `bursts`, and the first row of each is looked at. The scores of the reference must be new to the
    model. `alarms` names what was raised and when. Vovk, Gammerman & Shafer 2005, chapter 7; Vovk
    2021.

    >>> from howsure.policies import Policy
    >>> from howsure.predictions import Predictions
    >>> rng = np.random.default_rng(0)
    >>> decide = lambda c: Policy("max_prob", 0.5).decide(Predictions.from_confidence(c))
    >>> monitor = DriftMonitor.start(decide(rng.random(1000)), false_alarms=0.01)
    >>> monitor.see(decide(rng.random(2000))).alarms
    {}
    >>> sorted(monitor.see(decide(rng.random(2000) ** 2)).alarms)
    ['coverage', 'score']
    """

    edges: Floats
    score: Evidence
    coverage: Evidence
    false_alarms: float
    seed: int = 0
    seen: int = 0
    bursts: tuple[str, ...] = ()  # those that were looked at lately
    resets: tuple[str, ...] = ()  # reasons
    policy: str = ""  # the start of the digest of the policy that decides; empty: any
    output: str = ""  # the file of decisions that it follows
    written: int = 0  # lines of that file that it has seen

    def __post_init__(self) -> None:
        checks.within(self.written, 0, 2**62, "written")
        check_proportion(self.false_alarms, "false_alarms")
        checks.within(self.seed, 0, 2**62, "seed")
        checks.within(self.seen, 0, 2**62, "seen")
        if self.edges.ndim != 1 or not (np.diff(checks.no_nan(self.edges, "edges")) > 0).all():
            raise InputError("edges", got="do not rise", hint="make the drift monitor again")
        if len(self.score.counts) != len(self.edges) + 1 or len(self.coverage.counts) != 2:
            raise InputError(
                "counts", got="do not belong to the edges", hint="make the drift monitor again"
            )

    @classmethod
    def start(
        cls, reference: Decisions, *, false_alarms: float = 0.01, bins: int = 20, seed: int = 0
    ) -> DriftMonitor:
        """Monitor drift from these decisions. One half sets the bins, the other counts, so that
        ranks stay exact.
        """
        checks.at_least(bins, 2, "bins")
        if len(reference) < MIN_REFERENCE:
            raise InputError(
                f"the reference has {len(reference)} samples; at least {MIN_REFERENCE} are needed "
                "to monitor drift from."
            )
        # Bins that were cut on the samples they count would fit them too well.
        order = np.random.default_rng(seed).permutation(len(reference))
        binning_half, counting_half = np.array_split(reference.score[order], 2)
        levels = np.sort([*TAIL_EDGES, *(np.arange(1, bins) / bins)])
        edges = sort_distinct(np.quantile(binning_half, levels, method="inverted_cdf"))
        counts = count_values(np.searchsorted(edges, counting_half), minlength=len(edges) + 1)
        accepted = int(reference.accept.sum())
        both = np.array([len(reference) - accepted, accepted])
        # Outliers lie in the low tail of the score; the coverage has no tails to bet on.
        both_sides = np.full(2 * len(STAKES), -np.inf)
        with_tails = np.full(2 * len(STAKES) + len(TAIL_BETS), -np.inf)
        return cls(
            edges=edges,
            score=Evidence(counts=counts, capital=with_tails, start=counts),
            coverage=Evidence(counts=both, capital=both_sides, start=both),
            false_alarms=false_alarms,
            seed=seed,
        )

    def see(self, decisions: Decisions, *, bursts: Sequence[str] | None = None) -> DriftMonitor:
        """The monitor after these decisions; with `bursts`, one name per row, after the first row
        of each burst.
        """
        if bursts is not None:
            known, rows = dict.fromkeys(self.bursts), list[int]()
            # Rows of a burst are not exchangeable with others; the first of each is.
            for row, name in enumerate(bursts):
                if name not in known:
                    rows.append(row)
                known[name] = None
            after = self.see(decisions[rows]) if rows else self
            return replace(after, bursts=tuple(known)[-REMEMBERED_BURSTS:])
        seen, n = self.seen, len(decisions)
        ties = draw_ties(self.seed, seen, n)
        level = log(2 / self.false_alarms)  # half of the rate for each of the two
        bins = np.searchsorted(self.edges, decisions.score)
        accepted = decisions.accept.astype(np.int64)
        return replace(
            self,
            score=self.score.see(bins, ties[0], seen, level),
            coverage=self.coverage.see(accepted, ties[1], seen, level),
            seen=seen + n,
        )

    def reset(self, reason: str) -> DriftMonitor:
        """Begin again from the reference with the next sample; the reason is kept."""
        return replace(
            self,
            score=self.score.reset(),
            coverage=self.coverage.reset(),
            seen=0,
            seed=self.seed + 1,  # ties are broken anew
            resets=(*self.resets, reason),
        )

    @property
    def alarms(self) -> dict[str, int]:
        """What was raised, with the number of the sample at which it was."""
        both = {"score": self.score.first, "coverage": self.coverage.first}
        return {name: at for name, at in both.items() if at is not None}


def draw_ties(seed: int, seen: int, n: int) -> Floats:
    """How ties of the next n samples are broken, for score and coverage: by the number of the
    sample alone.
    """
    numbers: list[Floats] = [np.empty((2, 0))]
    for block in range(seen // TIE_BLOCK, -(-(seen + n) // TIE_BLOCK)):
        numbers.append(np.random.default_rng([TIE_BLOCK, seed, block]).random((2, TIE_BLOCK)))
    return np.concatenate(numbers, axis=1)[:, seen % TIE_BLOCK :][:, :n]


def compute_log_gains(p: Floats) -> Floats:
    """Log gain of each gambler: on the side, on the spread, and at the end those who bet on the low
    tail alone.
    """
    side, spread = 2 * p - 1, 2 * np.abs(2 * p - 1) - 1
    both = np.concatenate((np.outer(side, STAKES), np.outer(spread, STAKES)), axis=1)
    tails: list[Floats] = []
    for tail, share in TAIL_BETS:
        tails.append(np.where(p <= tail, share / tail, (1 - share) / (1 - tail)))
    return np.concatenate((np.log1p(both), np.log(np.stack(tails, axis=1))), axis=1)


def conformal_p(counts: Ints, category: Ints, u: Floats) -> Array:
    """Smoothed rank of each sample among the counts and the samples before it; uniform under
    exchangeability.
    """
    categories = np.arange(len(counts))
    one: Bools = category[:, None] == categories
    before = counts + np.cumsum(one, axis=0) - one
    less = np.where(categories < category[:, None], before, 0).sum(axis=1)
    equal = before[np.arange(len(category)), category] + 1
    return (less + u * equal) / (before.sum(axis=1) + 1)
