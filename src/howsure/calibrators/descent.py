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
from howsure.calibrators.softmax_fit import (
    MAX_EXACT_PARAMETERS,
    SINGLE_PRECISION_LOGITS,
    ConjugateInverse,
    LossPoint,
    SoftmaxProblem,
    measure_point,
    thin_problem,
)

GRADIENT_GOAL = 1e-7  # no part of the gradient is larger at the end
NEAR_GOAL = 5e-7  # where single precision shows the way: one more step follows
ROUGH_GOAL = 1e-4  # for a place to start from
# Twice how much lower the loss may still be at the end, of many and of few samples.
LARGE_LOSS_GOAL, EXACT_LOSS_GOAL = 4e-10, 1e-13
MAX_DESCENT_STEPS = 400
REMEMBERED_STEPS = 20  # steps whose change of the gradient is remembered
# Samples for each parameter that a second derivative is made from, fewer where the start is near.
CURVATURE_SAMPLES, NEAR_CURVATURE_SAMPLES = 50, 30
START_PARAMETER_SAMPLES = 200  # samples for each parameter that show where to start
START_SAMPLE_STEP = 8  # these are every eighth at most
SLOW_RATIO = 0.8  # a step that leaves more of the gradient is slow
# In single precision slow steps meet only rounding: below this gradient, or so many in a row.
ROUNDING_GRADIENT, MAX_SLOW_STEPS = 3e-5, 4


class Minimum(NamedTuple):
    """Where the search ended, and whether the gradient was small enough."""

    v: Floats
    at: LossPoint
    converged: bool


