"""Inside the bins of the ECE: what an average over a wide bin hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure._core.check import Floats
from howsure.binning import equal_range
from howsure.report.findings.case import LEAST, Case
from howsure.report.findings.evidence import ALPHA, Finding, fewer_than, more_than
from howsure.tallies.tally import Tally

LOOKS_WELL = 0.06  # a gap that a reader of the diagram would let pass
PIECES = 8  # of a bin, looked at one by one
DING = "Ding et al. 2020"


@dataclass(frozen=True, eq=False)
class Parts:
    """Pieces of one equal-range bin, most trusted first, with which of them are off beyond chance."""

    gap: float  # of the whole bin
    low: float
    high: float
    gaps: Floats
    ends: list[tuple[float, float]]
    p: Floats
    off: Any


def _parts(case: Case) -> list[Parts]:
    """The bins of the ECE, each cut into pieces of equally many samples; ties stay together."""
    t = case.tally
    cuts = equal_range(15).cuts(t)
    inner = [_pieces(t, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    tests = 2 * sum(len(c) - 1 for c in inner if len(c) > 2)
    return [_measured(case, c, ALPHA / max(tests, 1)) for c in inner if len(c) > 2]


def _pieces(t: Tally, a: Any, b: Any) -> Any:
    m = int(min(PIECES, (b - a) // LEAST))
    return np.unique([a, b]) if m < 2 else np.unique(np.clip(t.cut_at(np.linspace(a, b, m + 1)), a, b))


def _measured(case: Case, cuts: Any, alpha: float) -> Parts:
    s = case.tally.between(np.unique(np.concatenate(([0], cuts, [case.tally.n]))))
    inside = slice(1 if cuts[0] > 0 else 0, None if cuts[-1] == case.tally.n else -1)
    n, claim, wrong, high, low = (c[inside] for c in (s.count, s.claim, s.loss, s.high, s.low))
    k, m, q = wrong / case.effect, n / case.effect, 1 - claim / n
    gaps = claim / n - (1 - wrong / n)
    p = np.where(gaps > 0, more_than(k, m, q), fewer_than(k, m, q))
    off = (p < alpha) & (np.abs(gaps) >= 0.03)
    whole = float(claim.sum() / n.sum() - (1 - wrong.sum() / n.sum()))
    return Parts(whole, float(low[-1]), float(high[0]), gaps, list(zip(low, high, strict=True)), p, off)


def internal_compensation(case: Case) -> Finding | None:
    """One bin claims too much in one place and too little in another, and the two cancel."""
    for part in _parts(case):
        over, under = part.off & (part.gaps > 0), part.off & (part.gaps < 0)
        if over.any() and under.any():
            i, j = int(np.argmax(part.gaps)), int(np.argmin(part.gaps))
            text = (
                f"Errors cancel inside a bin: between {part.low:.3g} and {part.high:.3g} the gap is only "
                f"{part.gap:+.3f}, but {_where(part, i)} and {_where(part, j)}. The ECE does not see this."
            )
            evidence = {"bin": [part.low, part.high], "gap": part.gap, "gaps": [float(g) for g in part.gaps]}
            return Finding("internal_compensation", text, evidence, f"{DING}, section 4.2 and proposition 1")
    return None


def _where(part: Parts, i: int) -> str:
    low, high = part.ends[i]
    return f"{part.gaps[i]:+.3f} from {low:.4g} to {high:.4g}"


def hidden_error(case: Case) -> Finding | None:
    """A wide bin looks well while a piece of it is far off."""
    worst: tuple[float, Parts, int] | None = None
    for part in _parts(case):
        mixed = (part.off & (part.gaps > 0)).any() and (part.off & (part.gaps < 0)).any()
        hidden = part.off & (np.abs(part.gaps) >= max(2 * abs(part.gap), abs(part.gap) + 0.05))
        if hidden.any() and not mixed and abs(part.gap) <= LOOKS_WELL:
            i = int(np.argmax(np.where(hidden, np.abs(part.gaps), 0)))
            if worst is None or abs(part.gaps[i]) > worst[0]:
                worst = (float(abs(part.gaps[i])), part, i)
    if worst is None:
        return None
    _, part, i = worst
    text = (
        f"An error hides in a wide bin: between {part.low:.3g} and {part.high:.3g} confidence and accuracy differ by "
        f"{part.gap:+.3f} on the whole, but by {_where(part, i)}. Adaptive bins show it."
    )
    evidence = {"bin": [part.low, part.high], "gap": part.gap, "piece": list(part.ends[i]), "p_value": float(part.p[i])}
    return Finding("hidden_error", text, evidence, f"{DING}, section 4.2, undetectable error")
