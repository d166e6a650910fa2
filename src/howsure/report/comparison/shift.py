"""Other data beside the home set: shifted samples with labels, and samples from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from howsure import metrics
from howsure._core.check import Bools, Floats, InputError
from howsure.render.model import Entry, FurtherRow, Metrics
from howsure.report.catalogue import Score, why_undefined
from howsure.report.comparison.models import Model, model
from howsure.report.comparison.ranking import PAIRED, numbers_of
from howsure.report.measurement import Sureness
from howsure.report.views import proportion_limits
from howsure.tallies.build import tally
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import each_interval

KEEP = 0.95  # share of home samples kept where the false positive rate is read


def shifted(
    home: Sequence[Model], sets: Mapping[str, Mapping[str, Any]], score: Score, level: float, seed: int
) -> list[FurtherRow]:
    """Accuracy, AURC and ECE of each model on each further labelled set, beside the home set."""
    further = [(name, model(who, preds, score)) for name, by in sets.items() for who, preds in _known(by, home)]
    return [
        {"set": name, "model": m.name, "n": m.preds.n, "metrics": numbers_of(m, PAIRED, Sureness(level, seed))}
        for name, m in [*(("home", m) for m in home), *further]
    ]


def _known(by: Mapping[str, Any], home: Sequence[Model]) -> list[tuple[str, Any]]:
    names = [m.name for m in home]
    for who in by:
        if who not in names:
            raise InputError(f"{who} is not among the models compared: {', '.join(names)}.")
    return list(by.items())


def outside(
    home: Sequence[Model], sets: Mapping[str, Mapping[str, Any]], score: Score, level: float, seed: int
) -> list[FurtherRow]:
    """Can the score tell home samples from others? And does it still find errors on the mix of both?

    In the mix every answer to an outside sample counts as wrong, for no answer to it is right.
    """
    at = {m.name: m for m in home}
    found = [(name, at[who], model(who, preds, score)) for name, by in sets.items() for who, preds in _known(by, home)]
    return [
        {
            "set": name,
            "model": m.name,
            "n": len(out.score),
            "metrics": separation(m.score, out.score, m.preds.correct, level, seed),
        }
        for name, m, out in found
    ]


def separation(inside: Floats, out: Floats, correct: Any, level: float = 0.95, seed: int = 0) -> Metrics:
    """AUROC and false positive rate at 95 % of home samples kept; AURC and AUROC of finding failures on the mix.

    >>> separation(np.array([0.9, 0.8]), np.array([0.1]), np.array([True, False]))["auroc"]["value"]
    1.0
    """
    both = np.concatenate((inside, out))
    threshold = np.sort(inside)[::-1][int(np.ceil(KEEP * len(inside))) - 1]
    split = tally(both, correct=np.arange(len(both)) < len(inside))
    mix = tally(both, correct=np.concatenate((correct, np.zeros(len(out), dtype=bool))))
    return {
        "auroc": _entry(metrics.auroc, split, level, seed),
        "fpr_at_95": _rate(out >= threshold, level),
        "mix_aurc": _entry(metrics.aurc, mix, level, seed),
        "mix_auroc": _entry(metrics.auroc, mix, level, seed),
    }


def _entry(metric: Any, t: Tally, level: float, seed: int) -> Entry:
    value, (limits,) = float(metric(t)), each_interval([metric], t, level, seed)
    if not isfinite(value):
        return {"value": None, "why": why_undefined(metric.__name__, value, t), "better": metric.better}
    if limits.why:
        return {"value": value, "low": None, "high": None, "better": metric.better, "why": limits.why}
    return {"value": value, "low": limits.low, "high": limits.high, "better": metric.better}


def _rate(kept: Bools, level: float) -> Entry:
    """A share with the limits of Clopper & Pearson."""
    low, high = proportion_limits(kept.sum(), np.array(len(kept)), level)
    return {"value": float(kept.mean()), "low": float(low), "high": float(high), "better": "lower"}
