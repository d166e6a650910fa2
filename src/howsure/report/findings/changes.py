"""Before and after: what a calibrator did to the predictions of the same samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from howsure import losses, metrics
from howsure._core.check import Floats
from howsure.predictions import Outcomes, Predictions
from howsure.render.model import FindingData
from howsure.report.findings.evidence import Finding, percent
from howsure.uncertainty.intervals import paired_difference
from howsure.uncertainty.means import standard_error

Z = 2.326  # one side of 99 %
WORDS = {
    "nll": "NLL",
    "brier": "the Brier score",
    "correctness_brier": "the Brier score of the confidence",
}


def changes(before: Predictions, after: Predictions) -> list[FindingData]:
    """Findings about a correction, as report JSON; both hold the same samples in the same order.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    >>> [f["name"] for f in changes(p, p)]
    ['ranking_unchanged']
    """
    looks: tuple[Callable[[Predictions, Predictions], Finding | None], ...] = (
        made_worse,
        ranking_changed,
        flips,
    )
    found = [look(before, after) for look in looks]
    return [finding.json() for finding in found if finding is not None]


def made_worse(before: Predictions, after: Predictions) -> Finding | None:
    """The loss of the corrected predictions is higher, beyond chance."""
    name, a, b = _losses(before, after)
    more = b - a
    spread = standard_error(more, before.group)
    if not more.mean() > Z * spread or more.mean() < 1e-3 * max(float(a.mean()), 1e-9):
        return None
    text = f"Calibration made it worse: {WORDS[name]} rose from {a.mean():.4g} to {b.mean():.4g} on these data."
    evidence = {
        "loss": name,
        "before": float(a.mean()),
        "after": float(b.mean()),
        "standard_error": spread,
    }
    return Finding("calibration_made_it_worse", text, evidence, "Vemuri 2020, chapter 5")


def _losses(before: Predictions, after: Predictions) -> tuple[str, Floats, Floats]:
    """The name of a proper loss, and its value per sample of both: NLL where it is finite, else
    Brier.
    """
    if before.kind == "confidence" or after.kind == "confidence":
        a, b = ((p.confidence - p.correct) ** 2 for p in (before, after))
        return "correctness_brier", a, b
    a, b = losses.nll(before), losses.nll(after)
    if np.isfinite(a).all() and np.isfinite(b).all():
        return "nll", a, b
    return "brier", losses.brier(before), losses.brier(after)


def ranking_changed(before: Predictions, after: Predictions) -> Finding | None:
    """Whether the order of the samples is another one, and what that does to AURC."""
    one, two = (
        Outcomes(p.confidence, correct=p.correct, weight=p.weight, group=p.group)
        for p in (before, after)
    )
    a, b = metrics.aurc(one.tally()), metrics.aurc(two.tally())
    if _same_order(before.confidence, after.confidence) and (before.correct == after.correct).all():
        text = f"The ranking is unchanged by calibration: AURC stays {a:.4g}."
        return Finding("ranking_unchanged", text, {"aurc": a}, "Ding et al. 2020, section 4.3")
    difference, low, high = paired_difference(metrics.aurc, two, one, level=0.99)
    if low <= 0 <= high:
        return None
    how = "better" if difference < 0 else "worse"
    text = (
        f"Calibration changed the ranking for the {how}: AURC {a:.4g} became {b:.4g} "
        f"(difference {difference:+.2g}, 99 % interval {low:+.2g} to {high:+.2g})."
    )
    evidence = {"difference": difference, "low": low, "high": high}
    return Finding("ranking_changed", text, evidence, "Ding et al. 2020, section 4.3")


def _same_order(a: Floats, b: Floats) -> bool:
    """Whether both rank the samples alike, ties included."""
    ranks = [np.unique(s, return_inverse=True)[1].reshape(-1) for s in (a, b)]
    return bool((ranks[0] == ranks[1]).all())


def flips(before: Predictions, after: Predictions) -> Finding | None:
    """Answers that changed, as averaged samples do when they are scaled."""
    if before.kind == "confidence" or after.kind == "confidence":
        return None
    n = int((before.prediction != after.prediction).sum())
    if n == 0:
        return None
    right = [float(p.correct.mean()) for p in (before, after)]
    text = f"{n:,} of {before.n:,} answers changed; accuracy went from {percent(right[0], 2)} to {percent(right[1], 2)}."
    paper = "Guo et al. 2017, section 4.2: a temperature of single passes changes no answer, other maps may"
    if before.samples > 1:
        text += " Scaling each pass before the mean is taken may change the largest mean."
        paper = "Laves et al. 2019, section 3 (whose claim does not hold for means)"
    evidence = {"flips": n, "n": before.n, "accuracy_before": right[0], "accuracy_after": right[1]}
    return Finding("predictions_flip", text, evidence, paper)
