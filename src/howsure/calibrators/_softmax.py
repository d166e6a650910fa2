"""Softmax regression: the mean loss of softmax(W z + b), W diagonal or full, and its derivatives.

Parameters are one array with a row for each class: (weight, intercept) for a diagonal W, a row of W
and the intercept for a full one. The penalty is the sum of ridge · (v − v₀)², v₀ being W = I, b =
0. Logits have a row for each class too, which makes sums over classes sums of long rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.check import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure.predictions.columns import chunks

EXACT = 300  # parameters up to which the whole second derivative is made
SOME_OF = 4  # samples, every so many-th, for the guess that conjugate gradients start from
FLOOR, TINY = 1e-6, 1e-8  # what curvatures get added: of each parameter's own, and of the largest
CLOSE, INNER = 0.1, 100  # how far conjugate gradients go inside a step of Newton's method
FLAT = 1e-14  # of the largest curvature: flat directions are not followed to infinity in one step
LARGE = 1 << 20  # logits from which single precision shows the way
BOUNDED = {4: 75.0, 8: 600.0}  # scores whose exponentials are ordinary numbers, by precision
Inverse: TypeAlias = Callable[[Floats], Floats]


@frozen(eq=False)
class Samples:
    """Logits with a row for each class, labels, and what each sample counts; None where all count
    the same.
    """

    x: Array
    y: Ints
    share: Floats | None

    def parts(
        self, width: int, dtype: DTypeLike = np.float64, every: int = 1
    ) -> Iterator[tuple[Array, Ints, Array | float]]:
        """Logits, labels and shares of `every` n-th sample, some at a time: about CHUNK / width in
        double precision.
        """
        n = self.x.shape[1]
        for part in chunks(-(-n // every), width * np.dtype(dtype).itemsize // 8):
            pick = slice(part.start * every, min(part.stop * every, n), every)
            share = every / n if self.share is None else every * self.share[pick]
            yield self.x[:, pick].astype(dtype, copy=False), self.y[pick], share

    def thinned(self, every: int) -> Samples:
        """Every n-th of these samples."""
        share = None if self.share is None else self.share[::every] / self.share[::every].sum()
        return Samples(np.ascontiguousarray(self.x[:, ::every]), self.y[::every], share)

    @cached_property
    def own(self) -> Floats:
        """For each class, sums over its samples of its logit and of 1."""
        return self._by_label(self.x[self.y, np.arange(len(self.y))])

    @cached_property
    def all(self) -> Floats:
        """For each class, sums over its samples of all logits and of 1."""
        return self._by_label(*self.x)

    def _by_label(self, *rows: Array) -> Floats:
        n = len(self.y)
        share = np.full(n, 1 / n) if self.share is None else self.share
        out = np.empty((len(self.x), len(rows) + 1))
        for i, row in enumerate((*rows, np.ones(1))):
            out[:, i] = np.bincount(self.y, row * share, len(out))
        return out

    @cached_property
    def _largest(self) -> Floats:
        """How far the logits of each class are from 0 at most."""
        return np.maximum(self.x.max(axis=1), -self.x.min(axis=1)).astype(np.float64)

    def bounded(self, v: Floats, dtype: DTypeLike) -> bool:
        """Whether exponentials of all scores are surely neither infinite nor 0, so that none must
        be subtracted.
        """
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

    @property
    def observed(self) -> Floats:
        """What the parameters are multiplied by in the labels' mean score."""
        ...

    def mapped(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z."""
        ...

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is
        overwritten.
        """
        ...

    def level(self, gradient: Floats) -> None:
        """Take out what rounding left along directions that add the same to all classes: they
        change no probability, so nothing would hold a step along them."""
        ...

    def inverse(self, v: Floats, every: int) -> Inverse:
        """An approximate inverse of the second derivative, from `every` n-th sample."""
        ...


def measured(problem: Problem, v: Floats, dtype: DTypeLike = np.float64) -> Point:
    """Loss and gradient at v in one pass over the samples, of which only the exponentials depend on
    v.
    """
    nll, gradient, narrow = 0.0, np.zeros_like(v), v.astype(dtype)
    small, room = problem.data.bounded(v, dtype), None
    lift = np.exp(narrow[:, -1]) if small else np.ones(len(v), dtype)
    for x, _, share in problem.data.parts(len(v), dtype):
        room = np.empty_like(x, order="C") if room is None or room.shape != x.shape else room
        e, top = problem.mapped(narrow, x, room), 0.0
        if not small:
            e += narrow[:, -1:]
            top = e.max(axis=0)
            e -= top
        np.exp(e, out=e)
        total = lift @ e
        nll += float(np.sum((np.log(total) + top) * share, dtype=np.float64))
        gradient += problem.pull(e, np.divide(share, total).astype(dtype, copy=False), x)
    gradient *= lift[:, None]
    gradient -= problem.observed
    problem.level(gradient)
    nll -= float(np.vdot(narrow.astype(np.float64), problem.observed))
    away = v - problem.centre
    gradient += 2 * problem.ridge * away
    return Point(nll + float((problem.ridge * away * away).sum()), nll, gradient)


def scores(problem: Problem, v: Array, x: Array) -> Array:
    """W z + b."""
    s = problem.mapped(v, x)
    s += v[:, -1:]
    return s


def _softmax(s: Array) -> Array:
    """Probabilities in the place of the scores."""
    s -= s.max(axis=0)
    np.exp(s, out=s)
    s /= s.sum(axis=0)
    return s


@frozen(eq=False)
class Diagonal:
    """One weight and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def thinned(self, every: int) -> Diagonal:
        """The same with `every` n-th sample."""
        return replace(self, data=self.data.thinned(every))

    @property
    def observed(self) -> Floats:
        """What the parameters are multiplied by in the labels' mean score."""
        return self.data.own

    def mapped(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z."""
        return np.multiply(x, v[:, :1], out=out)

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is
        overwritten.
        """
        out = np.empty((len(r), 2), r.dtype)
        out[:, 1] = r @ scale
        r *= x
        out[:, 0] = r @ scale
        return out

    def level(self, gradient: Floats) -> None:
        """Intercepts that all rise by the same change nothing."""
        gradient[:, 1] -= gradient[:, 1].mean()

    def inverse(self, v: Floats, every: int) -> Inverse:
        """With few parameters the inverse itself, else that of each class's own 2 × 2 block."""
        quick, whole, every = self.data.quick, v.size <= EXACT, max(every, 1)
        curves, narrow = _Curves(len(v), whole), v.astype(quick)
        for x, _, share in self.data.parts(len(v), quick, every):
            curves.add(_softmax(scores(self, narrow, x)), x, np.asarray(share, quick))
        if not whole:
            curves.own[:, ::2] += 2 * self.ridge
            return _of_blocks(*curves.own.T)
        inverted = _of_whole(curves.matrix() + np.diag(2 * self.ridge.T.ravel()))
        return _level(self, lambda r: inverted(r.T).T)


@frozen(eq=False)
class Full:
    """A whole matrix and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def thinned(self, every: int) -> Full:
        """The same with `every` n-th sample."""
        return replace(self, data=self.data.thinned(every))

    @property
    def observed(self) -> Floats:
        """What the parameters are multiplied by in the labels' mean score."""
        return self.data.all

    def mapped(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z."""
        return np.matmul(np.ascontiguousarray(v[:, :-1]), x, out=out)

    def pull(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is
        overwritten.
        """
        intercept = r @ scale
        r *= scale
        return np.concatenate((r @ x.T, intercept[:, None]), axis=1)

    def level(self, gradient: Floats) -> None:
        """Rows that all change by the same change nothing."""
        gradient -= gradient.mean(axis=0)

    def inverse(self, v: Floats, every: int) -> Inverse:
        """With few parameters the inverse itself, else a guess; where that is not enough (`every`
        is 0), conjugate gradients after it."""
        if v.size <= EXACT:
            return self._exact(v, max(every, 1))
        guess = self._guess(v, every or SOME_OF)
        return guess if every else Products(self._product(v), guess)

    def _product(self, v: Floats) -> Inverse:
        """The product with the second derivative, in single precision: a step of Newton's method
        does not notice.
        """
        narrow, k = v.astype(np.float32), len(v)
        parts = [
            (_softmax(scores(self, narrow, x)), x, np.broadcast_to(np.float32(share), x.shape[1]))
            for x, _, share in self.data.parts(k, np.float32)
        ]

        def product(d: Floats) -> Floats:
            out, narrow = np.zeros_like(d), d.astype(np.float32)
            for p, x, share in parts:
                moved = scores(self, narrow, x)
                moved -= np.einsum("ij,ij->j", p, moved)
                moved *= p
                out += self.pull(moved, share, x)
            self.level(out)
            return out + 2 * self.ridge * d

        return product

    def _exact(self, v: Floats, every: int) -> Inverse:
        k, quick = len(v), self.data.quick
        second, own, narrow = (
            np.zeros((v.size, v.size)),
            np.zeros((k, k + 1, k + 1)),
            v.astype(quick),
        )
        for x, y, share in self.data.parts(v.size, quick, every):
            p, one = (
                _softmax(scores(self, narrow, x)),
                np.concatenate((x, np.ones((1, len(y)), quick))),
            )
            root = np.sqrt(np.asarray(share, quick))
            each = (p * root)[:, None, :] * one
            own += each @ (one * root).T
            flat = each.reshape(v.size, -1)
            second -= flat @ flat.T
        i, blocks = np.arange(k), second.reshape(k, k + 1, k, k + 1)
        blocks[i, :, i, :] += own
        for axis in (0, 2):  # what rounding left of curvature where there is none
            blocks -= blocks.mean(axis=axis, keepdims=True)
        second[np.diag_indices(v.size)] += 2 * self.ridge.ravel()
        return _level(self, _of_whole(second))

    def _guess(self, v: Floats, every: int) -> Inverse:
        k, curves = len(v), _Curves(len(v))
        logits, total = np.zeros((k + 1, k + 1)), 0.0
        for x, y, share in self.data.parts(k, every=every):
            p, share = _softmax(scores(self, v, x)), np.broadcast_to(share, len(y))
            curves.add(p, x, share)
            unsure = np.maximum(1 - np.einsum("ij,ij->j", p, p), 0) * share
            one = np.concatenate((x, np.ones((1, len(y))))) * np.sqrt(unsure)
            logits += one @ one.T
            total += float(unsure.sum())
        return _level(self, _Guess.of(curves.matrix(), logits / (total or 1.0), self.ridge))


@frozen(eq=False)
class _Guess:
    """The inverse of a Kronecker product, but of the true second derivative by the diagonal of W
    and by b.

    The product is how classes vary together, times how logits vary where the answer is unsure. That
    is close but where a class's own logit meets its own probability: there it was ten times too
    much and five times too little, elsewhere at most a quarter off (10⁵ × 100).
    """

    of_classes: Floats  # eigenvectors
    of_logits: Floats
    curve: Floats  # eigenvalues of the product
    change: Floats  # of the inverse, by the diagonal of W and by b

    @classmethod
    def of(cls, own: Floats, logits: Floats, ridge: Floats) -> _Guess:
        """From the second derivative by the diagonal and b, and the second moments of the logits
        with a 1.
        """
        k = len(ridge)
        classes = own[k:, k:]
        there = np.block(
            [
                [classes * logits[:k, :k], classes * logits[:k, k:]],
                [classes * logits[k:, :k], classes * logits[k, k]],
            ]
        )
        (a, of_classes), (g, of_logits) = np.linalg.eigh(classes), np.linalg.eigh(logits)
        curve = np.maximum(np.outer(a, g), 0.0)
        even = 2 * float(ridge.mean()) + TINY * (float(curve.max()) or 1.0)
        steep = np.diag(own)
        floor = FLOOR * steep + FLAT * (float(steep.max()) or 1.0)
        priced = floor + 2 * np.concatenate((np.diag(ridge), ridge[:, -1]))
        change = np.linalg.inv(own + np.diag(priced)) - np.linalg.inv(there + even * np.eye(2 * k))
        return cls(of_classes, of_logits, curve + even, change)

    def __call__(self, r: Floats) -> Floats:
        i = np.arange(len(r))
        z = (
            self.of_classes
            @ ((self.of_classes.T @ r @ self.of_logits) / self.curve)
            @ self.of_logits.T
        )
        weight, intercept = (self.change @ np.concatenate((r[i, i], r[:, -1]))).reshape(2, -1)
        z[i, i] += weight
        z[:, -1] += intercept
        return z


@frozen(eq=False)
class Products:
    """An inverse by conjugate gradients, from a guess."""

    product: Inverse
    guess: Inverse

    def __call__(self, r: Floats) -> Floats:
        return _conjugate(self.product, self.guess, r)


def _conjugate(product: Inverse, guess: Inverse, g: Floats) -> Floats:
    """The solution of product(d) = g by preconditioned conjugate gradients, to CLOSE of the first
    residual.
    """
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


class _Curves:
    """Second derivatives by the weight and the intercept of each class: its own, and those of pairs
    of classes.
    """

    def __init__(self, k: int, pairs: bool = True):
        self.own = np.zeros((k, 3))  # by the weight, by both, by the intercept
        self.pairs = np.zeros((2 * k, 2 * k)) if pairs else None

    def add(self, p: Array, x: Array, share: Array) -> None:
        """Some samples: probabilities, logits, what they count."""
        bent = (p if self.pairs is not None else p - p * p) * share
        bent_x = bent * x
        self.own += np.stack(
            (np.einsum("ij,ij->i", bent_x, x), bent_x.sum(axis=1), bent.sum(axis=1)), axis=1
        )
        if self.pairs is not None:
            both = np.concatenate((p * x, p))
            both *= np.sqrt(share)
            self.pairs -= both @ both.T

    def matrix(self) -> Floats:
        """All of them, weights first; what rounding left along equal intercepts, which change
        nothing, is taken out.
        """
        assert self.pairs is not None
        k, out = len(self.own), self.pairs.copy()
        i = np.arange(k)
        for (a, b), column in zip(((0, 0), (0, k), (k, 0), (k, k)), (0, 1, 1, 2), strict=True):
            out[a + i, b + i] += self.own[:, column]
        out[:, k:] -= out[:, k:].mean(axis=1, keepdims=True)
        out[k:] -= out[k:].mean(axis=0)
        return out


def _level(problem: Problem, inverse: Inverse) -> Inverse:
    """Steps without what changes no probability, where no penalty holds it: it would grow and cost
    digits.
    """
    if problem.ridge.any():
        return inverse

    def times(r: Floats) -> Floats:
        step = inverse(r)
        problem.level(step)
        return step

    return times


def _of_whole(h: Floats) -> Inverse:
    """The inverse of a positive semidefinite matrix; flat directions get a very small curvature."""
    curve, turn = np.linalg.eigh(h)
    curve = np.maximum(curve, FLAT * (curve.max() or 1.0))
    return lambda r: (turn @ ((turn.T @ r.ravel()) / curve)).reshape(r.shape)


def _of_blocks(xx: Floats, xb: Floats, bb: Floats) -> Inverse:
    """The inverse of 2 × 2 blocks."""
    xx, bb = xx + 1e-10 * (xx.max() or 1.0), bb + 1e-10 * (bb.max() or 1.0)
    scale = np.maximum(xx * bb - xb * xb, 1e-10 * xx * bb)
    return lambda r: (
        np.stack((bb * r[:, 0] - xb * r[:, 1], xx * r[:, 1] - xb * r[:, 0]), axis=1)
        / scale[:, None]
    )
