"""What every calibrator shares: the record of its fit and the checks at its two doors."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from howsure._core.check import Array, Floats, InputError, within
from howsure._core.frozen import frozen
from howsure.predictions import Predictions


@frozen
class Fitted:
    """How a calibrator came to be: on what, and how the fit ended.

    `status` is "converged" or says what else happened; `nll` is the mean negative log-likelihood of
    the n samples with the calibrator. `kind` is "logits" or "probs" where the map would be another
    one for the other kind.
    """

    status: str
    n: int
    k: int | None
    class_names: tuple[str, ...] | None
    nll: float
    kind: str | None = None

    def __post_init__(self) -> None:
        within(self.n, 0, 2**62, "n")
        if self.kind not in (None, "logits", "probs"):
            raise InputError("kind", got=f"is {self.kind!r}", need="logits, probs or nothing")
        if self.k is not None:
            within(self.k, 1, 2**31, "k")
            if self.class_names is not None and len(self.class_names) != self.k:
                raise InputError(
                    "class_names", got=f"has {len(self.class_names)} names for {self.k} classes"
                )


class Calibrator(Protocol):
    """Anything that maps predictions to predictions and remembers its fit."""

    @property
    def fitted(self) -> Fitted | None:
        """The record of the fit; None for one made by hand."""
        ...

    def __call__(self, preds: Predictions) -> Predictions:
        """The calibrated predictions."""
        ...


def needs_classes(preds: Predictions, what: str) -> None:
    """Refuse to fit where there is nothing to learn: top labels only, one class, or all samples of
    one class.
    """
    if preds.kind == "confidence":
        raise InputError(
            f"{what} needs logits or probabilities of all classes, only the top label is known; "
            "Isotonic, Platt and Beta calibrate a confidence."
        )
    if preds.k == 1:
        raise InputError(f"{what} cannot be fitted with one class: its probability is always 1.")
    labels = preds.labels
    if len(labels) > 1 and labels.min() == labels.max():
        raise InputError(
            f"{what} cannot be fitted: all {len(labels):,} labels are class {labels[0]}. "
            "Fit it on samples of all classes, drawn as they will come."
        )


def needs_samples(preds: Predictions, what: str) -> None:
    """Refuse fewer samples than classes where each class has parameters of its own."""
    needs_classes(preds, what)
    if preds.n < (preds.k or 0):
        raise InputError(
            f"{what} has parameters for each class and cannot be fitted on {preds.n:,} samples of {preds.k:,} classes; "
            "at least one per class is needed. Temperature has one parameter."
        )


def same_classes(preds: Predictions, k: int | None, fitted: Fitted | None, what: str) -> None:
    """Refuse predictions over other classes than those of the fit."""
    if preds.kind != "confidence" and k is not None and preds.k != k:
        raise InputError(
            f"this {what} was fitted for {k} classes, these predictions have {preds.k}."
        )
    ours, theirs = fitted.class_names if fitted else None, preds.class_names
    if ours is None or theirs is None or ours == theirs:
        return
    i = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    how = "in another order" if sorted(ours) == sorted(theirs) else "under other names"
    raise InputError(
        f"this {what} was fitted on the same number of classes {how}: class {i} was {ours[i]!r}, "
        f"here it is {theirs[i]!r}. Put the columns in the order of the fit."
    )


def shares(preds: Predictions) -> Floats:
    """What each sample counts; sums to 1."""
    if preds.weight is None:
        return np.full(preds.n, 1.0 / preds.n)
    return preds.weight / preds.weight.sum()


def with_values(preds: Predictions, kind: str, values: Array) -> Predictions:
    """The same samples with other numbers."""
    return replace(preds, kind=kind, values=values)  # pyright: ignore[reportArgumentType]
