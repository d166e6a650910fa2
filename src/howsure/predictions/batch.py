"""A batch of network outputs as predictions, checked at the door."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError
from howsure._core.containers import is_dict, is_row
from howsure.predictions.predictions import ROW_SUM_TOLERANCE, Predictions

Outputs: TypeAlias = Literal["logits", "probs"]


def checked_outputs(outputs: Outputs) -> Outputs:
    """Return `outputs`; raise unless it says what the numbers are."""
    if outputs not in ("logits", "probs"):
        raise InputError(
            f"outputs is {outputs!r}; say 'logits' or 'probs', whichever the model returns."
        )
    return outputs


def predictions(
    preds: object,
    target: object,
    outputs: Outputs,
    *,
    class_axis: int = -1,
    ignore: int | None = None,
) -> Predictions | None:
    """Predictions of one row per label that is not `ignore`; None where there is no such label.

    Where an image or a text has one label per pixel or token, `class_axis` holds the classes.

    >>> predictions(np.zeros((2, 3, 4)), np.array([[0, 1, -100], [2, -100, -100]]), "logits", ignore=-100)
    <Predictions: n=3, k=4, logits, accuracy 0.3333>
    """
    rows, labels = _rows(_array(preds, "preds"), _array(target, "target"), class_axis)
    if ignore is not None:
        keep = labels != ignore
        rows, labels = rows[keep], labels[keep]
    if not len(labels):
        return None
    if outputs == "probs":
        return Predictions.from_probs(rows, labels)
    return Predictions.from_logits(_not_probs(rows), labels)


def _array(given: object, name: str) -> Array:
    if is_row(given) or is_dict(given):
        raise InputError(
            f"{name} is a {type(given).__name__} of {len(given)}; pass the one array that is meant."
        )
    return check.array(given, name)


def _rows(values: Array, labels: Array, class_axis: int) -> tuple[Array, Array]:
    """One row of classes for each label; a binary model may give one number instead."""
    if values.ndim < 2:
        return values, labels
    last = np.moveaxis(values, class_axis, -1)
    if last.shape[:-1] != labels.shape:
        raise InputError(
            f"target has shape {labels.shape} for preds of shape {values.shape}; one class number for each sample, "
            f"shape {last.shape[:-1]}, is needed. Of one-hot labels take the argmax."
        )
    return last.reshape(-1, last.shape[-1]), labels.reshape(-1)


def _not_probs(rows: Array) -> Array:
    """Return `rows`; raise if all of them are distributions. A single row may be one by chance."""
    if rows.ndim == 1 or rows.shape[1] == 1 or len(rows) == 1:
        return rows
    off = np.abs(rows.sum(axis=1, dtype=np.float64) - 1)
    if rows.min() >= 0 and (off <= ROW_SUM_TOLERANCE.get(rows.itemsize, 1e-6)).all():
        raise InputError(
            f"all {len(rows):,} rows are non-negative and sum to 1: these are probabilities, not logits. "
            "Say outputs='probs', or pass what comes before the softmax."
        )
    return rows
