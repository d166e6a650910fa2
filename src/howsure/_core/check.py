"""Input checks and the wording of errors: what we got, where, what we need, what to do."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from howsure._core.text import printable, shortened

SPREAD = 1e15  # between weights: sums of float64 lose what is smaller
LONGEST = 600  # letters of a part of an error
Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


class InputError(ValueError):
    """A user's mistake as fields: what is at fault, where it stands, what it is, what is needed,
    what to do.

    `str` makes one sentence of them, here and nowhere else; code reads the fields. `row` is the
    position of `what` in its array (`labels[3]`), `first` the first of several such rows; `line` is
    where a file holds that row. With `what` alone it is the whole sentence.

    >>> from howsure import tally
    >>> tally([0.9], correct=[2])
    Traceback (most recent call last):
    howsure.InputError: correct[0] is 2; each value must be 0 (wrong) or 1 (right). ...
    >>> error = InputError("labels", row=3, got="is 12", need="with 10 classes labels run from 0 to 9")
    >>> str(error.at("a.csv", line=5)), error.got
    ('a.csv: labels[3] (line 5) is 12; with 10 classes labels run from 0 to 9.', 'is 12')
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        got: str = "",
        need: str = "",
        hint: str = "",
        row: int | None = None,
        first: int | None = None,
    ):
        self.what, self.where, self.got, self.need, self.hint = what, where, got, need, hint
        self.row = row if first is None else first
        self.several = first is not None
        self.line: int | None = None
        super().__init__(_sentence(self))

    def __str__(self) -> str:
        return _sentence(self)

    def at(self, where: str, line: int | None = None, *, first: int = 0) -> Self:
        """The same mistake, of something that stands in a larger whole: a batch, a file from row
        `first` on.
        """
        out = copy(self)
        out.row = None if self.row is None else self.row + first
        out.where = f"{where}: {self.where}" if self.where else where
        out.line = self.line if line is None else line
        out.args = (_sentence(out),)
        return out


InputError.__module__ = "howsure"  # what users import and see in a traceback
__test__ = {"InputError": InputError.__doc__}  # doctest looks for it where it says it lives


def _sentence(e: InputError) -> str:
    """One line in which nothing acts and no part is longer than a line, whatever was quoted."""
    what, where, got, need, hint = (
        shortened(printable(part), LONGEST) for part in (e.what, e.where, e.got, e.need, e.hint)
    )
    place = "" if e.line is None else f" (line {e.line})"
    subject = what if e.row is None or e.several else f"{what}[{e.row}]{place}"
    fact = f"{got} (first: row {e.row}{place})" if e.several else got
    text = f"{subject} {fact}" if fact else subject
    for part in filter(None, (need, hint)):
        text += f". {part}" if part[0].isupper() and text[-1] not in "?!" else f"; {part}"
    closed = (
        text if text[-1:] in (".", "?", "!", "…") or not (e.got or e.need or e.hint) else f"{text}."
    )
    return f"{where}: {closed}" if where else closed


def unmasked(x: object, name: str) -> object:
    """Return `x`; raise if it is a masked array that hides something: its mask would be lost."""
    mask: object = getattr(x, "mask", None) if issubclass(type(x), np.ma.MaskedArray) else None
    hidden: Bools = np.asarray(False if mask is None else mask, dtype=np.bool_)
    if hidden.any():
        raise InputError(
            name,
            got=f"has {int(hidden.sum()):,} masked values",
            first=first(hidden) if hidden.ndim else 0,
            need="values are needed",
            hint="leave out these rows, as in hs.without_masked(probs, labels)",
        )
    return x


def array(x: object, name: str) -> Array:
    """`x` as a numeric NumPy array; accepts anything with `__array__` (pandas, polars, xarray,
    torch).
    """
    detach = getattr(x, "detach", None)
    if callable(detach):  # a torch tensor that may require a gradient
        x = detach()
    if (
        str(getattr(x, "dtype", "")) == "torch.bfloat16"
    ):  # NumPy has no such numbers; float32 holds all of them
        x = cast("Any", x).float()
    x = unmasked(x, name)
    try:
        a = np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as e:
        raise InputError(name, got=f"is not an array: {str(e).splitlines()[0]}") from None
    if a.dtype.kind not in "biuf":
        if a.dtype.kind in "OUS" and a.size == 0:
            raise InputError(name, got="is empty", need="at least one sample is needed")
        raise InputError(
            name, got=f"has dtype {a.dtype}", need="numbers are needed", hint="Convert it first"
        )
    return a


