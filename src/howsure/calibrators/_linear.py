"""Fitting and applying softmax(W z + b), shared by vector, matrix and Dirichlet scaling."""

from __future__ import annotations

import warnings
from math import isfinite
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.calibrators._fitted import Fitted, needs_samples, shares, with_values
from howsure.calibrators._logits import SMALLEST, as_logits
from howsure.calibrators._newton import Minimum, minimise
from howsure.calibrators._scaling import Diagonal, Full, Samples
from howsure.calibrators._search import search
from howsure.predictions import Predictions
from howsure.predictions.columns import Values, chunks, log_softmax, mean_probs

GOAL, CAP = 1e-7, 100


class Penalty(NamedTuple):
    """What large parameters cost: all of them, those off the diagonal, the intercepts."""

    l2: float
    off_diagonal: float = 0.0
    intercept: float = 0.0

    def checked(self) -> Penalty:
        """Itself, unless a part is negative or not finite."""
        for name, x in self._asdict().items():
            if not (isfinite(x) and x >= 0):
                raise InputError(f"{name} is {x:g}; a finite number that is not negative is needed.")
        return self

    def ridge(self, k: int) -> Floats:
        """The cost of each parameter of a full matrix, means over them as Kull et al. 2019 take."""
        off = np.full((k, k), self.l2 + self.off_diagonal / (k * (k - 1)))
        np.fill_diagonal(off, self.l2)
        return np.concatenate((off, np.full((k, 1), self.l2 + self.intercept / k)), axis=1)


def single(preds: Predictions, *, log_probs: bool = False) -> Floats:
    """Logits (n, k) in float64. Samples are averaged as probabilities first; `log_probs` normalises."""
    if preds.samples > 1:
        return np.log(np.maximum(mean_probs(preds.raw), SMALLEST))
    z = as_logits(preds.values if preds.values.ndim == 2 else preds.values[0], preds.kind)
    return log_softmax(z) if log_probs else z


def fit_diagonal(preds: Predictions, z: Floats, price: Penalty) -> Minimum:
    """The best diagonal W and b, from the best temperature or from no change, whichever costs less."""
    k = z.shape[1]
    ridge = price.ridge(k)
    centre = np.stack((np.ones(k), np.zeros(k)), axis=1)
    problem = Diagonal(Samples(z, preds.labels, shares(preds)), _diagonal(ridge), centre)
    t = search(with_values(preds, "logits", z), "per_pass", None, (1e-6, 1e6)).temperature
    return _best(problem, [centre / [t, 1.0], centre])


def fit_full(preds: Predictions, z: Floats, price: Penalty) -> Minimum:
    """The best W and b, from the best diagonal or from no change, whichever costs less."""
    k = z.shape[1]
    centre = np.eye(k, k + 1)
    problem = Full(Samples(z, preds.labels, shares(preds)), price.ridge(k), centre)
    simpler = fit_diagonal(preds, z, price).v
    start = np.concatenate((np.diag(simpler[:, 0]), simpler[:, 1:]), axis=1)
    return _best(problem, [start, centre])


def _diagonal(ridge: Floats) -> Floats:
    return np.stack((np.diag(ridge), ridge[:, -1]), axis=1)


def _best(problem: Diagonal | Full, starts: list[Floats]) -> Minimum:
    return minimise(problem, min(starts, key=lambda v: problem.loss(v)[0]), goal=GOAL, cap=CAP)


def check_fit(preds: Predictions, what: str, *prices: float) -> Penalty:
    """The penalty, checked, and a warning where a class has no samples to learn from."""
    needs_samples(preds, what)
    price = Penalty(*prices).checked()
    missing = np.flatnonzero(np.bincount(preds.labels, minlength=preds.k or 0) == 0)
    if len(missing) and not any(price):
        warnings.warn(
            f"{len(missing)} of {preds.k} classes have no samples (first: class {missing[0]}), so {what} learns that "
            "they never occur. Fit it on samples of all classes, or use l2.",
            stacklevel=4,
        )
    return price


def record(preds: Predictions, found: Minimum, out: Floats, what: str, price: Penalty) -> Fitted:
    """How the fit ended; a warning where no maximum of the likelihood exists or was reached."""
    own = out[np.arange(len(out)), preds.labels]
    loss = float(np.dot(shares(preds), -log_softmax(out)[np.arange(len(out)), preds.labels]))
    status = "converged" if found.converged else "stopped"
    beaten = out.copy()
    beaten[np.arange(len(out)), preds.labels] = -np.inf
    if not any(price) and (own > beaten.max(axis=1)).all():
        status = "separable"
        text = f"{what} gets all {preds.n:,} samples of the fit right, so its likelihood has no maximum"
        warnings.warn(f"{text} and it will be too sure elsewhere. Use l2, more samples or Temperature.", stacklevel=4)
    elif not found.converged:
        warnings.warn(f"{what} was stopped before it converged; its loss is {loss:.6g}. Use l2.", stacklevel=4)
    return Fitted(status, preds.n, preds.k, preds.class_names, loss)


def affine(preds: Predictions, weight: Floats, intercept: Floats, *, log_probs: bool = False) -> Predictions:
    """Predictions with logits W z + b; `weight` is the diagonal or the whole of W."""
    n, k = preds.n, len(intercept)
    out = np.empty((n, k))
    for rows in chunks(n, k * preds.samples):
        z = single(preds[rows], log_probs=log_probs)
        out[rows] = (z * weight if weight.ndim == 1 else z @ weight.T) + intercept
    if preds.kind == "logits" and preds.samples == 1:
        return with_values(preds, "logits", out)
    return with_values(preds, "probs", mean_probs(Values(out, True)))
