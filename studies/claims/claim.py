"""A claim of a paper, what the prediction files say about it, and the word that follows from the
numbers alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan

import howsure as hs

from ..tables.table import Table

AGREES, NOT, OPEN, MIXED = "agrees", "does not agree", "cannot be decided here", "mixed"
MISSING = "its networks are not trained yet"
SMALL, FULL, PUBLISHED = "small network", "full-size training", "published outputs"
REGIMES = (PUBLISHED, FULL, SMALL)  # the most telling first, where a claim does not say otherwise
OURS = (FULL, SMALL)  # where the paper's network is unlike the published ones
HEADER = ["claim", "case", "rests on", "found", "95 % interval", "verdict"]
SUMMARY = ["claim", "the paper", "cases that agree / do not / are open", "rests on", "verdict"]


@dataclass(frozen=True)
class Evidence:
    """One case: a network, a pair of networks, or all of them together. `counts` is False for the
    single networks behind a mean: they are listed and do not vote. `edges` are the values at which
    the word changes. `regime` says on what kind of network it rests."""

    case: str
    found: str
    low: float
    high: float
    word: str
    scale: float = 100.0
    digits: int = 2
    counts: bool = True
    edges: tuple[float, ...] = ()
    regime: str = SMALL

    @property
    def times(self) -> float:
        """How many times as much data would decide an open case, if what was found is so: the
        interval shrinks with the root of the number of what it is drawn over. nan where that is not
        known."""
        middle = (self.low + self.high) / 2
        distance = min((abs(middle - edge) for edge in self.edges), default=float("nan"))
        return ((self.high - self.low) / 2 / distance) ** 2 if distance else float("inf")

    @property
    def verdict(self) -> str:
        return self.word if self.counts else f"({self.word})"

    @property
    def limits(self) -> str:
        if isnan(self.low) or isnan(self.high):
            return "none"
        return " to ".join(f"{self.scale * v:+.{self.digits}f}" for v in (self.low, self.high))


@dataclass(frozen=True)
class Claim:
    """`because` holds, for each word that may come out, the reason that would be given for it.

    The most telling regime decides, and a majority of other cases does not. That is the first of
    REGIMES that has a case. Where the paper's network is unlike the published ones, `telling` names
    the kinds that are like it, the most like first (one that has learnt its images by heart says
    more of such a network than one that has not): the first of them that leaves no doubt.
    `own` marks a question of ours: no paper says it, so it is not counted with the papers.
    `networks` are the predictions that it rests on, for their accuracy and ECE; empty: those of the
    study. `about` says it in words, once the pages have looked.
    """

    text: str
    paper: str
    evidence: Sequence[Evidence]
    because: Mapping[str, str] = field(default_factory=dict[str, str])
    telling: tuple[str, ...] = ()
    own: bool = False
    networks: Sequence[hs.Predictions] = ()
    about: str = ""

    @property
    def word(self) -> str:
        return combined(self.words)

    @property
    def words(self) -> list[str]:
        return [e.word for e in self.voting]

    @property
    def regime(self) -> str:
        """The regime that decides; empty where there is no case."""
        present = {e.regime for e in self.evidence if e.counts}
        like = [regime for regime in self.telling if regime in present]
        sure = [regime for regime in like if self.word_of(regime) != OPEN]
        return next((r for r in (*sure, *like, *REGIMES) if r in present), "")

    @property
    def voting(self) -> list[Evidence]:
        return [e for e in self.evidence if e.counts and e.regime == self.regime]

    @property
    def reason(self) -> str:
        """And what the verdict must not hide: its own open cases, and other regimes that differ."""
        parts = [self.because.get(self.word, "")]
        cases = [e.case for e in self.voting if e.word == OPEN]
        if cases and self.word in (AGREES, NOT):
            parts.append(f"Taken alone this stays open: {'; '.join(cases)}.")
        for regime in REGIMES:
            word = self.word_of(regime)
            if regime != self.regime and word not in (MISSING, self.word):
                parts.append(f"By cases of the kind {regime}: {word}.")
        return " ".join(part for part in parts if part)

    def word_of(self, regime: str) -> str:
        return combined([e.word for e in self.evidence if e.counts and e.regime == regime])

    @property
    def times(self) -> float:
        """How many times as much data would decide enough of the open cases; nan where that is not
        known.
        """
        decided = max(self.words.count(AGREES), self.words.count(NOT))
        needed = len(self.voting) // 2 + 1 - decided
        found = sorted(e.times for e in self.voting if e.word == OPEN and not isnan(e.times))
        return found[needed - 1] if 0 < needed <= len(found) else float("nan")

    def counts(self) -> str:
        return count_words(self.words)


def count_words(words: Sequence[str]) -> str:
    return " / ".join(str(words.count(word)) for word in (AGREES, NOT, OPEN))


def combined(words: Sequence[str]) -> str:
    """More than half of the cases must say so and none the contrary; nothing follows from no case."""
    if not words:
        return MISSING
    yes, no = words.count(AGREES), words.count(NOT)
    if yes and no:
        return MIXED
    if 2 * max(yes, no) > len(words):
        return AGREES if yes else NOT
    return OPEN


def sided(low: float, high: float, sign: str, margin: float = 0.0) -> str:
    """The claim is that a number is above ("+") or below ("-") zero, by the margin or more; the
    interval must lie wholly on one side of that to decide."""
    limit = margin if sign == "+" else -margin
    if not (low > limit or high < limit):
        return OPEN
    return AGREES if (low > limit) == (sign == "+") else NOT


def within(low: float, high: float, margin: float) -> str:
    """The claim is that a number is nearly zero: the interval must lie inside, or outside, of ±
    margin to decide.
    """
    if -margin < low and high < margin:
        return AGREES
    return NOT if low > margin or high < -margin else OPEN


def rest_on(evidence: Sequence[Evidence], regime: str) -> list[Evidence]:
    """The same cases, said to rest on this kind of network."""
    return [replace(e, regime=regime) for e in evidence]


def summary_table(claims: Sequence[Claim], title: str = "Verdicts") -> Table:
    rows = [[c.text, c.paper, c.counts(), c.regime or "none", f"**{c.word}**"] for c in claims]
    return Table(title, SUMMARY, rows)


def evidence_table(claims: Sequence[Claim]) -> Table:
    rows = [
        [claim.text, e.case, e.regime, e.found, e.limits, e.verdict]
        for claim in claims
        for e in claim.evidence
    ]
    return Table("Evidence", HEADER, rows)
