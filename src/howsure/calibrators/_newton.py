"""Truncated Newton for smooth convex losses: conjugate gradients inside, a line search outside."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from howsure._core.check import Floats

INNER = 300  # products with the second derivative per step
SLACK = 1e-14  # relative rounding of a mean loss: the line search must not wait for less


class Problem(Protocol):
    """A loss with exact first derivatives and products with the second; `state` is what a point leaves behind."""

    def loss(self, v: Floats) -> tuple[float, Any]:
        """The loss and the state at v."""
        ...

    def gradient(self, v: Floats, state: Any) -> Floats:
        """The gradient at the point of `state`."""
        ...

    def product(self, d: Floats, state: Any) -> Floats:
        """The second derivative times d."""
        ...

    def preconditioner(self, state: Any) -> Callable[[Floats], Floats]:
        """A cheap approximate inverse of the second derivative."""
        ...


class Minimum(NamedTuple):
    """Where the search ended: the point, its loss, and whether the gradient was small enough."""

    v: Floats
    loss: float
    converged: bool


def minimise(problem: Problem, start: Floats, *, goal: float, cap: int) -> Minimum:
    """Go down from `start` until no part of the gradient exceeds `goal`, or for `cap` steps."""
    v = start
    loss, state = first = problem.loss(v)
    for _ in range(cap):
        g = problem.gradient(v, state)
        size = float(np.abs(g).max())
        if size <= goal:
            return Minimum(v, loss, True) if loss <= first[0] else Minimum(start, first[0], True)
        step = _direction(problem, g, state, min(0.25, max(0.03, sqrt(size))))
        moved = _search(problem, v, loss, step, float(np.vdot(g, step)))
        if moved is None:
            break
        v, loss, state = moved
    size = float(np.abs(problem.gradient(v, state)).max())
    return Minimum(v, loss, size <= goal) if loss <= first[0] else Minimum(start, first[0], False)


def _direction(problem: Problem, g: Floats, state: Any, tolerance: float) -> Floats:
    """An approximate Newton step by preconditioned conjugate gradients."""
    inverse = problem.preconditioner(state)
    step, rest = np.zeros_like(g), -g
    z = inverse(rest)
    d, size = z, float(np.vdot(rest, z))
    enough = tolerance * tolerance * size
    for _ in range(INNER):
        image = problem.product(d, state)
        curve = float(np.vdot(d, image))
        if curve <= 0 or size <= enough:
            break
        step = step + (size / curve) * d
        rest = rest - (size / curve) * image
        z = inverse(rest)
        before, size = size, float(np.vdot(rest, z))
        d = z + (size / before) * d
    return step if step.any() else inverse(-g)


def _search(problem: Problem, v: Floats, loss: float, step: Floats, slope: float) -> tuple[Floats, float, Any] | None:
    """The first of the steps 1, 1/2, 1/4, ... that lowers the loss enough; None where rounding hides any."""
    if slope >= 0:
        return None
    length = 1.0
    while length > 1e-10:
        new = v + length * step
        there, state = problem.loss(new)
        if there <= loss + 1e-4 * length * slope + SLACK * (1 + abs(loss)):
            return new, there, state
        length /= 2
    return None
