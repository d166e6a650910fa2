"""One class against the rest: how calibrators of one probability become calibrators of k of them."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TypeAlias

import numpy as np

from howsure._core.check import Array, Floats, InputError, Ints
from howsure.calibrators._fitted import Fitted, needs_samples, same_classes, shares, with_values
from howsure.calibrators._logits import by_class, probabilities
from howsure.predictions import Predictions

Map: TypeAlias = Callable[
    [Floats], Floats
]  # probabilities with a row for each class → the mapped ones


def asked(preds: Predictions, what: str) -> tuple[Array, Ints]:
    """What is mapped, a row for each map, and the row that came true for each sample, −1 for none.

    Of all classes the probabilities; of top labels the confidence, where the only row came true for
    right answers.
    """
    if preds.kind != "confidence":
        needs_samples(preds, what)
        return by_class(preds), preds.labels
    right = preds.correct
    if right.all() or not right.any():
        found = "right" if right.all() else "wrong"
        raise InputError(
            f"{what} cannot be fitted: all {preds.n:,} answers are {found}; both kinds are needed."
        )
    return preds.values[None], right.astype(np.int64) - 1


def answered(
    preds: Predictions, k: int | None, fitted: Fitted | None, what: str, maps: Map
) -> Predictions:
    """The mapped probabilities, rows divided by their sums; for top labels the mapped confidence.

    A row of zeros keeps what it was: nothing is known about it.
    """
    if preds.kind == "confidence":
        if k is not None:
            raise InputError(
                f"this {what} was fitted on {k} classes, here only the top label is known."
            )
        same_classes(preds, k, fitted, what)
        return with_values(preds, "confidence", maps(preds.confidence[None])[0])
    if k is None:
        raise InputError(
            f"this {what} was fitted on the confidence of top labels, these predictions have all classes."
        )
    same_classes(preds, k, fitted, what)
    out = np.empty(preds.values.shape[-2:])
    for rows, given in probabilities(preds):
        out[rows] = _divided(maps(given), given).T
    return with_values(preds, "probs", out)


def _divided(mapped: Floats, given: Floats) -> Floats:
    """Columns that sum to 1."""
    total = mapped.sum(axis=0)
    nothing = np.flatnonzero(total <= 0)
    total[nothing] = 1.0
    mapped /= total
    mapped[:, nothing] = given[:, nothing]
    return mapped


def record(preds: Predictions, out: Predictions, status: str = "converged") -> Fitted:
    """The record of a fit with the loss of its own output."""
    with np.errstate(divide="ignore"):
        if preds.kind == "confidence":
            claimed = np.where(preds.correct, out.confidence, 1.0 - out.confidence)
        else:
            claimed = out.values[np.arange(preds.n), preds.labels]
        loss = -np.log(claimed)
    share = shares(preds)
    nll = float(np.dot(share[share > 0], loss[share > 0]))
    return Fitted(
        status, preds.n, None if preds.kind == "confidence" else preds.k, preds.class_names, nll
    )


def samples_of(preds: Predictions, number: float) -> float:
    """`number` samples in the unit of the weights."""
    if not (isfinite(number) and number >= 0):
        raise InputError(
            f"floor is {number:g}; a finite number of samples that is not negative is needed."
        )
    return number if preds.weight is None else number * float(preds.weight[preds.weight > 0].mean())
