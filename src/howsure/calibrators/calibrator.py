"""What every calibrator shares: the record of its fit, the checks at its two doors, and predictions
with a row for each class.

Sums over classes are sums of long rows where arrays have the shape (k, samples), so that is how
calibrators work: some samples at a time, turned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from math import isfinite, nan
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from howsure._core.checks import Array, Floats, InputError, Ints, within
from howsure._core.frozen import frozen
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import iterate_chunks
from howsure.predictions.predictions import combine_arrays
from howsure.predictions.read_options import ReadOptions

ValueKind: TypeAlias = Literal["logits", "probs", "confidence", "score"]
ProbabilityMap: TypeAlias = Callable[[Floats], Floats]  # a row for each class → the mapped ones

FIT_ARRAYS = ("logits", "probs", "confidence", "labels", "correct")
SMALLEST_PROBABILITY = 1e-12  # those below count as this one: the log of 0 is not a logit


@frozen
class Fitted:
    """How a calibrator came to be: on what, and how the fit ended.

    `status` is "converged" or says what else happened; `nll` is the mean negative log-likelihood of
    the n samples with the calibrator, nan where the fit was asked not to measure it. `kind` is
    "logits" or "probs" where the map would be another one for the other kind. `read` says how their
    file was read.
    """

    status: str
    n: int
    k: int | None
    class_names: tuple[str, ...] | None
    nll: float
    kind: str | None = None
    read: ReadOptions | None = None

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


Options = ParamSpec("Options")
Made = TypeVar("Made", covariant=True)

if TYPE_CHECKING:

    class ArrayFit(Protocol[Options, Made]):
        """`fit` of predictions with its options, or of arrays by name."""

        @overload
        def __call__(
            self, preds: Predictions, *args: Options.args, **options: Options.kwargs
        ) -> Made: ...
        @overload
        def __call__(
            self,
            *,
            logits: ArrayLike = ...,
            probs: ArrayLike = ...,
            confidence: ArrayLike = ...,
            labels: ArrayLike = ...,
            correct: ArrayLike = ...,
            **options: object,
        ) -> Made: ...

    class takes_arrays(Generic[Options, Made]):
        """What the function below is to a type checker, which has no word for it."""

        def __init__(
            self, fit: Callable[Concatenate[Any, Predictions, Options], Made], /
        ) -> None: ...
        def __get__(self, instance: object, owner: object) -> ArrayFit[Options, Made]: ...

else:

    def takes_arrays(fit):
        """The class method `fit`, of predictions or of arrays: `X.fit(logits=z, labels=y)`."""

        @wraps(fit.__func__)
        def fit_any(cls, preds=None, *arguments, **options):
            what = f"{cls.__name__}.fit"
            given = {name: options.pop(name) for name in FIT_ARRAYS if name in options}
            if given and preds is not None:
                raise InputError(f"{what} got predictions and arrays; give one of them.")
            if given:
                labels, correct = given.pop("labels", None), given.pop("correct", None)
                preds = combine_arrays(given, labels, correct, what)
            needs_predictions(preds, what)
            return fit.__func__(cls, preds, *arguments, **options)

        return classmethod(fit_any)


@frozen
class Identity:
    """Leave the predictions as they are: the contender that every calibrator has to beat.

    >>> preds = Predictions.from_probs([[0.7, 0.3]], [0])
    >>> Identity.fit(preds)(preds) is preds
    True
    """

    fitted: Fitted | None = None

    @takes_arrays
    @classmethod
    def fit(cls, preds: Predictions) -> Identity:
        """Nothing is learned, so nothing can go wrong."""
        needs_predictions(preds, "Identity.fit")
        return cls()

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions themselves."""
        needs_predictions(preds, "Identity")
        return preds


# ---- checks


def check_classes(preds: Predictions, what: str) -> None:
    """Refuse to fit where there is nothing to learn: top labels only, one class, or all samples of
    one class.
    """
    if not preds.vectors:
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


