"""The loss of a temperature and its derivatives in the inverse temperature b = 1/T."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from howsure._check import Floats, Ints
from howsure.calibrators._fitted import shares
from howsure.calibrators._logits import parts
from howsure.predictions import Predictions


class Slope(NamedTuple):
    """Mean loss at b, its derivative and its second derivative."""

    loss: float
    first: float
    second: float


def per_pass(preds: Predictions, b: float, every: int = 1) -> Slope:
    """Mean over members of the negative log-likelihood of softmax(b z): convex in b."""
    weight, total = shares(preds), np.zeros(3)
    for rows, z in parts(preds, every):
        w = weight[rows] / len(z)
        for member in z:
            total += _moments(member, preds.labels[rows], b) @ w
    loss, first, second = (total / weight[::every].sum()).tolist()
    return Slope(loss, first, second)


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


def _moments(z: Floats, y: Ints, b: float) -> Floats:
    """Loss, derivative and second derivative of each row; `z` is overwritten."""
    one = np.ones(z.shape[1])  # a product with it is the fastest row sum
    z -= z.max(axis=1, keepdims=True)
    own = z[np.arange(len(z)), y]
    e = np.exp(b * z)
    total = e @ one
    e *= z
    mean = e @ one / total
    spread = np.einsum("ij,ij->i", e, z) / total - mean * mean
    return np.stack((np.log(total) - b * own, mean - own, np.maximum(spread, 0.0)))
