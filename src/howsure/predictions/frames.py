"""Tables of pandas, polars and arrow, and fitted classifiers: what they hold, as arrays. None of
them is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, cast

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import is_count, shortened
from howsure.predictions.classes import missing, plain
from howsure.predictions.naming import ALIASES, MANY_LABELS, NUMBERED

VALUES = ("probs", "logits", "confidence")
BESIDE = ("labels", "correct", "prediction", "ids", "group", "weight")
LISTED = 12


class Answers(NamedTuple):
    """What a classifier said of some samples: logits or probabilities of its classes."""

    values: Array
    classes: Array
    logits: bool


class Known:
    """A classifier that knows its answers; for examples.

    >>> asked(Known(["a", "b"], [[0.2, 0.8]]), None).classes
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, classes: Sequence[str], answers: Sequence[Sequence[float]]):
        self.classes_ = np.array(classes)
        self.answers = np.array(answers)

    def predict_proba(self, X: object) -> Array:  # noqa: ARG002
        """The answers, whatever is asked."""
        return self.answers


def asked(model: object, X: object) -> Answers:
    """The answers of a fitted classifier."""
    classes = getattr(model, "classes_", None)
    name = type(model).__name__
    if classes is None:
        raise InputError(f"{name} has no classes_; a fitted classifier is needed. Call fit first.")
    if isinstance(classes, list):
        raise InputError(f"{name} answers several questions at once; take one of its outputs.")
    for method in ("predict_proba", "decision_function"):
        answer = cast("Callable[[object], object] | None", getattr(model, method, None))
        if answer is not None:
            found = check.array(_answered(answer, X, name), method)
            return Answers(found, np.asarray(classes), method == "decision_function")
    raise InputError(
        f"{name} has neither predict_proba nor decision_function; its confidence is not known."
    )


def _answered(answer: Callable[[object], object], X: object, name: str) -> object:
    """What it says; what a classifier objects to in the samples is the user's mistake, in its first
    sentence.
    """
    try:
        return answer(X)
    except ValueError as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{name} refuses X: {said}.") from error


def known_classes(given: object, classes: Array) -> Ints:
    """Labels of any type as places among the classes of a classifier."""
    a = plain(check.unmasked(given, "y"))
    a = a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else check.one_dimensional(a, "y")
    absent = missing(a)
    if absent.any():
        got = f"has {int(absent.sum()):,} missing values"
        raise InputError(
            "y", got=got, first=check.first(absent), need="every sample needs its label"
        )
    place = {label: i for i, label in enumerate(classes.tolist())}
    found = [place.get(label, -1) for label in a.tolist()]
    if -1 in found:
        i = found.index(-1)
        shown = ", ".join(repr(c) for c in classes.tolist()[:6])
        raise InputError(
            "y",
            row=i,
            got=f"is {str(a[i])!r}, which the classifier has never seen",
            need=f"its classes: {shown}",
        )
    return np.array(found, dtype=np.int64)


@frozen(eq=False)
class Parts:
    """The columns of a table by the part they play, and the rest by name."""

    kind: str
    values: Array
    names: tuple[str, ...]  # of the columns with the values
    beside: dict[str, Array] = field(default_factory=dict[str, Array])
    rest: dict[str, Array] = field(default_factory=dict[str, Array])

    def one(self, part: str) -> Array | None:
        """The column that plays a part, where there is one."""
        return self.beside.get(part)

    def label_names(self) -> tuple[str, ...] | None:
        """What many labels are called: the columns, or what follows `prob_` in all of them."""
        if len(self.names) < 2:
            return None
        short = tuple(
            name.partition("_")[2] for name in self.names if name.startswith(tuple(NUMBERED))
        )
        return short if len(short) == len(self.names) else self.names

    def agreed(self, given: Iterable[object]) -> tuple[object, ...]:
        """The class names that were given; refused where the columns are called so, in another
        order.
        """
        names = tuple(given)
        said = tuple(str(name) for name in names)
        short = tuple(name.partition("_")[2] for name in self.names)
        for called in (self.names, short):
            if len(called) > 1 and called != said and set(called) == set(said):
                order = ", ".join(repr(name) for name in called)
                raise InputError(
                    f"class_names are in another order than the columns {', '.join(map(repr, self.names))}; "
                    f"write class_names=[{order}], or give the columns in the order of the names."
                )
        return names

    def class_names(self, labels: Array | None) -> tuple[str, ...] | None:
        """What the columns are called after `prob_`; their names, or what follows `p_`, where all
        labels are these.
        """
        if len(self.names) < 2:
            return None
        short = tuple(
            name.partition("_")[2] for name in self.names if name.startswith(tuple(NUMBERED))
        )
        if len(short) == len(self.names):
            return None if all(map(is_count, short)) else short
        if labels is None or labels.dtype.kind not in "OU":
            return None
        ends = tuple(name.partition("_")[2] for name in self.names)
        seen = {str(label) for label in labels.tolist()}
        return next((names for names in (self.names, ends) if seen <= set(names)), None)


