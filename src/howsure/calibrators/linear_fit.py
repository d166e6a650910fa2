"""Fitting linear maps of the logits: from a temperature to a vector to a matrix; structured scaling
from no change down.
"""

from __future__ import annotations

import warnings
from math import isfinite
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, InputError
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
    StructuredScaling,
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
    use_one_blas_thread,
)
from howsure.calibrators.temperature import TEMPERATURE_BOUNDS, Temperature
from howsure.predictions import Predictions

START_SAMPLES = 4096  # of very many samples these show a temperature to start from


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


@use_one_blas_thread()
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
    k = preds.k or 0
    if full and k * k + k > preds.n and not any(penalty):
        raise InputError(
            f"{what} has {k * k + k:,} parameters and cannot be fitted on {preds.n:,} samples without a penalty; "
            "give l2=, or take StructuredScaling."
        )
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
            stacklevel=5,
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
        warnings.warn(warning, stacklevel=5)
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


@use_one_blas_thread()
def fit_structured_map(
    preds: Predictions, *, full: bool, start: StructuredScaling | None
) -> StructuredFit:
    """Temperature, A and b with the least penalised loss.

    The map of the mixed logits L is softmax((I + A) L + b): a softmax regression whose penalty
    pulls to the identity.
    """
    what = "StructuredScaling"
    check_samples(preds, what)
    k, n = preds.needs_vector("structured scaling"), preds.n
    z = np.empty((k, n))
    for rows, part in read_structured_logits(preds):
        z[:, rows] = part
    as_logits = replace_values(preds, "logits", z.T)
    near = start and start.temperature
    best = find_temperature(as_logits, "averaged", None, TEMPERATURE_BOUNDS, near)
    temperature = float(best.temperature)
    share = None if preds.weight is None else compute_shares(preds)
    data = FitSamples(x=mix_with_uniform(z, temperature, n), y=preds.labels, share=share)
    if full:
        ridge = np.full((k, k + 1), k * (k - 1) / n)
        ridge[:, -1] = k / n
        np.fill_diagonal(ridge, k / n)
        problem = MatrixProblem(data=data, ridge=ridge, centre=np.eye(k, k + 1))
    else:
        centre = np.stack((np.ones(k), np.zeros(k)), axis=1)
        problem = DiagonalProblem(data=data, ridge=np.full((k, 2), k / n), centre=centre)
    begin = problem.centre
    if start is not None:
        check_same_classes(preds, len(start.intercept), start.fitted, what)
        away = start.weight.reshape(k, -1)
        begin = begin + np.concatenate((away, start.intercept[:, None]), axis=1)
    least = minimise(problem, begin, near=start is not None)
    status = "converged"
    if not least.converged:
        status = "stopped"
        warnings.warn(
            f"{what} was stopped before it converged; its loss is {least.at.nll:.6g}. "
            "Temperature has one parameter.",
            stacklevel=5,
        )
    moved = least.v - problem.centre
    weight = moved[:, :-1].copy()
    if not full:
        weight = weight[:, 0]
    return StructuredFit(
        weight=weight,
        intercept=moved[:, -1].copy(),
        temperature=temperature,
        fitted=Fitted(
            status=status, n=n, k=preds.k, class_names=preds.class_names, nll=least.at.nll
        ),
    )