def check_samples(preds: Predictions, what: str) -> None:
    """Refuse fewer samples than classes where each class has parameters of its own."""
    check_classes(preds, what)
    if preds.n < (preds.k or 0):
        raise InputError(
            f"{what} has parameters for each class and cannot be fitted on {preds.n:,} samples of {preds.k:,} classes; "
            "at least one per class is needed. Temperature has one parameter."
        )


def check_same_classes(preds: Predictions, k: int | None, fitted: Fitted | None, what: str) -> None:
    """Refuse predictions over other classes than those of the fit."""
    if preds.vectors and k is not None and preds.k != k:
        raise InputError(
            f"this {what} was fitted for {k} classes, these predictions have {preds.k}."
        )
    ours = fitted.class_names if fitted else None
    theirs = preds.class_names
    if ours is None or theirs is None or ours == theirs:
        return
    i = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    how = "in another order" if sorted(ours) == sorted(theirs) else "under other names"
    raise InputError(
        f"this {what} was fitted on the same number of classes {how}: class {i} was {ours[i]!r}, "
        f"here it is {theirs[i]!r}. Put the columns in the order of the fit."
    )


def check_finite_logits(z: Array) -> None:
    """Raise where classes are ruled out by -inf."""
    if z.min(initial=0.0) == -np.inf:
        raise InputError(
            "logits",
            got="hold -inf (classes that are ruled out)",
            need="linear maps of the logits need finite numbers",
            hint="Use Temperature",
        )


# ---- samples, some at a time


def compute_shares(preds: Predictions) -> Floats:
    """What each sample counts; sums to 1."""
    if preds.weight is None:
        return np.full(preds.n, 1.0 / preds.n)
    return preds.weight / preds.weight.sum()


def replace_values(preds: Predictions, kind: ValueKind, values: Array) -> Predictions:
    """The same samples with other numbers."""
    return replace(preds, kind=kind, values=values)


def convert_to_logits(part: Array, kind: str, dtype: DTypeLike = np.float64) -> Array:
    """A copy as logits; of probabilities, their log."""
    z = part.astype(dtype, order="C")
    if kind == "logits":
        return z
    return np.log(np.maximum(z, SMALLEST_PROBABILITY))


def stack_members(preds: Predictions) -> Array:
    """The values with shape (s, n, k); s = 1 for a single pass."""
    if preds.values.ndim == 3:
        return preds.values
    return preds.values[None]


