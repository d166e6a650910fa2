"""The loss of a temperature, its derivatives in the inverse temperature b = 1/T, and where it is
least.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, inf, isfinite, log
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats, Ints
from howsure.calibrators._fitted import shares
from howsure.calibrators._logits import parts
from howsure.predictions import Predictions

CLOSE = 3e-4  # a step this short leaves an error of about its cube
LONGEST = 2.0  # in log b: where the loss is almost flat, a step means little
PASSES = 200
PATIENCE = (
    8  # passes in one direction before steps double: the tail of a loss falls ever more slowly
)


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
    """Negative log-likelihood of the mean over members of softmax(b z), which is not convex, and
    its derivative.
    """
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
    """Loss and three derivatives of each sample: the cumulants of z under softmax(b z). `z` is
    overwritten.
    """
    z -= z.max(axis=0)
    own = z[y, np.arange(len(y))]
    e = z * z.dtype.type(b)
    np.exp(e, out=e)
    total = e.sum(axis=0)
    e *= z
    mean = e.sum(axis=0) / total
    e *= z
    square = e.sum(axis=0) / total
    e *= z
    cube = e.sum(axis=0) / total
    spread = np.maximum(square - mean * mean, 0.0)
    skew = cube - mean * (3 * spread + mean * mean)
    return np.stack((np.log(total) - b * own, mean - own, spread, skew), dtype=np.float64)


class Least(NamedTuple):
    """The place of the least loss, the loss there, and whether it lies inside the bounds or at one
    of them.
    """

    b: float
    loss: float
    at: str  # "interior", "low" or "high"


def least(
    slope: Callable[[float], Slope],
    low: float,
    high: float,
    start: float = 1.0,
    *,
    close: float = CLOSE,
) -> Least:
    """Minimum in [low, high] of a convex loss. Each pass halves the bracket or takes a step inside
    it.
    """
    u, left, right = min(max(log(start), log(low)), log(high)), -inf, inf
    new, s = u, slope(exp(u))
    for i in range(PASSES):
        if not isfinite(s.first):  # single precision overflowed: start the exact search from here
            break
        if s.first > 0:
            right = u
        else:
            left = u
        one_sided = not isfinite(right - left)
        new, plain = _next(
            u, s, (left, right), (log(low), log(high)), 2.0 ** (i - PATIENCE) if one_sided else 1.0
        )
        if new == u or (plain and abs(new - u) < close):
            break
        u, s = new, slope(exp(new))
    return _named(u, new, s, low, high)


def _next(
    u: float, s: Slope, bracket: tuple[float, float], bounds: tuple[float, float], stretch: float
) -> tuple[float, bool]:
    """The next place to look at, and whether it is a plain step."""
    if s.first == 0 and s.second > 0:
        return u, True
    wish = _step(exp(u), s) * max(stretch, 1.0)
    new = u + min(max(wish, -LONGEST), LONGEST)
    inside = min(max(new, bounds[0]), bounds[1])
    if inside == u or bracket[0] < inside < bracket[1]:
        return inside, inside == new and abs(wish) <= LONGEST and stretch <= 1
    return sum(bracket) / 2, False


def _step(b: float, s: Slope) -> float:
    """Halley's step in log b towards the zero of the first derivative; Newton's where that would
    turn round.
    """
    if (
        s.first == 0
    ):  # flat to the right, by underflow: every answer is right and can only become surer
        return inf
    slope, bend = b * s.second, b * s.second + b * b * s.third
    if slope <= 0:
        return copysign(inf, -s.first)
    newton = -s.first / slope
    damping = 1 + newton * bend / (2 * slope)
    return newton / damping if damping > 0.5 else newton


def _named(u: float, new: float, s: Slope, low: float, high: float) -> Least:
    step = exp(new) - exp(u)
    loss = s.loss + step * (s.first + step * (s.second / 2 + step * s.third / 6))
    if u == log(low) == new:
        return Least(low, loss, "low")
    if u == log(high) == new:
        return Least(high, loss, "high")
    return Least(exp(new), loss, "interior")
