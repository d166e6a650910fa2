"""Logistic regression of a few features with soft targets, by Newton's method."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats

STEPS, GOAL = 100, 1e-9


def logistic(x: Floats, target: Floats, share: Floats) -> tuple[Floats, float]:
    """Coefficients for the columns of x with the least mean cross-entropy, and that loss."""
    v = np.zeros(x.shape[1])
    loss = _loss(x @ v, target, share)
    for _ in range(STEPS):
        p = expit(x @ v)
        g = x.T @ (share * (p - target))
        if np.abs(g).max() <= GOAL:
            break
        h = (x * (share * p * (1 - p))[:, None]).T @ x
        step = np.linalg.lstsq(h, -g, rcond=1e-13)[0].astype(np.float64)
        v, new = _shorten(x, target, share, v, step, loss)
        if new >= loss:
            break
        loss = new
    return v, loss


def expit(s: Floats) -> Floats:
    """1 / (1 + exp(−s)) without overflow."""
    e = np.exp(-np.abs(s))
    return np.where(s >= 0, 1.0, e) / (1.0 + e)


def _loss(s: Floats, target: Floats, share: Floats) -> float:
    return float(np.dot(share, np.logaddexp(0.0, s) - target * s))


def _shorten(x: Floats, target: Floats, share: Floats, v: Floats, step: Floats, loss: float) -> tuple[Floats, float]:
    """Halve the step until the loss falls; the old place where it never does."""
    length = 1.0
    while length > 1e-10:
        new = _loss(x @ (v + length * step), target, share)
        if new < loss:
            return v + length * step, new
        length /= 2
    return v, loss
