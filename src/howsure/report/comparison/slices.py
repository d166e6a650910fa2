"""Groups and classes side by side: the worst first, with limits that allow for looking at many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from howsure import metrics
from howsure._core.check import Array, InputError
from howsure.bounds import proportion_limits
from howsure.render.model import RecallRow, SliceRow
from howsure.report.comparison.models import Model
from howsure.report.samples import class_names, known_classes
from howsure.report.sums import class_number
from howsure.report.views import rounded
from howsure.tallies.build import tally

LEAST = 20  # samples below which a group is listed, not tested
SHOWN = 200


def slices(models: Sequence[Model], by: Array, level: float) -> list[SliceRow]:
    """Each group of each model: accuracy with limits, AURC, confidence minus accuracy; the worst groups first.

    With G groups each limit holds at 1 − (1 − level)/G, so that all hold together (Bonferroni). `worse` marks a group
    whose upper limit is below the model's accuracy.
    """
    if len(by) != models[0].preds.n:
        raise InputError(f"by has {len(by):,} values for {models[0].preds.n:,} samples.")
    names, where = np.unique(by, return_inverse=True)
    if len(names) < 2:
        raise InputError("there is one group only; nothing can be compared.")
    rows = [row for m in models for row in _of_model(m, names, where.reshape(-1), level)]
    worst = {g: min(r["accuracy"] for r in rows if r["group"] == g) for g in {r["group"] for r in rows}}
    return sorted(rows, key=lambda r: (worst[r["group"]], r["group"]))[: SHOWN * len(models)]


def _of_model(m: Model, names: Array, where: Array, level: float) -> list[SliceRow]:
    right = m.preds.correct
    n, k = np.bincount(where), np.bincount(where, weights=right)
    low, high = proportion_limits(k, n, (1 - level) / len(names) / 2)
    claims = bool(((m.score >= 0) & (m.score <= 1)).all())
    return [
        {
            "model": m.name,
            "group": str(names[g]),
            "n": int(n[g]),
            "accuracy": float(k[g] / n[g]),
            "low": float(low[g]),
            "high": float(high[g]),
            "aurc": metrics.aurc(tally(m.score[where == g], correct=right[where == g])),
            "gap": float(m.score[where == g].mean() - k[g] / n[g]) if claims else None,
            "worse": bool(high[g] < right.mean() and n[g] >= LEAST),
        }
        for g in range(len(names))
    ]


def classes(models: Sequence[Model]) -> list[RecallRow]:
    """Recall of each class by each model, the class with the worst recall first."""
    first = models[0].samples
    if (found := known_classes(first.classes, first.shape, first.preds.n)) is None:
        return []
    names, y, count = class_names(found, first.shape), class_number(found.keys, first.preds.labels), found.count
    recall = {m.name: np.bincount(y[m.preds.correct], minlength=len(names)) / np.maximum(count, 1) for m in models}
    worst = np.min(list(recall.values()), axis=0)
    order = [c for c in np.lexsort((np.arange(len(names)), worst)) if count[c]][:SHOWN]
    return [
        {"name": names[c], "count": int(count[c]), "recall": {who: rounded(r[[c]])[0] for who, r in recall.items()}}
        for c in order
    ]
