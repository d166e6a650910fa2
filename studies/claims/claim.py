"""A claim of a paper, what the prediction files say about it, and the word that follows from the
numbers alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from ..tables.table import Table

AGREES, NOT, OPEN, MIXED = "agrees", "does not agree", "cannot be decided here", "mixed"
MISSING = "its networks are not trained yet"
HEADER = ["claim", "case", "found", "95 % interval", "verdict"]
SUMMARY = ["claim", "the paper", "cases that agree / do not / are open", "verdict"]


@dataclass(frozen=True)
class Evidence:
    """One case: a network, a pair of networks, or all of them together. `counts` is False for the
    single networks behind a mean: they are listed and do not vote. `edges` are the values at which
    the word changes."""

    case: str
    found: str
    low: float
    high: float
    word: str
    scale: float = 100.0
    digits: int = 2
    counts: bool = True
    edges: tuple[float, ...] = ()

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
    """`because` holds, for each word that may come out, the reason that would be given for it."""

    text: str
    paper: str
    evidence: Sequence[Evidence]
    because: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def word(self) -> str:
        return combined(self.words)

    @property
    def words(self) -> list[str]:
        return [e.word for e in self.evidence if e.counts]

    @property
    def reason(self) -> str:
        """And what a verdict of the other cases must not hide."""
        cases = [e.case for e in self.evidence if e.counts and e.word == OPEN]
        left = (
            f"Taken alone this stays open: {'; '.join(cases)}."
            if cases and self.word in (AGREES, NOT)
            else ""
        )
        return f"{self.because.get(self.word, '')} {left}".strip()

    @property
    def times(self) -> float:
        """How many times as much data would decide enough of the open cases; nan where that is not
        known.
        """
        voting = [e for e in self.evidence if e.counts]
        decided = max(self.words.count(AGREES), self.words.count(NOT))
        needed = len(voting) // 2 + 1 - decided
        found = sorted(e.times for e in voting if e.word == OPEN and not isnan(e.times))
        return found[needed - 1] if 0 < needed <= len(found) else float("nan")

    def counts(self) -> str:
        return " / ".join(str(self.words.count(word)) for word in (AGREES, NOT, OPEN))


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


def summary_table(claims: Sequence[Claim]) -> Table:
    rows = [[claim.text, claim.paper, claim.counts(), f"**{claim.word}**"] for claim in claims]
    return Table("Verdicts", SUMMARY, rows)


def evidence_table(claims: Sequence[Claim]) -> Table:
    rows = [
        [claim.text, e.case, e.found, e.limits, e.verdict]
        for claim in claims
        for e in claim.evidence
    ]
    return Table("Evidence", HEADER, rows)
