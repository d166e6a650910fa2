"""Fitting structured scaling: a penalised softmax regression, from no change down."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, Ints
from howsure.calibrators.calibrator import Fitted, check_samples, compute_shares, replace_values
from howsure.calibrators.descent import find_temperature
from howsure.calibrators.structured import mix_with_uniform, read_structured_logits
from howsure.predictions import Predictions

TEMPERATURE_BOUNDS = (1e-6, 1e6)
SCALED_GRADIENT_GOAL = 1e-7
MOST_STEPS = 2_000
STEP_PAIRS = 20


class StructuredFit(NamedTuple):
    """The fitted map, with the record of the fit."""

    weight: Floats
    intercept: Floats
    temperature: float
    fitted: Fitted


class StructuredProblem:
    """The loss and its gradient; parameters are one vector: A, or its diagonal, and then b."""

    def __init__(self, x: Floats, y: Ints, share: Floats, *, full: bool) -> None:
        k, n = len(x), len(y)
        self.x, self.y, self.share, self.full = x, y, share, full
        self.rows: Ints = np.arange(n, dtype=np.int64)
        of_weight = np.full(k, k / n)
        if full:
            of_weight = np.full((k, k), k * (k - 1) / n)
            np.fill_diagonal(of_weight, k / n)
        self.price = np.concatenate((of_weight.reshape(-1), np.full(k, k / n)))

    def split(self, v: Floats) -> tuple[Floats, Floats]:
        """A, or its diagonal, and b."""
        k = len(self.x)
        weight = v[:-k].reshape(k, k) if self.full else v[:-k]
        return weight, v[-k:]

    def compute_probs(self, v: Floats) -> tuple[Floats, Floats]:
        """Probabilities, shape (k, samples), and the negative log-likelihood of each sample."""
        weight, intercept = self.split(v)
        moved = weight @ self.x if self.full else weight[:, None] * self.x
        z = self.x + moved + intercept[:, None]
        z -= z.max(axis=0)
        own = z[self.y, self.rows]
        np.exp(z, out=z)
        total = z.sum(axis=0)
        z /= total
        return z, np.log(total) - own

    def measure(self, v: Floats) -> tuple[float, Floats]:
        """The penalised loss and its gradient."""
        p, nll = self.compute_probs(v)
        p[self.y, self.rows] -= 1
        p *= self.share
        if self.full:
            of_weight = (p @ self.x.T).reshape(-1)
        else:
            of_weight = np.einsum("ij,ij->i", p, self.x)
        gradient = np.concatenate((of_weight, p.sum(axis=1))) + 2 * self.price * v
        return float(self.share @ nll + self.price @ v**2), gradient

    def measure_curvature(self, v: Floats) -> Floats:
        """The diagonal of the second derivative."""
        p, _ = self.compute_probs(v)
        spread = p * (1 - p) * self.share
        if self.full:
            of_weight = (spread @ (self.x**2).T).reshape(-1)
        else:
            of_weight = np.einsum("ij,ij->i", spread, self.x**2)
        return np.concatenate((of_weight, spread.sum(axis=1))) + 2 * self.price


def fit_structured_map(preds: Predictions, *, full: bool) -> StructuredFit:
    """Temperature, A and b with the least penalised loss."""
    from scipy.optimize import minimize

    check_samples(preds, "StructuredScaling")
    k = preds.needs_vector("structured scaling")
    z = np.empty((k, preds.n))
    for rows, part in read_structured_logits(preds):
        z[:, rows] = part
    as_logits = replace_values(preds, "logits", z.T)
    temperature = find_temperature(as_logits, "averaged", None, TEMPERATURE_BOUNDS).temperature
    x = mix_with_uniform(z, float(temperature), preds.n)
    problem = StructuredProblem(x, preds.labels, compute_shares(preds), full=full)

    start = np.zeros(len(problem.price))
    # In units of the curvature at the start all parameters have steps of like size.
    unit = 1 / np.sqrt(problem.measure_curvature(start))

    def measure_scaled(u: Floats) -> tuple[float, Floats]:
        loss, gradient = problem.measure(u * unit)
        return loss, gradient * unit

    least = minimize(
        measure_scaled,
        start,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxcor": STEP_PAIRS,
            "gtol": SCALED_GRADIENT_GOAL,
            "ftol": 0.0,
            "maxiter": MOST_STEPS,
            "maxfun": 2 * MOST_STEPS,
        },
    )
    v: Floats = np.asarray(least.x, dtype=np.float64) * unit
    size = float(np.abs(measure_scaled(least.x)[1]).max())
    status = "converged"
    # Rounding may end the search a little earlier, which changes no digit that is shown.
    if size > 10 * SCALED_GRADIENT_GOAL:
        status = f"stopped at a gradient of {size:.2g}"
        warnings.warn(
            f"StructuredScaling {status}: its minimum was not reached. Temperature has one parameter.",
            stacklevel=3,
        )
    weight, intercept = problem.split(v)
    nll = float(problem.share @ problem.compute_probs(v)[1])
    return StructuredFit(
        weight=weight.copy(),
        intercept=intercept.copy(),
        temperature=float(temperature),
        fitted=Fitted(status=status, n=preds.n, k=preds.k, class_names=preds.class_names, nll=nll),
    )
