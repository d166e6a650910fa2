"""What a page needs to decide: what every threshold costs and promises, and what the numbers are
held against.
"""

from __future__ import annotations

import numpy as np

from howsure import curves, metrics
from howsure._core.check import Floats, InputError, Ints
from howsure.bounds import proportion_limits
from howsure.policies.guarantee import kept_at_steps
from howsure.policies.sequences import Kept, step_rows, upper_bound
from howsure.render.model import (
    Calling,
    CorpData,
    Deciding,
    Metrics,
    Points,
    TestedSteps,
    curve_json,
)
from howsure.report.catalogue import is_claim
from howsure.report.summary import Summary
from howsure.tallies.pooling import pooled
from howsure.tallies.tally import Counts, Tally

DELTAS = (0.01, 0.05, 0.1)
MOST = 600  # corners of a page
GROUPED = "these samples come in groups; `howsure threshold --risk` makes a promise about groups"


def deciding(s: Summary, level: float) -> Deciding:
    """The thresholds that are cheapest for some cost, and those that a guarantee can stop at.

    >>> from howsure import Predictions
    >>> found = deciding(Summary.of(Predictions.from_confidence([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])), 0.95)
    >>> found["corners"]["kept"], found["corners"]["wrong"]
    ([0, 1, 3, 4], [0, 0, 1, 2])
    """
    t = s.tally
    steps = pooled(t)
    kept, wrong = (np.concatenate(([0], np.cumsum(column))) for column in (steps.count, steps.loss))
    pick = np.unique(np.linspace(0, len(kept) - 1, min(len(kept), MOST)).round().astype(int))
    score = np.concatenate(([np.inf], steps.low))
    promised, why = _guarantee(s, level)
    return {
        "n": _plain(np.asarray([t.n]))[0],
        "corners": points(score[pick], kept[pick], wrong[pick], _half(s, level)),
        "guarantee": promised,
        "why": why,
    }


def _half(s: Summary, level: float) -> float | None:
    """How often each limit may fail; None where exact limits of independent samples do not hold."""
    return (1 - level) / 2 if s.shape.alike else None


def points(score: Floats, kept: Counts, wrong: Counts, half: float | None) -> Points:
    """Thresholds to the last bit, with what they accept."""
    low, high = proportion_limits(kept - wrong, kept, half or 0.025)
    return {
        "threshold": [x if np.isfinite(x) else None for x in score.tolist()],
        "kept": _plain(kept),
        "wrong": _plain(wrong),
        "low": None if half is None else [float(f"{x:.6g}") for x in low.tolist()],
        "high": None if half is None else [float(f"{x:.6g}") for x in high.tolist()],
    }


def _plain(counts: Counts) -> list[float]:
    """Whole numbers as such."""
    return [int(x) if x == int(x) else float(x) for x in counts.tolist()]


def _guarantee(s: Summary, level: float) -> tuple[TestedSteps | None, str | None]:
    if s.shape.grouped:
        return None, GROUPED
    try:
        kept = kept_at_steps(s.tally, "clopper_pearson")
    except InputError as e:
        return None, str(e)
    rows = step_rows(kept)
    found = points(kept.score[rows], kept.kept[rows], kept.loss[rows], _half(s, level))
    return {
        "points": found,
        "bounds": {f"{delta:g}": _bounds(kept, rows, delta) for delta in DELTAS},
    }, None


def _bounds(kept: Kept, rows: Ints, delta: float) -> list[float]:
    return [upper_bound(kept, int(row), delta, "clopper_pearson") for row in rows]


def corp_data(s: Summary) -> CorpData | None:
    """The isotonic reliability of a score that is a claim."""
    if not is_claim(s.tally):
        return None
    found = curves.corp(s.tally, band=s.shape.alike)
    return {
        "curve": curve_json(found.curve),
        "score": found.score,
        "miscalibration": found.miscalibration,
        "discrimination": found.discrimination,
        "uncertainty": found.uncertainty,
    }


def calling(t: Tally) -> Calling:
    """Counts where cases are called positive from each hundredth on; `t` is the tally of the
    positive probability.

    >>> from howsure import tally
    >>> found = calling(tally([0.9, 0.6, 0.2], correct=[1, 0, 0]))
    >>> found["true_positive"][49], found["false_positive"][49]
    (1, 1)
    """
    at = np.arange(1, 100) / 100
    rows = np.searchsorted(-t.score, -at, side="right")
    called, wrong = (np.concatenate(([0], np.cumsum(c)))[rows] for c in (t.count, t.loss))
    positive = t.n - t.total
    return {
        "threshold": at.tolist(),
        "true_positive": _plain(called - wrong),
        "false_positive": _plain(wrong),
        "false_negative": _plain(positive - (called - wrong)),
        "true_negative": _plain(t.total - wrong),
    }


def anchored(numbers: Metrics, t: Tally) -> Metrics:
    """The same numbers; the AURC with what a random and what the best order of these answers would
    give.
    """
    if numbers["aurc"]["value"] is None:
        return numbers
    anchors = {"random": float(t.total / t.n), "best": metrics.optimal_aurc(t)}
    return {**numbers, "aurc": {**numbers["aurc"], "anchors": anchors}}
