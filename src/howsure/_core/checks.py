"""Input checks and the wording of errors, and what else every room asks of what comes from outside:
its containers, optional packages, and data frames to hand back.

An error says what we got, where, what we need, what to do. Most checks return what they checked;
called as `check.labels(...)` they read as what they do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from numbers import Integral
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from howsure._core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LARGEST_NUMBER = 1e100  # of a logit or a parameter: products of two of them are still numbers
LARGEST_WEIGHT_RATIO = 1e15  # between weights: sums of float64 lose what is smaller
LISTED_CLASSES = 20  # a hint lists the names of at most so many
Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


def find_first(mask: Array) -> int:
    """Position of the first True along the first axis."""
    return int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0])


def unmasked(x: object, name: str) -> object:
    """Return `x`; raise if it is a masked array that hides something: its mask would be lost."""
    # Nobody has such an array where its module is not loaded, and loading it takes long.
    masked = sys.modules.get("numpy.ma")
    if masked is None or not issubclass(type(x), masked.MaskedArray):
        return x
    mask: object = getattr(x, "mask", None)
    hidden: Bools = np.asarray(False if mask is None else mask, dtype=np.bool_)
    if hidden.any():
        raise InputError(
            name,
            got=f"has {int(hidden.sum()):,} masked values",
            first=find_first(hidden) if hidden.ndim else 0,
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
    if str(getattr(x, "dtype", "")) == "torch.bfloat16":
        x = cast("Any", x).float()  # NumPy has no such numbers; float32 holds all of them
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


def no_nan(a: Array, name: str) -> Array:
    """Return `a`; raise if it holds a nan."""
    if a.size and np.isnan(np.min(a)):  # min propagates nan, in one pass and without a mask
        bad = np.isnan(a)
        raise InputError(
            name,
            got=f"has {int(bad.sum()):,} nan",
            first=find_first(bad),
            need="a nan is not a number to score",
            hint="Remove these rows or repair them",
        )
    return a


def finite(a: Array, name: str) -> Array:
    """Return `a`; raise if it holds a nan or an infinity."""
    no_nan(a, name)
    # Two reductions, no mask of the same size.
    if a.size and not np.isfinite((np.min(a), np.max(a))).all():
        bad = ~np.isfinite(a)
        raise InputError(
            name,
            got=f"has {int(bad.sum()):,} infinite values",
            first=find_first(bad),
            need="finite numbers are needed",
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
        i = find_first(bad)
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
        i = find_first(bad)
        known = np.unique(a)
        hint = ""
        if len(known) == k <= LISTED_CLASSES:
            listed = ",".join(map(str, known.tolist()))
            hint = f"Number them from 0; of a file, --name classes={listed} names them in the order of the columns"
        elif known[0] == -1 and known[-1] < k:
            hint = "Leave out rows without a label"
        raise InputError(
            name,
            row=i,
            got=f"is {a[i]}",
            need=f"with {k} classes labels run from 0 to {k - 1}",
            hint=hint,
        )
    return a.astype(np.int64)


def weights(x: object, n: int) -> Floats:
    """Finite, non-negative float64 weights that are not all 0."""
    w = same_length(column(x, "weight"), "weight", n, "score").astype(np.float64)
    bad = ~((w >= 0) & np.isfinite(w))
    if bad.any():
        i = find_first(bad)
        raise InputError(
            "weight", row=i, got=f"is {w[i]:g}", need="weights must be finite and not negative"
        )
    if not w.any():
        raise InputError("weight", got="is 0 everywhere", need="at least one sample must count")
    used = w[w > 0]
    low, high = float(used.min()), float(used.max())
    smallest, largest = 1 / LARGEST_NUMBER, LARGEST_NUMBER
    if low < smallest or high > largest or high / low > LARGEST_WEIGHT_RATIO:
        ratio = f"none more than {LARGEST_WEIGHT_RATIO:g} times another"
        raise InputError(
            "weight",
            got=f"runs from {low:g} to {high:g}",
            need=f"weights lie between {smallest:g} and {largest:g}, {ratio}",
            hint="Only ratios matter: divide them by a constant, and leave out what does not count",
        )
    return w


def counts(x: object, n: int) -> Ints:
    """Whole numbers that are not negative and not all 0: how often each sample occurs."""
    c = same_length(column(x, "count"), "count", n, "score")
    bad = ~((c >= 0) & (c == np.floor(c)) & np.isfinite(c))
    if bad.any():
        i = find_first(bad)
        raise InputError(
            "count",
            row=i,
            got=f"is {c[i]:g}",
            need="counts are whole numbers, not negative",
            hint="Use weight= for importance",
        )
    if not c.any():
        raise InputError("count", got="is 0 everywhere", need="at least one sample must count")
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
    if not a.size or (float(np.min(a)) >= -LARGEST_NUMBER and float(np.max(a)) <= LARGEST_NUMBER):
        return a
    largest = LARGEST_NUMBER if a.dtype == np.float64 else np.finfo(a.dtype).max
    bad = (np.abs(a) > largest) & (a != -np.inf)
    if bad.any():
        row = find_first(bad)
        if a.ndim > 1:  # of samples from a model there are several per row
            row = find_first(bad.reshape(-1, a.shape[-1])) % a.shape[-2]
        kind = "infinite values" if np.isinf(a[bad]).any() else "values beyond all bounds"
        raise InputError(
            name,
            got=f"has {int(bad.sum()):,} {kind}",
            first=row,
            need=f"finite numbers within ±{LARGEST_NUMBER:g} are needed",
            hint="For a class that is ruled out use -inf",
        )
    if a.ndim > 1 and a.shape[-1] > 1:  # the other class of a binary model has logit 0
        impossible: Bools = np.isneginf(a).all(axis=-1).reshape(-1)
        if impossible.any():
            raise InputError(
                name,
                got="has rows of nothing but -inf",
                first=find_first(impossible) % a.shape[-2],
                need="at least one class must be possible",
            )
    return a


def fraction(x: float, name: str) -> float:
    """A number in (0, 1]."""
    if not 0 < x <= 1:
        raise InputError(name, got=f"is {x:g}", need="a number above 0 and at most 1 is needed")
    return float(x)


def at_least(x: object, low: int, name: str) -> int:
    """A whole number that is not below `low`."""
    if isinstance(x, Integral) or (isinstance(x, float) and x.is_integer()):  # infinity is not
        number = int(x)
        if number >= low:
            return number
    raise InputError(name, got=f"is {x}", need=f"a whole number of at least {low} is needed")


def real(x: object, name: str) -> float:
    """Return `x` as a float; raise where it is a text, a list or nothing."""
    number = np.asarray(x)
    if number.ndim or number.dtype.kind not in "biuf":
        raise InputError(name, got=f"is {x!r}", need="a number is needed")
    return float(number)


def within(x: float, low: float, high: float, name: str) -> None:
    """Raise where `x` is not a number from `low` to `high`; nan is none."""
    if not low <= x <= high:
        raise InputError(name, got=f"is {x:g}", need=f"a number from {low:g} to {high:g} is needed")


def parameters(a: Array, name: str) -> None:
    """Raise where a parameter of a map is not a number of usual size."""
    if not (np.abs(a) <= LARGEST_NUMBER).all():
        raise InputError(
            name,
            got="is not finite or beyond all bounds",
            need=f"numbers within ±{LARGEST_NUMBER:g} are needed",
        )


# isinstance for containers that come from outside: their items may be anything, and the type says
# so.


def is_mapping(x: object) -> TypeIs[Mapping[object, object]]:
    """Whether `x` maps keys to values.

    >>> is_mapping({"a": 1}), is_mapping([1])
    (True, False)
    """
    return isinstance(x, Mapping)


def is_dict(x: object) -> TypeIs[dict[str, object]]:
    """Whether `x` is a dict; JSON has no other keys than text.

    >>> is_dict({"a": 1}), is_dict([1])
    (True, False)
    """
    return isinstance(x, dict)


def is_row(x: object) -> TypeIs[list[object] | tuple[object, ...]]:
    """Whether `x` is a list or a tuple.

    >>> is_row((1,)), is_row("a")
    (True, False)
    """
    return isinstance(x, (list, tuple))


def need(package: str, *, for_: str, extra: str) -> ModuleType:
    """Import `package`, or say which extra brings it.

    >>> need("json", for_="an example", extra="files").__name__
    'json'
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as e:
        if e.name is None or not package.startswith(e.name):
            raise  # the package is there, something that it needs is not
        raise ModuleNotFoundError(
            f"{for_} needs {package}: pip install 'howsure[{extra}]'", name=package
        ) from None


def build_frame(rows: Sequence[Mapping[str, object]], library: str) -> Any:
    """A data frame with one row for each mapping; `library` is "pandas" or "polars"."""
    if library not in ("pandas", "polars"):
        raise InputError(f"library={library!r}; 'pandas' or 'polars' is needed.")
    module = need(library, for_="frame()", extra="interop")
    keys: Mapping[str, object] = rows[0] if rows else {}
    return module.DataFrame({key: [row[key] for row in rows] for key in keys})


def wrap_preformatted(text: str) -> str:
    """Text of a fixed width for a notebook.

    >>> wrap_preformatted("a < b")
    '<pre>a &lt; b</pre>'
    """
    from html import escape  # a large table that few processes need

    return f"<pre>{escape(text.rstrip())}</pre>"
