"""Other data beside the home set: shifted samples with labels, and samples from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from howsure import metrics
from howsure._build import tally
from howsure._check import Floats, InputError
from howsure.comparison.models import Model, Score, model

KEEP = 0.95  # share of home samples kept where the false positive rate is read


def shifted(home: Sequence[Model], sets: Mapping[str, Mapping[str, Any]], score: Score) -> list[dict[str, Any]]:
    """Accuracy, AURC and ECE of each model on each further labelled set, beside the home set."""
    rows = [_numbers("home", m) for m in home]
    return rows + [
        _numbers(name, model(who, preds, score)) for name, by in sets.items() for who, preds in _known(by, home)
    ]


def _known(by: Mapping[str, Any], home: Sequence[Model]) -> list[tuple[str, Any]]:
    names = [m.name for m in home]
    for who in by:
        if who not in names:
            raise InputError(f"{who} is not among the models compared: {', '.join(names)}.")
    return list(by.items())


def _numbers(name: str, m: Model) -> dict[str, Any]:
    t = m.tally
    low, high = t.score_range()
    ece = metrics.ece(t) if low >= 0 and high <= 1 else None
    return {
        "set": name,
        "model": m.name,
        "n": m.preds.n,
        "accuracy": 1 - t.total / t.n,
        "aurc": metrics.aurc(t),
        "ece": ece,
    }


def outside(home: Sequence[Model], sets: Mapping[str, Mapping[str, Any]], score: Score) -> list[dict[str, Any]]:
    """Can the score tell home samples from others? And does it still find errors on the mix of both?

    In the mix every answer to an outside sample counts as wrong, for no answer to it is right.
    """
    at = {m.name: m for m in home}
    return [
        {"set": name, "model": who, **separation(at[who].score, model(who, preds, score).score, at[who].preds.correct)}
        for name, by in sets.items()
        for who, preds in _known(by, home)
    ]


def separation(inside: Floats, out: Floats, correct: Any) -> dict[str, Any]:
    """AUROC and false positive rate at 95 % of home samples kept; AURC and AUROC of finding failures on the mix.

    >>> separation(np.array([0.9, 0.8]), np.array([0.1]), np.array([True, False]))["auroc"]
    1.0
    """
    both = np.concatenate((inside, out))
    is_home = np.arange(len(both)) < len(inside)
    threshold = np.sort(inside)[::-1][int(np.ceil(KEEP * len(inside))) - 1]
    mix = tally(both, correct=np.concatenate((correct, np.zeros(len(out), dtype=bool))))
    return {
        "n": len(out),
        "auroc": metrics.auroc(tally(both, correct=is_home)),
        "fpr_at_95": float((out >= threshold).mean()),
        "mix_aurc": metrics.aurc(mix),
        "mix_auroc": metrics.auroc(mix),
    }
