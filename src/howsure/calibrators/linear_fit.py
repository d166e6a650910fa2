"""Fitting linear maps of the logits: from a temperature to a vector to a matrix; structured scaling
from no change down.
"""

from __future__ import annotations

import warnings
from math import isfinite
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, InputError, Ints
from howsure._core.indices import count_values
from howsure.calibrators.calibrator import (
    Fitted,
    check_same_classes,
    check_samples,
    compute_shares,
    replace_values,
)
from howsure.calibrators.descent import (
    GRADIENT_GOAL,
    ROUGH_GOAL,
    Minimum,
    find_temperature,
    minimise,
)
from howsure.calibrators.linear import (
    Dirichlet,
    MatrixScaling,
    VectorScaling,
    mix_with_uniform,
    read_structured_logits,
    takes_logits,
)
from howsure.calibrators.softmax_fit import (
    MAX_EXACT_PARAMETERS,
    SINGLE_PRECISION_LOGITS,
    DiagonalProblem,
    FitSamples,
    MatrixProblem,
    measure_point,
)
from howsure.calibrators.temperature import Temperature
from howsure.predictions import Predictions

START_SAMPLES = 4096  # of very many samples these show a temperature to start from
# Of structured scaling:
TEMPERATURE_BOUNDS = (1e-6, 1e6)
SCALED_GRADIENT_GOAL = 1e-7
MOST_STEPS = 2_000
STEP_PAIRS = 20


class Penalty(NamedTuple):
    """What large parameters cost: all of them, those off the diagonal, the intercepts."""

    l2: float
    off_diagonal: float = 0.0
    intercept: float = 0.0

    def build_ridge(self, k: int) -> Floats:
        """The cost of each parameter of a full matrix, means over them as Kull et al. 2019 take."""
        ridge = np.full((k, k), self.l2 + self.off_diagonal / (k * (k - 1)))
        np.fill_diagonal(ridge, self.l2)
        of_intercept = np.full((k, 1), self.l2 + self.intercept / k)
        return np.concatenate((ridge, of_intercept), axis=1)


class LinearFit(NamedTuple):
    """The fitted map: W, or its diagonal, and b, with the record of the fit."""

    weight: Floats
    intercept: Floats
    fitted: Fitted


def fit_linear_map(
    preds: Predictions,
    what: str,
    penalty: Penalty,
    *,
    start: VectorScaling | MatrixScaling | Dirichlet | None,
    full: bool = True,
    log_probs: bool = False,
) -> LinearFit:
    """The best W and b, W `full` or diagonal; `log_probs` normalises the logits first.

    Warns where a class has no samples to learn from, and where no maximum of the likelihood exists
    or was reached.
    """
    check_samples(preds, what)
    for name, price in penalty._asdict().items():
        if not (isfinite(price) and price >= 0):
            raise InputError(
                f"{name} is {price:g}; a finite number that is not negative is needed."
            )
    missing = np.flatnonzero(count_values(preds.labels, minlength=preds.k or 0) == 0)
    if len(missing) and not any(penalty):
        warnings.warn(
            f"{len(missing)} of {preds.k} classes have no samples (first: class {missing[0]}), so {what} learns that "
            "they never occur. Fit it on samples of all classes, or use l2.",
            stacklevel=3,
        )
    data = FitSamples.of(preds, log_probs=log_probs)
    parameters = None
    if start is not None:
        check_same_classes(preds, len(start.intercept), start.fitted, type(start).__name__)
        weight = start.weight if start.weight.ndim == 2 else start.weight[:, None]
        parameters = np.concatenate((weight, start.intercept[:, None]), axis=1)
    if full:
        least = _fit_matrix(data, preds, penalty, parameters)
        weight = least.v[:, :-1].copy()
    else:
        least = _fit_diagonal(data, preds, penalty, parameters)
        weight = least.v[:, 0].copy()

    status = "converged" if least.converged else "stopped"
    warning = None
    if not any(penalty) and data.is_separated_by(least.v):
        status = "separable"
        warning = (
            f"{what} gets all {preds.n:,} samples of the fit right, so its likelihood has no maximum "
            "and it will be too sure elsewhere. Use l2, more samples or Temperature."
        )
    elif not least.converged:
        nll = least.at.nll
        warning = f"{what} was stopped before it converged; its loss is {nll:.6g}. Use l2."
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
    kind = None
    if not log_probs:
        kind = "logits" if takes_logits(preds) else "probs"
    fitted = Fitted(
        status=status,
        n=preds.n,
        k=preds.k,
        class_names=preds.class_names,
        nll=least.at.nll,
        kind=kind,
    )
    return LinearFit(weight=weight, intercept=least.v[:, -1].copy(), fitted=fitted)


def _fit_diagonal(
    data: FitSamples,
    preds: Predictions,
    penalty: Penalty,
    start: Floats | None,
    *,
    goal: float = GRADIENT_GOAL,
) -> Minimum:
    """The best diagonal W and b, from the best temperature or from no change, whichever costs less."""
    k = len(data.x)
    ridge = penalty.build_ridge(k)
    centre = np.stack((np.ones(k), np.zeros(k)), axis=1)
    problem = DiagonalProblem(
        data=data, ridge=np.stack((np.diag(ridge), ridge[:, -1]), axis=1), centre=centre
    )
    if start is not None:
        return minimise(problem, start, near=True)
    every = 1
    if data.x.size >= SINGLE_PRECISION_LOGITS:
        every = max(1, preds.n // START_SAMPLES)
    some = slice(None, None, every)
    logits = Predictions(
        kind="logits",
        values=data.x.T[some],
        k=k,
        known_labels=preds.labels[some],
        weight=None if preds.weight is None else preds.weight[some],
    )
    start = centre / [Temperature.fit(logits).temperature, 1.0]
    if any(penalty):
        start = _choose_cheaper(problem, start, centre)
    return minimise(problem, start, goal=goal)


def _fit_matrix(
    data: FitSamples, preds: Predictions, penalty: Penalty, start: Floats | None
) -> Minimum:
    """The best W and b, from the best diagonal or from no change, whichever costs less."""
    k = len(data.x)
    problem = MatrixProblem(data=data, ridge=penalty.build_ridge(k), centre=np.eye(k, k + 1))
    if start is not None:
        return minimise(problem, start, near=True)
    # Of few parameters the diagonal is solved exactly, which costs little.
    goal = GRADIENT_GOAL if k * k <= MAX_EXACT_PARAMETERS else ROUGH_GOAL
    diagonal = _fit_diagonal(data, preds, penalty, None, goal=goal).v
    start = np.concatenate((np.diag(diagonal[:, 0]), diagonal[:, 1:]), axis=1)
    if any(penalty):
        start = _choose_cheaper(problem, start, problem.centre)
    return minimise(problem, start)


def _choose_cheaper(problem: DiagonalProblem | MatrixProblem, a: Floats, b: Floats) -> Floats:
    return min((a, b), key=lambda v: measure_point(problem, v).loss)


# ---- structured scaling


class StructuredFit(NamedTuple):
    """The fitted map, with the record of the fit."""

    weight: Floats
    intercept: Floats
    temperature: float
    fitted: Fitted


class StructuredProblem:
    """The loss and its gradient; parameters are one vector: A, or its diagonal, and then b."""

    def __init__(self, x: Floats, y: Ints, share: Floats, *, full: bool) -> None:
        k, n = x.shape
        self.x, self.y, self.share, self.full = x, y, share, full
        self.rows: Ints = np.arange(n)
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
