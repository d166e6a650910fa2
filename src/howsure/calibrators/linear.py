"""Vector, matrix and Dirichlet scaling: a linear map of the logits before the softmax."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from howsure._core.checks import Floats, InputError, parameters
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import (
    Fitted,
    Identity,
    apply_softmax,
    check_same_classes,
    read_mean_logits,
    replace_values,
)
from howsure.predictions import Predictions, needs_predictions

Operator: TypeAlias = tuple[Literal["Div", "Mul", "MatMul", "Add"], Floats]


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
        _check_parameters(self.weight, self.intercept, dimensions=1)

    @classmethod
    def fit(
        cls, preds: Predictions, *, l2: float = 0.0, start: VectorScaling | None = None
    ) -> VectorScaling:
        """Start from the best temperature, so the likelihood is never below that of `Temperature`.

        From `start` it needs fewer steps to the same minimum.
        """
        needs_predictions(preds, "VectorScaling.fit")
        from howsure.calibrators.linear_fit import Penalty, fit_linear_map

        weight, intercept, fitted = fit_linear_map(
            preds, "VectorScaling", Penalty(l2=l2), start=start, full=False
        )
        return cls(weight=weight, intercept=intercept, fitted=fitted)

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with scaled logits; probabilities stay probabilities."""
        needs_predictions(preds, "VectorScaling")
        preds.needs_vector("vector scaling")
        check_same_classes(preds, len(self.weight), self.fitted, "VectorScaling")
        _check_same_kind(preds, self.fitted, "VectorScaling")
        return _map_logits(preds, self.weight, self.intercept)


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
        _check_parameters(self.weight, self.intercept, dimensions=2)

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
        from howsure.calibrators.linear_fit import Penalty, fit_linear_map

        penalty = Penalty(l2=l2, off_diagonal=off_diagonal, intercept=intercept)
        weight, shift, fitted = fit_linear_map(preds, "MatrixScaling", penalty, start=start)
        return cls(weight=weight, intercept=shift, fitted=fitted)

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with mapped logits; probabilities stay probabilities."""
        needs_predictions(preds, "MatrixScaling")
        preds.needs_vector("matrix scaling")
        check_same_classes(preds, len(self.weight), self.fitted, "MatrixScaling")
        _check_same_kind(preds, self.fitted, "MatrixScaling")
        return _map_logits(preds, self.weight, self.intercept)


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
        _check_parameters(self.weight, self.intercept, dimensions=2)

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
        from howsure.calibrators.linear_fit import Penalty, fit_linear_map

        penalty = Penalty(l2=l2, off_diagonal=off_diagonal, intercept=intercept)
        weight, shift, fitted = fit_linear_map(
            preds, "Dirichlet", penalty, start=start, log_probs=True
        )
        return cls(weight=weight, intercept=shift, fitted=fitted)

    def __call__(self, preds: Predictions) -> Predictions:
        """The mapped predictions; probabilities stay probabilities."""
        needs_predictions(preds, "Dirichlet")
        preds.needs_vector("Dirichlet calibration")
        check_same_classes(preds, len(self.weight), self.fitted, "Dirichlet")
        return _map_logits(preds, self.weight, self.intercept, log_probs=True)


def _check_parameters(weight: Floats, intercept: Floats, dimensions: int) -> None:
    if intercept.ndim != 1 or weight.shape != (len(intercept),) * dimensions:
        raise InputError(
            f"weight has shape {weight.shape} and intercept {intercept.shape}; they do not fit together."
        )
    parameters(weight, "weight")
    parameters(intercept, "intercept")


def takes_logits(preds: Predictions) -> bool:
    """Whether a linear map gets logits as they are, not logs of probabilities; those of several
    members are averaged as probabilities.
    """
    return preds.kind == "logits" and preds.samples == 1


def _check_same_kind(preds: Predictions, fitted: Fitted | None, what: str) -> None:
    """Refuse logits where it was fitted on logs of probabilities, and the reverse.

    They differ by one number in each row, which a softmax does not see and a weight for each class
    does.
    """
    if fitted is None or fitted.kind is None:
        return
    here = "logits" if takes_logits(preds) else "probabilities"
    there = "logits" if fitted.kind == "logits" else "probabilities"
    if here != there:
        raise InputError(
            f"this {what} was fitted on {there}, these are {here}, for which it is another map; "
            f"give it {there}, or fit it on {here}. Temperature takes both."
        )


def _map_logits(
    preds: Predictions, weight: Floats, intercept: Floats, *, log_probs: bool = False
) -> Predictions:
    """Predictions with logits W z + b; `weight` is the diagonal or the whole of W."""
    keep_logits = takes_logits(preds)
    out = np.empty((preds.n, len(intercept)))
    for rows, z in read_mean_logits(preds, log_probs=log_probs):
        mapped = weight[:, None] * z if weight.ndim == 1 else weight @ z
        mapped = mapped + intercept[:, None]
        if not keep_logits:
            apply_softmax(mapped)
        out[rows] = mapped.T
    return replace_values(preds, "logits" if keep_logits else "probs", out)


def list_operators(calibrator: object, where: str) -> list[Operator]:
    """A calibrator as operators on the logits, by their ONNX names, with one constant each.

    A softmax follows them. `where` is for the error.
    """
    from howsure.calibrators.temperature import Temperature

    if isinstance(calibrator, Identity):
        return []
    if isinstance(calibrator, Temperature):
        return [("Div", np.asarray(calibrator.temperature))]
    if isinstance(calibrator, VectorScaling):
        return [("Mul", calibrator.weight), ("Add", calibrator.intercept)]
    if isinstance(calibrator, MatrixScaling):
        turned = np.ascontiguousarray(calibrator.weight.T)
        return [("MatMul", turned), ("Add", calibrator.intercept)]
    raise InputError(
        f"{type(calibrator).__name__} cannot be put into {where}; "
        "Temperature, VectorScaling, MatrixScaling and Identity can."
    )
