"""Operating points: what each threshold accepts, costs and promises."""

from __future__ import annotations

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.bounds import compute_proportion_limits
from howsure.policies.guarantee import compute_upper_bound, count_at_steps, find_step_rows
from howsure.report.details import find_asked_coverages, find_operating_rows
from howsure.report.measurement import list_counts, round_finite, round_numbers
from howsure.report.report_types import ClassDeferral, Deciding, GuaranteeSteps, Operating, Points
from howsure.report.samples import list_class_names
from howsure.report.summary import Summary
from howsure.tallies.building import pool_adjacent_violators
from howsure.tallies.tally import Counts

MAX_FOLLOWED_ON_PAGE = 20  # classes whose deferral a page follows
MAX_CORNERS = 600
GUARANTEE_DELTAS = (0.01, 0.05, 0.1)
NO_GUARANTEE_FOR_GROUPS = (
    "these samples come in groups; `howsure threshold --risk` makes a promise about groups"
)


def build_operating(s: Summary, level: float) -> Operating:
    """What happens at each of at most 200 thresholds, spread evenly over coverage, most trusted
    first.

    Columns: coverage, threshold, accuracy of the accepted with its limits (Clopper & Pearson),
    errors and deferred per 1,000 cases, and the deferred share of each class.
    """
    t = s.tally
    rows = find_operating_rows(t)
    ends = t.ends
    n, kept, wrong = ends[-1], ends[rows], np.cumsum(t.loss)[rows]
    low = high = None
    if s.shape.alike:  # these limits hold for independent samples
        lows, highs = compute_proportion_limits(kept - wrong, kept, (1 - level) / 2)
        low, high = round_finite(lows), round_finite(highs)
    # The share of each class that is deferred, for the classes deferred most over all thresholds.
    deferral: list[ClassDeferral] = []
    classes = s.known_classes
    below = None if s.details is None else s.details.deferred
    if classes is not None and below is not None:
        names, count = list_class_names(classes, s.shape), classes.count
        share = below / np.maximum(count, 1)[:, None]
        present = np.flatnonzero(count)
        if len(names) > MAX_FOLLOWED_ON_PAGE:
            most = np.argsort(share.mean(axis=1), kind="stable")[::-1][:MAX_FOLLOWED_ON_PAGE]
            present = np.intersect1d(most, present)
        deferral = [
            {"name": names[c], "count": int(count[c]), "deferred": round_finite(share[c], 3)}
            for c in present.tolist()
        ]
    return {
        "coverage": round_finite(kept / n),
        "threshold": round_numbers(t.score[rows], 17),  # to the last bit: a policy is made of it
        "accuracy": round_finite(1 - wrong / kept),
        "low": low,
        "high": high,
        "errors": round_finite(1000 * wrong / n),
        "deferred": round_finite(1000 * (1 - kept / n)),
        "classes": deferral,
        "asked": find_asked_coverages(t).tolist(),
        "kept": round_finite(kept, 12),
        "wrong": round_finite(wrong, 12),
    }


def build_deciding(s: Summary, level: float) -> Deciding:
    """The thresholds that are cheapest for some cost, and those that a guarantee can stop at.

    >>> from howsure import Predictions
    >>> preds = Predictions.from_confidence([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    >>> corners = build_deciding(Summary.of(preds), 0.95)["corners"]
    >>> corners["kept"], corners["wrong"]
    ([0, 1, 3, 4], [0, 0, 1, 2])
    """
    t = s.tally
    # Whatever errors and deferrals cost, the cheapest threshold is a corner of the convex hull of
    # (kept, wrong), and pooling adjacent violators gives this hull.
    hull = pool_adjacent_violators(t)
    kept = np.concatenate(([0], np.cumsum(hull.count)))
    wrong = np.concatenate(([0], np.cumsum(hull.loss)))
    score = np.concatenate(([np.inf], hull.low))
    shown = min(len(kept), MAX_CORNERS)
    rows = np.unique(np.linspace(0, len(kept) - 1, shown).round().astype(int))
    half = (1 - level) / 2 if s.shape.alike else None
    # The steps that a fixed sequence tests; or why no guarantee can rest on these samples.
    guarantee: GuaranteeSteps | None = None
    why = NO_GUARANTEE_FOR_GROUPS if s.shape.grouped else None
    if why is None:
        try:
            steps = count_at_steps(t, "clopper_pearson")
        except InputError as e:
            why = str(e)
        else:
            at = find_step_rows(steps)
            bounds: dict[str, list[float]] = {}
            for delta in GUARANTEE_DELTAS:
                bounds[f"{delta:g}"] = [
                    compute_upper_bound(steps, int(row), delta, "clopper_pearson") for row in at
                ]
            points = _build_points(steps.score[at], steps.kept[at], steps.loss[at], half)
            guarantee = {"points": points, "bounds": bounds}
    return {
        "n": list_counts(np.asarray([t.n]))[0],
        "corners": _build_points(score[rows], kept[rows], wrong[rows], half),
        "guarantee": guarantee,
        "why": why,
    }


def _build_points(score: Floats, kept: Counts, wrong: Counts, half: float | None) -> Points:
    """Thresholds to the last bit, with what they accept. Limits fail with probability `half` at
    either end; there are none where that is None.
    """
    low = high = None
    if half is not None:
        lows, highs = compute_proportion_limits(kept - wrong, kept, half)
        low = [float(f"{x:.6g}") for x in lows.tolist()]
        high = [float(f"{x:.6g}") for x in highs.tolist()]
    return {
        "threshold": [x if np.isfinite(x) else None for x in score.tolist()],
        "kept": list_counts(kept),
        "wrong": list_counts(wrong),
        "low": low,
        "high": high,
    }