def is_frame(data: object) -> bool:
    """Whether this is a table: of pandas, polars or arrow, or a dictionary of columns."""
    return (
        isinstance(data, Mapping)
        or _waiting(data)
        or (
            hasattr(data, "__getitem__")
            and (hasattr(data, "column_names") or hasattr(data, "columns"))
        )
    )


def _waiting(data: object) -> bool:
    """Whether this is a table that is still to be computed."""
    return hasattr(data, "collect") and not hasattr(data, "to_dict")


def parts_of(
    frame: object, given: Mapping[str, str | Sequence[str]], *, many: bool = False
) -> Parts:
    """Find the columns by the names that were given, else by convention, and take them out of the
    table.

    With `many` labels per case the labels are as many columns as the values, or one column of
    lists.
    """
    if not is_frame(frame):
        raise InputError(
            f"a {type(frame).__name__} is no table; a frame of pandas, polars or arrow is needed."
        )
    if _waiting(frame):
        raise InputError(f"a {type(frame).__name__} has no rows yet; collect() it first.")
    keys = _keys(frame)
    there = [str(key) for key in keys]
    key, times = dict(zip(there, keys, strict=True)), Counter(there)
    given = {part: _texts(names) for part, names in given.items()}
    for part, names in given.items():
        for name in (names,) if isinstance(names, str) else names:
            if name not in there:
                raise InputError(
                    f"the table has no column {name!r} for {part}; it has {_listed(there)}."
                )
    kind, names = _values(given, there)
    labels = _many_labels(given, there, names) if many else ()
    single = BESIDE[1:] if labels else BESIDE
    beside = {
        part: name for part in single if (name := _named(part, given, there, names)) is not None
    }
    used = {*names, *labels, *beside.values()}
    twice = next((name for name in used if times[name] > 1), None)
    if twice is not None:
        raise InputError(
            f"the table has {times[twice]} columns {twice!r}; one is needed. Rename the others."
        )
    take: Callable[[str], Array] = lambda name: _taken(frame, key[name], name)
    columns = {part: take(name) for part, name in beside.items()}
    if many and (labels or "labels" in beside):
        found = labels or (beside["labels"],)
        columns["labels"] = _stacked([take(name) for name in found], found)
    return Parts(
        kind,
        _stacked([take(name) for name in names], names),
        names,
        columns,
        {
            name: plain(_column(frame, key[name]))
            for name in there
            if name not in used and times[name] == 1
        },
    )


def _many_labels(
    given: Mapping[str, str | Sequence[str]], there: Sequence[str], values: Sequence[str]
) -> tuple[str, ...]:
    """The columns with the labels: those given, else the `label_x` of each `prob_x`; none where a
    column has lists.
    """
    said = given.get("labels")
    if said is not None:
        return () if isinstance(said, str) else tuple(said)
    if not any(name.startswith(MANY_LABELS) for name in there):
        return ()
    wanted = tuple(f"{MANY_LABELS}{name.partition('_')[2]}" for name in values)
    absent = [name for name in wanted if name not in there]
    if absent:
        raise InputError(
            f"the table has no column {absent[0]!r}; with many labels each prob_x has a label_x."
        )
    return wanted


