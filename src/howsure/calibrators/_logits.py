"""Predictions with a row for each class, some samples at a time: sums over classes become sums of
long rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.check import Array, Floats, InputError
from howsure.predictions import Predictions
from howsure.predictions.columns import chunks

SMALLEST = 1e-12  # probabilities below count as this one: the log of 0 is not a logit


def as_logits(part: Array, kind: str, dtype: DTypeLike = np.float64) -> Array:
    """A copy as logits; of probabilities, their log."""
    z = part.astype(dtype, order="C")
    return z if kind == "logits" else np.log(np.maximum(z, SMALLEST))


def members(preds: Predictions) -> Array:
    """The values with shape (s, n, k); s = 1 for a single pass."""
    return preds.values if preds.values.ndim == 3 else preds.values[None]


def parts(
    preds: Predictions, every: int = 1, dtype: DTypeLike = np.float64
) -> Iterator[tuple[slice, Array]]:
    """Chunks of samples with the logits of all members, shape (s, k, samples); `every` n-th sample
    only.
    """
    values = members(preds)
    s, n, k = values.shape
    for rows in chunks(-(-n // every), s * k):
        pick = slice(rows.start * every, min(rows.stop * every, n), every)
        yield pick, as_logits(values[:, pick].transpose(0, 2, 1), preds.kind, dtype)


def probabilities(preds: Predictions) -> Iterator[tuple[slice, Floats]]:
    """Chunks of samples with the mean probabilities over members, shape (k, samples), in [0, 1]."""
    values = members(preds)
    s, n, k = values.shape
    for rows in chunks(n, s * k):
        part = values[:, rows].transpose(0, 2, 1).astype(np.float64, order="C")
        for member in part:
            if preds.kind == "logits":
                softmax(member)
            else:
                np.clip(member, 0.0, 1.0, out=member)
        yield rows, part[0] if s == 1 else part.mean(axis=0)


def softmax(z: Floats) -> None:
    """Probabilities in the place of logits that have a row for each class."""
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= z.sum(axis=0)


def by_class(preds: Predictions) -> Floats:
    """All probabilities, (k, n)."""
    out = np.empty(members(preds).shape[:0:-1])
    for rows, p in probabilities(preds):
        out[:, rows] = p
    return out


def single(preds: Predictions, *, log_probs: bool = False) -> Iterator[tuple[slice, Floats]]:
    """Chunks of samples with their logits, (k, samples): `log_probs` normalises, and several
    members are averaged as probabilities first."""
    if preds.samples > 1:
        yield from (
            (rows, np.log(np.maximum(p, SMALLEST, out=p))) for rows, p in probabilities(preds)
        )
        return
    for rows, z in parts(preds):
        finite(z)
        if log_probs:
            z[0] -= z[0].max(axis=0)
            z[0] -= np.log(np.exp(z[0]).sum(axis=0))
        yield rows, z[0]


def finite(z: Array) -> None:
    """Raise where classes are ruled out by -inf."""
    if z.min(initial=0.0) == -np.inf:
        got, need = (
            "hold -inf (classes that are ruled out)",
            "linear maps of the logits need finite numbers",
        )
        raise InputError("logits", got=got, need=need, hint="Use Temperature")
