"""The loss of a temperature and its derivatives in the inverse temperature b = 1/T."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure.calibrators._fitted import shares
from howsure.calibrators._logits import parts
from howsure.predictions import Predictions


class Slope(NamedTuple):
    """Mean loss at b and its first three derivatives."""

    loss: float
    first: float
    second: float
    third: float


def per_pass(preds: Predictions, b: float, *, every: int = 1, quick: bool = False) -> Slope:
    """Mean over members of the negative log-likelihood of softmax(b z): convex in b.

    `every` n-th sample only, or `quick` in single precision, for a place to start from.
    """
    weight, total = shares(preds), np.zeros(4)
    for rows, z in parts(preds, every, np.float32 if quick else np.float64):
        w = weight[rows] / len(z)
        for member in z:
            total += _moments(member, preds.labels[rows], b) @ w
    loss, first, second, third = (total / weight[::every].sum()).tolist()
    return Slope(loss, first, second, third)


def averaged(preds: Predictions, b: float) -> tuple[float, float]:
    """Negative log-likelihood of the mean over members of softmax(b z), which is not convex, and its derivative."""
    weight, total = shares(preds), np.zeros(2)
    for rows, z in parts(preds):
        each = np.stack([_moments(member, preds.labels[rows], b)[:2] for member in z])
        peak = (-each[:, 0]).max(axis=0)
        share = np.exp(-each[:, 0] - peak)
        mean = share.sum(axis=0)
        loss = np.log(len(z)) - peak - np.log(mean)
        total += np.stack((loss, (share * each[:, 1]).sum(axis=0) / mean)) @ weight[rows]
    return float(total[0]), float(total[1])


def _moments(z: Array, y: Ints, b: float) -> Floats:
    """Loss and three derivatives of each row: the cumulants of z under softmax(b z). `z` is overwritten."""
    one = np.ones(z.shape[1], dtype=z.dtype)  # a product with it is the fastest row sum
    z -= z.max(axis=1, keepdims=True)
    own = z[np.arange(len(z)), y]
    e = z * z.dtype.type(b)
    np.exp(e, out=e)
    total = e @ one
    e *= z
    mean = e @ one / total
    e *= z
    square = e @ one / total
    cube = np.einsum("ij,ij->i", e, z) / total
    spread = np.maximum(square - mean * mean, 0.0)
    skew = cube - mean * (3 * spread + mean * mean)
    return np.stack((np.log(total) - b * own, mean - own, spread, skew), dtype=np.float64)