def read_logits(
    preds: Predictions, every: int = 1, dtype: DTypeLike = np.float64
) -> Iterator[tuple[slice, Array]]:
    """Chunks of samples with the logits of all members, shape (s, k, samples); `every` n-th sample
    only.
    """
    values = stack_members(preds)
    s, n, k = values.shape
    for rows in iterate_chunks(-(-n // every), s * k):
        pick = slice(rows.start * every, min(rows.stop * every, n), every)
        yield pick, convert_to_logits(values[:, pick].transpose(0, 2, 1), preds.kind, dtype)


def read_probabilities(preds: Predictions) -> Iterator[tuple[slice, Floats]]:
    """Chunks of samples with the mean probabilities over members, shape (k, samples), in [0, 1]."""
    values = stack_members(preds)
    s, n, k = values.shape
    for rows in iterate_chunks(n, s * k):
        part = values[:, rows].transpose(0, 2, 1).astype(np.float64, order="C")
        for member in part:
            if preds.kind == "logits":
                apply_softmax(member)
            else:
                np.clip(member, 0.0, 1.0, out=member)
        yield rows, part[0] if s == 1 else part.mean(axis=0)


def read_mean_logits(
    preds: Predictions, *, log_probs: bool = False
) -> Iterator[tuple[slice, Floats]]:
    """Chunks of samples with their logits, shape (k, samples).

    `log_probs` normalises them. Several members are averaged as probabilities first.
    """
    if preds.samples > 1:
        for rows, p in read_probabilities(preds):
            yield rows, np.log(np.maximum(p, SMALLEST_PROBABILITY, out=p))
        return
    for rows, members in read_logits(preds):
        check_finite_logits(members)
        z = members[0]
        if log_probs:
            z -= z.max(axis=0)
            z -= np.log(np.exp(z).sum(axis=0))
        yield rows, z


def apply_softmax(z: Array) -> None:
    """Probabilities in the place of logits that have a row for each class."""
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= sum_classes(z)


def sum_classes(v: Floats) -> Floats:
    """Sums over the classes, added one after the other, also of a sample that stands alone.

    NumPy adds a single line pairwise, which rounds otherwise than the same line among others.
    """
    return np.add.accumulate(v)[-1] if v.ndim == 1 else v.sum(axis=0)


# ---- one class against the rest: how maps of one probability become maps of k of them


def collect_targets(preds: Predictions, what: str) -> tuple[Array, Ints]:
    """What is mapped, a row for each map, and the row that came true for each sample, −1 for none.

    Of all classes the probabilities; of top labels the confidence, where the only row came true for
    right answers.
    """
    if preds.vectors:
        check_samples(preds, what)
        probs = np.empty(stack_members(preds).shape[:0:-1])
        for rows, p in read_probabilities(preds):
            probs[:, rows] = p
        return probs, preds.labels
    right = preds.correct
    if right.all() or not right.any():
        same = "right" if right.all() else "wrong"
        raise InputError(
            f"{what} cannot be fitted: all {preds.n:,} answers are {same}; both kinds are needed."
        )
    return preds.confidence[None], right.astype(np.int64) - 1


def map_probabilities(
    preds: Predictions, k: int | None, fitted: Fitted | None, what: str, apply: ProbabilityMap
) -> Predictions:
    """The mapped probabilities, rows divided by their sums; for top labels the mapped confidence.

    `k` is the number of classes of the fit, None where it was one of confidences. A row of zeros
    keeps what it was: nothing is known about it.
    """
    if not preds.vectors:
        if k is not None:
            raise InputError(
                f"this {what} was fitted on {k} classes, here only the top label is known."
            )
        check_same_classes(preds, k, fitted, what)
        return replace_values(preds, "confidence", apply(preds.confidence[None])[0])
    if k is None:
        raise InputError(
            f"this {what} was fitted on the confidence of top labels, these predictions have all classes."
        )
    check_same_classes(preds, k, fitted, what)
    out = np.empty(preds.values.shape[-2:])
    for rows, given in read_probabilities(preds):
        out[rows] = divide_by_sums(apply(given), given).T
    return replace_values(preds, "probs", out)


def divide_by_sums(mapped: Floats, given: Floats) -> Floats:
    """Distributions in the place of mapped probabilities, a row for each class; what was mapped to
    nothing but zeros is as it was given.
    """
    total = mapped.sum(axis=0)
    nothing = np.flatnonzero(total <= 0)
    total[nothing] = 1.0
    mapped /= total
    mapped[:, nothing] = given[:, nothing]
    return mapped


def record_fit(preds: Predictions, made: Calibrator, measured: bool) -> Fitted:
    """The record of a fit, with the loss of its samples where that is `measured`."""
    if preds.vectors:
        k = preds.k
    else:
        k = None
    nll = nan
    if measured:
        out = made(preds)
        if preds.vectors:
            claimed = out.values[np.arange(preds.n), preds.labels]
        else:
            claimed = np.where(preds.correct, out.confidence, 1.0 - out.confidence)
        with np.errstate(divide="ignore"):
            loss = -np.log(claimed)
        share = compute_shares(preds)
        counts = share > 0  # an infinite loss of a sample that does not count is no loss
        nll = float(np.dot(share[counts], loss[counts]))
    return Fitted(status="converged", n=preds.n, k=k, class_names=preds.class_names, nll=nll)


def scale_floor(preds: Predictions, floor: float) -> float:
    """`floor` samples in the unit of the weights."""
    if not (isfinite(floor) and floor >= 0):
        raise InputError(
            f"floor is {floor:g}; a finite number of samples that is not negative is needed."
        )
    if preds.weight is None:
        return floor
    return floor * float(preds.weight[preds.weight > 0].mean())
