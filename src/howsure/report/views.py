"""What a page shows beside metrics and curves: operating points, histogram, scatter, label errors,
classes, bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.check import Array, Floats, InputError, Ints
from howsure._core.exact import as_float, from_fixed
from howsure.bounds import proportion_limits
from howsure.metrics import bands
from howsure.render.model import (
    Band,
    ClassDeferral,
    ClassRow,
    Confusion,
    HistogramData,
    Operating,
    Scatter,
    Suspect,
    Views,
)
from howsure.report.deciding import corp_data, deciding
from howsure.report.details import BARS, asked_coverages, operating_rows, span
from howsure.report.samples import class_names
from howsure.report.summary import Summary
from howsure.report.thumbnails import thumbnail
from howsure.tallies.tally import Counts, Tally

SHOWN_CLASSES = 20  # whose deferral is followed
LISTED_CLASSES = 200
CONFUSED_CLASSES = 40  # of a table of all pairs
TOP_CONFUSIONS = 20
PICTURED = 12
LEVELS = (0.99, 0.95)
DIGITS = 6


def views(s: Summary, level: float, images: Sequence[ArrayLike] | None = None) -> Views:
    """All views of the first score; `images` (one per sample) make thumbnails of the likely label
    errors.

    >>> from howsure import Predictions
    >>> sorted(views(Summary.of(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])), 0.95))
    ['bands', 'classes', 'confusion', 'corp', 'deciding', 'histogram', 'label_errors', 'operating', 'scatter']
    """
    return {
        "operating": operating(s, level),
        "deciding": deciding(s, level),
        "corp": corp_data(s),
        "histogram": histogram(s),
        "scatter": scatter(s),
        "label_errors": with_images(label_errors(s), images, s.n),
        "classes": class_rows(s, level),
        "bands": band_rows(s.tally),
        "confusion": confusion(s),
    }


def operating(s: Summary, level: float) -> Operating:
    """What happens at each of at most 200 thresholds, spread evenly over coverage, most trusted
    first.

    Columns: coverage, threshold, accuracy of the accepted with its limits (Clopper & Pearson),
    errors and deferred per 1,000 cases, and the deferred share of each class.
    """
    t = s.tally
    rows = operating_rows(t)
    kept, wrong = t.ends, np.cumsum(t.loss)
    n, kept, wrong = kept[-1], kept[rows], wrong[rows]
    low, high = proportion_limits(kept - wrong, kept, (1 - level) / 2)
    return {
        "coverage": finite(kept / n),
        "threshold": rounded(t.score[rows], 17),  # to the last bit: a policy is made of it
        "accuracy": finite(1 - wrong / kept),
        "low": finite(low) if s.shape.alike else None,  # these limits hold for independent samples
        "high": finite(high) if s.shape.alike else None,
        "errors": finite(1000 * wrong / n),
        "deferred": finite(1000 * (1 - kept / n)),
        "classes": deferral(s),
        "asked": asked_coverages(t).tolist(),
        "kept": finite(kept, 12),
        "wrong": finite(wrong, 12),
    }


def deferral(s: Summary) -> list[ClassDeferral]:
    """The share of each class that is deferred, for the classes that are deferred most over all
    thresholds.
    """
    classes, below = s.known_classes, None if s.details is None else s.details.deferred
    if classes is None or below is None:
        return []
    names, count = class_names(classes, s.shape), classes.count
    share = below / np.maximum(count, 1)[:, None]
    present = np.flatnonzero(count)
    if len(names) > SHOWN_CLASSES:
        most = np.argsort(share.mean(axis=1), kind="stable")[::-1][:SHOWN_CLASSES]
        present = np.intersect1d(most, present)
    return [
        {"name": names[c], "count": int(count[c]), "deferred": finite(share[c], 3)}
        for c in present.tolist()
    ]


def histogram(s: Summary) -> HistogramData:
    """Counts of right, top-5 and wrong answers in 50 bars; [0, 1] for claims, else the range of the
    scores.
    """
    t = s.tally
    low, high = span(t)
    count, wrong = _bars(t, low, high)
    right = count - wrong
    near = np.zeros(BARS, np.int64) if s.details is None else s.details.near
    if s.shape.weighted and s.losses:  # a tally may have weights of mean 1
        near = near * (float(t.n) / as_float(s.losses["nll"].weight))
    return {
        "low": low,
        "high": high,
        "right": finite(right),
        "top_5": finite(near),
        "wrong": finite(wrong - near),
    }


def _bars(t: Tally, low: float, high: float) -> tuple[Counts, Counts]:
    """`np.histogram` of the samples and of their loss, without looking at every row: infinite
    scores are in no bar.
    """
    edges = np.histogram_bin_edges(np.empty(0), BARS, (low, high))
    below = np.nextafter(edges, -np.inf)
    below[-1] = edges[-1]  # the last bar has both its ends
    ends = t.above(below)[::-1]  # samples from each edge on, those above all bars first
    cuts = np.unique(np.concatenate((ends[:0], [0], ends, [t.n])))
    at = np.searchsorted(cuts, ends)
    sums = t.between(cuts)
    count, loss = (np.concatenate((c[:0], [0], np.cumsum(c)))[at] for c in (sums.count, sums.loss))
    return np.diff(count)[::-1], np.diff(loss)[::-1]


def scatter(s: Summary) -> Scatter | None:
    """Loss (NLL) against score of at most 1,500 distinct points; fate 0 right, 1 top-5, 2 wrong."""
    if s.sample is None:
        return None
    _, score, loss, fate = s.sample.T
    return {
        "score": finite(score, 4),
        "loss": finite(loss, 4),
        "fate": fate.astype(int).tolist(),
        "of": s.n,
    }


def label_errors(s: Summary) -> list[Suspect]:
    """The wrong answers that are trusted most: wrong labels are found here first (Finlay & Oberman,
    section 7.2).
    """
    before = {file: sum(n for other, n in s.files.items() if other < file) for file in s.files}
    return [
        {
            "id": str(before[x.file] + x.row) if x.id is None else x.id,
            "row": before[x.file] + x.row,
            "score": rounded([-x.minus_score])[0],
            "prediction": x.prediction,
            "label": x.label,
        }
        for x in s.suspects
    ]


def with_images(
    suspects: list[Suspect], images: Sequence[ArrayLike] | None, n: int
) -> list[Suspect]:
    """The first 12 suspects with a small picture each."""
    if images is None:
        return suspects
    if len(images) != n:
        raise InputError(
            f"images has {len(images):,} pictures for {n:,} samples; one per sample is needed."
        )
    pictured: list[Suspect] = [
        {**s, "image": thumbnail(np.asarray(images[s["row"]]))} for s in suspects[:PICTURED]
    ]
    return [*pictured, *suspects[PICTURED:]]


def class_rows(s: Summary, level: float) -> list[ClassRow]:
    """Per true class: count, recall with limits; per answer: how often given, confidence and
    accuracy then.
    """
    if (classes := s.known_classes) is None:
        return []
    names, count, given, hits = (
        class_names(classes, s.shape),
        classes.count,
        classes.given,
        classes.hits,
    )
    low, high = proportion_limits(hits, count, (1 - level) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision, confidence = (
            hits / count,
            hits / given,
            from_fixed(classes.claim) / given,
        )
    columns = [rounded(np.where(count, c, np.nan)) for c in (recall, low, high)]
    columns += [rounded(precision), rounded(confidence)]
    worst = np.lexsort((np.arange(len(count)), np.where(count, hits / np.maximum(count, 1), 2)))[
        :LISTED_CLASSES
    ]
    return [
        {
            "name": names[c],
            "count": int(count[c]),
            "given": int(given[c]),
            "recall": columns[0][c],
            "low": columns[1][c],
            "high": columns[2][c],
            "precision": columns[3][c],
            "confidence": columns[4][c],
        }
        for c in worst.tolist()
    ]


def confusion(s: Summary) -> Confusion | None:
    """Labels against answers, and the commonest wrong answers; None where either is not known.

    >>> from howsure import Predictions
    >>> found = confusion(Summary.of(Predictions.from_probs([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], [0, 1, 1])))
    >>> found["counts"], found["confidence"]
    ([[1, 0], [1, 1]], [[0.9, None], [0.8, 0.8]])
    >>> found["top"]
    [{'label': '1', 'prediction': '0', 'count': 1, 'share': 0.5, 'confidence': 0.8}]
    """
    classes = s.known_classes
    if classes is None or not classes.pairs.size:
        return None
    names = class_names(classes, s.shape)
    (label, said, count), few = classes.pairs[:3], len(names) <= CONFUSED_CLASSES
    confidence = from_fixed(classes.pairs[3:]) / np.maximum(count, 1)
    wrong = np.flatnonzero(label != said)
    first = wrong[np.lexsort((said[wrong], label[wrong], -count[wrong]))][:TOP_CONFUSIONS]
    return {
        "classes": names if few else [],
        "counts": _table(label, said, count, len(names)).tolist() if few else None,
        "confidence": [rounded(row, 4) for row in _means(label, said, confidence, len(names))]
        if few
        else None,
        "top": [
            {
                "label": names[label[i]],
                "prediction": names[said[i]],
                "count": int(count[i]),
                "share": float(count[i] / classes.count[label[i]]),
                "confidence": finite(confidence[i : i + 1], 4)[0],
            }
            for i in first.tolist()
        ],
    }


def _table(label: Array, said: Array, count: Array, k: int) -> Ints:
    out = np.zeros((k, k), np.int64)
    out[label, said] = count
    return out


def _means(label: Array, said: Array, mean: Floats, k: int) -> Floats:
    out = np.full((k, k), np.nan)
    out[label, said] = mean
    return out


def band_rows(t: Tally) -> list[Band]:
    """Bands that keep 99 %, then 95 % accuracy, then the rest (Finlay & Oberman, tables 3 to 5)."""
    b = bands(t, LEVELS)
    threshold = [*rounded(b.threshold, 12), None]
    return [
        {"level": level, "share": share, "accuracy": accuracy, "threshold": low}
        for level, share, accuracy, low in zip(
            [*LEVELS, None], rounded(b.weight), rounded(b.accuracy), threshold, strict=True
        )
    ]


def rounded(values: Array | Sequence[float], digits: int = DIGITS) -> list[float | None]:
    """Plain numbers of so many significant digits; null where not finite; whole numbers stay whole."""
    return [_short(float(v), digits) if isfinite(v) else None for v in np.asarray(values).tolist()]


def finite(values: Array, digits: int = DIGITS) -> list[float]:
    """The same of numbers that are all finite."""
    return [_short(float(v), digits) for v in values.tolist()]


def _short(v: float, digits: int) -> float:
    return int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.{digits}g}")
