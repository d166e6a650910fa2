"""One class against the rest: how calibrators of one probability become calibrators of k of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from howsure._core.check import Bools, Floats, InputError
from howsure.calibrators._fitted import Fitted, needs_samples, same_classes, shares, with_values
from howsure.predictions import Predictions
from howsure.predictions.columns import chunks, mean_probs

Map: TypeAlias = Callable[[Floats, int], Floats]  # the probability of class j → the mapped one


def questions(preds: Predictions, what: str) -> Iterator[tuple[Floats, Bools]]:
    """For each class its probability and whether it is the label; for top labels the confidence and whether right."""
    if preds.kind == "confidence":
        right = preds.correct
        if right.all() or not right.any():
            found = "right" if right.all() else "wrong"
            raise InputError(f"{what} cannot be fitted: all {preds.n:,} answers are {found}; both kinds are needed.")
        return iter([(preds.confidence, right)])
    needs_samples(preds, what)
    p, labels = np.clip(preds.probs, 0.0, 1.0), preds.labels
    return ((p[:, j], labels == j) for j in range(p.shape[1]))


def answered(preds: Predictions, k: int | None, fitted: Fitted | None, what: str, maps: Map) -> Predictions:
    """`maps(p, j)` for every class j, rows divided by their sums; for top labels the mapped confidence.

    A row of zeros keeps what it was: nothing is known about it.
    """
    if preds.kind == "confidence":
        if k is not None:
            raise InputError(f"this {what} was fitted on {k} classes, here only the top label is known.")
        same_classes(preds, k, fitted, what)
        return with_values(preds, "confidence", maps(preds.confidence, 0))
    if k is None:
        raise InputError(f"this {what} was fitted on the confidence of top labels, these predictions have all classes.")
    same_classes(preds, k, fitted, what)
    out = np.empty(preds.values.shape[-2:])
    for rows in chunks(len(out), k * preds.samples):
        given = np.clip(mean_probs(preds[rows].raw), 0.0, 1.0)
        mapped = np.stack([maps(given[:, j], j) for j in range(k)], axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        out[rows] = np.where(total > 0, mapped / np.where(total > 0, total, 1.0), given)
    return with_values(preds, "probs", out)


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
    return Fitted(status, preds.n, None if preds.kind == "confidence" else preds.k, preds.class_names, nll)


def targets(hit: Bools, share: Floats, n: int) -> Floats:
    """Platt's targets (n₊+1)/(n₊+2) and 1/(n₋+2): a fit with them is finite even where all is separable."""
    right = float(share[hit].sum() * n)
    return np.where(hit, (right + 1) / (right + 2), 1 / (n - right + 2))
