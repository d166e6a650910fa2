"""Down to the least loss of a softmax regression: L-BFGS with a second derivative that is made anew
where it fails.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.check import Floats
from howsure.calibrators._softmax import EXACT, LARGE, Point, Problem, Products, measured

GOAL = 1e-7  # no part of the gradient is larger at the end
NEAR = 5e-7  # where single precision shows the way: one more step follows
ROUGH = 1e-4  # and for a place to start from
ENOUGH, EXACTLY = (
    4e-10,
    1e-13,
)  # twice how much lower the loss may still be, of many and of few samples
STEPS = 400
MEMORY = 20  # steps whose change of the gradient is remembered
MANY, SOME = (
    50,
    30,
)  # samples for each parameter that a second derivative is made from, SOME where the start is near
FEW = 200  # samples for each parameter that show where to start, an eighth of all at most
NOISE, PATIENCE = (
    3e-5,
    4,
)  # below this, or so many times in a row, a step that leaves most of it meets only rounding


class Minimum(NamedTuple):
    """Where the search ended, and whether the gradient was small enough."""

    v: Floats
    at: Point
    converged: bool


def minimise(problem: Problem, start: Floats, *, near: bool = False, goal: float = GOAL) -> Minimum:
    """Go down from `start` until no part of the gradient exceeds `goal`; never end above the start.

    `near` says that the start is the minimum of almost the same samples. Otherwise an eighth of
    many samples shows the way first.
    """
    v, n, large = start, problem.data.x.shape[1], problem.data.x.size >= LARGE
    if not near and n // 8 >= FEW * v.size:
        v = minimise(problem.thinned(8), start, goal=ROUGH).v
    model = _Model.at(problem, v, SOME if near else MANY)
    if large:
        shown = _descend(problem, v, model, np.float32, max(goal, NEAR))
        if goal == ROUGH and shown.converged:
            return shown
        v = shown.v - model.times(shown.at.gradient) if shown.converged else shown.v
    found = _descend(problem, v, model, np.float64, goal)
    if found.converged and (large or near):
        return found
    found = _sharpened(problem, found, model)
    first = measured(problem, start)
    return found if found.at.loss <= first.loss else Minimum(start, first, found.converged)


def _sharpened(problem: Problem, found: Minimum, model: _Model) -> Minimum:
    """One more step, which doubles the digits."""
    new = found.v - model.times(found.at.gradient)
    there = measured(problem, new)
    better = np.abs(there.gradient).max() < np.abs(found.at.gradient).max()
    return Minimum(new, there, found.converged) if found.converged and better else found


def _descend(problem: Problem, v: Floats, model: _Model, dtype: DTypeLike, goal: float) -> Minimum:
    """L-BFGS from v (Nocedal 1980), with the second derivative as a first guess that is made anew
    where it fails.
    """
    here, enough = measured(problem, v, dtype), ENOUGH if problem.data.x.size >= LARGE else EXACTLY
    slow, left = 0, 1.0
    for _ in range(STEPS):
        size = float(np.abs(here.gradient).max())
        if goal == NEAR and size * left <= GOAL:
            return Minimum(v, here, True)  # the next step will do
        if size <= goal and (goal == ROUGH or model.fall(here.gradient) <= enough):
            return Minimum(v, here, True)
        step = -model.times(here.gradient)
        fall = -float(np.vdot(here.gradient, step))
        moved = _search(problem, v, step, fall, dtype)
        if moved is None:
            if model.fresh:
                break
            model.renew(problem, v)
            continue
        left = float(np.abs(moved[1].gradient).max()) / size
        slow = slow + 1 if left > 0.8 else 0
        if dtype is np.float32 and left > 0.8 and (size < NOISE or slow >= PATIENCE):
            break
        model.add(moved[0] - v, moved[1].gradient - here.gradient)
        v, here, length = moved
        if model.slow(left if length > 0.25 else 2.0) or model.by_products:
            model.renew(problem, v)
    return Minimum(v, here, float(np.abs(here.gradient).max()) <= goal)


def _search(
    problem: Problem, v: Floats, step: Floats, fall: float, dtype: DTypeLike
) -> tuple[Floats, Point, float] | None:
    """The first of the steps 1, 1/2, ... after which the slope is at most half as steep upwards as
    it was downwards.

    The loss is convex, so slopes tell what losses would, and rounding hides them later.
    """
    length = 1.0
    while length > 1e-10 and fall > 0:
        new = v + length * step
        there = measured(problem, new, dtype)
        if float(np.vdot(there.gradient, step)) <= fall / 2:
            return new, there, length
        length /= 2
    return None


class _Model:
    """The inverse second derivative as far as it is known: that of one point, corrected by the
    steps since.
    """

    def __init__(self, problem: Problem, v: Floats, every: int):
        self.every = every
        self.inverse = cache(lambda: problem.inverse(v, every))
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
        self.rate = 0.0

    @classmethod
    def at(cls, problem: Problem, v: Floats, samples: int) -> _Model:
        """From so many samples for each parameter."""
        return cls(problem, v, max(1, problem.data.x.shape[1] // (samples * min(v.size, EXACT))))

    @property
    def fresh(self) -> bool:
        """Whether it is as good as it can be made here."""
        return self.every == 0 and not self.pairs

    @property
    def by_products(self) -> bool:
        """Whether it holds at its point only."""
        return isinstance(self.inverse(), Products)

    def renew(self, problem: Problem, v: Floats) -> None:
        """Make it anew, from more samples, in the end from products with all."""
        self.__init__(problem, v, self.every // 8)

    def times(self, g: Floats) -> Floats:
        """The product with a gradient, by two loops over the pairs."""
        q, used = g, list[float]()
        for s, y, sy in reversed(self.pairs):
            used.append(float(np.vdot(s, q)) / sy)
            q = q - used[-1] * y
        r = self.inverse()(q)
        for (s, y, sy), a in zip(self.pairs, reversed(used), strict=True):
            r = r + (a - float(np.vdot(y, r)) / sy) * s
        return r

    def fall(self, g: Floats) -> float:
        """About twice how much lower the loss may still be; by the guess where a product is a pass
        over the samples.
        """
        inverse = self.inverse()
        return float(
            np.vdot(g, inverse.guess(g) if isinstance(inverse, Products) else self.times(g))
        )

    def add(self, s: Floats, y: Floats) -> None:
        """A step and the change of the gradient along it; rounding may hide that it is positive."""
        sy = float(np.vdot(s, y))
        if sy > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, sy))

    def slow(self, ratio: float) -> bool:
        """Whether the last steps did not shrink the gradient as they should; `ratio` is what the
        last one left.
        """
        self.rate = 0.5 * self.rate + 0.5 * min(ratio, 2.0)
        return self.rate > 0.8
