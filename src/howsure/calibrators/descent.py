"""Down to the least loss: one temperature by steps in its logarithm, many parameters of a softmax
regression by L-BFGS.

Both look at some of many samples first, then at all in single precision; the last steps are exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import copysign, exp, inf, isfinite, log
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.checks import Array, Bools, Floats, InputError, Ints, column
from howsure._core.indices import sort_distinct
from howsure.calibrators.calibrator import compute_shares, read_logits, stack_members
from howsure.calibrators.softmax_fit import (
    MAX_EXACT_PARAMETERS,
    SINGLE_PRECISION_LOGITS,
    ConjugateInverse,
    LossPoint,
    SoftmaxProblem,
    measure_point,
    thin_problem,
)
from howsure.predictions import Predictions

FIRST_GUESS_SAMPLES = 2_000  # the whole set then needs two or three passes
VALLEY_GRID = 10.0 ** np.linspace(-3, 3, 61)
RULED_OUT_BELOW = 1e8  # below the largest logit of a row: nothing at any temperature that occurs
ROOT_PRECISION = 1e-12  # relative: where two temperatures are one
SHORT_STEP = 3e-4  # in log b: a step this short leaves an error of about its cube
LONGEST_STEP = 2.0  # in log b: where the loss is almost flat, a step means little
MAX_PASSES = 200
# Passes in one direction before steps double: the tail of a loss falls ever more slowly.
PASSES_BEFORE_DOUBLING = 8

GRADIENT_GOAL = 1e-7  # no part of the gradient is larger at the end
NEAR_GOAL = 5e-7  # where single precision shows the way: one more step follows
ROUGH_GOAL = 1e-4  # for a place to start from
# Twice how much lower the loss may still be at the end, of many and of few samples.
LARGE_LOSS_GOAL, EXACT_LOSS_GOAL = 4e-10, 1e-13
MAX_DESCENT_STEPS = 400
SHORTEST_STEP = 1e-10  # of the step of the model; if none was good until here, none is
REMEMBERED_STEPS = 20  # steps whose change of the gradient is remembered
# Samples for each parameter that a second derivative is made from, fewer where the start is near.
CURVATURE_SAMPLES, NEAR_CURVATURE_SAMPLES = 50, 30
START_PARAMETER_SAMPLES = 200  # samples for each parameter that show where to start
START_SAMPLE_STEP = 8  # these are every eighth at most
SLOW_RATIO = 0.8  # a step that leaves more of the gradient is slow
# In single precision slow steps meet only rounding: below this gradient, or so many in a row.
ROUNDING_GRADIENT, MAX_SLOW_STEPS = 3e-5, 4


# ---- one temperature


class BestTemperature(NamedTuple):
    """A temperature, how it was found, and the mean loss there."""

    temperature: float
    status: str
    loss: float


def find_temperature(
    preds: Predictions,
    objective: str,
    grid: Sequence[float] | Floats | None,
    bounds: tuple[float, float],
    start: float | None = None,
) -> BestTemperature:
    """The temperature with the least loss under `objective`; `start` is one that is near."""
    preds = _replace_ruled_out(preds)
    if objective not in ("averaged", "per_pass"):
        raise InputError(f"objective is {objective!r}; 'averaged' or 'per_pass' is needed.")
    low, high = bounds
    if not (0 < low <= high and isfinite(high)):
        raise InputError(
            f"bounds are {bounds}; two finite temperatures above 0, the lower first, are needed."
        )
    one_valley = preds.samples == 1 or objective == "per_pass"
    if grid is not None:
        t = column(grid, "grid").astype(np.float64)
        if not (np.isfinite(t) & (t > 0)).all():
            raise InputError(
                "grid holds temperatures that are not finite and above 0; remove them."
            )
        measure_on_grid = measure_per_pass if one_valley else measure_averaged
        loss = [measure_on_grid(preds, 1 / x)[0] for x in t.tolist()]
        best = int(np.argmin(loss))
        return BestTemperature(temperature=float(t[best]), status="grid", loss=loss[best])
    values = stack_members(preds)
    # The first sample mostly settles that the rows are not flat, without a look at all.
    if _is_flat(values[:, :1]) and _is_flat(values):
        return BestTemperature(temperature=1.0, status="flat", loss=float(np.log(preds.k or 1)))
    if not one_valley:
        return _find_deepest_valley(preds, low, high)
    # Some samples, then all in single precision, show where to look: then one exact pass is mostly
    # enough.
    measure = partial(measure_per_pass, preds)
    b, every = 1 / (start or 1.0), preds.n // FIRST_GUESS_SAMPLES
    if every > 1:
        if start is None:
            b = minimise_convex(partial(measure, every=every), 1 / high, 1 / low).b
        quick = partial(measure, quick=True)
        b = minimise_convex(quick, 1 / high, 1 / low, start=b, close=0.03).b
    least = minimise_convex(measure, 1 / high, 1 / low, start=b)
    # A low 1/T is a high T.
    if least.at == "low":
        return BestTemperature(temperature=high, status="upper", loss=least.loss)
    if least.at == "high":
        return BestTemperature(temperature=low, status="lower", loss=least.loss)
    return BestTemperature(temperature=1 / least.b, status="interior", loss=least.loss)


def _replace_ruled_out(preds: Predictions) -> Predictions:
    """The same with classes ruled out by -inf far below the others, so that they add nothing and
    are numbers.
    """
    v = preds.values
    if preds.kind != "logits" or v.min() > -inf:
        return preds
    ruled_out = np.isneginf(v)
    of_members = ruled_out if v.ndim == 3 else ruled_out[None]
    own: Bools = of_members[:, np.arange(preds.n), preds.labels]
    impossible = np.flatnonzero(np.logical_and.reduce(own, axis=0))
    if len(impossible):
        raise InputError(
            "labels",
            row=int(impossible[0]),
            got="is a class of logit -inf",
            need="the likelihood is 0 at every temperature",
            hint="Leave out these rows",
        )
    low = v.max(axis=-1, keepdims=True).astype(np.float64) - RULED_OUT_BELOW
    return replace(preds, values=np.where(ruled_out, low, v))


def _is_flat(values: Array) -> bool:
    """Whether each row has only one value, so that no temperature changes anything."""
    return bool((values.max(axis=-1) == values.min(axis=-1)).all())


# ---- the loss at an inverse temperature


class LossSlope(NamedTuple):
    """Mean loss at b and its first three derivatives."""

    loss: float
    first: float
    second: float
    third: float


def measure_per_pass(
    preds: Predictions, b: float, *, every: int = 1, quick: bool = False
) -> LossSlope:
    """Mean over members of the negative log-likelihood of softmax(b z): convex in b.

    `every` n-th sample only, or `quick` in single precision, for a place to start from.
    """
    weight, total = compute_shares(preds), np.zeros(4)
    for rows, z in read_logits(preds, every, np.float32 if quick else np.float64):
        w = weight[rows] / len(z)
        for member in z:
            total += _compute_cumulants(member, preds.labels[rows], b) @ w
    loss, first, second, third = (total / weight[::every].sum()).tolist()
    return LossSlope(loss=loss, first=first, second=second, third=third)


def measure_averaged(preds: Predictions, b: float) -> tuple[float, float]:
    """Negative log-likelihood of the mean over members of softmax(b z), which is not convex, and
    its derivative.
    """
    weight, total = compute_shares(preds), np.zeros(2)
    for rows, z in read_logits(preds):
        each = np.stack([_compute_cumulants(member, preds.labels[rows], b)[:2] for member in z])
        peak = (-each[:, 0]).max(axis=0)
        share = np.exp(-each[:, 0] - peak)
        mean = share.sum(axis=0)
        loss = np.log(len(z)) - peak - np.log(mean)
        slope = (share * each[:, 1]).sum(axis=0) / mean
        total += np.stack((loss, slope)) @ weight[rows]
    return float(total[0]), float(total[1])


def _compute_cumulants(z: Array, y: Ints, b: float) -> Floats:
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


# ---- one valley


Place: TypeAlias = Literal["interior", "low", "high"]


class LeastLoss(NamedTuple):
    """The place of the least loss, the loss there, and whether it lies inside the bounds or at one
    of them.
    """

    b: float
    loss: float
    at: Place


class SearchState(NamedTuple):
    """Where a search in u = log b stands: the place, its slope, and the bracket around the least."""

    u: float
    slope: LossSlope
    left: float
    right: float


def minimise_convex(
    measure: Callable[[float], LossSlope],
    low: float,
    high: float,
    *,
    start: float = 1.0,
    close: float = SHORT_STEP,
) -> LeastLoss:
    """Minimum in [low, high] of a convex loss. Each pass halves the bracket or takes a step inside
    it.
    """
    bottom, top = log(low), log(high)
    u = min(max(log(start), bottom), top)
    left, right = -inf, inf
    new, slope = u, measure(exp(u))
    for i in range(MAX_PASSES):
        if not isfinite(slope.first):
            break  # single precision overflowed: start the exact search from here
        if slope.first > 0:
            right = u
        else:
            left = u
        stretch = 1.0
        if not isfinite(right - left):
            stretch = max(1.0, 2.0 ** (i - PASSES_BEFORE_DOUBLING))
        state = SearchState(u=u, slope=slope, left=left, right=right)
        new, plain = _choose_next(state, bottom, top, stretch)
        if new == u or (plain and abs(new - u) < close):
            break
        u, slope = new, measure(exp(new))

    # The loss after the last step, which is too short for another pass, by Taylor's series.
    step = exp(new) - exp(u)
    loss = slope.loss + step * (slope.first + step * (slope.second / 2 + step * slope.third / 6))
    if u == bottom == new:
        return LeastLoss(b=low, loss=loss, at="low")
    if u == top == new:
        return LeastLoss(b=high, loss=loss, at="high")
    return LeastLoss(b=exp(new), loss=loss, at="interior")


def _choose_next(
    state: SearchState, bottom: float, top: float, stretch: float
) -> tuple[float, bool]:
    """The next place to look at, and whether it is a plain step."""
    u, b, s = state.u, exp(state.u), state.slope
    if s.first == 0 and s.second > 0:
        return u, True
    # Halley's step in log b towards the zero of the first derivative; Newton's where that would
    # turn round.
    slope = b * s.second
    if s.first == 0:
        # Flat to the right, by underflow: every answer is right and can only become surer.
        wish = inf
    elif slope <= 0:
        wish = copysign(inf, -s.first)
    else:
        wish = -s.first / slope
        damping = 1 + wish * (slope + b * b * s.third) / (2 * slope)
        if damping > 0.5:
            wish /= damping
    wish *= stretch
    new = u + min(max(wish, -LONGEST_STEP), LONGEST_STEP)
    inside = min(max(new, bottom), top)
    if inside == u or state.left < inside < state.right:
        return inside, inside == new and abs(wish) <= LONGEST_STEP and stretch <= 1
    return (state.left + state.right) / 2, False


# ---- several valleys


def _find_deepest_valley(preds: Predictions, low: float, high: float) -> BestTemperature:
    """The mean over passes has a loss of several valleys: look on a grid, then go down the best
    one.
    """
    inside = VALLEY_GRID[(low <= VALLEY_GRID) & (high >= VALLEY_GRID)]
    ends = np.clip([low, high], VALLEY_GRID[0], VALLEY_GRID[-1])
    t = sort_distinct(np.concatenate((inside, ends)))
    loss = np.array([measure_averaged(preds, 1 / x)[0] for x in t.tolist()])
    i = int(np.argmin(loss))
    left, right = t[max(i - 1, 0)], t[min(i + 1, len(t) - 1)]
    if i in (0, len(t) - 1):
        # At an end of the grid there may be no valley but a slope that goes on.
        turns = (
            left < right
            and measure_averaged(preds, 1 / right)[1] < 0 < measure_averaged(preds, 1 / left)[1]
        )
        if not turns:
            status = "lower" if i == 0 else "upper"
            return BestTemperature(temperature=float(t[i]), status=status, loss=float(loss[i]))
    b = float(_find_root(lambda b: measure_averaged(preds, b)[1], 1 / right, 1 / left))
    return BestTemperature(temperature=1 / b, status="interior", loss=measure_averaged(preds, b)[0])


def _find_root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f crosses 0 between two places of different sign: the ITP method (Oliveira & Takahashi
    2021).
    """
    at_low, at_high = f(low), f(high)
    if at_low == 0:
        return low
    if at_high == 0:
        return high
    first, steps = high - low, 0
    while high - low > ROOT_PRECISION * high:
        middle = (low + high) / 2
        chord = (at_high * low - at_low * high) / (at_high - at_low)
        # Truncate: move from the chord towards the middle. Project: stay close to bisection.
        shift = min(0.2 / first * (high - low) ** 2, abs(middle - chord))
        x = chord + copysign(shift, middle - chord)
        reach = max(first * 2.0 ** (1 - steps) - (high - low) / 2, 0.0)
        if abs(x - middle) > reach:
            x = middle - copysign(reach, middle - x)
        value, steps = f(x), steps + 1
        if value == 0:
            return x
        if (value < 0) == (at_low < 0):
            low, at_low = x, value
        else:
            high, at_high = x, value
    return (low + high) / 2


