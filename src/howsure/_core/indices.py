"""Counting, repeating and summing by indices of 64 bits, also where a pointer has 32; distinct
values and quantiles without what NumPy loads for them.

In the browser NumPy refuses indices of 64 bits for `bincount`, `repeat` and `add.reduceat`, although
they fit, and counts come back with 32 bits. The package calls these functions instead; on a machine
of 64 bits they add nothing.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from howsure._core.checks import Floats, Ints


@overload
def count_values(values: ArrayLike, weights: None = None, minlength: int = 0) -> Ints: ...
@overload
def count_values(values: ArrayLike, weights: ArrayLike, minlength: int = 0) -> Floats: ...
def count_values(
    values: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0
) -> NDArray[Any]:
    """`np.bincount`: how often each of 0, 1, … stands in `values`, or the sum of its weights.

    >>> count_values([0, 2, 2], minlength=4)
    array([1, 0, 2, 0])
    """
    narrow = np.asarray(values).astype(np.intp, copy=False)
    if weights is None:
        return np.bincount(narrow, minlength=minlength).astype(np.int64, copy=False)
    return np.bincount(narrow, weights, minlength)


def repeat_values(values: ArrayLike, times: ArrayLike, axis: int | None = None) -> NDArray[Any]:
    """`np.repeat`: each value so many times.

    >>> repeat_values([5, 6], [1, 2])
    array([5, 6, 6])
    """
    return np.repeat(np.asarray(values), np.asarray(times).astype(np.intp, copy=False), axis)


def sum_runs(
    values: NDArray[Any], start: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None
) -> NDArray[Any]:
    """`np.add.reduceat`: the sums of the runs that begin at `start`.

    >>> sum_runs(np.array([1, 2, 3, 4]), [0, 3])
    array([6, 4])
    """
    narrow = np.asarray(start).astype(np.intp, copy=False)
    return np.add.reduceat(values, narrow, axis=axis, dtype=dtype)


def sort_distinct(values: ArrayLike) -> NDArray[Any]:
    """`np.unique` of values that are not nan, which loads all of `numpy.ma` to ask whether they are
    masked.

    >>> sort_distinct([3, 1, 3])
    array([1, 3])
    """
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate((ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]))]


def interpolate_quantiles(values: NDArray[Any], levels: ArrayLike) -> Floats:
    """`np.quantile` along the first axis of values that are not nan; that one asks `np.unique`.

    >>> interpolate_quantiles(np.array([4.0, 1.0, 2.0]), [0.0, 0.75])
    array([1., 3.])
    """
    ordered = np.sort(values, axis=0)
    place = np.asarray(levels) * (len(ordered) - 1)
    below = place.astype(np.intp)
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    share = (place - below).reshape(place.shape + (1,) * (low.ndim - place.ndim))
    # From the nearer end, as NumPy does: rounding must not leave the interval.
    return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))