def _keys(frame: object) -> list[object]:
    """What a table calls its columns: texts, in pandas anything."""
    if isinstance(frame, Mapping):
        return list(cast("Mapping[object, object]", frame))
    names: object = getattr(frame, "column_names", None) or getattr(frame, "columns", ())
    return list(cast("Sequence[object]", names))


def _texts(names: object) -> str | tuple[str, ...]:
    """Names of columns as texts: pandas allows numbers."""
    if isinstance(names, list | tuple):
        return tuple(str(name) for name in cast("Sequence[object]", names))
    return str(names)


def _column(frame: object, key: object) -> object:
    return check.unmasked(cast("Mapping[object, object]", frame)[key], f"column {str(key)!r}")


def _values(
    given: Mapping[str, str | Sequence[str]], there: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Which columns hold the values, and what they are."""
    said = [part for part in VALUES if part in given]
    if len(said) > 1:
        raise InputError(f"{' and '.join(said)} are both given; say which one is meant.")
    if said:
        names = given[said[0]]
        return said[0], (names,) if isinstance(names, str) else tuple(names)
    for start, part in NUMBERED.items():
        numbered = [name for name in there if name.startswith(start)]
        if numbered:
            return part, tuple(_in_order(numbered))
    for part in VALUES:
        found = next((alias for alias in ALIASES[part] if alias in there), None)
        if found is not None:
            return part, (found,)
    raise InputError(
        f"the table has {_listed(there)}; say which columns hold the probabilities, as in "
        "Predictions.from_frame(df, probs=['p_well', 'p_ill'], label='y'), or probs='risk' for that of class 1."
    )


def _in_order(names: Sequence[str]) -> list[str]:
    """By number where all are numbered, else as they stand."""
    ends = [name.partition("_")[2] for name in names]
    return (
        [n for _, n in sorted(zip(map(int, ends), names, strict=True))]
        if all(map(is_count, ends))
        else [*names]
    )


def _named(
    part: str, given: Mapping[str, str | Sequence[str]], there: Sequence[str], used: Sequence[str]
) -> str | None:
    said = given.get(part)
    if isinstance(said, str):
        return said
    return next((alias for alias in ALIASES[part] if alias in there and alias not in used), None)


def _taken(frame: object, key: object, name: str) -> Array:
    """A column without missing values."""
    found = plain(_column(frame, key))
    absent = missing(found) if found.ndim == 1 else np.zeros(len(found), dtype=np.bool_)
    if absent.any():
        got = f"has {int(absent.sum()):,} missing values"
        hint = "Remove these rows or fill them"
        raise InputError(
            f"column {name!r}",
            got=got,
            first=check.first(absent),
            need="none may be missing",
            hint=hint,
        )
    return found


def _stacked(columns: Sequence[Array], names: Sequence[str]) -> Array:
    """Columns of numbers side by side; a single column as it is, lists as rows."""
    if len(columns) == 1 and columns[0].dtype.kind == "O":
        try:
            return np.array([np.asarray(row, dtype=np.float64) for row in columns[0].tolist()])
        except (TypeError, ValueError):
            raise InputError(
                f"column {names[0]!r} holds no lists of numbers of equal length."
            ) from None
    for column, name in zip(columns, names, strict=True):
        if column.dtype.kind not in "biuf":
            got, i = f"has dtype {column.dtype}", _first_text(column)
            got = (
                got if i is None else f"holds the text {shortened(str(column[i]), 40)!r} in row {i}"
            )
            raise InputError(f"column {name!r}", got=got, need="numbers are needed")
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _first_text(column: Array) -> int | None:
    return next((i for i, cell in enumerate(column.tolist()) if isinstance(cell, str)), None)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return (", ".join(repr(n) for n in names[:LISTED]) or "no columns") + more
