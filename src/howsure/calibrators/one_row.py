"""A calibrator for one row at a time: what it makes of a row among many, to the last bit, without
predictions around it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from howsure._core.checks import Floats
from howsure.calibrators.calibrator import (
    SMALLEST_PROBABILITY,
    Calibrator,
    Identity,
    apply_softmax,
    sum_classes,
)

if TYPE_CHECKING:
    from howsure.calibrators.linear import StructuredScaling, VectorScaling
    from howsure.calibrators.logistic import Platt
    from howsure.calibrators.step_functions import HistogramBinning, Isotonic
    from howsure.calibrators.temperature import Temperature

RowMap: TypeAlias = Callable[[Floats], Floats]  # the k values of a row → those of the mapped one


def find_row_map(calibrator: Calibrator, kind: str, k: int | None) -> tuple[RowMap, str] | None:
    """How it maps finite logits or probabilities of k classes, or a confidence as one number, and
    what comes out: logits, probs or confidence. None where only predictions can be mapped.

    >>> from howsure.calibrators import Temperature
    >>> apply, kind = find_row_map(Temperature(2.0), "logits", 2)
    >>> apply(np.array([2.0, 0.0])), kind
    (array([1., 0.]), 'logits')
    """
    if isinstance(calibrator, Identity):
        return (lambda v: v), kind
    of_each = _find_class_map(calibrator)
    if of_each is not None:
        apply, top_label = of_each
        if (kind == "confidence") != top_label:
            return None  # it was fitted for the other one
        if top_label:
            return apply, kind
        return partial(_map_probabilities, apply, kind == "logits"), "probs"
    if kind == "confidence":
        return None
    fitted, name = calibrator.fitted, type(calibrator).__name__
    if name == "Temperature":
        if fitted is not None and fitted.k not in (None, k):
            return None
        temperature = cast("Temperature", calibrator)
        return (lambda v: temperature.scale_rows(v[None], kind)[0]), kind
    if name == "StructuredScaling":
        from howsure.calibrators.linear import LEAST_PROBABILITY

        structured = cast("StructuredScaling", calibrator)
        size, least, apply = len(structured.intercept), LEAST_PROBABILITY, structured.map_values
    elif name in ("VectorScaling", "MatrixScaling"):
        from howsure.calibrators.linear import map_linearly

        if fitted is not None and fitted.kind not in (None, kind):
            return None  # it is another map for this kind
        linear = cast("VectorScaling", calibrator)
        size, least = len(linear.intercept), SMALLEST_PROBABILITY
        apply = partial(map_linearly, weight=linear.weight, intercept=linear.intercept)
    else:
        return None
    if size != k:
        return None
    if kind == "logits":
        return (lambda v: apply(_double(v))[:, 0]), kind
    return partial(_map_log_probabilities, apply, least), kind


def _find_class_map(calibrator: Calibrator) -> tuple[RowMap, bool] | None:
    """The map of each class's probability by itself, before they are divided by their sum, and
    whether it maps the confidence of top labels.
    """
    # By name: a process that decides loads the calibrator that it has, and no other.
    name = type(calibrator).__name__
    if name in ("Platt", "Beta"):
        curves = cast("Platt", calibrator)
        return (lambda p: curves.map_values(p[:, None])[:, 0]), curves.top_label
    if name == "Isotonic":
        isotonic = cast("Isotonic", calibrator)
        points: list[tuple[list[float], list[float]]] = []
        for j in range(len(isotonic.start) - 1):
            x, y = isotonic.points(j)
            points.append((x.tolist(), y.tolist()))

        def interpolate(p: Floats) -> Floats:
            pairs = zip(p.tolist(), points, strict=True)
            return np.array([_interpolate(v, x, y) for v, (x, y) in pairs])

        return interpolate, isotonic.top_label
    if name == "HistogramBinning":
        from howsure.binning import equal_range

        shares: list[list[float]] = cast("HistogramBinning", calibrator).share.tolist()
        inner: list[float] = equal_range(len(shares[0])).edges()[1:-1].tolist()

        def look_up(p: Floats) -> Floats:
            pairs = zip(p.tolist(), shares, strict=True)
            return np.array([share[bisect_left(inner, v)] for v, share in pairs])

        return look_up, False
    return None


def _interpolate(v: float, x: list[float], y: list[float]) -> float:
    """`np.interp` of one number, which costs more to call than to compute."""
    j = bisect_right(x, v) - 1
    if j < 0:
        return y[0]
    if j >= len(x) - 1:
        return y[-1]
    if x[j] == v:
        return y[j]
    return (y[j + 1] - y[j]) / (x[j + 1] - x[j]) * (v - x[j]) + y[j]


def _map_probabilities(apply: RowMap, softmax: bool, v: Floats) -> Floats:
    p = v.copy()
    if softmax:
        apply_softmax(p)
    mapped = apply(p)
    total = sum_classes(mapped)
    return mapped / total if total > 0 else p


def _map_log_probabilities(apply: RowMap, least: float, p: Floats) -> Floats:
    mapped = apply(_double(np.log(np.maximum(p, least))))[:, 0]
    apply_softmax(mapped)
    return mapped


def _double(v: Floats) -> Floats:
    """A row beside a copy of itself: a product of matrices rounds otherwise than one with a vector."""
    both = np.empty((len(v), 2))
    both[:] = v[:, None]
    return both
