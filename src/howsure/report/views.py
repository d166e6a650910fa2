"""What a page shows beside metrics and curves: operating points, histogram, scatter, label errors, classes, bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from howsure import losses
from howsure._core.check import Array, Floats, InputError, Ints
from howsure.metrics import bands
from howsure.predictions import Predictions
from howsure.report.thumbnails import thumbnail
from howsure.tallies.tally import Tally

ROWS = 201  # operating points: steps of half a percent
BARS = 50  # of the histogram
DOTS = 1_500  # of the scatter plot
SHOWN_CLASSES = 20  # whose deferral is followed
LISTED_CLASSES = 200
LEAST_OF_CLASS = 5  # samples of a class on average, or labels are no classes but free text
SUSPECTS, PICTURED = 30, 12
TOP_K, MANY_CLASSES = 5, 20  # among few classes nearly every label is in the top 5
LEVELS = (0.99, 0.95)
DIGITS = 6


def views(
    preds: Predictions, score: Floats, t: Tally, *, level: float = 0.95, seed: int = 0, images: Any = None
) -> dict[str, Any]:
    """All views of one score, as JSON; `images` (one per sample) make thumbnails of the likely label errors.

    >>> from howsure import tally
    >>> p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    >>> sorted(views(p, p.confidence, tally(p.confidence, p.correct)))
    ['bands', 'classes', 'histogram', 'label_errors', 'operating', 'scatter']
    """
    fate = fates(preds)
    return {
        "operating": operating(preds, score, t, level),
        "histogram": histogram(score, fate, preds.weight),
        "scatter": scatter(preds, score, fate, seed),
        "label_errors": with_images(label_errors(preds, score), images, preds.n),
        "classes": classes(preds, level),
        "bands": band_rows(t),
    }


def operating(preds: Predictions, score: Floats, t: Tally, level: float) -> dict[str, Any]:
    """What happens at each of at most 201 thresholds, spread evenly over coverage, most trusted first.

    Columns: coverage, threshold, accuracy of the accepted with its limits (Clopper & Pearson), errors and deferred
    per 1,000 cases, and the deferred share of each class.
    """
    unsure = t.weighted or preds.group is not None
    found, threshold = points(t, level, unsure=unsure)
    return {**found, "classes": _deferral(preds, score, threshold)}


def points(t: Tally, level: float, *, unsure: bool) -> tuple[dict[str, Any], Floats]:
    """The columns of `operating` that a tally gives, and the thresholds; no limits where they would be `unsure`."""
    kept, wrong = np.cumsum(t.count), np.cumsum(t.loss)
    rows = np.unique(np.searchsorted(kept, np.linspace(0, kept[-1], ROWS)[1:]).clip(max=len(kept) - 1))
    n, kept, wrong, threshold = kept[-1], kept[rows], wrong[rows], t.score[rows]
    low, high = proportion_limits(kept - wrong, kept, level)
    columns = {
        "coverage": rounded(kept / n),
        "threshold": rounded(threshold, 12),
        "accuracy": rounded(1 - wrong / kept),
        "low": None if unsure else rounded(low),  # these limits hold for independent samples
        "high": None if unsure else rounded(high),
        "errors": rounded(1000 * wrong / n),
        "deferred": rounded(1000 * (1 - kept / n)),
    }
    return columns, threshold


def _deferral(preds: Predictions, score: Floats, threshold: Floats) -> list[dict[str, Any]]:
    """The share of each class that is deferred, for the classes that are deferred most over all thresholds."""
    if (found := classes_of(preds)) is None:
        return []
    names, label, _ = found
    count = np.bincount(label, minlength=len(names))
    if len(names) > SHOWN_CLASSES:
        area = np.bincount(label, weights=_ranks(score), minlength=len(names)) / np.maximum(count, 1)
        shown = np.sort(np.argsort(area, kind="stable")[::-1][:SHOWN_CLASSES])
    else:
        shown = np.flatnonzero(count)
    of = {int(c): np.sort(score[label == c]) for c in shown if count[c]}
    return [
        {"name": names[c], "count": len(s), "deferred": rounded(np.searchsorted(s, threshold, side="left") / len(s), 4)}
        for c, s in of.items()
    ]


def _ranks(score: Floats) -> Floats:
    """How many samples score higher."""
    ordered = np.sort(score)
    return (len(score) - np.searchsorted(ordered, score, side="right")).astype(np.float64)


def proportion_limits(successes: Array, n: Array, level: float) -> tuple[Floats, Floats]:
    """Clopper & Pearson limits of many proportions at once."""
    a = (1 - level) / 2
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, a), 0.0)
        high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - a), 1.0)
    return low, high


def fates(preds: Predictions) -> Ints:
    """0 right, 1 wrong but among the five most probable, 2 wrong."""
    wrong = np.where(preds.correct, 0, 2)
    if preds.kind == "confidence" or preds.k is None or preds.k <= MANY_CLASSES:
        return wrong
    near = losses.top_k(TOP_K)(preds) == 0
    return np.where((wrong == 2) & near, 1, wrong)


def histogram(score: Floats, fate: Ints, weight: Floats | None) -> dict[str, Any]:
    """Counts of right, top-5 and wrong answers in 50 bars; [0, 1] for claims, else the range of the scores."""
    finite = np.isfinite(score)
    s, f, w = score[finite], fate[finite], None if weight is None else weight[finite]
    low, high = span(s)
    right, near, wrong = (
        rounded(np.histogram(s[f == what], BARS, (low, high), weights=None if w is None else w[f == what])[0])
        for what in (0, 1, 2)
    )
    return {"low": low, "high": high, "right": right, "top_5": near, "wrong": wrong}


def span(s: Floats) -> tuple[float, float]:
    """Where the bars of a histogram begin and end."""
    if not len(s) or (s.min() >= 0 and s.max() <= 1):
        return 0.0, 1.0
    low, high = float(s.min()), float(s.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def scatter(preds: Predictions, score: Floats, fate: Ints, seed: int) -> dict[str, Any] | None:
    """Loss (NLL) against score of at most 1,500 samples drawn at random; fate 0 right, 1 top-5, 2 wrong."""
    if preds.kind == "confidence":
        return None
    loss = losses.nll(preds)
    drawn = np.flatnonzero(np.isfinite(loss) & np.isfinite(score))
    if len(drawn) > DOTS:
        drawn = np.sort(np.random.default_rng(seed).choice(drawn, DOTS, replace=False))
    return {
        "score": rounded(score[drawn], 4),
        "loss": rounded(loss[drawn], 4),
        "fate": fate[drawn].tolist(),
        "of": preds.n,
    }


def label_errors(preds: Predictions, score: Floats) -> list[dict[str, Any]]:
    """The wrong answers that are trusted most: wrong labels are found here first (Finlay & Oberman, section 7.2)."""
    wrong = np.flatnonzero(~preds.correct)
    surest = wrong[np.lexsort((wrong, -score[wrong]))][:SUSPECTS]
    names = class_names(preds)
    said = preds.known_prediction if preds.kind == "confidence" else preds.prediction
    name: Callable[[Any], str] = lambda c: names[int(c)] if names and preds.kind != "confidence" else str(c)
    return [
        {
            "id": str(i if preds.ids is None else preds.ids[i]),
            "row": int(i),
            "score": rounded(score[[i]])[0],
            "prediction": None if said is None else name(said[i]),
            "label": None if preds.known_labels is None else name(preds.known_labels[i]),
        }
        for i in surest
    ]


def with_images(suspects: list[dict[str, Any]], images: Any, n: int) -> list[dict[str, Any]]:
    """The first 12 suspects with a small picture each."""
    if images is None:
        return suspects
    if len(images) != n:
        raise InputError(f"images has {len(images):,} pictures for {n:,} samples; one per sample is needed.")
    pictured = [{**s, "image": thumbnail(images[s["row"]])} for s in suspects[:PICTURED]]
    return [*pictured, *suspects[PICTURED:]]


def classes(preds: Predictions, level: float) -> list[dict[str, Any]]:
    """Per true class: count, recall with limits; per answer: how often given, confidence and accuracy then."""
    if (found := classes_of(preds)) is None:
        return []
    names, label, answer = found
    said = label[:0] if answer is None else answer
    count, given, hits = (np.bincount(a, minlength=len(names)) for a in (label, said, label[preds.correct]))
    claim: Floats = np.bincount(said, weights=preds.confidence[: len(said)], minlength=len(names)).astype(np.float64)
    return class_rows(count, given, hits, claim, names, level)


def class_rows(
    count: Array, given: Array, hits: Array, claim: Floats, names: Sequence[str], level: float
) -> list[dict[str, Any]]:
    """`classes` from sums: samples, answers and right answers of each class, and the summed claims of its answers."""
    low, high = proportion_limits(hits, count, level)
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = {
            "recall": rounded(hits / count),
            "low": rounded(np.where(count, low, np.nan)),
            "high": rounded(np.where(count, high, np.nan)),
            "precision": rounded(hits / given),
            "confidence": rounded(claim / given),
        }
    worst = np.lexsort((np.arange(len(count)), np.where(count, hits / np.maximum(count, 1), 2)))[:LISTED_CLASSES]
    return [
        {"name": names[c], "count": int(count[c]), "given": int(given[c]), **{k: v[c] for k, v in columns.items()}}
        for c in worst
    ]


def band_rows(t: Tally) -> list[dict[str, Any]]:
    """Bands that keep 99 %, then 95 % accuracy, then the rest (Finlay & Oberman, tables 3 to 5)."""
    b = bands(t, LEVELS)
    threshold = [*rounded(b.threshold, 12), None]
    return [
        {"level": level, "share": share, "accuracy": accuracy, "threshold": low}
        for level, share, accuracy, low in zip(
            [*LEVELS, None], rounded(b.weight), rounded(b.accuracy), threshold, strict=True
        )
    ]


class Classes(NamedTuple):
    """Names of the classes, and the number of each sample's label and answer."""

    names: list[str]
    label: Ints
    answer: Ints | None


