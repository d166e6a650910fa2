"""Masked arrays: rows that are hidden in any of several columns, left out of all of them when
asked.
"""

from __future__ import annotations

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Bools, InputError
from howsure.predictions.classes import plain

__all__ = ["without_masked"]


def without_masked(*columns: object) -> tuple[Array, ...]:
    """The columns without the rows in which any of them is masked, as plain arrays.

    Masked arrays are refused everywhere else, for their mask would be lost without a word. Rows are
    the first axis of every column; a row is left out where any of its values is masked.

    >>> score = np.ma.array([0.9, 0.8, 0.7], mask=[False, True, False])
    >>> without_masked(score, [1, 0, 1])
    (array([0.9, 0.7]), array([1, 1]))
    """
    if not columns:
        raise InputError(
            "without_masked needs the columns that belong together, as in without_masked(probs, labels)."
        )
    arrays = [
        plain(getattr(column, "data", column) if _is_masked(column) else column)
        for column in columns
    ]
    if any(a.ndim == 0 for a in arrays):
        raise InputError(
            "without_masked needs columns with a row for each sample; one of these is a single value."
        )
    n = len(arrays[0])
    keep: Bools = np.ones(n, dtype=np.bool_)
    for i, (column, a) in enumerate(zip(columns, arrays, strict=True)):
        check.same_length(a, f"column {i}", n, "column 0")
        if _is_masked(column):
            hidden: Bools = np.broadcast_to(
                np.asarray(getattr(column, "mask", False), dtype=np.bool_), a.shape
            )
            keep &= ~hidden.reshape(n, -1).any(axis=1)
    if not keep.any():
        raise InputError(f"all {n:,} rows are masked in some column; nothing is left.")
    return tuple(a[keep] for a in arrays)


def _is_masked(column: object) -> bool:
    return issubclass(type(column), np.ma.MaskedArray)
