"""Groups and classes side by side: the worst first, with limits that allow for looking at many."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from howsure import metrics
from howsure._core.check import Array, Floats, InputError, Ints
from howsure.bounds import proportion_limits
from howsure.render.model import RecallRow, SliceRow
from howsure.report.comparison.models import Model
from howsure.report.samples import class_names, known_classes
from howsure.report.sums import class_number
from howsure.report.views import rounded
from howsure.tallies.build import tally
from howsure.uncertainty.case import Case
from howsure.uncertainty.limits import limits_of

LEAST = 20  # samples below which a group is listed, not tested
SHOWN = 200


def slices(models: Sequence[Model], by: Array, level: float) -> list[SliceRow]:
    """Each group of each model: accuracy with limits, AURC, confidence minus accuracy; the worst
    groups first.

    With G groups and M models each limit holds at 1 − (1 − level)/(GM), so that all hold together
    (Bonferroni). `worse` marks a group whose upper limit is below the model's accuracy. Where
    samples come in clusters that are not the groups themselves, limits count clusters; a group
    within one cluster has none and is not marked.
    """
    if len(by) != models[0].preds.n:
        raise InputError(f"by has {len(by):,} values for {models[0].preds.n:,} samples.")
    names, where = np.unique(by, return_inverse=True)
    if len(names) < 2:
        raise InputError("there is one group only; nothing can be compared.")
    each = Parts(names, where.reshape(-1), (1 - level) / (len(names) * len(models)) / 2)
    rows = [row for m in models for row in _of_model(m, each)]
    worst = {
        g: min(r["accuracy"] for r in rows if r["group"] == g) for g in {r["group"] for r in rows}
    }
    return sorted(rows, key=lambda r: (worst[r["group"]], r["group"]))[: SHOWN * len(models)]


class Parts(NamedTuple):
    """Names of the groups, the group of each sample, and the probability of missing at either end
    of a limit.
    """

    names: Array
    where: Ints
    half: float


def _of_model(m: Model, parts: Parts) -> list[SliceRow]:
    names, where, _ = parts
    right = m.preds.correct
    n, k = np.bincount(where), np.bincount(where, right).astype(np.float64)
    low, high = _limits(m, parts, k, n)
    claims = bool(((m.score >= 0) & (m.score <= 1)).all())
    return [
        {
            "model": m.name,
            "group": str(names[g]),
            "n": int(n[g]),
            "accuracy": float(k[g] / n[g]),
            "low": None if isnan(low[g]) else float(low[g]),
            "high": None if isnan(high[g]) else float(high[g]),
            "aurc": metrics.aurc(tally(m.score[where == g], correct=right[where == g])),
            "gap": float(m.score[where == g].mean() - k[g] / n[g]) if claims else None,
            "worse": bool(high[g] < right.mean() and n[g] >= LEAST),
        }
        for g in range(len(names))
    ]


def _limits(m: Model, parts: Parts, k: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Limits of the accuracy of each group: of clusters where they are not the groups themselves."""
    cluster = m.preds.group
    if cluster is None or _finer(
        parts.where, np.unique(cluster, return_inverse=True)[1].reshape(-1)
    ):
        low, high = proportion_limits(k, n, parts.half)
        return np.asarray(low), np.asarray(high)
    o = m.outcomes
    cases = [Case.of(o[parts.where == g]) for g in range(len(n))]
    found = [limits_of(metrics.accuracy, case, parts.half) for case in cases]
    ends = [(nan, nan) if f is None else (f.low, f.high) for f in found]
    return np.array([end[0] for end in ends]), np.array([end[1] for end in ends])


def _finer(group: Ints, cluster: Ints) -> bool:
    """Whether every group lies within one cluster of its own, so that its samples are all there is
    of it.
    """
    pairs = np.unique(np.stack((group, cluster), axis=1), axis=0)
    return len(pairs) == len(np.unique(group)) == len(np.unique(cluster))


def classes(models: Sequence[Model]) -> list[RecallRow]:
    """Recall of each class by each model, the class with the worst recall first."""
    first = models[0].samples
    if (found := known_classes(first.classes, first.shape, first.preds.n)) is None:
        return []
    names, y, count = (
        class_names(found, first.shape),
        class_number(found.keys, first.preds.labels),
        found.count,
    )
    recall = {
        m.name: np.bincount(y[m.preds.correct], minlength=len(names)) / np.maximum(count, 1)
        for m in models
    }
    worst = np.min(list(recall.values()), axis=0)
    order = [c for c in np.lexsort((np.arange(len(names)), worst)) if count[c]][:SHOWN]
    return [
        {
            "name": names[c],
            "count": int(count[c]),
            "recall": {who: rounded(r[[c]])[0] for who, r in recall.items()},
        }
        for c in order
    ]