def floats(x: object, name: str) -> Array:
    """`x` as float32 or float64 (float16 and integers widen without loss)."""
    a = array(x, name)
    if a.dtype == np.float32 or a.dtype == np.float64:
        return a
    return a.astype(np.float32 if a.dtype == np.float16 else np.float64)


def first(mask: Array) -> int:
    """Position of the first True along the first axis."""
    return int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0])


def no_nan(a: Array, name: str) -> Array:
    """Return `a`; raise if it holds a nan."""
    if a.size and np.isnan(np.min(a)):  # min propagates nan, in one pass and without a mask
        bad = np.isnan(a)
        raise InputError(
            name,
            got=f"has {int(bad.sum()):,} nan",
            first=first(bad),
            need="a nan is not a number to score",
            hint="Remove these rows or repair them",
        )
    return a


def one_dimensional(a: Array, name: str) -> Array:
    """Return `a`; raise if it is empty or not one-dimensional."""
    if a.ndim != 1:
        raise InputError(
            name, got=f"has shape {a.shape}", need="one value per sample, shape (n,), is needed"
        )
    if a.size == 0:
        raise InputError(name, got="is empty", need="at least one sample is needed")
    return a


def same_length(a: Array, name: str, n: int, other: str) -> Array:
    """Return `a`; raise if its length is not `n`."""
    if len(a) != n:
        raise InputError(
            name,
            got=f"has {len(a):,} rows, {other} has {n:,}",
            need="they must belong to the same samples",
        )
    return a


def column(x: object, name: str) -> Array:
    """A one-dimensional float32 or float64 array without nan."""
    return no_nan(one_dimensional(floats(x, name), name), name)


def zero_one(x: object, name: str) -> Bools:
    """A boolean column from booleans or from the numbers 0 and 1."""
    a = one_dimensional(array(x, name), name)
    if a.dtype == np.bool_:
        return a
    no_nan(a, name)
    bad = (a != 0) & (a != 1)
    if bad.any():
        i = first(bad)
        raise InputError(
            name,
            row=i,
            got=f"is {a[i]:g}",
            need="each value must be 0 (wrong) or 1 (right)",
            hint="Pass prediction == label, or loss= for other losses",
        )
    return a.astype(np.bool_)


def labels(x: object, k: int, name: str = "labels") -> Ints:
    """Class numbers 0..k-1 as int64."""
    a = one_dimensional(array(x, name), name)
    if a.dtype.kind == "f":
        raise InputError(
            name,
            got=f"has dtype {a.dtype}",
            need=f"whole class numbers 0..{k - 1} are needed",
            hint="Use labels.astype(int)",
        )
    bad = (a < 0) | (a >= k)
    if bad.any():
        i = first(bad)
        raise InputError(
            name, row=i, got=f"is {a[i]}", need=f"with {k} classes labels run from 0 to {k - 1}"
        )
    return a.astype(np.int64)


def weights(x: object, n: int) -> Floats:
    """Finite, non-negative float64 weights that are not all 0."""
    w = same_length(column(x, "weight"), "weight", n, "score").astype(np.float64)
    bad = ~((w >= 0) & np.isfinite(w))
    if bad.any():
        i = first(bad)
        raise InputError(
            "weight", row=i, got=f"is {w[i]:g}", need="weights must be finite and not negative"
        )
    if not w.any():
        raise InputError("weight", got="is 0 everywhere", need="at least one sample must count")
    used = w[w > 0]
    low, high = float(used.min()), float(used.max())
    if low < 1 / LARGEST or high > LARGEST or high / low > SPREAD:
        need = f"weights lie between {1 / LARGEST:g} and {LARGEST:g}, none more than {SPREAD:g} times another"
        hint = "Only ratios matter: divide them by a constant, and leave out what does not count"
        raise InputError("weight", got=f"runs from {low:g} to {high:g}", need=need, hint=hint)
    return w


