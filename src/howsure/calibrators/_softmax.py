"""Softmax regression: the W and b with the least mean loss of softmax(W z + b), W diagonal or full.

Parameters are one array with a row for each class: (weight, intercept) for a diagonal W, a row of W and the
intercept for a full one. The penalty is the sum of ridge · (v − v₀)², v₀ being W = I, b = 0. Logits have a row for each
class too, which makes sums over classes sums of long rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.check import Array, Floats, Ints
from howsure.predictions.columns import chunks

GOAL = 1e-7  # no part of the gradient is larger at the end
NEAR = 3e-7  # the same where single precision shows the way
ROUGH = 1e-4  # and for a place to start from
ENOUGH, EXACTLY = 4e-10, 1e-13  # twice how much lower the loss may still be, of many and of few samples
STEPS = 400
MEMORY = 20  # steps whose change of the gradient is remembered
EXACT = 300  # parameters up to which the whole second derivative is made ...
MANY, SOME = 100, 30  # ... from so many samples for each of them, or so few where the start is near
FEW = 200  # samples for each parameter that show where to start, an eighth of all at most
CLOSE, INNER = 0.1, 100  # how far conjugate gradients go inside a step of Newton's method
FLAT = 1e-14  # of the largest curvature: flat directions are not followed to infinity in one step
LARGE = 1 << 20  # logits from which single precision shows the way
NOISE, PATIENCE = 3e-5, 4  # below this, or after so many times, a step that does not halve it meets only rounding
BOUNDED = {4: 75.0, 8: 600.0}  # scores whose exponentials are ordinary numbers, by precision
Inverse: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Samples:
    """Logits with a row for each class, labels, and what each sample counts; None where all count the same."""

    x: Array
    y: Ints
    share: Floats | None

    def parts(
        self, width: int, dtype: DTypeLike = np.float64, every: int = 1
    ) -> Iterator[tuple[Array, Ints, Array | float]]:
        """Logits, labels and shares of some samples at a time, about CHUNK / width of them; `every` n-th only."""
        n = self.x.shape[1]
        for part in chunks(-(-n // every), width):
            pick = slice(part.start * every, min(part.stop * every, n), every)
            share = every / n if self.share is None else every * self.share[pick]
            yield self.x[:, pick].astype(dtype, copy=False), self.y[pick], share

    def thinned(self, every: int) -> Samples:
        """Every n-th of these samples."""
        share = None if self.share is None else self.share[::every] / self.share[::every].sum()
        return Samples(np.ascontiguousarray(self.x[:, ::every]), self.y[::every], share)

    @cached_property
    def _largest(self) -> Floats:
        """How far the logits of each class are from 0 at most."""
        return np.maximum(self.x.max(axis=1), -self.x.min(axis=1)).astype(np.float64)

    def bounded(self, v: Floats, dtype: DTypeLike) -> bool:
        """Whether exponentials of all scores are surely neither infinite nor 0, so that none must be subtracted."""
        size = np.abs(v[:, :-1])
        most = size[:, 0] * self._largest if size.shape[1] == 1 else size @ self._largest
        return bool((most + np.abs(v[:, -1])).max() <= BOUNDED[np.dtype(dtype).itemsize])

    @property
    def quick(self) -> type[np.float32] | type[np.float64]:
        """The precision that is enough to show the way."""
        return np.float32 if self.x.size >= LARGE else np.float64


class Point(NamedTuple):
    """The loss with its penalty, the mean negative log-likelihood alone, and the gradient."""

    loss: float
    nll: float
    gradient: Floats


class Problem(Protocol):
    """What is minimised: scores of classes, and derivatives by the parameters."""

    @property
    def data(self) -> Samples: ...
    @property
    def ridge(self) -> Floats: ...
    @property
    def centre(self) -> Floats: ...

    def thinned(self, every: int) -> Problem:
        """The same with `every` n-th sample."""
        ...

    def scores(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z + b."""
        ...

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is overwritten."""
        ...

    def level(self, gradient: Floats) -> None:
        """Take out what rounding left along directions that add the same to all classes: they change no probability,
        so nothing would hold a step along them."""
        ...

    def inverse(self, v: Floats, every: int) -> Inverse:
        """An approximate inverse of the second derivative, from `every` n-th sample."""
        ...


class Minimum(NamedTuple):
    """Where the search ended, and whether the gradient was small enough."""

    v: Floats
    at: Point
    converged: bool


def measured(problem: Problem, v: Floats, dtype: DTypeLike = np.float64) -> Point:
    """Loss and gradient at v in one pass over the samples."""
    nll, gradient, narrow = 0.0, np.zeros_like(v), v.astype(dtype)
    small, room = problem.data.bounded(v, dtype), None
    for x, y, share in problem.data.parts(len(v), dtype):
        room = np.empty_like(x, order="C") if room is None or room.shape != x.shape else room
        e, at = problem.scores(narrow, x, room), np.arange(len(y))
        if not small:
            e -= e.max(axis=0)
        own = e[y, at]
        np.exp(e, out=e)
        total = e.sum(axis=0)
        nll += float(np.sum((np.log(total) - own) * share, dtype=np.float64))
        e[y, at] -= total  # probabilities, less 1 at the label, times the total
        gradient += problem.pull(e, np.divide(share, total).astype(dtype, copy=False), x)
    problem.level(gradient)
    away = v - problem.centre
    gradient += 2 * problem.ridge * away
    return Point(nll + float((problem.ridge * away * away).sum()), nll, gradient)


def _softmax(s: Array) -> Array:
    """Probabilities in the place of the scores."""
    s -= s.max(axis=0)
    np.exp(s, out=s)
    s /= s.sum(axis=0)
    return s


@dataclass(frozen=True, eq=False)
class Diagonal:
    """One weight and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def thinned(self, every: int) -> Diagonal:
        """The same with `every` n-th sample."""
        return replace(self, data=self.data.thinned(every))

    def scores(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z + b."""
        s = np.multiply(x, v[:, :1], out=out)
        s += v[:, 1:]
        return s

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is overwritten."""
        intercept = r @ scale
        r *= x
        return np.stack((r @ scale, intercept), axis=1)

    def level(self, gradient: Floats) -> None:
        """Intercepts that all rise by the same change nothing."""
        gradient[:, 1] -= gradient[:, 1].mean()

    def inverse(self, v: Floats, every: int) -> Inverse:
        """With few parameters the inverse itself, else that of each class's own 2 × 2 block."""
        k, whole, quick = len(v), v.size <= EXACT, self.data.quick
        own, second, narrow = np.zeros((k, 3)), np.zeros((2 * k, 2 * k)), v.astype(quick)
        for x, _, share in self.data.parts(k, quick, every):
            p, share = _softmax(self.scores(narrow, x)), np.asarray(share, quick)
            both = np.concatenate((p * x, p))
            bent = both[k:] * share if whole else (both[k:] - both[k:] ** 2) * share
            bent_x = bent * x
            own += np.stack((np.einsum("ij,ij->i", bent_x, x), bent_x.sum(axis=1), bent.sum(axis=1)), axis=1)
            if whole:
                both *= np.sqrt(share)
                second -= both @ both.T
        own[:, ::2] += 2 * self.ridge
        if not whole:
            return _of_blocks(*own.T)
        i = np.arange(k)
        for (a, b), column in zip(((0, 0), (0, k), (k, 0), (k, k)), (0, 1, 1, 2), strict=True):
            second[a + i, b + i] += own[:, column]
        inverted = _of_whole(second)
        return lambda r: inverted(r.T).T


@dataclass(frozen=True, eq=False)
class Full:
    """A whole matrix and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def thinned(self, every: int) -> Full:
        """The same with `every` n-th sample."""
        return replace(self, data=self.data.thinned(every))

    def scores(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z + b."""
        s = np.matmul(np.ascontiguousarray(v[:, :-1]), x, out=out)
        s += v[:, -1:]
        return s

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is overwritten."""
        intercept = r @ scale
        r *= scale
        return np.concatenate((r @ x.T, intercept[:, None]), axis=1)

    def level(self, gradient: Floats) -> None:
        """Rows that all change by the same change nothing."""
        gradient -= gradient.mean(axis=0)

    def inverse(self, v: Floats, every: int) -> Inverse:
        """With few parameters the inverse itself; else conjugate gradients with the second derivative."""
        return self._exact(v, every) if v.size <= EXACT else self._by_products(v)

    def _exact(self, v: Floats, every: int) -> Inverse:
        k, quick = len(v), self.data.quick
        second, own, narrow = np.zeros((v.size, v.size)), np.zeros((k, k + 1, k + 1)), v.astype(quick)
        for x, y, share in self.data.parts(v.size, quick, every):
            p, one = _softmax(self.scores(narrow, x)), np.concatenate((x, np.ones((1, len(y)), quick)))
            root = np.sqrt(np.asarray(share, quick))
            each = (p * root)[:, None, :] * one
            own += each @ (one * root).T
            flat = each.reshape(v.size, -1)
            second -= flat @ flat.T
        i = np.arange(k)
        second.reshape(k, k + 1, k, k + 1)[i, :, i, :] += own
        second[np.diag_indices(v.size)] += 2 * self.ridge.ravel()
        return _of_whole(second)

    def _by_products(self, v: Floats) -> Inverse:
        """Conjugate gradients in single precision, which a step of Newton's method does not notice, after a Kronecker
        product: how classes vary together, times how logits vary where the answer is unsure."""
        k, narrow = len(v), v.astype(np.float32)
        parts = [
            cache(partial(self._part, narrow, x, np.broadcast_to(np.float32(share), x.shape[1])))
            for x, _, share in self.data.parts(k, np.float32)
        ]

        def product(d: Floats) -> Floats:
            out, narrow = 2 * self.ridge * d, d.astype(np.float32)
            for part in parts:  # made when first asked for: a guess alone needs a quarter of them
                p, x, share = part()
                moved = self.scores(narrow, x)
                moved -= np.einsum("ij,ij->j", p, moved)
                moved *= p
                out += self.pull(moved, share, x)
            return out

        return _Products(product, self._kronecker([part() for part in parts[::4]]))

    def _part(self, v: Array, x: Array, share: Array) -> tuple[Array, Array, Array]:
        """Probabilities, logits and shares of some samples."""
        return _softmax(self.scores(v, x)), x, share

    def _kronecker(self, parts: Sequence[tuple[Array, Array, Array]]) -> Inverse:
        k = len(self.centre)
        together, mean, logits, total = np.zeros((k, k)), np.zeros(k), np.zeros((k + 1, k + 1)), 0.0
        for p, x, share in parts:
            unsure = np.maximum(1 - np.einsum("ij,ij->j", p, p), 0) * share
            rooted = p * np.sqrt(share)
            mean += p @ share
            together += rooted @ rooted.T
            one = np.concatenate((x, np.ones((1, p.shape[1]), x.dtype))) * np.sqrt(unsure)
            logits += one @ one.T
            total += float(unsure.sum())
        a, from_a = np.linalg.eigh(np.diag(mean) - together)
        g, from_g = np.linalg.eigh(logits / (total or 1.0))
        curve = np.maximum(np.outer(a, g), 0.0) + 2 * self.ridge.mean()
        curve += 1e-8 * (curve.max() or 1.0)
        return lambda r: from_a @ ((from_a.T @ r @ from_g) / curve) @ from_g.T


@dataclass(frozen=True, eq=False)
class _Products:
    """An inverse by conjugate gradients, from a guess."""

    product: Inverse
    guess: Inverse

    def __call__(self, r: Floats) -> Floats:
        return _conjugate(self.product, self.guess, r)


def _conjugate(product: Callable[[Floats], Floats], guess: Inverse, g: Floats) -> Floats:
    """The solution of product(d) = g by preconditioned conjugate gradients, to CLOSE of the first residual."""
    d, rest = np.zeros_like(g), g
    z = guess(rest)
    way, size = z, float(np.vdot(rest, z))
    enough = CLOSE * CLOSE * size
    for _ in range(INNER):
        image = product(way)
        curve = float(np.vdot(way, image))
        if curve <= 0:
            break
        d, rest = d + (size / curve) * way, rest - (size / curve) * image
        z = guess(rest)
        before, size = size, float(np.vdot(rest, z))
        if size <= enough:
            break
        way = z + (size / before) * way
    return d if d.any() else z


def _of_whole(h: Floats) -> Inverse:
    """The inverse of a positive semidefinite matrix; flat directions get a very small curvature."""
    curve, turn = np.linalg.eigh(h)
    curve = np.maximum(curve, FLAT * (curve.max() or 1.0))
    return lambda r: (turn @ ((turn.T @ r.ravel()) / curve)).reshape(r.shape)


def _of_blocks(xx: Floats, xb: Floats, bb: Floats) -> Inverse:
    """The inverse of 2 × 2 blocks."""
    xx, bb = xx + 1e-10 * (xx.max() or 1.0), bb + 1e-10 * (bb.max() or 1.0)
    scale = np.maximum(xx * bb - xb * xb, 1e-10 * xx * bb)
    return lambda r: np.stack((bb * r[:, 0] - xb * r[:, 1], xx * r[:, 1] - xb * r[:, 0]), axis=1) / scale[:, None]


def minimise(problem: Problem, start: Floats, *, near: bool = False, goal: float = GOAL) -> Minimum:
    """Go down from `start` until no part of the gradient exceeds `goal`; never end above the start.

    `near` says that the start is the minimum of almost the same samples. Otherwise an eighth of many samples shows
    the way first.
    """
    v, n, large = start, problem.data.x.shape[1], problem.data.x.size >= LARGE
    if not near and n // 8 >= FEW * v.size:
        v = minimise(problem.thinned(8), start, goal=ROUGH).v
    model = _Model.at(problem, v, SOME if near else MANY)
    if large:
        v = _descend(problem, v, model, np.float32, max(goal, NEAR)).v
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
    """L-BFGS from v (Nocedal 1980), with the second derivative as a first guess that is made anew where it fails."""
    here, enough = measured(problem, v, dtype), ENOUGH if problem.data.x.size >= LARGE else EXACTLY
    slow = 0
    for _ in range(STEPS):
        size = float(np.abs(here.gradient).max())
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
        slow += left > 0.5
        if dtype is np.float32 and left > 0.5 and (size < NOISE or slow >= PATIENCE):
            break
        model.add(moved[0] - v, moved[1].gradient - here.gradient)
        v, here = moved
        if model.slow(left) or model.by_products:
            model.renew(problem, v)
    return Minimum(v, here, float(np.abs(here.gradient).max()) <= goal)


def _search(problem: Problem, v: Floats, step: Floats, fall: float, dtype: DTypeLike) -> tuple[Floats, Point] | None:
    """The first of the steps 1, 1/2, ... after which the slope is at most half as steep upwards as it was downwards.

    The loss is convex, so slopes tell what losses would, and rounding hides them later.
    """
    length = 1.0
    while length > 1e-10 and fall > 0:
        new = v + length * step
        there = measured(problem, new, dtype)
        if float(np.vdot(there.gradient, step)) <= fall / 2:
            return new, there
        length /= 2
    return None


class _Model:
    """The inverse second derivative as far as it is known: that of one point, corrected by the steps since."""

    def __init__(self, problem: Problem, v: Floats, every: int):
        self.every = every
        self.by_products = v.shape[1] > 2 and v.size > EXACT  # then it holds at its point only
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
        return self.every == 1 and not self.pairs

    def renew(self, problem: Problem, v: Floats) -> None:
        """Make it anew, from more samples."""
        self.__init__(problem, v, max(1, self.every // 8))

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
        """About twice how much lower the loss may still be; by the first guess where a product is a pass over data."""
        return float(np.vdot(g, self.guess(g) if self.by_products else self.times(g)))

    def guess(self, g: Floats) -> Floats:
        """The product with a gradient, roughly and at once."""
        inverse = self.inverse()
        return inverse.guess(g) if isinstance(inverse, _Products) else inverse(g)

    def add(self, s: Floats, y: Floats) -> None:
        """A step and the change of the gradient along it; rounding may hide that it is positive."""
        sy = float(np.vdot(s, y))
        if sy > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, sy))

    def slow(self, ratio: float) -> bool:
        """Whether the last steps did not shrink the gradient as they should; `ratio` is what the last one left."""
        self.rate = 0.5 * self.rate + 0.5 * min(ratio, 2.0)
        return self.rate > 0.8
