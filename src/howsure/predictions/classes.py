"""Labels of any kind → class numbers: numbers, booleans, texts with class names, one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Bools, InputError, Ints
from howsure._core.text import is_count

TRUTH = {"true": 1, "false": 0}
LONG = 60  # characters of names that a hint repeats
SHOWN = 6


def class_numbers(
    given: object, k: int, names: tuple[str, ...] | None = None, name: str = "labels"
) -> Ints:
    """The class of each sample, 0 to k - 1.

    Whole numbers are class numbers, also as floats; booleans are classes 0 and 1 of two; texts are
    class names, or whole numbers, or true and false; a matrix (n, k) of 0 and 1 has exactly one 1
    per row. A missing value is refused.

    >>> class_numbers(["ill", "well"], 2, ("well", "ill"))
    array([1, 0])
    >>> class_numbers([[0, 1], [1, 0]], 2), class_numbers([True, False], 2), class_numbers([1.0, 0.0], 2)
    (array([1, 0]), array([1, 0]), array([1, 0]))
    """
    return check.labels(class_places(given, k, names, name), k, name)


def class_places(
    given: object, k: int, names: tuple[str, ...] | None = None, name: str = "labels"
) -> Ints:
    """The same, before anyone looks whether there are so many classes."""
    a = _column(plain(check.unmasked(given, name)), k, name)
    _refuse_missing(a, name)
    if a.dtype.kind in "OU":
        return _named([str(cell) for cell in a.tolist()], k, names, name)
    if a.dtype.kind == "c":
        raise InputError(
            name, got="holds complex numbers", need="class numbers or names are needed"
        )
    if a.dtype.kind == "b" and k != 2:
        raise InputError(
            name,
            got=f"holds true and false for {k} classes",
            need="class numbers or names are needed",
        )
    if a.dtype.kind == "f" and (a != np.floor(a)).any():
        i = check.first(a != np.floor(a))
        raise InputError(
            name, row=i, got=f"is {a[i]:g}", need=f"whole class numbers 0 to {k - 1} are needed"
        )
    if (
        a.dtype.kind in "uf" and (bad := np.abs(a) >= 2.0**62).any()
    ):  # no int64: the message must say what it was
        i = check.first(bad)
        raise InputError(
            name, row=i, got=f"is {a[i]}", need=f"with {k} classes labels run from 0 to {k - 1}"
        )
    return a.astype(np.int64)


def plain(given: object) -> Array:
    """Any column as an array: of pandas, polars, arrow, torch or a list; missing values stay what
    they are.
    """
    detach = getattr(given, "detach", None)
    found = np.asarray(detach() if callable(detach) else given)
    if found.dtype.kind in "ST":
        return found.astype(np.str_)
    return _simple(found) if found.dtype.kind == "O" else found


def _simple(found: Array) -> Array:
    """Objects that are all booleans, or all numbers, as such."""
    cells: list[object] = found.ravel().tolist()
    kinds = {type(cell) for cell in cells}
    if kinds and kinds <= {bool, np.bool_}:
        return found.astype(np.bool_)
    if kinds and kinds <= {int, float, np.int64, np.float64}:
        try:
            return (
                found.astype(np.float64) if kinds & {float, np.float64} else found.astype(np.int64)
            )
        except OverflowError:  # whoever needs a number refuses it by its value
            return found
    return found


def missing(a: Array) -> Bools:
    """Which cells hold nothing: nan, None, pandas' NA and NaT, an empty text."""
    if a.dtype.kind == "f":
        return np.isnan(a)
    if a.dtype.kind == "U":
        return a == ""
    if a.dtype.kind in "mM":
        return np.isnat(a)
    return (
        np.array([_absent(cell) for cell in a.tolist()], dtype=np.bool_)
        if a.dtype.kind == "O"
        else a != a
    )


def _absent(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(cell, float) and cell != cell) or (isinstance(cell, str) and cell == "")


def _refuse_missing(a: Array, name: str) -> None:
    absent = missing(a)
    if absent.any():
        need = "every sample needs its label"
        got = f"has {int(absent.sum()):,} missing values"
        raise InputError(
            name,
            got=got,
            first=check.first(absent),
            need=need,
            hint="Remove these rows or label them",
        )


def _column(a: Array, k: int, name: str) -> Array:
    """One value per sample; the class of one-hot rows."""
    if a.ndim == 2 and a.shape[1] == 1:
        return a[:, 0]
    if a.ndim != 2 or a.shape[1] != k or k < 2:
        return check.one_dimensional(a, name)
    if a.dtype.kind not in "biuf":
        raise InputError(
            name, got=f"has shape {a.shape} and holds texts", need="one label per sample is needed"
        )
    bad = ((a != 0) & (a != 1)).any(axis=1) | ((a == 1).sum(axis=1) != 1)
    if bad.any():
        i = check.first(bad)
        got = f"has {k} numbers that are not a single 1 among 0 ({int(bad.sum()):,} such rows)"
        hint = "Many labels per case? Predictions.from_multilabel; of a file, multilabel=True (--multilabel)"
        raise InputError(name, row=i, got=got, need="one class per row is needed", hint=hint)
    return a.argmax(axis=1)


def _named(texts: list[str], k: int, names: tuple[str, ...] | None, name: str) -> Ints:
    known = {text: i for i, text in enumerate(names or ())}
    long = next(
        (i for i, t in enumerate(texts) if not names and len(t) > 18 and t.lstrip("-").isdecimal()),
        None,
    )
    if long is not None:  # no int64
        need = f"with {k} classes labels run from 0 to {k - 1}"
        raise InputError(name, row=long, got=f"is {texts[long][:60]}", need=need)
    if not names and all(
        t.endswith(".0") and _is_whole(t[:-2]) for t in texts
    ):  # as pandas writes whole numbers
        texts = [t[:-2] for t in texts]
    if not names and all(map(_is_whole, texts)):
        return np.array([int(t) for t in texts], dtype=np.int64)
    if not names and k == 2 and all(t.lower() in TRUTH for t in texts):
        return np.array([TRUTH[t.lower()] for t in texts], dtype=np.int64)
    bad = next(
        (i for i, t in enumerate(texts) if t not in known and (names or not _is_whole(t))), None
    )
    if bad is None:
        return np.array([known[t] for t in texts], dtype=np.int64)
    if not names:
        there = sorted(set(texts))
        said = ", ".join(repr(t[:60]) for t in there[:SHOWN]) + (
            ", …" if len(there) > SHOWN else ""
        )
        need = "texts need class_names=, in the order of the columns"
        which = (
            " (mind the order: a single column is the probability of the second)" if k == 2 else ""
        )
        command = f"; of a file, --name classes={','.join(there)}{which}"
        hint = f"labels are {said}{command if len(there) == k and len(said) < LONG else ''}"
        raise InputError(name, row=bad, got=f"is {texts[bad][:60]!r}", need=need, hint=hint)
    said = ", ".join(repr(n[:60]) for n in names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    got = f"is {texts[bad][:60]!r}, which is none of the classes {said}"
    raise InputError(name, row=bad, got=got, hint="correct the name")


def _is_whole(text: str) -> bool:
    return is_count(text.strip().removeprefix("-"))