# ---- many parameters


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
    # Below, every sample has a loss below ln 2 and is right: without a penalty there is no minimum.
    separated = -inf
    if not problem.ridge.any():
        share = problem.data.share
        separated = log(2) / len(problem.data.y)
        if share is not None:
            separated = log(2) * float(share[share > 0].min())
    here = measure_point(problem, v, dtype)
    slow_steps, ratio = 0, 1.0
    for _ in range(MAX_DESCENT_STEPS):
        if here.nll < separated:
            break
        size = float(np.abs(here.gradient).max())
        if goal == NEAR_GOAL and size * ratio <= GRADIENT_GOAL:
            return Minimum(v=v, at=here, converged=True)  # the next step will do
        if size <= goal and (goal == ROUGH_GOAL or model.estimate_fall(here.gradient) <= enough):
            return Minimum(v=v, at=here, converged=True)
        # The first of the steps 1, 1/2, ... after which the slope is at most half as steep upwards as
        # it was downwards. The loss is convex, so slopes tell what losses would, and rounding hides
        # them later.
        step = -model.multiply(here.gradient)
        fall = -float(np.vdot(here.gradient, step))
        new, there, length = v, here, 1.0
        while fall > 0 and length > SHORTEST_STEP:
            new = v + length * step
            there = measure_point(problem, new, dtype)
            if float(np.vdot(there.gradient, step)) <= fall / 2:
                break
            length /= 2
        else:
            if model.is_fresh:
                break
            model.renew(problem, v)
            continue
        ratio = float(np.abs(there.gradient).max()) / size
        slow_steps = slow_steps + 1 if ratio > SLOW_RATIO else 0
        rounding = size < ROUNDING_GRADIENT or slow_steps >= MAX_SLOW_STEPS
        if dtype is np.float32 and ratio > SLOW_RATIO and rounding:
            break
        model.add(new - v, there.gradient - here.gradient)
        v, here = new, there
        # A step that had to be cut short says that the model is wrong, whatever it gained.
        slow = model.note_ratio(ratio if length > 0.25 else 2.0)
        if slow or model.holds_at_point_only:
            model.renew(problem, v)
    converged = float(np.abs(here.gradient).max()) <= goal
    return Minimum(v=v, at=here, converged=converged)


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
