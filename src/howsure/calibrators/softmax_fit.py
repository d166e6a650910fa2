"""Softmax regression: the mean loss of softmax(W z + b), W diagonal or full, and its derivatives.

Parameters are one array with a row for each class: (weight, intercept) for a diagonal W, a row of W
and the intercept for a full one. The penalty is the sum of ridge · (v − v₀)², v₀ being W = I, b =
0. Logits have a row for each class too, which makes sums over classes sums of long rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from math import sqrt
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from howsure._core.checks import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.calibrators.calibrator import (
    apply_softmax,
    check_finite_logits,
    compute_shares,
    read_mean_logits,
    stack_members,
)
from howsure.calibrators.linear import takes_logits
from howsure.predictions import Predictions
from howsure.predictions.columns import iterate_chunks

MAX_EXACT_PARAMETERS = 300  # up to here the whole second derivative is made
GUESS_SAMPLE_STEP = 4  # every so many-th sample makes the guess that conjugate gradients start from
# What curvatures get added: of each parameter's own, and of the largest.
OWN_CURVATURE_FLOOR, EVEN_CURVATURE_FLOOR = 1e-6, 1e-8
FLAT_CURVATURE = 1e-14  # of the largest: flat directions are not followed to infinity in one step
# How far conjugate gradients go inside a step of Newton's method.
CONJUGATE_PRECISION, MAX_CONJUGATE_STEPS = 0.1, 100
SINGLE_PRECISION_LOGITS = 1 << 18  # of so many logits single precision shows the way
SAFE_EXPONENTS = {4: 75.0, 8: 600.0}  # by bytes: scores whose exponentials are ordinary numbers

CurvatureInverse: TypeAlias = Callable[[Floats], Floats]  # gradient → step


@frozen(eq=False)
class FitSamples:
    """Logits with a row for each class, labels, and what each sample counts; None where all count
    the same.
    """

    x: Array
    y: Ints
    share: Floats | None

    @classmethod
    def of(cls, preds: Predictions, *, log_probs: bool) -> FitSamples:
        """Those of predictions; `log_probs` normalises the logits."""
        if takes_logits(preds) and not log_probs:
            values: Array = stack_members(preds)[0]
            x: Array = np.empty(values.shape[::-1], values.dtype)
            # Some samples at a time are turned faster than all at once.
            for rows in iterate_chunks(*values.shape):
                x[:, rows] = values[rows].T
            check_finite_logits(x)
        else:
            x = np.empty((preds.k or 0, preds.n))
            for rows, z in read_mean_logits(preds, log_probs=log_probs):
                x[:, rows] = z
        share = None if preds.weight is None else compute_shares(preds)
        return cls(x=x, y=preds.labels, share=share)

    def read_parts(
        self, width: int, dtype: DTypeLike = np.float64, every: int = 1
    ) -> Iterator[tuple[Array, Ints, Array | float]]:
        """Logits, labels and shares of `every` n-th sample, some at a time: about CHUNK / width in
        double precision.
        """
        n = self.x.shape[1]
        for part in iterate_chunks(-(-n // every), width * np.dtype(dtype).itemsize // 8):
            pick = slice(part.start * every, min(part.stop * every, n), every)
            share = every / n if self.share is None else every * self.share[pick]
            yield self.x[:, pick].astype(dtype, copy=False), self.y[pick], share

    def thin(self, every: int) -> FitSamples:
        """Every n-th of these samples."""
        share = self.share
        if share is not None:
            share = share[::every] / share[::every].sum()
        return FitSamples(
            x=np.ascontiguousarray(self.x[:, ::every]), y=self.y[::every], share=share
        )

    @cached_property
    def own_sums(self) -> Floats:
        """For each class, sums over its samples of its logit and of 1."""
        return self._sum_by_label(self.x[self.y, np.arange(len(self.y))][None])

    @cached_property
    def all_sums(self) -> Floats:
        """For each class, sums over its samples of all logits and of 1."""
        return self._sum_by_label(self.x)

    def _sum_by_label(self, rows: Array) -> Floats:
        n = len(self.y)
        share = np.full(n, 1 / n) if self.share is None else self.share
        out = np.empty((len(self.x), len(rows) + 1))
        for i, row in enumerate(rows):
            out[:, i] = count_values(self.y, row * share, len(out))
        out[:, -1] = count_values(self.y, share, len(out))
        return out

    @cached_property
    def largest(self) -> Floats:
        """How far the logits of each class are from 0 at most."""
        return np.maximum(self.x.max(axis=1), -self.x.min(axis=1)).astype(np.float64)

    def has_safe_scores(self, v: Floats, dtype: DTypeLike) -> bool:
        """Whether exponentials of all scores are surely neither infinite nor 0, so that none must
        be subtracted.
        """
        size = np.abs(v[:, :-1])
        if size.shape[1] == 1:
            most = size[:, 0] * self.largest
        else:
            most = size @ self.largest
        return bool((most + np.abs(v[:, -1])).max() <= SAFE_EXPONENTS[np.dtype(dtype).itemsize])

    def is_separated_by(self, v: Floats) -> bool:
        """Whether the label scores above every other class in all samples."""
        for x, y, _ in self.read_parts(len(v)):
            if v.shape[1] == 2:
                scores = v[:, :1] * x
            else:
                scores = np.ascontiguousarray(v[:, :-1]) @ x
            scores += v[:, -1:]
            at = np.arange(len(y))
            own = scores[y, at]
            scores[y, at] = -np.inf
            if not (own > scores.max(axis=0)).all():
                return False
        return True

    @property
    def quick_dtype(self) -> type[np.float32] | type[np.float64]:
        """The precision that is enough to show the way."""
        return np.float32 if self.x.size >= SINGLE_PRECISION_LOGITS else np.float64


class LossPoint(NamedTuple):
    """The loss with its penalty, the mean negative log-likelihood alone, and the gradient."""

    loss: float
    nll: float
    gradient: Floats


def measure_point(problem: SoftmaxProblem, v: Floats, dtype: DTypeLike = np.float64) -> LossPoint:
    """Loss and gradient at v in one pass over the samples, of which only the exponentials depend on
    v.
    """
    data = problem.data
    nll, gradient, narrow = 0.0, np.zeros_like(v), v.astype(dtype)
    # Where no exponential can overflow, intercepts are factors, and no largest score is sought.
    safe = data.has_safe_scores(v, dtype)
    lift = np.exp(narrow[:, -1]) if safe else np.ones(len(v), dtype)
    room = None
    for x, _, share in data.read_parts(len(v), dtype):
        if room is None or room.shape != x.shape:
            room = np.empty_like(x, order="C")
        e, top = problem.map_logits(narrow, x, room), 0.0
        if not safe:
            e += narrow[:, -1:]
            top = e.max(axis=0)
            e -= top
        np.exp(e, out=e)
        total = lift @ e
        nll += float(np.sum((np.log(total) + top) * share, dtype=np.float64))
        scale = np.divide(share, total).astype(dtype, copy=False)
        gradient += problem.pull_gradient(e, scale, x)
    gradient *= lift[:, None]
    gradient -= problem.observed
    problem.remove_shared(gradient)
    nll -= float(np.vdot(narrow.astype(np.float64), problem.observed))
    away = v - problem.centre
    gradient += 2 * problem.ridge * away
    penalty = float((problem.ridge * away * away).sum())
    return LossPoint(loss=nll + penalty, nll=nll, gradient=gradient)


def _compute_scores(problem: SoftmaxProblem, v: Array, x: Array) -> Array:
    """W z + b."""
    scores = problem.map_logits(v, x)
    scores += v[:, -1:]
    return scores


def _compute_probabilities(problem: SoftmaxProblem, v: Array, x: Array) -> Array:
    scores = _compute_scores(problem, v, x)
    apply_softmax(scores)
    return scores


def thin_problem(problem: SoftmaxProblem, every: int) -> SoftmaxProblem:
    """The same with `every` n-th sample."""
    return replace(problem, data=problem.data.thin(every))


# ---- what is minimised


@frozen(eq=False)
class DiagonalProblem:
    """One weight and one intercept for each class."""

    data: FitSamples
    ridge: Floats
    centre: Floats

    @property
    def observed(self) -> Floats:
        """What the parameters are multiplied by in the labels' mean score."""
        return self.data.own_sums

    def map_logits(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z."""
        return np.multiply(x, v[:, :1], out=out)

    def pull_gradient(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is
        overwritten.
        """
        out = np.empty((len(r), 2), r.dtype)
        out[:, 1] = r @ scale
        r *= x
        out[:, 0] = r @ scale
        return out

    def remove_shared(self, gradient: Floats) -> None:
        """Take out what rounding left along directions that add the same to all classes.

        They change no probability, so nothing would hold a step along them: here, intercepts that
        all rise by the same.
        """
        gradient[:, 1] -= gradient[:, 1].mean()

    def invert_curvature(self, v: Floats, every: int) -> CurvatureInverse:
        """An approximate inverse of the second derivative, from `every` n-th sample.

        With few parameters the inverse itself, else that of each class's own 2 × 2 block.
        """
        dtype, whole = self.data.quick_dtype, v.size <= MAX_EXACT_PARAMETERS
        curvature, narrow = ClassCurvature(len(v), 1, pairs=whole), v.astype(dtype)
        for x, _, share in self.data.read_parts(len(v), dtype, max(every, 1)):
            p = _compute_probabilities(self, narrow, x)
            curvature.add(p, [x], np.asarray(share, dtype))
        if whole:
            # The matrix has all weights first, then all intercepts.
            ridge = np.diag(2 * self.ridge.T.ravel())
            inverse = _invert_matrix(curvature.build_matrix() + ridge)
            return _remove_shared_after(self, lambda r: inverse(r.T).T)

        xx, bb = curvature.own[[0, 1], [0, 1]] + 2 * self.ridge.T
        xb = curvature.own[0, 1]
        xx, bb = xx + 1e-10 * (xx.max() or 1.0), bb + 1e-10 * (bb.max() or 1.0)
        determinant = np.maximum(xx * bb - xb * xb, 1e-10 * xx * bb)

        def invert_blocks(r: Floats) -> Floats:
            weight = bb * r[:, 0] - xb * r[:, 1]
            intercept = xx * r[:, 1] - xb * r[:, 0]
            return np.stack((weight, intercept), axis=1) / determinant[:, None]

        return invert_blocks


@frozen(eq=False)
class MatrixProblem:
    """A whole matrix and one intercept for each class."""

    data: FitSamples
    ridge: Floats
    centre: Floats

    @property
    def observed(self) -> Floats:
        """What the parameters are multiplied by in the labels' mean score."""
        return self.data.all_sums

    def map_logits(self, v: Array, x: Array, out: Array | None = None) -> Array:
        """W z."""
        return np.matmul(np.ascontiguousarray(v[:, :-1]), x, out=out)

    def pull_gradient(self, r: Array, scale: Array, x: Array) -> Floats:
        """The derivative by the parameters from the derivative by the scores, r · scale; r is
        overwritten.
        """
        intercept = r @ scale
        r *= scale
        return np.concatenate((r @ x.T, intercept[:, None]), axis=1)

    def remove_shared(self, gradient: Floats) -> None:
        """Take out what rounding left along rows that all change by the same, as in
        `DiagonalProblem`.
        """
        gradient -= gradient.mean(axis=0)

    def invert_curvature(self, v: Floats, every: int) -> CurvatureInverse:
        """An approximate inverse of the second derivative, from `every` n-th sample.

        With few parameters the inverse itself, else a guess; where that is not enough (`every` is
        0), conjugate gradients after it.
        """
        if v.size <= MAX_EXACT_PARAMETERS:
            return self._invert_exactly(v, max(every, 1))
        if every:
            return self._guess_inverse(v, every)
        guess = self._guess_inverse(v, GUESS_SAMPLE_STEP)
        return ConjugateInverse(product=self._build_product(v), guess=guess)

    def _build_product(self, v: Floats) -> CurvatureInverse:
        """The product with the second derivative, in single precision: a step of Newton's method
        does not notice.
        """
        narrow = v.astype(np.float32)
        parts: list[tuple[Array, Array, Array]] = []
        for x, _, share in self.data.read_parts(len(v), np.float32):
            p = _compute_probabilities(self, narrow, x)
            parts.append((p, x, np.broadcast_to(np.float32(share), x.shape[1])))

        def multiply(d: Floats) -> Floats:
            out, narrow = np.zeros_like(d), d.astype(np.float32)
            for p, x, share in parts:
                moved = _compute_scores(self, narrow, x)
                moved -= np.einsum("ij,ij->j", p, moved)
                moved *= p
                out += self.pull_gradient(moved, share, x)
            self.remove_shared(out)
            return out + 2 * self.ridge * d

        return multiply

    def _invert_exactly(self, v: Floats, every: int) -> CurvatureInverse:
        k, dtype = len(v), self.data.quick_dtype
        narrow = v.astype(dtype)
        second = np.zeros((v.size, v.size))
        own = np.zeros((k, k + 1, k + 1))
        for x, y, share in self.data.read_parts(v.size, dtype, every):
            p = _compute_probabilities(self, narrow, x)
            one = np.concatenate((x, np.ones((1, len(y)), dtype)))
            root = np.sqrt(np.asarray(share, dtype))
            each = (p * root)[:, None, :] * one
            own += each @ (one * root).T
            flat = each.reshape(v.size, -1)
            second -= flat @ flat.T
        i, blocks = np.arange(k), second.reshape(k, k + 1, k, k + 1)
        blocks[i, :, i, :] += own
        for axis in (0, 2):  # what rounding left of curvature where there is none
            blocks -= blocks.mean(axis=axis, keepdims=True)
        second[np.diag_indices(v.size)] += 2 * self.ridge.ravel()
        return _remove_shared_after(self, _invert_matrix(second))

    def _guess_inverse(self, v: Floats, every: int) -> CurvatureInverse:
        k, curvature = len(v), ClassCurvature(len(v), 2)
        logits, total = np.zeros((k + 1, k + 1)), 0.0
        # A guess may be rough, unless squares of the logits overflow.
        dtype = np.float32
        if self.data.largest.max() > 1e15:
            dtype = np.float64
        narrow = v.astype(dtype)
        for x, y, part_share in self.data.read_parts(k, dtype, every):
            p = _compute_probabilities(self, narrow, x)
            share = np.broadcast_to(dtype(part_share), len(y))
            curvature.add(p, [x, (x.sum(axis=0) - x) / sqrt(k - 1)], share)
            unsure = np.maximum(1 - np.einsum("ij,ij->j", p, p), 0) * share
            one = np.concatenate((x, np.ones((1, len(y)), dtype))) * np.sqrt(unsure)
            logits += one @ one.T
            total += float(unsure.sum())
        moments = logits / (total or 1.0)
        guess = KroneckerGuess.of(curvature.build_matrix(), moments, self.ridge)
        return _remove_shared_after(self, guess)


SoftmaxProblem: TypeAlias = DiagonalProblem | MatrixProblem


# ---- second derivatives and their inverses


class ClassCurvature:
    """Second derivatives by some weights of each class and its intercept, which is the last: those
    within a class, and those of pairs of classes.
    """

    def __init__(self, k: int, weights: int, *, pairs: bool = True):
        size = weights + 1
        self.own = np.zeros((size, size, k))  # where the first is not after the second
        self.pairs = np.zeros((size * k, size * k)) if pairs else None

    def add(self, p: Array, features: list[Array], share: Array) -> None:
        """Add some samples: probabilities, what each weight is multiplied by, what they count."""
        last = len(features)
        bent = (p if self.pairs is not None else p - p * p) * share
        for i in range(last):
            part = bent * features[i]
            for j in range(i, last):
                self.own[i, j] += np.einsum("ij,ij->i", part, features[j])
            self.own[i, last] += part.sum(axis=1)
        self.own[last, last] += bent.sum(axis=1)
        if self.pairs is not None:
            every = np.concatenate([*(p * feature for feature in features), p])
            every *= np.sqrt(share)
            self.pairs -= every @ every.T

    def build_matrix(self) -> Floats:
        """All of them, weights first; what rounding left along equal intercepts, which change
        nothing, is taken out.
        """
        assert self.pairs is not None
        size, _, k = self.own.shape
        out = self.pairs.copy()
        blocks = out.reshape(size, k, size, k)
        for i in range(size):
            for j in range(size):
                blocks[i, range(k), j, range(k)] += self.own[min(i, j), max(i, j)]
        out[:, -k:] -= out[:, -k:].mean(axis=1, keepdims=True)
        out[-k:] -= out[-k:].mean(axis=0)
        return out


def _invert_matrix(h: Floats) -> CurvatureInverse:
    """The inverse of a positive semidefinite matrix; flat directions get a very small curvature."""
    curve, turn = np.linalg.eigh(h)
    curve = np.maximum(curve, FLAT_CURVATURE * (curve.max() or 1.0))
    return lambda r: (turn @ ((turn.T @ r.ravel()) / curve)).reshape(r.shape)


def _remove_shared_after(problem: SoftmaxProblem, inverse: CurvatureInverse) -> CurvatureInverse:
    """Steps without what changes no probability, where no penalty holds it: it would grow and cost
    digits.
    """
    if problem.ridge.any():
        return inverse

    def multiply(r: Floats) -> Floats:
        step = inverse(r)
        problem.remove_shared(step)
        return step

    return multiply


@frozen(eq=False)
class KroneckerGuess:
    """The inverse of a Kronecker product, but of the true second derivative by three numbers of each
    class: its own weight, the mean of its other weights, its intercept.

    The product is how classes vary together, times how logits vary where the answer is unsure. That
    is close but where a class's own logit meets its own probability: there it was ten times too
    much and five times too little, elsewhere at most a quarter off (10⁵ × 100). And a penalty of
    the weights that is not one of the intercepts is felt along the mean of the logits, which is far
    from 0 and acts as an intercept does.
    """

    of_classes: Floats  # eigenvectors
    of_logits: Floats
    curve: Floats  # eigenvalues of the product
    change: Floats  # of the inverse, by the three numbers

    @classmethod
    def of(cls, true: Floats, logits: Floats, ridge: Floats) -> KroneckerGuess:
        """From the second derivative by the three numbers, the mean as a step of length 1, and the
        second moments of the logits with a 1.
        """
        k = len(ridge)
        classes = true[-k:, -k:]
        (a, of_classes), (g, of_logits) = np.linalg.eigh(classes), np.linalg.eigh(logits)
        curve = np.maximum(np.outer(a, g), 0.0)
        even = 2 * float(ridge.mean()) + EVEN_CURVATURE_FLOOR * (float(curve.max()) or 1.0)
        # What the product says of the three numbers, which the truth replaces.
        own, intercept = np.eye(k, k + 1), np.zeros((k, k + 1))
        intercept[:, -1] = 1
        others = (1 - own - intercept) / sqrt(k - 1)
        three = np.concatenate((own, others, intercept))
        product = three @ logits @ three.T * np.tile(classes, (3, 3))
        steep = np.diag(true)
        floor = OWN_CURVATURE_FLOOR * steep + FLAT_CURVATURE * (float(steep.max()) or 1.0)
        held = floor + 2 * (three * three * np.tile(ridge, (3, 1))).sum(axis=1)
        true_inverse = np.linalg.inv(true + np.diag(held))
        change = true_inverse - np.linalg.inv(product + even * np.eye(3 * k))
        return cls(of_classes=of_classes, of_logits=of_logits, curve=curve + even, change=change)

    def __call__(self, r: Floats) -> Floats:
        turned = (self.of_classes.T @ r @ self.of_logits) / self.curve
        z = self.of_classes @ turned @ self.of_logits.T
        unit = 1 / sqrt(len(r) - 1)
        own = np.diag(r)
        others = unit * (r[:, :-1].sum(axis=1) - own)
        three = self.change @ np.concatenate((own, others, r[:, -1]))
        own, others, intercept = three.reshape(3, -1)
        z[:, :-1] += unit * others[:, None]
        z[np.diag_indices(len(r))] += own - unit * others
        z[:, -1] += intercept
        return z


@frozen(eq=False)
class ConjugateInverse:
    """An inverse by conjugate gradients, preconditioned by a guess."""

    product: CurvatureInverse
    guess: CurvatureInverse

    def __call__(self, r: Floats) -> Floats:
        """The solution of product(d) = r, to CONJUGATE_PRECISION of the first residual."""
        d, rest = np.zeros_like(r), r
        z = self.guess(rest)
        way, size = z, float(np.vdot(rest, z))
        enough = CONJUGATE_PRECISION * CONJUGATE_PRECISION * size
        for _ in range(MAX_CONJUGATE_STEPS):
            image = self.product(way)
            curve = float(np.vdot(way, image))
            if curve <= 0:
                break
            d = d + (size / curve) * way
            rest = rest - (size / curve) * image
            z = self.guess(rest)
            before, size = size, float(np.vdot(rest, z))
            if size <= enough:
                break
            way = z + (size / before) * way
        if d.any():
            return d
        return z


# ---- one thread


@contextmanager
def use_one_blas_thread() -> Generator[None]:
    """Let OpenBLAS, where NumPy brings it, work in one thread: matrices here are small, and threads
    that wait for each other on a busy machine took ten times as long (5,000 × 100).
    """
    threads = find_blas_threads()
    before = 1
    if threads is not None:
        before = int(threads.read())
    # A fit beside this one that finds a single thread leaves it so: whoever changed it restores it.
    if threads is not None and before > 1:
        threads.write(1)
    try:
        yield
    finally:
        if threads is not None and before > 1:
            threads.write(before)


class BlasThreads(NamedTuple):
    """The functions of OpenBLAS that read and write its number of threads."""

    read: Callable[[], int]
    write: Callable[[int], object]


@cache
def find_blas_threads() -> BlasThreads | None:
    """Those of the library in NumPy's wheel; None with another BLAS, as in the browser."""
    from ctypes import CDLL

    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in folder.glob("*openblas*"):
            library = CDLL(str(path))
            for suffix in ("64_", ""):
                read = getattr(library, f"scipy_openblas_get_num_threads{suffix}", None)
                write = getattr(library, f"scipy_openblas_set_num_threads{suffix}", None)
                if read is not None and write is not None:
                    return BlasThreads(read=read, write=write)
    return None
