"""Input checks and the wording of errors: what we got, where, what we need, what to do."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


class InputError(ValueError):
    """A user's mistake, explained in one sentence.

    >>> from howsure import tally
    >>> tally([0.9], correct=[2])
    Traceback (most recent call last):
    howsure._core.check.InputError: correct[0] is 2; each value must be 0 (wrong) or 1 (right). ...
    """


def array(x: Any, name: str) -> Array:
    """`x` as a numeric NumPy array; accepts anything with `__array__` (pandas, polars, xarray, torch)."""
    if callable(getattr(x, "detach", None)):  # a torch tensor that may require a gradient
        x = x.detach()
    try:
        a = np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as e:
        raise InputError(f"{name} is not an array: {str(e).splitlines()[0]}.") from None
    if a.dtype.kind not in "biuf":
        if a.dtype.kind in "OUS" and a.size == 0:
            raise InputError(f"{name} is empty; at least one sample is needed.")
        raise InputError(f"{name} has dtype {a.dtype}; numbers are needed. Convert it first.")
    return a


def floats(x: Any, name: str) -> Array:
    """`x` as float32 or float64 (float16 and integers widen without loss)."""
    a = array(x, name)
    if a.dtype == np.float32 or a.dtype == np.float64:
        return a
    return a.astype(np.float32 if a.dtype == np.float16 else np.float64)


def first(mask: Array) -> int:
    """Position of the first True along the first axis."""
    return int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0])


def no_nan(a: Array, name: str) -> Array:
    """`a`, unless it holds a nan."""
    if a.size and np.isnan(np.min(a)):  # min propagates nan, in one pass and without a mask
        bad = np.isnan(a)
        raise InputError(
            f"{name} has {int(bad.sum()):,} nan (first: row {first(bad)}); "
            "a nan is not a number to score. Remove these rows or repair them."
        )
    return a


def one_dimensional(a: Array, name: str) -> Array:
    """`a`, unless it is empty or not one-dimensional."""
    if a.ndim != 1:
        raise InputError(f"{name} has shape {a.shape}; one value per sample, shape (n,), is needed.")
    if a.size == 0:
        raise InputError(f"{name} is empty; at least one sample is needed.")
    return a


def same_length(a: Array, name: str, n: int, other: str) -> Array:
    """`a`, unless its length is not `n`."""
    if len(a) != n:
        raise InputError(f"{name} has {len(a):,} rows, {other} has {n:,}; they must belong to the same samples.")
    return a


def column(x: Any, name: str) -> Array:
    """A one-dimensional float32 or float64 array without nan."""
    return no_nan(one_dimensional(floats(x, name), name), name)


def zero_one(x: Any, name: str) -> Bools:
    """A boolean column from booleans or from the numbers 0 and 1."""
    a = one_dimensional(array(x, name), name)
    if a.dtype == np.bool_:
        return a
    no_nan(a, name)
    bad = (a != 0) & (a != 1)
    if bad.any():
        i = first(bad)
        raise InputError(
            f"{name}[{i}] is {a[i]:g}; each value must be 0 (wrong) or 1 (right). "
            "Pass prediction == label, or loss= for other losses."
        )
    return a.astype(np.bool_)


def labels(x: Any, k: int, name: str = "labels") -> Ints:
    """Class numbers 0..k-1 as int64."""
    a = one_dimensional(array(x, name), name)
    if a.dtype.kind == "f":
        raise InputError(
            f"{name} has dtype {a.dtype}; whole class numbers 0..{k - 1} are needed. Use labels.astype(int)."
        )
    a = a.astype(np.int64)
    bad = (a < 0) | (a >= k)
    if bad.any():
        i = first(bad)
        raise InputError(f"{name}[{i}] is {a[i]}; with {k} classes labels run from 0 to {k - 1}.")
    return a


def weights(x: Any, n: int) -> Floats:
    """Finite, non-negative float64 weights that are not all 0."""
    w = same_length(column(x, "weight"), "weight", n, "score").astype(np.float64)
    bad = ~((w >= 0) & np.isfinite(w))
    if bad.any():
        i = first(bad)
        raise InputError(f"weight[{i}] is {w[i]:g}; weights must be finite and not negative.")
    if not w.any():
        raise InputError("weight is 0 everywhere; at least one sample must count.")
    return w


def finite(a: Array, name: str) -> Array:
    """`a`, unless it holds a nan or an infinity."""
    no_nan(a, name)
    if a.size and not np.isfinite((np.min(a), np.max(a))).all():  # two reductions, no mask of the same size
        bad = ~np.isfinite(a)
        raise InputError(
            f"{name} has {int(bad.sum()):,} infinite values (first: row {first(bad)}); finite numbers are needed."
        )
    return a


def fraction(x: float, name: str) -> float:
    """A number in (0, 1]."""
    if not 0 < x <= 1:
        raise InputError(f"{name} is {x:g}; a number above 0 and at most 1 is needed.")
    return float(x)


def at_least(x: Any, low: int, name: str) -> int:
    """A whole number that is not below `low`."""
    if not isinstance(x, (int, float, np.integer)) or int(x) != x or x < low:
        raise InputError(f"{name} is {x}; a whole number of at least {low} is needed.")
    return int(x)
