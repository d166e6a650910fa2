"""Vector, matrix and Dirichlet scaling: a linear map of the logits before the softmax."""

from __future__ import annotations

import warnings
from math import isfinite
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats, InputError, parameters
from howsure._core.frozen import frozen
from howsure.calibrators._descent import GOAL, ROUGH, Minimum, minimise
from howsure.calibrators._fitted import Fitted, needs_samples, same_classes, shares, with_values
from howsure.calibrators._logits import finite, members, single, softmax
from howsure.calibrators._softmax import EXACT, LARGE, Diagonal, Full, Samples, measured, scores
from howsure.calibrators.temperature import Temperature
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import chunks

ENOUGH = 4096  # samples that show a temperature to start from


@frozen(eq=False)
class VectorScaling:
    r"""Scale and shift the logit of each class, fitted by maximum likelihood.

    .. math:: p = \mathrm{softmax}(w \circ z + b), \qquad \min \mathrm{NLL} + l_2 (\|w - 1\|^2 + \|b\|^2)

    2K parameters: needs more samples than `Temperature` and may change the answers. Of probabilities the logits are
    their logs, clipped below at 1e-12; samples (MC dropout, ensembles) are averaged first. Convex, solved to a
    gradient of 1e-7. Guo et al. 2017; Vemuri 2020, chapter 5.

    >>> preds = Predictions.from_logits([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 1, 0])
    >>> VectorScaling.fit(preds)(preds).probs
    array([[0.5       , 0.5       ],
           [0.5       , 0.5       ],
           [0.33333333, 0.66666667],
           [0.33333333, 0.66666667],
           [0.33333333, 0.66666667]])
    """

    weight: Floats  # (k,)
    intercept: Floats  # (k,)
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.weight, self.intercept, 1)

    @classmethod
    def fit(
        cls, preds: Predictions, *, l2: float = 0.0, start: VectorScaling | None = None
    ) -> VectorScaling:
        """Start from the best temperature, so the likelihood is never below that of `Temperature`.

        From `start` it needs fewer steps to the same minimum.
        """
        needs_predictions(preds, "VectorScaling.fit")
        price = _priced(preds, "VectorScaling", l2)
        data = _samples(preds)
        found = _fit_diagonal(data, preds, price, _stacked(start, preds))
        w, b = found.v[:, 0].copy(), found.v[:, 1].copy()
        return cls(w, b, _record(preds, data, found, "VectorScaling", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with scaled logits; probabilities stay probabilities."""
        needs_predictions(preds, "VectorScaling")
        preds.needs_vector("vector scaling")
        same_classes(preds, len(self.weight), self.fitted, "VectorScaling")
        _same_kind(preds, self.fitted, "VectorScaling")
        return _affine(preds, self.weight, self.intercept)


@frozen(eq=False)
class MatrixScaling:
    r"""A linear map of all logits, fitted by maximum likelihood.

    .. math:: p = \mathrm{softmax}(W z + b), \qquad \min \mathrm{NLL} + l_2 (\|W - I\|^2 + \|b\|^2)

    K² + K parameters: over-fits unless there are many samples for each class or a penalty. `off_diagonal` and
    `intercept` penalise the mean square of what stands off the diagonal of W and of b alone (ODIR, Kull et al. 2019).
    Input and convergence as for `VectorScaling`. Guo et al. 2017; Vemuri 2020, chapter 5.

    >>> preds = Predictions.from_logits([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 1, 0])
    >>> MatrixScaling.fit(preds)(preds).confidence
    array([0.5       , 0.5       , 0.66666667, 0.66666667, 0.66666667])
    """

    weight: Floats  # (k, k)
    intercept: Floats  # (k,)
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.weight, self.intercept, 2)

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        *,
        l2: float = 0.0,
        off_diagonal: float = 0.0,
        intercept: float = 0.0,
        start: MatrixScaling | None = None,
    ) -> MatrixScaling:
        """Start from the best vector scaling, so the likelihood is never below that of
        `VectorScaling`.

        From `start` it needs fewer steps to the same minimum.
        """
        needs_predictions(preds, "MatrixScaling.fit")
        price = _priced(preds, "MatrixScaling", l2, off_diagonal, intercept)
        data = _samples(preds)
        found = _fit_full(data, preds, price, _stacked(start, preds))
        w, b = found.v[:, :-1].copy(), found.v[:, -1].copy()
        return cls(w, b, _record(preds, data, found, "MatrixScaling", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with mapped logits; probabilities stay probabilities."""
        needs_predictions(preds, "MatrixScaling")
        preds.needs_vector("matrix scaling")
        same_classes(preds, len(self.weight), self.fitted, "MatrixScaling")
        _same_kind(preds, self.fitted, "MatrixScaling")
        return _affine(preds, self.weight, self.intercept)


@frozen(eq=False)
class Dirichlet:
    r"""Matrix scaling of the log probabilities.

    .. math:: q = \mathrm{softmax}(W \log p + b)

    The calibration map of Dirichlet distributed probabilities. Options and convergence as for `MatrixScaling`, which
    differs from it only in taking logits as they are. Probabilities are clipped below at 1e-12. Kull et al. 2019.

    >>> preds = Predictions.from_probs([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.2, 0.8]], [0, 1, 1, 1, 0])
    >>> Dirichlet.fit(preds)(preds).confidence
    array([0.5       , 0.5       , 0.66666667, 0.66666667, 0.66666667])
    """

    weight: Floats  # (k, k)
    intercept: Floats  # (k,)
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.weight, self.intercept, 2)

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        *,
        l2: float = 0.0,
        off_diagonal: float = 0.0,
        intercept: float = 0.0,
        start: Dirichlet | None = None,
    ) -> Dirichlet:
        """Maximum likelihood with the penalties and the `start` of `MatrixScaling`."""
        needs_predictions(preds, "Dirichlet.fit")
        price = _priced(preds, "Dirichlet", l2, off_diagonal, intercept)
        data = _samples(preds, log_probs=True)
        found = _fit_full(data, preds, price, _stacked(start, preds))
        w, b = found.v[:, :-1].copy(), found.v[:, -1].copy()
        return cls(w, b, _record(preds, data, found, "Dirichlet", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The mapped predictions; probabilities stay probabilities."""
        needs_predictions(preds, "Dirichlet")
        preds.needs_vector("Dirichlet calibration")
        same_classes(preds, len(self.weight), self.fitted, "Dirichlet")
        return _affine(preds, self.weight, self.intercept, log_probs=True)


def _checked(weight: Floats, intercept: Floats, dimensions: int) -> None:
    k = len(intercept)
    if intercept.ndim != 1 or weight.shape != (k,) * dimensions:
        raise InputError(
            f"weight has shape {weight.shape} and intercept {intercept.shape}; they do not fit together."
        )
    parameters(weight, "weight")
    parameters(intercept, "intercept")


class Penalty(NamedTuple):
    """What large parameters cost: all of them, those off the diagonal, the intercepts."""

    l2: float
    off_diagonal: float = 0.0
    intercept: float = 0.0

    def ridge(self, k: int) -> Floats:
        """The cost of each parameter of a full matrix, means over them as Kull et al. 2019 take."""
        off = np.full((k, k), self.l2 + self.off_diagonal / (k * (k - 1)))
        np.fill_diagonal(off, self.l2)
        return np.concatenate((off, np.full((k, 1), self.l2 + self.intercept / k)), axis=1)


def _priced(preds: Predictions, what: str, *prices: float) -> Penalty:
    """The penalty, checked, and a warning where a class has no samples to learn from."""
    needs_samples(preds, what)
    price = Penalty(*prices)
    for name, x in price._asdict().items():
        if not (isfinite(x) and x >= 0):
            raise InputError(f"{name} is {x:g}; a finite number that is not negative is needed.")
    missing = np.flatnonzero(np.bincount(preds.labels, minlength=preds.k or 0) == 0)
    if len(missing) and not any(price):
        warnings.warn(
            f"{len(missing)} of {preds.k} classes have no samples (first: class {missing[0]}), so {what} learns that "
            "they never occur. Fit it on samples of all classes, or use l2.",
            stacklevel=3,
        )
    return price


def _samples(preds: Predictions, *, log_probs: bool = False) -> Samples:
    if preds.kind == "logits" and preds.samples == 1 and not log_probs:
        x = _turned(members(preds)[0])
    else:
        x = np.empty((preds.k or 0, preds.n))
        for rows, z in single(preds, log_probs=log_probs):
            x[:, rows] = z
    return Samples(x, preds.labels, None if preds.weight is None else shares(preds))


def _turned(values: Array) -> Array:
    """A copy with a row for each class, some samples at a time, which is faster than all at once."""
    x = np.empty(values.shape[::-1], values.dtype)
    for rows in chunks(*values.shape):
        x[:, rows] = values[rows].T
    finite(x)
    return x


def _stacked(
    start: VectorScaling | MatrixScaling | Dirichlet | None, preds: Predictions
) -> Floats | None:
    """The parameters to start from, as one array."""
    if start is None:
        return None
    same_classes(preds, len(start.intercept), start.fitted, type(start).__name__)
    weight = start.weight if start.weight.ndim == 2 else start.weight[:, None]
    return np.concatenate((weight, start.intercept[:, None]), axis=1)


def _fit_diagonal(
    data: Samples, preds: Predictions, price: Penalty, start: Floats | None, *, goal: float = GOAL
) -> Minimum:
    """The best diagonal W and b, from the best temperature or from no change, whichever costs less."""
    k = len(data.x)
    ridge, centre = price.ridge(k), np.stack((np.ones(k), np.zeros(k)), axis=1)
    problem = Diagonal(data, np.stack((np.diag(ridge), ridge[:, -1]), axis=1), centre)
    if start is None:
        some = slice(None, None, max(1, preds.n // ENOUGH) if data.x.size >= LARGE else 1)
        weight = None if preds.weight is None else preds.weight[some]
        logits = Predictions(
            "logits", data.x.T[some], k, known_labels=preds.labels[some], weight=weight
        )
        start = centre / [Temperature.fit(logits).temperature, 1.0]
        start = start if not any(price) else _cheaper(problem, start, centre)
        return minimise(problem, start, goal=goal)
    return minimise(problem, start, near=True)


def _fit_full(data: Samples, preds: Predictions, price: Penalty, start: Floats | None) -> Minimum:
    """The best W and b, from the best diagonal or from no change, whichever costs less."""
    k = len(data.x)
    problem = Full(data, price.ridge(k), np.eye(k, k + 1))
    if start is None:
        simpler = _fit_diagonal(data, preds, price, None, goal=GOAL if k * k <= EXACT else ROUGH).v
        start = np.concatenate((np.diag(simpler[:, 0]), simpler[:, 1:]), axis=1)
        start = start if not any(price) else _cheaper(problem, start, problem.centre)
        return minimise(problem, start)
    return minimise(problem, start, near=True)


def _cheaper(problem: Diagonal | Full, a: Floats, b: Floats) -> Floats:
    return min((a, b), key=lambda v: measured(problem, v).loss)


def _record(preds: Predictions, data: Samples, found: Minimum, what: str, price: Penalty) -> Fitted:
    """How the fit ended; a warning where no maximum of the likelihood exists or was reached."""
    status = "converged" if found.converged else "stopped"
    if not any(price) and _separated(data, found.v):
        status = "separable"
        text = f"{what} gets all {preds.n:,} samples of the fit right, so its likelihood has no maximum"
        warnings.warn(
            f"{text} and it will be too sure elsewhere. Use l2, more samples or Temperature.",
            stacklevel=3,
        )
    elif not found.converged:
        text = f"{what} was stopped before it converged; its loss is {found.at.nll:.6g}. Use l2."
        warnings.warn(text, stacklevel=3)
    return Fitted(
        status,
        preds.n,
        preds.k,
        preds.class_names,
        found.at.nll,
        None if what == "Dirichlet" else _kind(preds),
    )


def _kind(preds: Predictions) -> str:
    """What a linear map gets: logits as they are, or logs of probabilities; those of several
    members are averaged.
    """
    return "logits" if preds.kind == "logits" and preds.samples == 1 else "probs"


def _same_kind(preds: Predictions, fitted: Fitted | None, what: str) -> None:
    """Refuse logits where it was fitted on logs of probabilities, and the reverse.

    They differ by one number in each row, which a softmax does not see and a weight for each class
    does.
    """
    if fitted is None or fitted.kind is None or fitted.kind == (here := _kind(preds)):
        return
    words = {"logits": "logits", "probs": "probabilities"}
    raise InputError(
        f"this {what} was fitted on {words[fitted.kind]}, these are {words[here]}, for which it is another map; "
        f"give it {words[fitted.kind]}, or fit it on {words[here]}. Temperature takes both."
    )


def _separated(data: Samples, v: Floats) -> bool:
    """Whether the label scores above every other class in all samples."""
    problem = (Diagonal if v.shape[1] == 2 else Full)(data, v, v)
    for x, y, _ in data.parts(len(v)):
        s, at = scores(problem, v, x), np.arange(len(y))
        own = s[y, at]
        s[y, at] = -np.inf
        if not (own > s.max(axis=0)).all():
            return False
    return True


def _affine(
    preds: Predictions, weight: Floats, intercept: Floats, *, log_probs: bool = False
) -> Predictions:
    """Predictions with logits W z + b; `weight` is the diagonal or the whole of W."""
    stay = preds.kind == "logits" and preds.samples == 1
    out = np.empty((preds.n, len(intercept)))
    for rows, z in single(preds, log_probs=log_probs):
        z = (weight[:, None] * z if weight.ndim == 1 else weight @ z) + intercept[:, None]
        if not stay:
            softmax(z)
        out[rows] = z.T
    return with_values(preds, "logits" if stay else "probs", out)