def counts(x: Any, n: int) -> Ints:
    """Whole numbers that are not negative and not all 0: how often each sample occurs."""
    c = same_length(column(x, "count"), "count", n, "score")
    bad = ~((c >= 0) & (c == np.floor(c)) & np.isfinite(c))
    if bad.any():
        i = first(bad)
        raise InputError(
            f"count[{i}] is {c[i]:g}; counts are whole numbers, not negative. Use weight= for importance."
        )
    if not c.any():
        raise InputError("count is 0 everywhere; at least one sample must count.")
    if float(c.max()) >= 2.0**62:  # no int64
        raise InputError(
            "count", got=f"is up to {float(c.max()):g}", need="counts below 4.6e18 are needed"
        )
    return c.astype(np.int64)


def logits(a: Array, name: str) -> Array:
    """Return `a`; raise if it holds a nan, +inf, or a number so large that its square is none, or a
    row is all -inf.

    A class of logit -inf has probability 0.
    """
    no_nan(a, name)
    if not a.size or (float(np.min(a)) >= -LARGEST and float(np.max(a)) <= LARGEST):
        return a
    bad = (np.abs(a) > (LARGEST if a.dtype == np.float64 else np.finfo(a.dtype).max)) & (
        a != -np.inf
    )
    if bad.any():
        where = bad.reshape(-1, a.shape[-1]) if a.ndim > 1 else bad
        row = first(where) % a.shape[-2] if a.ndim > 1 else first(where)
        need = f"finite numbers within ±{LARGEST:g} are needed"
        got = f"has {int(bad.sum()):,} {'infinite values' if np.isinf(a[bad]).any() else 'values beyond all bounds'}"
        raise InputError(
            name, got=got, first=row, need=need, hint="For a class that is ruled out use -inf"
        )
    if a.ndim > 1 and a.shape[-1] > 1:  # the other class of a binary model has logit 0
        none: Bools = np.isneginf(a).all(axis=-1).reshape(-1)
        if none.any():
            need = "at least one class must be possible"
            raise InputError(
                name, got="has rows of nothing but -inf", first=first(none) % a.shape[-2], need=need
            )
    return a


def finite(a: Array, name: str) -> Array:
    """Return `a`; raise if it holds a nan or an infinity."""
    no_nan(a, name)
    if (
        a.size and not np.isfinite((np.min(a), np.max(a))).all()
    ):  # two reductions, no mask of the same size
        bad = ~np.isfinite(a)
        raise InputError(
            name,
            got=f"has {int(bad.sum()):,} infinite values",
            first=first(bad),
            need="finite numbers are needed",
        )
    return a


def fraction(x: float, name: str) -> float:
    """A number in (0, 1]."""
    if not 0 < x <= 1:
        raise InputError(name, got=f"is {x:g}", need="a number above 0 and at most 1 is needed")
    return float(x)


def at_least(x: object, low: int, name: str) -> int:
    """A whole number that is not below `low`."""
    found = low - 1
    if isinstance(x, Integral) or (isinstance(x, float) and x.is_integer()):  # infinity is not
        found = int(x)
    if found < low:
        raise InputError(name, got=f"is {x}", need=f"a whole number of at least {low} is needed")
    return found


def within(x: float, low: float, high: float, name: str) -> None:
    """Raise where `x` is not a number from `low` to `high`; nan is none."""
    if not low <= x <= high:
        raise InputError(name, got=f"is {x:g}", need=f"a number from {low:g} to {high:g} is needed")


LARGEST = 1e100  # of a parameter: products of two of them are still numbers


def parameters(a: Array, name: str) -> None:
    """Raise where a parameter of a map is not a number of usual size."""
    if not (np.abs(a) <= LARGEST).all():
        raise InputError(
            name,
            got="is not finite or beyond all bounds",
            need=f"numbers within ±{LARGEST:g} are needed",
        )
