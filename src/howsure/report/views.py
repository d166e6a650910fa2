"""What a page shows beside metrics: curves, histogram, scatter, label errors, classes, bands, and
operating points: what each threshold accepts, costs and promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

import numpy as np
from numpy.typing import ArrayLike

from howsure import curves
from howsure._core.checks import Floats, InputError, Ints
from howsure._core.indices import sort_distinct
from howsure.binning import adaptive, equal_range, equal_size
from howsure.bounds import compute_proportion_limits
from howsure.curves import Curve
from howsure.curves.curve import trace_ideal
from howsure.metrics import bands
from howsure.policies.deployment import assign_folds
from howsure.policies.guarantee import (
    AcceptedCounts,
    RiskTest,
    count_accepted,
    guaranteed_threshold,
    search_thresholds,
)
from howsure.policies.policy import Policy
from howsure.policies.suggestions import SHORT_LIST, fit_suggestions
from howsure.report.catalogue import is_claim
from howsure.report.masks import draw_thumbnail
from howsure.report.measurement import clean_counts, list_counts, round_finite, round_numbers
from howsure.report.report_types import (
    CURVE_POINTS,
    Band,
    ClassDeferral,
    ClassRow,
    Confused,
    Confusion,
    CorpData,
    CurveData,
    Deciding,
    GuaranteeStep,
    GuaranteeSteps,
    HistogramData,
    Operating,
    Points,
    Scatter,
    SuggestedData,
    Suspect,
    Views,
    build_curve_data,
)
from howsure.report.samples import (
    find_asked_coverages,
    find_histogram_edges,
    find_operating_rows,
    list_class_names,
)
from howsure.report.summary import Summary
from howsure.tallies.building import pool_adjacent_violators
from howsure.tallies.row_tally import from_rows
from howsure.tallies.tally import Counts, Tally

MAX_LISTED_CLASSES = 200
MAX_CONFUSED_CLASSES = 40  # of a table of all pairs
MAX_LISTED_CONFUSIONS = 20
MAX_THUMBNAILS = 12
BAND_LEVELS = (0.99, 0.95)
RELIABILITY_BINS = {
    "equal_range": equal_range(15),
    "equal_size": equal_size(15),
    "adaptive": adaptive(),
}
MAX_FOLLOWED_ON_PAGE = 20  # classes whose deferral a page follows
MAX_CORNERS = 600
SUGGESTED_LEVEL = 0.95  # how often the truth is among the suggestions
GUARANTEE_DELTAS = (0.01, 0.05, 0.1)
GUARANTEE_RISKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
NO_GUARANTEE_FOR_GROUPS = (
    "these samples come in groups; `howsure threshold --risk` gives a guarantee about groups"
)


def build_views(
    s: Summary,
    level: float,
    images: Sequence[ArrayLike] | None = None,
    before: Summary | None = None,
    *,
    page: bool = True,
) -> Views:
    """All views of the first score; `images` (one per sample) make thumbnails of the likely label
    errors, `before` is the same data before calibration. Without `page` those that take their time
    and that text does not show are left out.

    >>> from howsure import Predictions
    >>> preds = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    >>> sorted(build_views(Summary.of(preds), 0.95))[:5]
    ['bands', 'classes', 'confusion', 'corp', 'deciding']
    """
    views: Views = {
        "operating": build_operating(s, level),
        "histogram": build_histogram(s),
        "scatter": build_scatter(s),
        "label_errors": list_label_errors(s, images),
        "classes": list_classes(s, level),
        "bands": list_bands(s.tally),
        "confusion": count_confusions(s),
    }
    if page:
        views["deciding"] = build_deciding(s, level)
        views["corp"] = build_corp(s)
    if before is not None:
        views["before"] = {"histogram": build_histogram(before), "scatter": build_scatter(before)}
    return views


def build_corp(s: Summary) -> CorpData | None:
    """The isotonic reliability of a score that is a claim."""
    if not is_claim(s.tally, s.shape.kind):
        return None
    corp = curves.corp(s.tally, band=s.shape.alike)
    return {
        "curve": build_curve_data(corp.curve),
        "score": corp.score,
        "miscalibration": corp.miscalibration,
        "discrimination": corp.discrimination,
        "uncertainty": corp.uncertainty,
    }


def build_histogram(s: Summary) -> HistogramData:
    """Counts of right, top-5 and wrong answers in about 50 bars; [0, 1] for claims, else the range
    of the scores.
    """
    t = s.tally
    edges = find_histogram_edges(t)
    # `np.histogram` of the samples and of their loss, without looking at every row: infinite scores
    # are in no bar.
    below = np.nextafter(edges, -np.inf)
    below[-1] = edges[-1]  # the last bar has both its ends
    ends = t.above(below)[::-1]  # samples from each edge on, those above all bars first
    # `ends[:0]` has no values, but keeps the type of the counts: whole numbers or weights.
    cuts = sort_distinct(np.concatenate((ends[:0], [0], ends, [t.n])))
    place = np.searchsorted(cuts, ends)
    sums = t.between(cuts)
    kept = np.concatenate((sums.count[:0], [0], np.cumsum(sums.count)))[place]
    lost = np.concatenate((sums.loss[:0], [0], np.cumsum(sums.loss)))[place]
    count, wrong = np.diff(kept)[::-1], np.diff(lost)[::-1]
    near = np.zeros(len(count), np.int64) if s.details is None else s.details.near
    if s.shape.weighted and s.losses:
        # A tally may have weights of mean 1; the near misses were summed with the weights given.
        near = near * (float(t.n) / s.losses["nll"].weight)
    return {
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "right": round_finite(clean_counts(count - wrong)),
        "top_5": round_finite(clean_counts(near)),
        "wrong": round_finite(clean_counts(wrong - near)),
    }


def build_scatter(s: Summary) -> Scatter | None:
    """Loss (NLL) against score of at most 1,500 distinct points; fate 0 right, 1 top-5, 2 wrong."""
    if s.sample is None:
        return None
    _, score, loss, fate = s.sample.T
    return {
        "score": round_finite(score, 4),
        "loss": round_finite(loss, 4),
        "fate": fate.astype(int).tolist(),
        "of": s.n,
    }


def list_label_errors(s: Summary, images: Sequence[ArrayLike] | None = None) -> list[Suspect]:
    """The wrong answers that are trusted most: wrong labels are found here first (Finlay & Oberman,
    section 7.2). The first 12 have a small picture, where there are images.
    """
    if images is not None and len(images) != s.n:
        raise InputError(
            f"images has {len(images):,} pictures for {s.n:,} samples; one per sample is needed."
        )
    first_rows: dict[int, int] = {}  # rows of the data set before each file
    rows_before = 0
    for file in sorted(s.files):
        first_rows[file] = rows_before
        rows_before += s.files[file]
    listed: list[Suspect] = []
    for sample in s.suspects:
        row = first_rows[sample.file] + sample.row
        suspect: Suspect = {
            "id": str(row) if sample.id is None else sample.id,
            "row": row,
            "score": round_numbers([-sample.minus_score])[0],
            "prediction": sample.prediction,
            "label": sample.label,
        }
        if images is not None and len(listed) < MAX_THUMBNAILS:
            suspect["image"] = draw_thumbnail(np.asarray(images[row]))
        listed.append(suspect)
    return listed


def list_classes(s: Summary, level: float) -> list[ClassRow]:
    """Per true class: count, recall with limits; per answer: how often given, confidence and
    accuracy then. The lowest recall comes first.
    """
    classes = s.known_classes
    if classes is None:
        return []
    names = list_class_names(classes, s.shape)
    count, given, hits = classes.count, classes.given, classes.hits
    low, high = compute_proportion_limits(hits, count, (1 - level) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = hits / count
        precision = round_numbers(hits / given)
        confidence = round_numbers(classes.claim / given)
    recalls = round_numbers(np.where(count, recall, np.nan))
    lows = round_numbers(np.where(count, low, np.nan))
    highs = round_numbers(np.where(count, high, np.nan))
    # Classes without samples have no recall; a recall of 2 sorts them behind all others.
    order = np.lexsort((np.arange(len(count)), np.where(count, hits / np.maximum(count, 1), 2)))
    return [
        {
            "name": names[c],
            "count": int(count[c]),
            "given": int(given[c]),
            "recall": recalls[c],
            "low": lows[c],
            "high": highs[c],
            "precision": precision[c],
            "confidence": confidence[c],
        }
        for c in order[:MAX_LISTED_CLASSES].tolist()
    ]


def count_confusions(s: Summary) -> Confusion | None:
    """Labels against answers, and the commonest wrong answers; None where either is not known.

    >>> from howsure import Predictions
    >>> preds = Predictions.from_probs([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], [0, 1, 1])
    >>> confusion = count_confusions(Summary.of(preds))
    >>> confusion["counts"], confusion["confidence"]
    ([[1, 0], [1, 1]], [[0.9, None], [0.8, 0.8]])
    >>> confusion["top"]
    [{'label': '1', 'prediction': '0', 'count': 1, 'share': 0.5, 'confidence': 0.8}]
    """
    classes = s.known_classes
    if classes is None or not classes.pairs.size:
        return None
    names = list_class_names(classes, s.shape)
    label, said, count = classes.pairs
    confidence = classes.pair_claim / np.maximum(count, 1)
    wrong = np.flatnonzero(label != said)
    commonest = wrong[np.lexsort((said[wrong], label[wrong], -count[wrong]))]
    top: list[Confused] = []
    for i in commonest[:MAX_LISTED_CONFUSIONS].tolist():
        confused: Confused = {
            "label": names[label[i]],
            "prediction": names[said[i]],
            "count": int(count[i]),
            "share": float(count[i] / classes.count[label[i]]),
        }
        if isfinite(confidence[i]):
            confused["confidence"] = round_finite(confidence[i : i + 1], 4)[0]
        top.append(confused)
    if len(names) > MAX_CONFUSED_CLASSES:
        return {"classes": [], "counts": None, "confidence": None, "top": top}
    counts = np.zeros((len(names), len(names)), np.int64)
    counts[label, said] = count
    means = np.full(counts.shape, np.nan)
    means[label, said] = confidence
    return {
        "classes": names,
        "counts": counts.tolist(),
        "confidence": [round_numbers(row, 4) for row in means],
        "top": top,
    }


def list_bands(t: Tally) -> list[Band]:
    """Bands that keep 99 %, then 95 % accuracy, then the rest (Finlay & Oberman, tables 3 to 5)."""
    b = bands(t, BAND_LEVELS)
    levels = [*BAND_LEVELS, None]
    shares, accuracies = round_numbers(b.weight), round_numbers(b.accuracy)
    thresholds = [*round_numbers(b.threshold, 12), None]
    return [
        {"level": level, "share": share, "accuracy": accuracy, "threshold": threshold}
        for level, share, accuracy, threshold in zip(
            levels, shares, accuracies, thresholds, strict=True
        )
    ]


def draw_curves(s: Summary) -> dict[str, CurveData]:
    """Every curve of a data set, by name, thinned before it is computed: a drawn curve needs few of
    the rows of a tally.
    """
    t = s.tally
    points = t.distinct
    from_top = thin_tally(t, pick_rows(points))
    from_bottom = thin_tally(t, pick_rows(points), bottom_up=True)
    # A ROC curve has one point more than the tally has rows: the origin, which needs no row.
    for_roc = thin_tally(t, pick_rows(points + 1)[1:] - 1, bottom_up=True)
    # The ideal score puts all right answers first; its curve begins with the last of them.
    right, wrong = int(t.n - t.total), int(t.total)
    start = max(right, 1)
    ideal_points = right + wrong + 1 - start
    kept: Floats = start + pick_rows(ideal_points).astype(np.float64)
    ideal = trace_ideal(kept, right, wrong)
    drawn = {
        "risk_coverage": _encode_curve(curves.risk_coverage(from_top), points),
        "threshold_diagram": draw_diagram(t),
        "ideal_threshold_diagram": _encode_curve(ideal, ideal_points),
        "roc": _encode_curve(curves.roc(for_roc), points + 1),
        "precision_recall": _encode_curve(curves.precision_recall(from_bottom), points),
        "odds_by_quantile": build_curve_data(curves.odds_by_quantile(t)),
    }
    if is_claim(t, s.shape.kind):
        for name, bins in RELIABILITY_BINS.items():
            if name == "adaptive" and t.weighted:
                continue  # adaptive bins count samples, which weights do not allow
            curve = curves.reliability(t, bins, consistency=True)
            drawn[f"reliability_{name}"] = build_curve_data(curve)
    if s.uncertainty is not None:
        # Error against normalised entropy, from the tally that claims to be wrong by the entropy.
        c = curves.reliability(s.uncertainty, equal_range(15))
        labels = ("normalised entropy", "error")
        curve = Curve(c.x, c.y, c.weight, c.threshold, labels=labels)
        drawn["uncertainty_reliability"] = build_curve_data(curve)
        drawn["rejection"] = draw_rejection(s.uncertainty)
    return drawn


def draw_curves_before(before: Summary) -> dict[str, CurveData]:
    """The curves of the same data before calibration, by their name in the report after it."""
    drawn: dict[str, CurveData] = {}
    for name, curve in draw_curves(before).items():
        if name != "ideal_threshold_diagram":  # calibration does not change it
            drawn[f"{name}_before"] = curve
    if is_claim(before.tally, before.shape.kind):
        corp = curves.corp(before.tally, band=False)
        drawn["reliability_before"] = build_curve_data(corp.curve)
    return drawn


def _encode_curve(curve: Curve, points: int) -> CurveData:
    """A thinned curve as report JSON, with the number of points that it had."""
    return {**build_curve_data(curve), "points": points}


def pick_rows(points: int) -> Ints:
    """Which points of a curve are drawn; the same as `build_curve_data` picks."""
    return sort_distinct(np.linspace(0, points - 1, min(points, CURVE_POINTS)).round().astype(int))


def thin_tally(t: Tally, rows: Ints, *, bottom_up: bool = False) -> Tally:
    """A tally whose curve is that of `t` at these rows: each row with all before it, counted from
    the top or bottom.
    """
    score, kept, lost = t.running(rows, bottom_up=bottom_up)
    count, loss = np.diff(kept, prepend=0), np.diff(lost, prepend=0)
    if bottom_up:
        score, count, loss = score[::-1], count[::-1], loss[::-1]
    # Infinite scores rank; their claim, which is not a number then, is never read.
    with np.errstate(invalid="ignore", over="ignore"):
        return from_rows(score, count, loss)


def draw_diagram(t: Tally) -> CurveData:
    """The threshold diagram of a tally, thinned as the curves of a report are."""
    return _encode_curve(curves.threshold_diagram(thin_tally(t, pick_rows(t.distinct))), t.distinct)


def draw_rejection(t: Tally) -> CurveData:
    """Error of the kept against the largest entropy that is kept, from the same tally."""
    # Small entropies are kept first, so the rows are taken from the bottom.
    thin = thin_tally(t, pick_rows(t.distinct), bottom_up=True)
    entropy = thin.score[::-1]
    kept = np.cumsum(thin.count[::-1])
    wrong = np.cumsum((thin.count - thin.loss)[::-1])
    curve = Curve(
        x=entropy,
        y=wrong / kept,
        weight=kept.astype(np.float64),
        threshold=0.0 - entropy,
        labels=("largest normalised entropy kept", "error of the kept"),
    )
    return _encode_curve(curve, t.distinct)


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
            present = np.sort(most[count[most] > 0])
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
    rows = sort_distinct(np.linspace(0, len(kept) - 1, shown).round().astype(int))
    half = None
    if s.shape.alike:
        half = (1 - level) / 2
    # The risks that the page offers; or why no guarantee can rest on these samples.
    guarantee: GuaranteeSteps | None = None
    why = None
    if s.shape.grouped:
        why = NO_GUARANTEE_FOR_GROUPS
    if why is None:
        try:
            counts = count_accepted(t)
        except InputError as e:
            why = str(e)
        else:
            guarantee = _build_guarantee_steps(counts, half)
    return {
        "n": list_counts(np.asarray([t.n]))[0],
        "corners": _build_points(score[rows], kept[rows], wrong[rows], half),
        "guarantee": guarantee,
        "why": why,
    }


def build_suggestions(s: Summary, risk: float) -> SuggestedData | None:
    """What a policy of this risk would suggest for what it defers; None where that says nothing.

    >>> from howsure import Predictions
    >>> preds = Predictions.from_probs([[0.7, 0.1, 0.1, 0.1]], [0])
    >>> build_suggestions(Summary.of(preds), 0.05) is None
    True
    """
    if s.details is None or s.details.samples is None or s.shape.weighted:
        return None
    if s.labels is not None or s.images is not None:
        return None
    samples = s.details.samples
    preds = samples.preds
    if not preds.vectors or preds.k is None or preds.k <= SHORT_LIST:
        return None
    # As the command does it: halves by its seed, its delta, and groups that stay together.
    half = assign_folds(preds.n, preds.group, 2, 0)
    outcomes = samples.outcomes("score", s.first)
    guarantee = guaranteed_threshold(outcomes[half == 0], risk=risk, delta=0.05)
    deferred = (half == 1) & (outcomes.score < guarantee.threshold)
    if not guarantee.feasible or not deferred.any():
        return None
    # Only the deferred are looked at, so the policy that is fitted here defers everything.
    policy = fit_suggestions(Policy(s.first, inf), preds[deferred], SUGGESTED_LEVEL)
    assert policy.suggestions is not None
    return {"risk": risk, "level": SUGGESTED_LEVEL, "text": policy.suggestions.to_text()}


def _build_guarantee_steps(counts: AcceptedCounts, half: float | None) -> GuaranteeSteps:
    steps: list[GuaranteeStep] = []
    places: dict[int, int] = {}  # of a row among the points
    for delta in GUARANTEE_DELTAS:
        for risk in GUARANTEE_RISKS:
            test = RiskTest(risk=risk, delta=delta, bound="clopper_pearson")
            row, bound = search_thresholds(counts, test, "band")
            step: GuaranteeStep = {"risk": risk, "delta": delta, "point": None, "bound": None}
            if row is not None:
                step["point"] = places.setdefault(row, len(places))
                step["bound"] = bound
            steps.append(step)
    at = np.array(list(places), dtype=np.int64)
    points = _build_points(counts.score[at], counts.kept[at], counts.loss[at], half)
    return {"points": points, "steps": steps}


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
