"""Structured scaling: a matrix that is pulled towards no change, the harder the more classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from howsure._core.checks import Floats, InputError, parameters, within
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import (
    Fitted,
    apply_softmax,
    check_finite_logits,
    check_same_classes,
    read_logits,
    read_probabilities,
    replace_values,
)
from howsure.calibrators.linear import takes_logits
from howsure.predictions import Predictions, needs_predictions

Matrix = Literal["full", "diagonal"]
LEAST_PROBABILITY = 1e-300  # those below count as this one: the log of 0 is not a logit


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
    loss. Answers may change. Strictly convex; solved to a scaled gradient of 1e-7. Samples (MC
    dropout, ensembles) are averaged first; logits and probabilities give the same map.
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
        shape, k = self.weight.shape, self.intercept.size
        if self.intercept.ndim != 1 or shape not in ((k,), (k, k)):
            raise InputError(
                f"weight has shape {shape} and intercept {self.intercept.shape}; "
                "they do not fit together."
            )
        parameters(self.weight, "weight")
        parameters(self.intercept, "intercept")
        if not 0 < self.temperature < np.inf:
            raise InputError(
                f"temperature is {self.temperature:g}; a finite number above 0 is needed."
            )
        within(self.samples, 1, 2**62, "samples")

    @classmethod
    def fit(cls, preds: Predictions, *, matrix: Matrix = "full") -> StructuredScaling:
        """The only minimum of the penalised likelihood; warns where it was not reached."""
        needs_predictions(preds, "StructuredScaling.fit")
        from howsure.calibrators.structured_fit import fit_structured_map

        if matrix not in ("full", "diagonal"):
            raise InputError(f"matrix is {matrix!r}; 'full' or 'diagonal' is needed.")
        least = fit_structured_map(preds, full=matrix == "full")
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
            x = mix_with_uniform(z, self.temperature, self.samples)
            moved = self.weight[:, None] * x if self.weight.ndim == 1 else self.weight @ x
            mapped = x + moved + self.intercept[:, None]
            if not keep_logits:
                apply_softmax(mapped)
            out[rows] = mapped.T
        return replace_values(preds, "logits" if keep_logits else "probs", out)


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
