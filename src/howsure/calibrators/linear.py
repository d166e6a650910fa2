"""Vector, matrix, Dirichlet and structured scaling: a linear map of the logits before the softmax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from howsure._core.checks import Floats, InputError, parameters, within
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import (
    Fitted,
    Identity,
    apply_softmax,
    check_finite_logits,
    check_same_classes,
    read_logits,
    read_mean_logits,
    read_probabilities,
    replace_values,
    takes_arrays,
)
from howsure.predictions import Predictions, needs_predictions

# By its ONNX name, with its constant; Softmax and Log have none.
Operator: TypeAlias = tuple[Literal["Div", "Mul", "MatMul", "Add", "Softmax", "Log"], Floats | None]
Matrix = Literal["full", "diagonal"]
LEAST_PROBABILITY = 1e-300  # those below count as this one: the log of 0 is not a logit


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

    @takes_arrays
    @classmethod
    def fit(
        cls, preds: Predictions, *, l2: float = 0.0, start: VectorScaling | None = None
    ) -> VectorScaling:
        """Start from the best temperature, so the likelihood is never below that of `Temperature`.

        From `start` it needs fewer steps to the same minimum.
        """
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

    K² + K parameters: over-fits unless there are many samples for each class or a penalty; fewer samples than
    parameters are refused without one. `off_diagonal` and `intercept` penalise the mean square of what stands off the
    diagonal of W and of b alone (ODIR, Kull et al. 2019). Input and convergence as for `VectorScaling`. Guo et al.
    2017; Vemuri 2020, chapter 5.

    >>> preds = Predictions.from_logits([[2.0, 0.0]] * 4 + [[0.0, 2.0]] * 6, [0, 0, 1, 1] + [1, 1, 0] * 2)
    >>> MatrixScaling.fit(preds)(preds).confidence[[0, 4]]
    array([0.5       , 0.66666667])
    """

    weight: Floats  # (k, k)
    intercept: Floats  # (k,)
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _check_parameters(self.weight, self.intercept, dimensions=2)

    @takes_arrays
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

    >>> preds = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 6, [0, 0, 1, 1] + [1, 1, 0] * 2)
    >>> Dirichlet.fit(preds)(preds).confidence[[0, 4]]
    array([0.5       , 0.66666667])
    """

    weight: Floats  # (k, k)
    intercept: Floats  # (k,)
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _check_parameters(self.weight, self.intercept, dimensions=2)

    @takes_arrays
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


@frozen(eq=False)
class StructuredScaling:
    r"""Temperature scaling, mixed with a little of the uniform distribution, then a penalised map.

    .. math:: q = \frac{n\, \mathrm{softmax}(z / T) + 1/K}{n + 1}, \quad L = \ln q, \quad
        p = \mathrm{softmax}(L + A L + b)

    .. math:: \min\; \mathrm{NLL} + \frac{K}{n} \Big(\|b\|^2 + \sum_k A_{kk}^2\Big)
        + \frac{K (K - 1)}{n} \sum_{j \ne k} A_{jk}^2

    T is that of `Temperature`, n the number of samples it was fitted on. `matrix` is "full" or
    "diagonal" (A without what stands off its diagonal). The penalty fades as samples are added, so
    nothing is to be chosen, and no probability becomes 0: one wrong answer never costs an infinite
    loss. Answers may change. Strictly convex; solved to a gradient of 1e-7. Samples (MC dropout,
    ensembles) are averaged first; logits and probabilities give the same map.
    Berta et al. 2025.

    >>> z = [[2.0, 0.5, -1.0], [0.2, 1.5, 0.1], [-0.5, 0.3, 2.2], [0.4, 0.9, -0.2]] * 3
    >>> preds = Predictions.from_logits(z, [0, 1, 2, 0, 0, 1, 2, 1, 0, 2, 2, 0])
    >>> StructuredScaling.fit(preds)(preds).confidence[:4].round(3)
    array([0.939, 0.651, 0.942, 0.451])
    """

    weight: Floats  # A: (k, k), or its diagonal (k,)
    intercept: Floats  # (k,)
    temperature: float
    samples: int  # n
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        dimensions = 1 if self.weight.ndim == 1 else 2
        _check_parameters(self.weight, self.intercept, dimensions=dimensions)
        if not 0 < self.temperature < np.inf:
            raise InputError(
                f"temperature is {self.temperature:g}; a finite number above 0 is needed."
            )
        within(self.samples, 1, 2**62, "samples")

    @takes_arrays
    @classmethod
    def fit(
        cls,
        preds: Predictions,
        *,
        matrix: Matrix = "full",
        start: StructuredScaling | None = None,
    ) -> StructuredScaling:
        """The only minimum of the penalised likelihood; warns where it was not reached.

        From `start`, of the same kind, it needs fewer steps.
        """
        from howsure.calibrators.linear_fit import fit_structured_map

        if matrix not in ("full", "diagonal"):
            raise InputError(f"matrix is {matrix!r}; 'full' or 'diagonal' is needed.")
        full = matrix == "full"
        if start is not None and (start.weight.ndim == 2) != full:
            raise InputError(f"start has another kind of matrix; one that is {matrix} is needed.")
        least = fit_structured_map(preds, full=full, start=start)
        return cls(
            weight=least.weight,
            intercept=least.intercept,
            temperature=least.temperature,
            samples=preds.n,
            fitted=least.fitted,
        )

    def __call__(self, preds: Predictions) -> Predictions:
        """The mapped predictions; logits stay logits, probabilities stay probabilities."""
        needs_predictions(preds, "StructuredScaling")
        preds.needs_vector("structured scaling")
        check_same_classes(preds, len(self.intercept), self.fitted, "StructuredScaling")
        keep_logits = takes_logits(preds)
        out = np.empty((preds.n, len(self.intercept)))
        for rows, z in read_structured_logits(preds):
            mapped = self.map_values(z)
            if not keep_logits:
                apply_softmax(mapped)
            out[rows] = mapped.T
        return replace_values(preds, "logits" if keep_logits else "probs", out)

    def map_values(self, z: Floats) -> Floats:
        """The mapped logits, of logits that have a row for each class and are overwritten."""
        x = mix_with_uniform(z, self.temperature, self.samples)
        moved = self.weight[:, None] * x if self.weight.ndim == 1 else self.weight @ x
        return x + moved + self.intercept[:, None]


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
        mapped = map_linearly(z, weight, intercept)
        if not keep_logits:
            apply_softmax(mapped)
        out[rows] = mapped.T
    return replace_values(preds, "logits" if keep_logits else "probs", out)


def map_linearly(z: Floats, weight: Floats, intercept: Floats) -> Floats:
    """W z + b of logits that have a row for each class; `weight` is the diagonal or the whole of W."""
    mapped = weight[:, None] * z if weight.ndim == 1 else weight @ z
    return mapped + intercept[:, None]


def read_structured_logits(preds: Predictions) -> Iterator[tuple[slice, Floats]]:
    """Chunks of samples with their logits, or the logs of their mean probabilities, shape (k,
    samples).
    """
    if takes_logits(preds):
        for rows, members in read_logits(preds):
            check_finite_logits(members)
            yield rows, members[0]
        return
    for rows, p in read_probabilities(preds):
        yield rows, np.log(np.maximum(p, LEAST_PROBABILITY, out=p))


def mix_with_uniform(z: Floats, temperature: float, n: int) -> Floats:
    """The log of softmax(z / T) as n samples beside one that is uniform; `z` is overwritten."""
    z -= z.max(axis=0)  # before the division: a small T must not make an infinity of it
    z /= temperature
    apply_softmax(z)
    z *= n
    z += 1 / len(z)
    z /= n + 1
    return np.log(z, out=z)


def list_operators(calibrator: object, where: str) -> list[Operator]:
    """A calibrator as operators on the logits. A softmax follows them; `where` is for the error."""
    from howsure.calibrators.temperature import Temperature

    if isinstance(calibrator, Identity):
        return []
    if isinstance(calibrator, Temperature):
        scale: list[Operator] = [("Div", np.asarray(calibrator.temperature))]
        if calibrator.samples is None:
            return scale
        if calibrator.fitted is None or calibrator.fitted.k is None:
            raise InputError(
                f"a Temperature that mixes cannot be put into {where} without its number of "
                "classes; take one that was fitted."
            )
        return scale + _list_mixing(calibrator.samples, calibrator.fitted.k)
    if isinstance(calibrator, StructuredScaling):
        k = len(calibrator.intercept)
        mixed: list[Operator] = [("Div", np.asarray(calibrator.temperature))]
        mixed += _list_mixing(calibrator.samples, k)
        if calibrator.weight.ndim == 1:
            mixed.append(("Mul", 1 + calibrator.weight))
        else:
            mixed.append(("MatMul", np.ascontiguousarray((np.eye(k) + calibrator.weight).T)))
        return [*mixed, ("Add", calibrator.intercept)]
    if isinstance(calibrator, VectorScaling):
        return [("Mul", calibrator.weight), ("Add", calibrator.intercept)]
    if isinstance(calibrator, MatrixScaling):
        turned = np.ascontiguousarray(calibrator.weight.T)
        return [("MatMul", turned), ("Add", calibrator.intercept)]
    raise InputError(
        f"{type(calibrator).__name__} cannot be put into {where}; "
        "Temperature, VectorScaling, MatrixScaling, StructuredScaling and Identity can."
    )


def _list_mixing(n: int, k: int) -> list[Operator]:
    """The log of n samples of the softmax beside one that is uniform."""
    return [
        ("Softmax", None),
        ("Mul", np.asarray(n / (n + 1))),
        ("Add", np.asarray(1 / (k * (n + 1)))),
        ("Log", None),
    ]
