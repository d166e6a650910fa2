"""The loss of softmax(W z + b) with W diagonal or full: values, derivatives and preconditioners.

Parameters are one array with a row for each class: (weight, intercept) for a diagonal W, a row of W and the
intercept for a full one. The penalty is the sum of ridge · (v − v₀)², v₀ being W = I, b = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from howsure._core.check import Floats, Ints

EXACT = 300  # parameters up to which the whole second derivative is made
FLOOR = 1e-10  # of the largest curvature: flat directions are not followed to infinity in one step


@dataclass(frozen=True, eq=False)
class Samples:
    """Logits, labels and what each sample counts, which sums to 1."""

    x: Floats
    y: Ints
    share: Floats


@dataclass(frozen=True, eq=False)
class Diagonal:
    """One weight and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def loss(self, v: Floats) -> tuple[float, Floats]:
        loss, probs = mean_loss(self.scores(v), self.data)
        return loss + penalty(self, v), probs

    def scores(self, v: Floats) -> Floats:
        """W z + b."""
        return self.data.x * v[:, 0] + v[:, 1]

    def pull(self, r: Floats) -> Floats:
        """Derivative by the parameters from the derivative by the scores."""
        return np.stack((np.einsum("ij,ij->j", r, self.data.x), r.sum(axis=0)), axis=1)

    def gradient(self, v: Floats, state: Floats) -> Floats:
        return self.pull(residual(state, self.data)) + 2 * self.ridge * (v - self.centre)

    def product(self, d: Floats, state: Floats) -> Floats:
        return self.pull(curved(self.scores(d), state, self.data)) + 2 * self.ridge * d

    def preconditioner(self, state: Floats) -> Callable[[Floats], Floats]:
        """The inverse of each class's own 2 × 2 block."""
        q, x = state * (1 - state) * self.data.share[:, None], self.data.x
        xx = np.einsum("ij,ij,ij->j", q, x, x) + 2 * self.ridge[:, 0]
        xb, bb = np.einsum("ij,ij->j", q, x), q.sum(axis=0) + 2 * self.ridge[:, 1]
        xx, bb = xx + FLOOR * (xx.max() or 1), bb + FLOOR * (bb.max() or 1)
        scale = xx * bb - xb * xb
        scale = np.maximum(scale, FLOOR * xx * bb)
        return lambda r: np.stack((bb * r[:, 0] - xb * r[:, 1], xx * r[:, 1] - xb * r[:, 0]), axis=1) / scale[:, None]


@dataclass(frozen=True, eq=False)
class Full:
    """A whole matrix and one intercept for each class."""

    data: Samples
    ridge: Floats
    centre: Floats

    def loss(self, v: Floats) -> tuple[float, Floats]:
        loss, probs = mean_loss(self.scores(v), self.data)
        return loss + penalty(self, v), probs

    def scores(self, v: Floats) -> Floats:
        """W z + b."""
        return self.data.x @ v[:, :-1].T + v[:, -1]

    def pull(self, r: Floats) -> Floats:
        """Derivative by the parameters from the derivative by the scores."""
        return np.concatenate((r.T @ self.data.x, r.sum(axis=0)[:, None]), axis=1)

    def gradient(self, v: Floats, state: Floats) -> Floats:
        return self.pull(residual(state, self.data)) + 2 * self.ridge * (v - self.centre)

    def product(self, d: Floats, state: Floats) -> Floats:
        return self.pull(curved(self.scores(d), state, self.data)) + 2 * self.ridge * d

    def preconditioner(self, state: Floats) -> Callable[[Floats], Floats]:
        """With few parameters the inverse itself; else that of a Kronecker product: how classes vary together,
        times how logits vary where the answer is unsure."""
        share = self.data.share
        if self.ridge.size <= EXACT:
            return inverse(self.second(state))
        unsure = share * (1 - np.einsum("ij,ij->i", state, state))
        x = np.concatenate((self.data.x, np.ones((len(share), 1))), axis=1)
        weighted = state * share[:, None]
        a, from_a = np.linalg.eigh(np.diag(weighted.sum(axis=0)) - state.T @ weighted)
        g, from_g = np.linalg.eigh((x * unsure[:, None]).T @ x / (unsure.sum() or 1.0))
        curve = np.maximum(np.outer(a, g), 0.0) + 2 * self.ridge.mean()
        curve += FLOOR * (curve.max() or 1.0)
        return lambda r: from_a @ ((from_a.T @ r @ from_g) / curve) @ from_g.T

    def second(self, state: Floats) -> Floats:
        """The whole second derivative."""
        share, k = self.data.share, state.shape[1]
        x = np.concatenate((self.data.x, np.ones((len(share), 1))), axis=1)
        each = (state[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        h = np.diag(2 * self.ridge.ravel()) - (each * share[:, None]).T @ each
        for j in range(k):
            block = slice(j * (k + 1), (j + 1) * (k + 1))
            h[block, block] += (x * (state[:, j] * share)[:, None]).T @ x
        return h


def inverse(h: Floats) -> Callable[[Floats], Floats]:
    """The inverse of a positive semidefinite matrix; flat directions get a very small curvature."""
    curve, turn = np.linalg.eigh(h)
    curve = np.maximum(curve, 1e-14 * (curve.max() or 1.0))
    return lambda r: (turn @ ((turn.T @ r.ravel()) / curve)).reshape(r.shape)


def mean_loss(scores: Floats, data: Samples) -> tuple[float, Floats]:
    """Mean negative log-likelihood and the probabilities; `scores` is overwritten by them."""
    scores -= scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(scores)), data.y]
    np.exp(scores, out=scores)
    total = scores.sum(axis=1)
    scores /= total[:, None]
    return float(np.dot(data.share, np.log(total) - own)), scores


def penalty(problem: Diagonal | Full, v: Floats) -> float:
    """Sum of ridge · (v − v₀)²."""
    return float((problem.ridge * (v - problem.centre) ** 2).sum())


def residual(probs: Floats, data: Samples) -> Floats:
    """Derivative of the mean loss by the scores."""
    r = probs.copy()
    r[np.arange(len(r)), data.y] -= 1
    r *= data.share[:, None]
    return r


def curved(moved: Floats, probs: Floats, data: Samples) -> Floats:
    """Second derivative of the mean loss by the scores, times a movement of them; `moved` is overwritten."""
    moved -= np.einsum("ij,ij->i", probs, moved)[:, None]
    moved *= probs
    moved *= data.share[:, None]
    return moved
