"""Where a convex loss of one positive number is least: safeguarded Halley steps on its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, inf, isfinite, log
from typing import NamedTuple

from howsure.calibrators._slope import Slope

CLOSE = 3e-4  # a step this short leaves an error of about its cube
LONGEST = 2.0  # in log b: where the loss is almost flat, a step means little
PASSES = 200
PATIENCE = 8  # passes in one direction before steps double: the tail of a loss falls ever more slowly


class Least(NamedTuple):
    """The place of the least loss, the loss there, and whether it lies inside the bounds or at one of them."""

    b: float
    loss: float
    at: str  # "interior", "low" or "high"


def least(
    slope: Callable[[float], Slope], low: float, high: float, start: float = 1.0, *, close: float = CLOSE
) -> Least:
    """Minimum in [low, high] of a convex loss. Each pass halves the bracket or takes a step inside it."""
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
        new, plain = _next(u, s, (left, right), (log(low), log(high)), 2.0 ** (i - PATIENCE) if one_sided else 1.0)
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
    """Halley's step in log b towards the zero of the first derivative; Newton's where that would turn round."""
    if s.first == 0:  # flat to the right, by underflow: every answer is right and can only become surer
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