def classes_of(preds: Predictions) -> Classes | None:
    """The classes of the samples; where only the top answer is known, those that occur, unless they hardly repeat."""
    if preds.known_labels is None:
        return None
    if preds.kind != "confidence":
        return Classes(class_names(preds), preds.known_labels, preds.prediction)
    given = [preds.known_labels, *([] if preds.known_prediction is None else [preds.known_prediction])]
    values, number = np.unique(np.concatenate(given), return_inverse=True)
    if len(values) * LEAST_OF_CLASS > preds.n:
        return None
    named = preds.class_names is not None and values.dtype.kind in "iu" and int(values[-1]) < len(preds.class_names)
    names = [preds.class_names[v] for v in values] if named else values.astype(str).tolist()  # type: ignore[index]
    label, answer = number[: preds.n], number[preds.n :]
    return Classes(names, label, answer if len(answer) else None)


def class_names(preds: Predictions) -> list[str]:
    """The names, or the numbers where there are none."""
    if preds.class_names is not None:
        return list(preds.class_names)
    return [str(c) for c in range(preds.k or 0)]


def rounded(values: Array | Sequence[float], digits: int = DIGITS) -> list[float | None]:
    """Plain numbers of so many significant digits; null where not finite; whole numbers stay whole."""
    return [_short(float(v), digits) for v in np.asarray(values).tolist()]


def _short(v: float, digits: int) -> float | None:
    if not isfinite(v):
        return None
    return int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.{digits}g}")
