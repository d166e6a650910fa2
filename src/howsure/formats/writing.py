"""Predictions → files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from howsure._core.atomic import replacing
from howsure._core.check import Array, InputError
from howsure.formats import pair
from howsure.formats.catalogue import format_of
from howsure.predictions import ROW_SUM_TOLERANCE, Predictions

BESIDE = {
    "labels": "known_labels",
    "correct": "known_correct",
    "prediction": "known_prediction",
    "ids": "ids",
    "group": "group",
    "weight": "weight",
}


def write(preds: Predictions, path: str | os.PathLike[str]) -> None:
    """Write predictions so that `read` gives the same scores, bit for bit. The format follows from the suffix.

    The file appears whole or not at all. Values, labels, ids, groups, weights and class names are kept where the
    format can hold them (docs/formats.md).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.npz"
    >>> write(Predictions.from_probs([[0.9, 0.1]], [0]), path)
    >>> from howsure.formats import read
    >>> read(path)
    <Predictions: n=1, k=2, probs, accuracy 1>
    """
    target = Path(path)
    module = format_of(target)
    if module is pair:  # several files, each with a temporary name of its own
        pair.write(arrays_of(preds), target, suffix=".npy")
        return
    with replacing(target) as temporary:
        module.write(arrays_of(preds), temporary, suffix=target.suffix.lower())


def arrays_of(preds: Predictions) -> dict[str, Array]:
    """The arrays of a file, by their names in the convention."""
    name = f"mc_{preds.kind}" if preds.values.ndim == 3 else preds.kind
    out = {name: _stored(preds)}
    for column, attribute in BESIDE.items():
        array = getattr(preds, attribute)
        if array is not None:
            out[column] = _plain(array, column)
    if preds.class_names is not None:
        out["class_names"] = np.array(preds.class_names, dtype=np.str_)
    return out


def _stored(preds: Predictions) -> Array:
    """Probabilities given as float16 go back to float16: only there may rows miss 1 by so much."""
    values = preds.values
    if preds.kind == "probs" and values.dtype == np.float32:
        off = np.abs(values.sum(axis=-1, dtype=np.float64) - 1).max()
        half = values.astype(np.float16)
        if off > ROW_SUM_TOLERANCE[4] and np.array_equal(half, values):
            return half
    return values


def _plain(array: Array, name: str) -> Array:
    """Text held as Python objects, as pandas does, becomes a text array."""
    if array.dtype.kind in "biufU":
        return array
    cells = array.tolist()
    if all(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=np.str_)
    if all(isinstance(cell, int) for cell in cells):
        return np.array(cells, dtype=np.int64)
    raise InputError(f"{name} has dtype {array.dtype}; only numbers or texts can be written, so convert it first.")
