"""Vector, matrix and Dirichlet scaling: a linear map of the logits before the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.calibrators._fitted import Fitted, same_classes
from howsure.calibrators._linear import affine, check_fit, fit_diagonal, fit_full, record, single
from howsure.predictions import Predictions


@dataclass(frozen=True, eq=False)
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
    def fit(cls, preds: Predictions, *, l2: float = 0.0) -> VectorScaling:
        """Start from the best temperature, so the likelihood is never below that of `Temperature`."""
        price = check_fit(preds, "VectorScaling", l2)
        z = single(preds)
        found = fit_diagonal(preds, z, price)
        w, b = found.v[:, 0].copy(), found.v[:, 1].copy()
        return cls(w, b, record(preds, found, z * w + b, "VectorScaling", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with scaled logits; probabilities stay probabilities."""
        preds.needs_vector("vector scaling")
        same_classes(preds, len(self.weight), self.fitted, "VectorScaling")
        return affine(preds, self.weight, self.intercept)


@dataclass(frozen=True, eq=False)
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
        cls, preds: Predictions, *, l2: float = 0.0, off_diagonal: float = 0.0, intercept: float = 0.0
    ) -> MatrixScaling:
        """Start from the best vector scaling, so the likelihood is never below that of `VectorScaling`."""
        price = check_fit(preds, "MatrixScaling", l2, off_diagonal, intercept)
        z = single(preds)
        found = fit_full(preds, z, price)
        w, b = found.v[:, :-1].copy(), found.v[:, -1].copy()
        return cls(w, b, record(preds, found, z @ w.T + b, "MatrixScaling", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with mapped logits; probabilities stay probabilities."""
        preds.needs_vector("matrix scaling")
        same_classes(preds, len(self.weight), self.fitted, "MatrixScaling")
        return affine(preds, self.weight, self.intercept)


@dataclass(frozen=True, eq=False)
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
        cls, preds: Predictions, *, l2: float = 0.0, off_diagonal: float = 0.0, intercept: float = 0.0
    ) -> Dirichlet:
        """Maximum likelihood with the penalties of `MatrixScaling`."""
        price = check_fit(preds, "Dirichlet", l2, off_diagonal, intercept)
        z = single(preds, log_probs=True)
        found = fit_full(preds, z, price)
        w, b = found.v[:, :-1].copy(), found.v[:, -1].copy()
        return cls(w, b, record(preds, found, z @ w.T + b, "Dirichlet", price))

    def __call__(self, preds: Predictions) -> Predictions:
        """The mapped predictions; probabilities stay probabilities."""
        preds.needs_vector("Dirichlet calibration")
        same_classes(preds, len(self.weight), self.fitted, "Dirichlet")
        return affine(preds, self.weight, self.intercept, log_probs=True)


def _checked(weight: Floats, intercept: Floats, dimensions: int) -> None:
    k = len(intercept)
    if intercept.ndim != 1 or weight.shape != (k,) * dimensions:
        raise InputError(f"weight has shape {weight.shape} and intercept {intercept.shape}; they do not fit together.")
    if not (np.isfinite(weight).all() and np.isfinite(intercept).all()):
        raise InputError("weight or intercept is not finite.")
