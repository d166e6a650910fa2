"""Watch: alarms on drift of scores and coverage, without labels, with a stated lifetime false-alarm
rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.bounds import proportion
from howsure.policies.policy import Decisions

WINDOW = 100  # fresh bets start every so many samples, so that a late change is found too
STAKES = np.array([s * e for e in (0.05, 0.15, 0.4, 0.8) for s in (1, -1)])
LOW = (
    (0.005, 0.05),
    (0.01, 0.05),
    (0.02, 0.1),
    (0.05, 0.15),
    (0.05, 0.4),
)  # a tail, and the share believed to be there
TAIL = (0.005, 0.01, 0.02)  # further edges at the low end, for outliers
BURSTS = 1 << 12  # bursts that are known again
BLOCK = 1000  # samples whose ties are broken by one random generator
LARGEST = 1e15  # of the log of a stake


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
        if (
            self.counts.ndim != 1
            or not self.counts.size
            or not ((self.counts >= 0) & (self.counts < 2**53)).all()
        ):
            raise InputError(
                "counts", got="are not numbers of samples", hint="make the watch again"
            )
        if self.capital.ndim != 1 or not self.capital.size or not (self.capital <= LARGEST).all():
            raise InputError("capital", got="is not a list of logs", hint="make the watch again")
        if self.first is not None:
            check.within(self.first, 1, 2**62, "first")


@frozen(eq=False)
class Watch:
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
    >>> watch = Watch.start(decide(rng.random(1000)), false_alarms=0.01)
    >>> watch.see(decide(rng.random(2000))).alarms
    {}
    >>> sorted(watch.see(decide(rng.random(2000) ** 2)).alarms)
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
    policy: str = (
        ""  # the start of the digest of the policy whose decisions it watches; empty: of any
    )
    output: str = ""  # the file of decisions that it follows
    written: int = 0  # lines of that file that it has seen

    def __post_init__(self) -> None:
        check.within(self.written, 0, 2**62, "written")
        proportion(self.false_alarms, "false_alarms")
        check.within(self.seed, 0, 2**62, "seed")
        check.within(self.seen, 0, 2**62, "seen")
        if self.edges.ndim != 1 or not (np.diff(check.no_nan(self.edges, "edges")) > 0).all():
            raise InputError("edges", got="do not rise", hint="make the watch again")
        if len(self.score.counts) != len(self.edges) + 1 or len(self.coverage.counts) != 2:
            raise InputError(
                "counts", got="do not belong to the edges", hint="make the watch again"
            )

    @classmethod
    def start(
        cls, reference: Decisions, *, false_alarms: float = 0.01, bins: int = 20, seed: int = 0
    ) -> Watch:
        """Watch against these decisions. One half sets the bins, the other counts, so that ranks
        stay exact.
        """
        check.at_least(bins, 2, "bins")
        if len(reference) < 20:
            raise InputError(
                f"the reference has {len(reference)} samples; at least 20 are needed to watch against."
            )
        order = np.random.default_rng(seed).permutation(len(reference))
        shape, counted = np.array_split(reference.score[order], 2)
        levels = np.sort([*TAIL, *(np.arange(1, bins) / bins)])
        edges = np.unique(np.quantile(shape, levels, method="inverted_cdf"))
        counts = np.bincount(np.searchsorted(edges, counted), minlength=len(edges) + 1)
        accepted = int(reference.accept.sum())
        both = np.array([len(reference) - accepted, accepted])
        idle, tails = np.full(2 * len(STAKES), -np.inf), np.full(len(LOW), -np.inf)
        score = Evidence(counts, np.concatenate((idle, tails)), start=counts)
        return cls(edges, score, Evidence(both, idle, start=both), false_alarms, seed)

    def see(self, made: Decisions, *, bursts: Sequence[str] | None = None) -> Watch:
        """The watch after these decisions; with `bursts`, one name per row, after the first row of
        each burst.
        """
        if bursts is not None:
            return self._first_of(made, bursts)
        u = _ties(self.seed, self.seen, len(made))
        level = log(2 / self.false_alarms)
        bins = np.searchsorted(self.edges, made.score)
        score = _after(self.score, bins, u[0], self.seen, level)
        coverage = _after(self.coverage, made.accept.astype(np.int64), u[1], self.seen, level)
        return replace(self, score=score, coverage=coverage, seen=self.seen + len(made))

    def _first_of(self, made: Decisions, bursts: Sequence[str]) -> Watch:
        known, rows = dict.fromkeys(self.bursts), list[int]()
        for row, name in enumerate(bursts):
            if name not in known:
                rows.append(row)
            known[name] = None
        after = self.see(made[rows]) if rows else self
        return replace(after, bursts=tuple(known)[-BURSTS:])

    def reset(self, reason: str) -> Watch:
        """Begin again from the reference with the next sample; the reason is kept."""
        score, coverage = (
            Evidence(
                e.counts if e.start is None else e.start,
                np.full_like(e.capital, -np.inf),
                start=e.start,
            )
            for e in (self.score, self.coverage)
        )
        return replace(
            self,
            score=score,
            coverage=coverage,
            seen=0,
            seed=self.seed + 1,
            resets=(*self.resets, reason),
        )

    @property
    def alarms(self) -> dict[str, int]:
        """What was raised, with the number of the sample at which it was."""
        both = {"score": self.score.first, "coverage": self.coverage.first}
        return {name: at for name, at in both.items() if at is not None}


def _ties(seed: int, seen: int, n: int) -> Floats:
    """How ties of the next n samples are broken, for score and coverage: by the number of the
    sample alone.
    """
    blocks = range(seen // BLOCK, -(-(seen + n) // BLOCK))
    drawn = [np.random.default_rng([BLOCK, seed, block]).random((2, BLOCK)) for block in blocks]
    return np.concatenate([np.empty((2, 0)), *drawn], axis=1)[:, seen % BLOCK :][:, :n]


def _after(e: Evidence, category: Ints, u: Floats, seen: int, level: float) -> Evidence:
    """The evidence after more samples; windows are cut where fresh bets start."""
    p = conformal_p(e.counts, category, u)
    capital, first, at = e.capital, e.first, 0
    while at < len(p):
        if (seen + at) % WINDOW == 0:
            capital = np.logaddexp(capital, _fresh((seen + at) // WINDOW, len(capital)))
        stop = min(len(p), at + WINDOW - (seen + at) % WINDOW)
        path = np.cumsum(np.vstack((capital, _gains(p[at:stop])[:, : len(capital)])), axis=0)[
            1:
        ]  # one after another
        over = np.flatnonzero(np.logaddexp.reduce(path, axis=1) >= level)
        if first is None and len(over):
            first = seen + at + int(over[0]) + 1
        capital, at = path[-1], stop
    return Evidence(
        e.counts + np.bincount(category, minlength=len(e.counts)), capital, first, e.start
    )


def _fresh(window: int, gamblers: int) -> float:
    """Log stake of each gambler who starts in this window; all stakes of all time sum to 1."""
    return -log((window + 1) * (window + 2)) - log(gamblers)


def _gains(p: Floats) -> Floats:
    """Log gain of each gambler: on the side, on the spread, and at the end those who bet on the low
    tail alone.
    """
    side, spread = 2 * p - 1, 2 * np.abs(2 * p - 1) - 1
    tails = [np.where(p <= tail, share / tail, (1 - share) / (1 - tail)) for tail, share in LOW]
    both = np.concatenate((np.outer(side, STAKES), np.outer(spread, STAKES)), axis=1)
    return np.concatenate((np.log1p(both), np.log(np.stack(tails, axis=1))), axis=1)


def conformal_p(counts: Ints, category: Ints, u: Floats) -> Array:
    """Smoothed rank of each sample among the counts and the samples before it; uniform under
    exchangeability.
    """
    one: Bools = category[:, None] == np.arange(len(counts))
    before = counts + np.cumsum(one, axis=0) - one
    less = np.where(np.arange(len(counts)) < category[:, None], before, 0).sum(axis=1)
    equal = before[np.arange(len(category)), category] + 1
    return (less + u * equal) / (before.sum(axis=1) + 1)
