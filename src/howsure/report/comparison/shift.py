"""Other data beside the home set: shifted samples with labels, and samples from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from howsure._core.check import Bools, Floats, InputError
from howsure.bounds import proportion_limits
from howsure.predictions import Predictions
from howsure.render.catalogue import BY_NAME
from howsure.render.model import Entry, FurtherRow, Metrics
from howsure.report.catalogue import Score
from howsure.report.comparison.models import Model, model
from howsure.report.comparison.ranking import PAIRED, numbers_of
from howsure.report.measurement import Alone, Sureness, measured
from howsure.tallies.build import tally

KEEP = 0.95  # share of home samples kept where the false positive rate is read


def shifted(
    home: Sequence[Model],
    sets: Mapping[str, Mapping[str, Predictions]],
    score: Score,
    level: float,
    seed: int,
) -> list[FurtherRow]:
    """Accuracy, AURC and ECE of each model on each further labelled set, beside the home set."""
    further = [
        (name, model(who, preds, score))
        for name, by in sets.items()
        for who, preds in _known(by, home)
    ]
    return [
        {
            "set": name,
            "model": m.name,
            "n": m.preds.n,
            "metrics": numbers_of(m, PAIRED, Sureness(level, seed)),
        }
        for name, m in [*(("home", m) for m in home), *further]
    ]


def _known(by: Mapping[str, Predictions], home: Sequence[Model]) -> list[tuple[str, Predictions]]:
    names = [m.name for m in home]
    for who in by:
        if who not in names:
            raise InputError(f"{who} is not among the models compared: {', '.join(names)}.")
    return list(by.items())


def outside(
    home: Sequence[Model],
    sets: Mapping[str, Mapping[str, Predictions]],
    score: Score,
    level: float,
    seed: int,
) -> list[FurtherRow]:
    """Can the score tell home samples from others? And does it still find errors on the mix of
    both?

    In the mix every answer to an outside sample counts as wrong, for no answer to it is right.
    """
    at = {m.name: m for m in home}
    found = [
        (name, at[who], model(who, preds, score))
        for name, by in sets.items()
        for who, preds in _known(by, home)
    ]
    return [
        {
            "set": name,
            "model": m.name,
            "n": len(out.score),
            "metrics": separation(m.score, out.score, m.preds.correct, level, seed),
        }
        for name, m, out in found
    ]


def separation(
    inside: Floats, out: Floats, correct: Bools, level: float = 0.95, seed: int = 0
) -> Metrics:
    """In or out: AUROC, false positive rate at 95 % of home samples kept. On the mix: AURC, AUROC
    of finding errors.

    >>> separation(np.array([0.9, 0.8]), np.array([0.1]), np.array([True, False]))["auroc"]["value"]
    1.0
    """
    both = np.concatenate((inside, out))
    threshold = np.sort(inside)[::-1][int(np.ceil(KEEP * len(inside))) - 1]
    split = tally(both, correct=np.arange(len(both)) < len(inside))
    mix = tally(both, correct=np.concatenate((correct, np.zeros(len(out), dtype=bool))))
    sure, (aurc, auroc) = Sureness(level, seed), (BY_NAME["aurc"], BY_NAME["auroc"])
    found = measured([aurc, auroc], Alone(mix), "", sure)
    return {
        "auroc": measured([auroc], Alone(split), "", sure)["auroc"],
        "fpr_at_95": _rate(out >= threshold, level),
        "mix_aurc": found["aurc"],
        "mix_auroc": found["auroc"],
    }


def _rate(kept: Bools, level: float) -> Entry:
    """A share with the limits of Clopper & Pearson."""
    low, high = proportion_limits(kept.sum(), len(kept), (1 - level) / 2)
    return {"value": float(kept.mean()), "low": float(low), "high": float(high), "better": "lower"}
