"""The one value that all curves are, and the curves of a tally: what accepting and deferring does to
the risk, and how well scores find errors or successes.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.scores import normalised_entropy
from howsure.tallies.building import SetTally, tally
from howsure.tallies.tally import Counts, Tally, needs_tally, needs_zero_one

# The ideal diagram has a point for each wrong answer, and counts may be any size.
IDEAL_POINTS = 1 << 20
DIAGRAM_LABELS = ("deferred", "accuracy of the kept")


@frozen(eq=False)
class Curve:
    """Points (x, y) with what belongs to them: sample counts, thresholds, and a band (low, high)
    around y.

    >>> from howsure import risk_coverage, tally
    >>> c = risk_coverage(tally([0.9, 0.8], correct=[1, 0]))
    >>> len(c), c.labels
    (2, ('coverage', 'risk'))
    """

    x: Floats
    y: Floats
    weight: Floats | None = None
    threshold: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, str] = ("x", "y")

    def __len__(self) -> int:
        return len(self.x)


# ---- accepting and deferring


def risk_coverage(t: Tally | SetTally) -> Curve:
    r"""Risk of the accepted against the share accepted, one point per distinct threshold.

    A sample is accepted where its score is at least the threshold; ties are accepted together, the
    last point has coverage 1, and coverage 0 is no point. Ding et al. 2020, eq. 5–6.

    >>> c = risk_coverage(tally([0.9, 0.8, 0.8], correct=[1, 0, 1]))
    >>> c.x, c.y
    (array([0.33333333, 1. ]), array([0. , 0.33333333]))
    """
    if isinstance(t, SetTally):
        kept, risk = np.cumsum(t.count), t.risk
    else:
        needs_tally(t, "risk_coverage")
        kept = np.cumsum(t.count)
        risk = np.cumsum(t.loss) / kept
    return Curve(
        x=kept / kept[-1],
        y=risk,
        weight=kept.astype(np.float64),
        threshold=t.score,
        labels=("coverage", "risk"),
    )


def threshold_diagram(t: Tally, *, ideal: bool = False) -> Curve:
    r"""Accuracy of the kept against the share deferred, one point per distinct threshold.

    `ideal=True` gives the diagram of a score that knows which answers are right: every wrong answer
    is deferred first, one point for each (2^20 points, spread evenly, where there are more). Vemuri
    2020, chapter 4. See also: `aac`.

    >>> threshold_diagram(tally([0.9, 0.8], correct=[1, 0])).y
    array([1. , 0.5])
    """
    needs_zero_one(t, "threshold_diagram")
    if ideal:
        right, wrong = int(t.n - t.total), int(t.total)
        first, last = max(right, 1), right + wrong
        points = min(IDEAL_POINTS, last - first + 1)
        kept = np.linspace(first, last, points).round()
        return trace_ideal(kept.astype(np.float64), right, wrong)
    c = risk_coverage(t)
    return Curve(
        x=1 - c.x, y=1 - c.y, weight=c.weight, threshold=c.threshold, labels=DIAGRAM_LABELS
    )


def trace_ideal(kept: Floats, right: int, wrong: int) -> Curve:
    """The ideal threshold diagram at these numbers of kept samples."""
    accuracy = np.minimum(right / kept, 1.0)
    return Curve(x=1 - kept / (right + wrong), y=accuracy, weight=kept, labels=DIAGRAM_LABELS)


def rejection(preds: Predictions, thresholds: ArrayLike | None = None) -> Curve:
    r"""Error of the kept against the largest normalised entropy that is kept, :math:`\tilde H \le
    H_\max`.

    All distinct entropies by default; a threshold that keeps nothing has error nan. `.weight`
    counts the kept. Laves et al. 2019, figure 3.

    >>> c = rejection(Predictions.from_probs([[0.9, 0.1], [0.5, 0.5]], [0, 1]))
    >>> c.y, c.weight
    (array([0. , 0.5]), array([1., 2.]))
    """
    needs_predictions(preds, "rejection")
    t = tally(-normalised_entropy(preds), correct=preds.correct, weight=preds.weight)
    c = risk_coverage(t)
    labels = ("largest normalised entropy kept", "error of the kept")
    entropy = 0.0 - t.score
    if thresholds is None:
        return Curve(x=entropy, y=c.y, weight=c.weight, threshold=t.score, labels=labels)
    x = checks.column(thresholds, "thresholds").astype(np.float64)
    row = np.searchsorted(entropy, x, side="right")
    assert c.weight is not None
    error = np.concatenate(([nan], c.y))[row]
    kept = np.concatenate(([0.0], c.weight))[row]
    return Curve(x=x, y=error, weight=kept, threshold=-x, labels=labels)


# ---- finding errors, or successes


def roc(t: Tally, positive: str = "error") -> Curve:
    """True against false positive rate, from (0, 0) to (1, 1); errors are the positives by default.

    Hendrycks & Gimpel 2017. See also: `auroc`, and the warning there.

    >>> roc(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([0., 1., 1., 1.])
    """
    needs_zero_one(t, "roc")
    tp, fp, score = _count_positives(t, positive)
    start = -inf if positive == "error" else inf
    return Curve(
        x=np.concatenate(([0.0], _divide_by_last(fp))),
        y=np.concatenate(([0.0], _divide_by_last(tp))),
        threshold=np.concatenate(([start], score)),
        labels=("false positive rate", "true positive rate"),
    )


def precision_recall(t: Tally, positive: str = "error") -> Curve:
    """Precision against recall, one point per distinct threshold; errors are the positives by
    default.

    See also: `aupr`, and the warning at `auroc`.

    >>> precision_recall(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])).y
    array([1. , 0.5 , 0.33333333])
    """
    needs_zero_one(t, "precision_recall")
    tp, fp, score = _count_positives(t, positive)
    kept = tp + fp
    return Curve(
        x=_divide_by_last(tp),
        y=tp / kept,
        weight=kept.astype(np.float64),
        threshold=score,
        labels=("recall", "precision"),
    )


def _count_positives(t: Tally, positive: str) -> tuple[Counts, Counts, Floats]:
    """Running true and false positives over thresholds, with the scores; errors are found from the
    bottom up.
    """
    if positive not in ("error", "success"):
        raise InputError(f"positive={positive!r}; 'error' or 'success' is needed.")
    wrong, right, score = t.loss, t.count - t.loss, t.score
    if positive == "error":
        return np.cumsum(wrong[::-1]), np.cumsum(right[::-1]), score[::-1]
    return np.cumsum(right), np.cumsum(wrong), score


def _divide_by_last(running: Array) -> Floats:
    """A running count as a share of its total; nan of nothing."""
    if not running[-1]:
        return np.full(len(running), nan)
    return running / running[-1]


__all__ = ["Curve", "precision_recall", "rejection", "risk_coverage", "roc", "threshold_diagram"]
