"""Predictions as float64 logits, a chunk of rows at a time, so that no second n × k array is held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from howsure._core.check import Array
from howsure.predictions import Predictions
from howsure.predictions.columns import chunks

SMALLEST = 1e-12  # probabilities below count as this one: the log of 0 is not a logit


def as_logits(part: Array, kind: str, dtype: Any = np.float64) -> Array:
    """A copy of some rows as logits; of probabilities, their log."""
    z = part.astype(dtype)
    return z if kind == "logits" else np.log(np.maximum(z, SMALLEST))


def members(preds: Predictions) -> Array:
    """The values with shape (s, n, k); s = 1 for a single pass."""
    return preds.values if preds.values.ndim == 3 else preds.values[None]


def parts(preds: Predictions, every: int = 1, dtype: Any = np.float64) -> Iterator[tuple[slice, Array]]:
    """Chunks of rows with the logits of all members, shape (s, rows, k); `every` n-th row only."""
    values = members(preds)
    s, n, k = values.shape
    for rows in chunks(-(-n // every), s * k):
        pick = slice(rows.start * every, min(rows.stop * every, n), every)
        yield pick, as_logits(values[:, pick], preds.kind, dtype)