def minimise(
    problem: SoftmaxProblem, start: Floats, *, near: bool = False, goal: float = GRADIENT_GOAL
) -> Minimum:
    """Go down from `start` until no part of the gradient exceeds `goal`; never end above the start.

    `near` says that the start is the minimum of almost the same samples. Otherwise an eighth of
    many samples shows the way first.
    """
    v, n = start, problem.data.x.shape[1]
    large = problem.data.x.size >= SINGLE_PRECISION_LOGITS
    if not near and n // START_SAMPLE_STEP >= START_PARAMETER_SAMPLES * v.size:
        v = minimise(thin_problem(problem, START_SAMPLE_STEP), start, goal=ROUGH_GOAL).v
    samples = NEAR_CURVATURE_SAMPLES if near else CURVATURE_SAMPLES
    every = max(1, n // (samples * min(v.size, MAX_EXACT_PARAMETERS)))
    model = CurvatureModel(problem, v, every)
    if large:
        rough = _descend(problem, v, model, dtype=np.float32, goal=max(goal, NEAR_GOAL))
        if goal == ROUGH_GOAL and rough.converged:
            return rough
        v = rough.v
        if rough.converged:
            v = v - model.multiply(rough.at.gradient)
    least = _descend(problem, v, model, dtype=np.float64, goal=goal)
    if least.converged and (large or near):
        return least
    if least.converged:
        # One more step doubles the digits.
        new = least.v - model.multiply(least.at.gradient)
        there = measure_point(problem, new)
        if np.abs(there.gradient).max() < np.abs(least.at.gradient).max():
            least = Minimum(v=new, at=there, converged=True)
    first = measure_point(problem, start)
    if least.at.loss <= first.loss:
        return least
    return Minimum(v=start, at=first, converged=least.converged)


def _descend(
    problem: SoftmaxProblem, v: Floats, model: CurvatureModel, *, dtype: DTypeLike, goal: float
) -> Minimum:
    """L-BFGS from v (Nocedal 1980), with the second derivative as a first guess that is made anew
    where it fails.
    """
    enough = EXACT_LOSS_GOAL
    if problem.data.x.size >= SINGLE_PRECISION_LOGITS:
        enough = LARGE_LOSS_GOAL
    here = measure_point(problem, v, dtype)
    slow_steps, ratio = 0, 1.0
    for _ in range(MAX_DESCENT_STEPS):
        size = float(np.abs(here.gradient).max())
        if goal == NEAR_GOAL and size * ratio <= GRADIENT_GOAL:
            return Minimum(v=v, at=here, converged=True)  # the next step will do
        if size <= goal and (goal == ROUGH_GOAL or model.estimate_fall(here.gradient) <= enough):
            return Minimum(v=v, at=here, converged=True)
        move = _search_line(problem, v, here, -model.multiply(here.gradient), dtype)
        if move is None:
            if model.is_fresh:
                break
            model.renew(problem, v)
            continue
        ratio = float(np.abs(move.there.gradient).max()) / size
        slow_steps = slow_steps + 1 if ratio > SLOW_RATIO else 0
        rounding = size < ROUNDING_GRADIENT or slow_steps >= MAX_SLOW_STEPS
        if dtype is np.float32 and ratio > SLOW_RATIO and rounding:
            break
        model.add(move.v - v, move.there.gradient - here.gradient)
        v, here = move.v, move.there
        # A step that had to be cut short says that the model is wrong, whatever it gained.
        slow = model.note_ratio(ratio if move.length > 0.25 else 2.0)
        if slow or model.holds_at_point_only:
            model.renew(problem, v)
    converged = float(np.abs(here.gradient).max()) <= goal
    return Minimum(v=v, at=here, converged=converged)


class LineMove(NamedTuple):
    """Where a step led, the loss there, and which part of the step it was."""

    v: Floats
    there: LossPoint
    length: float


def _search_line(
    problem: SoftmaxProblem, v: Floats, here: LossPoint, step: Floats, dtype: DTypeLike
) -> LineMove | None:
    """The first of the steps 1, 1/2, ... after which the slope is at most half as steep upwards as
    it was downwards.

    The loss is convex, so slopes tell what losses would, and rounding hides them later.
    """
    fall = -float(np.vdot(here.gradient, step))
    length = 1.0
    while length > 1e-10 and fall > 0:
        new = v + length * step
        there = measure_point(problem, new, dtype)
        if float(np.vdot(there.gradient, step)) <= fall / 2:
            return LineMove(v=new, there=there, length=length)
        length /= 2
    return None


class CurvatureModel:
    """The inverse second derivative as far as it is known: that of one point, corrected by the
    steps since.
    """

    def __init__(self, problem: SoftmaxProblem, v: Floats, every: int):
        self.every = every
        self.inverse = cache(lambda: problem.invert_curvature(v, every))
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=REMEMBERED_STEPS)
        self.rate = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether it is as good as it can be made here."""
        return self.every == 0 and not self.pairs

    @property
    def holds_at_point_only(self) -> bool:
        """Whether it is made of products with the second derivative at its point."""
        return isinstance(self.inverse(), ConjugateInverse)

    def renew(self, problem: SoftmaxProblem, v: Floats) -> None:
        """Make it anew, from more samples, in the end from products with all."""
        self.__init__(problem, v, self.every // 8)

    def multiply(self, g: Floats) -> Floats:
        """The product with a gradient, by two loops over the pairs."""
        q, used = g, list[float]()
        for s, y, sy in reversed(self.pairs):
            used.append(float(np.vdot(s, q)) / sy)
            q = q - used[-1] * y
        r = self.inverse()(q)
        for (s, y, sy), a in zip(self.pairs, reversed(used), strict=True):
            r = r + (a - float(np.vdot(y, r)) / sy) * s
        return r

    def estimate_fall(self, g: Floats) -> float:
        """About twice how much lower the loss may still be."""
        inverse = self.inverse()
        if isinstance(inverse, ConjugateInverse):
            # A product is a pass over the samples; the guess costs none.
            return float(np.vdot(g, inverse.guess(g)))
        return float(np.vdot(g, self.multiply(g)))

    def add(self, s: Floats, y: Floats) -> None:
        """Add a step and the change of the gradient along it, unless rounding hides that it is
        positive.
        """
        sy = float(np.vdot(s, y))
        if sy > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, sy))

    def note_ratio(self, ratio: float) -> bool:
        """Note what the last step left of the gradient; return whether the last ones were slow."""
        self.rate = 0.5 * self.rate + 0.5 * min(ratio, 2.0)
        return self.rate > SLOW_RATIO
