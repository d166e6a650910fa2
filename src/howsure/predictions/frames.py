"""What other libraries hand over, as arrays: tables, fitted classifiers, batches of network outputs.

None of these libraries is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, InputError, Ints, is_dict, is_row, need
from howsure._core.frozen import frozen
from howsure._core.text import is_count, shorten
from howsure.predictions.class_labels import (
    COLUMN_ALIASES,
    LABEL_COLUMN_START,
    UNSURE_ALIAS,
    find_missing,
    is_one_of_two,
    read_array,
    split_class_column,
)
from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE
from howsure.predictions.predictions import Predictions

ColumnNames: TypeAlias = Mapping[str, str | Sequence[str]]  # by the part that columns play
VALUE_PARTS = ("logits", "probs", "confidence")
OTHER_PARTS = ("labels", "correct", "prediction", "ids", "group", "weight", "count")
COLUMNS_SHOWN = 12  # names of columns that an error lists
KNOWN_CLASSES_SHOWN = 6


class FrameAnswers(NamedTuple):
    """What a classifier said of some samples: logits or probabilities of its classes."""

    values: Array
    classes: Array
    logits: bool


class FixedClassifier:
    """A classifier that knows its answers; for examples.

    >>> ask_classifier(FixedClassifier(["a", "b"], [[0.2, 0.8]]), None).classes
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, classes: Sequence[str], answers: Sequence[Sequence[float]]):
        self.classes_ = np.array(classes)
        self.answers = np.array(answers)

    def predict_proba(self, X: object) -> Array:  # noqa: ARG002
        """The answers, whatever is asked."""
        return self.answers


def ask_classifier(model: object, X: object) -> FrameAnswers:
    """The answers of a fitted classifier of scikit-learn's kind."""
    classes = getattr(model, "classes_", None)
    name = type(model).__name__
    if classes is None and not hasattr(model, "fit"):
        raise InputError(
            f"{name} has no classes_ and no fit, so it is no classifier of scikit-learn's kind; "
            f"write hs.evaluate(probs={name.lower()}.predict(…), labels=y), or logits=."
        )
    if classes is None:
        raise InputError(f"{name} has no classes_; a fitted classifier is needed. Call fit first.")
    for method in ("predict_proba", "decision_function"):
        answer = cast("Callable[[object], object] | None", getattr(model, method, None))
        if answer is None:
            continue
        try:
            values = answer(X)
        except ValueError as error:
            # What a classifier objects to in the samples is the user's mistake; its first line
            # says which.
            fault = str(error).partition("\n")[0].rstrip(".")
            raise InputError(f"{name} refuses X: {fault}.") from error
        return FrameAnswers(
            values=checks.array(values, method),
            classes=np.asarray(classes),
            logits=method == "decision_function",
        )
    raise InputError(
        f"{name} has neither predict_proba nor decision_function; its confidence is not known."
    )


def ask_tagger(model: object, X: object) -> FrameAnswers | None:
    """The answers of a fitted classifier of many labels, one probability of each; None where it has
    classes of which one is right.
    """
    classes = cast("object", getattr(model, "classes_", None))
    if not isinstance(classes, list):
        if not getattr(model, "multilabel_", False):
            return None
        return ask_classifier(model, X)
    # A forest, a tree or a neighbour has a list of classes and of answers, one for each label.
    labels = [np.asarray(one).tolist() for one in cast("list[Array]", classes)]
    name = type(model).__name__
    answer = cast("Callable[[object], list[Array]] | None", getattr(model, "predict_proba", None))
    if answer is None or any(not set(one) <= {0, 1} for one in labels):
        raise InputError(f"{name} answers several questions at once; take one of its outputs.")
    columns: list[Array] = []
    for one, values in zip(labels, answer(X), strict=True):
        column = np.zeros(len(values))  # of a label that was never there in training
        if 1 in one:
            column = values[:, one.index(1)]
        columns.append(column)
    numbers = np.arange(len(labels))
    return FrameAnswers(values=np.stack(columns, axis=1), classes=numbers, logits=False)


def place_labels(given: object, classes: Array) -> Ints:
    """Labels of any type as places among the classes of a classifier."""
    a = read_array(checks.unmasked(given, "y"))
    if a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]
    if a.ndim == 2:
        raise InputError(
            "y",
            got=f"has shape {a.shape}",
            need="one label for each sample is needed (y.argmax(axis=1) of one-hot rows)",
            hint="Many labels per case? Predictions.from_multilabel(model.predict_proba(X), y)",
        )
    checks.one_dimensional(a, "y")
    absent = find_missing(a)
    if absent.any():
        raise InputError(
            "y",
            got=f"has {int(absent.sum()):,} missing values",
            first=checks.find_first(absent),
            need="every sample needs its label",
        )
    known = classes.tolist()
    place = {label: i for i, label in enumerate(known)}
    places = [place.get(label, -1) for label in a.tolist()]
    if -1 in places:
        i = places.index(-1)
        shown = ", ".join(repr(c) for c in known[:KNOWN_CLASSES_SHOWN])
        raise InputError(
            "y",
            row=i,
            got=f"is {str(a[i])!r}, which the classifier has never seen",
            need=f"its classes: {shown}",
        )
    return np.array(places, dtype=np.int64)


@frozen(eq=False)
class FrameParts:
    """The columns of a table by the part they play, and the rest by name."""

    kind: str
    values: Array
    names: tuple[str, ...]  # of the columns with the values
    beside: dict[str, Array] = field(default_factory=dict[str, Array])
    rest: dict[str, Array] = field(default_factory=dict[str, Array])

    def get(self, part: str) -> Array | None:
        """The column that plays a part, where there is one."""
        return self.beside.get(part)

    @property
    def short_names(self) -> tuple[str, ...]:
        """What follows `prob_` or the first `_` in the names of the columns with the values."""
        ends: list[str] = []
        for name in self.names:
            known = split_class_column(name)
            ends.append(name.partition("_")[2] if known is None else known[1])
        return tuple(ends)

    @property
    def has_class_columns(self) -> bool:
        """Whether all columns with the values begin as those of classes do: `prob_well`."""
        return all(split_class_column(name) is not None for name in self.names)

    def find_label_names(self) -> tuple[str, ...] | None:
        """What many labels are called: the columns, or what follows `prob_` in all of them."""
        if len(self.names) < 2:
            return None
        if self.has_class_columns:
            return self.short_names
        return self.names

    def check_class_names(self, given: Iterable[object]) -> tuple[object, ...]:
        """The class names that were given; refused where the columns are called so, in another
        order.
        """
        names = tuple(given)
        texts = tuple(str(name) for name in names)
        for called in (self.names, self.short_names):
            if len(called) > 1 and called != texts and set(called) == set(texts):
                order = ", ".join(repr(name) for name in called)
                raise InputError(
                    f"class_names are in another order than the columns {', '.join(map(repr, self.names))}; "
                    f"write class_names=[{order}], or give the columns in the order of the names."
                )
        return names

    def find_class_names(self, labels: Array | None) -> tuple[str, ...] | None:
        """What the columns are called after `prob_`; their names, or what follows `p_`, where all
        labels are these.
        """
        if len(self.names) < 2:
            if labels is None or labels.dtype.kind not in "OU" or not self.has_class_columns:
                return None
            others = {str(label) for label in labels.tolist()} - set(self.short_names)
            return (*others, *self.short_names) if len(others) == 1 else None
        if self.has_class_columns:
            if self.short_names == tuple(map(str, range(len(self.names)))):
                return None
            return self.short_names
        if labels is None or labels.dtype.kind not in "OU":
            return None
        seen = {str(label) for label in labels.tolist()}
        for names in (self.names, self.short_names):
            if seen <= set(names):
                return names
        return None


def is_frame(data: object) -> bool:
    """Whether this is a table: of pandas, polars or arrow, a stream of arrow, or a dictionary of
    columns.
    """
    if isinstance(data, Mapping) or _is_lazy(data) or _is_stream(data):
        return True
    has_columns = hasattr(data, "column_names") or hasattr(data, "columns")
    return has_columns and hasattr(data, "__getitem__")


def _is_stream(data: object) -> bool:
    """Whether this hands its rows over as a stream of arrow, as relations of DuckDB do; frames that
    can are read as what they are.
    """
    has_frame = hasattr(data, "to_dict") or hasattr(data, "to_pydict")
    return hasattr(data, "__arrow_c_stream__") and not has_frame


def _is_lazy(data: object) -> bool:
    """Whether this is a table that is still to be computed."""
    return hasattr(data, "collect") and not hasattr(data, "to_dict")


def read_frame(frame: object, given: ColumnNames, *, multilabel: bool = False) -> FrameParts:
    """Find the columns by the names that were given, else by convention, and take them out of the
    table.

    With `multilabel` the labels are as many columns as the values, or one column of lists.
    """
    if not is_frame(frame):
        raise InputError(
            f"a {type(frame).__name__} is no table; a frame of pandas, polars or arrow is needed."
        )
    if _is_stream(frame):
        arrow = need("pyarrow", for_="a stream of arrow", extra="files")
        try:
            frame = cast("object", arrow.table(frame))
        except (TypeError, ValueError) as e:  # of one column, or of something else
            raise InputError(
                f"a {type(frame).__name__} is no table ({str(e).splitlines()[0]}); "
                "a stream of rows with named columns is needed."
            ) from None
    if _is_lazy(frame):
        raise InputError(f"a {type(frame).__name__} has no rows yet; collect() it first.")
    keys = _list_keys(frame)
    columns = [str(key) for key in keys]  # pandas allows anything as a name
    key_of = dict(zip(columns, keys, strict=True))
    times = Counter(columns)
    given = dict(given)
    for part, names in given.items():
        if isinstance(names, list | tuple):
            given[part] = tuple(str(name) for name in cast("Sequence[object]", names))
        else:
            given[part] = str(names)
    for part, names in given.items():
        for name in _to_list(names):
            if name not in columns:
                raise InputError(
                    f"the table has no column {name!r} for {part}; it has {_list_columns(columns)}."
                )
    if "split" in columns:
        splits = sorted({str(cell) for cell in read_array(_get_column(frame, key_of["split"]))})
        if len(splits) > 1:
            raise InputError(
                f"the table has {len(splits)} splits ({_list_columns(splits)}); give the rows of one, "
                f"as in df[df['split'] == {splits[0]!r}]."
            )
    truth = given.get("labels") or next((a for a in COLUMN_ALIASES["labels"] if a in columns), None)
    classes: set[str] = set()
    if isinstance(truth, str):
        classes = {str(cell) for cell in read_array(_get_column(frame, key_of[truth])).tolist()}
    kind, value_names = _find_values(given, columns, classes)
    label_names: tuple[str, ...] = ()
    if multilabel:
        label_names = _find_label_columns(given, columns, value_names)
    part_names: dict[str, str] = {}
    for part in OTHER_PARTS:
        if part == "labels" and label_names:
            continue
        usual = [a for a in COLUMN_ALIASES[part] if a in columns and a not in value_names]
        name = given.get(part)
        if isinstance(name, str):
            part_names[part] = name
        elif usual:
            part_names[part] = usual[0]
    used = {*value_names, *label_names, *part_names.values()}
    for name in used:
        if times[name] > 1:
            raise InputError(
                f"the table has {times[name]} columns {name!r}; one is needed. Rename the others."
            )

    beside = {part: _take_column(frame, key_of[name]) for part, name in part_names.items()}
    if multilabel and not label_names and "labels" in part_names:
        label_names = (part_names["labels"],)
    if label_names:
        labels = [_take_column(frame, key_of[name]) for name in label_names]
        beside["labels"] = _stack_columns(labels, label_names)
    values = [_take_column(frame, key_of[name]) for name in value_names]
    rest = [name for name in columns if name not in used and times[name] == 1]
    return FrameParts(
        kind=kind,
        values=_stack_columns(values, value_names),
        names=value_names,
        beside=beside,
        rest={name: read_array(_get_column(frame, key_of[name])) for name in rest},
    )


def _list_keys(frame: object) -> list[object]:
    """What a table calls its columns: texts, in pandas anything."""
    if isinstance(frame, Mapping):
        return list(cast("Mapping[object, object]", frame))
    names: object = getattr(frame, "column_names", None) or getattr(frame, "columns", ())
    return list(cast("Sequence[object]", names))


def _to_list(names: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    return tuple(names)


def _find_values(
    given: ColumnNames, columns: Sequence[str], classes: set[str]
) -> tuple[str, tuple[str, ...]]:
    """What the values are, and which columns hold them; `classes` are the labels that are there."""
    parts = [part for part in VALUE_PARTS if part in given]
    if len(parts) > 1:
        raise InputError(f"{' and '.join(parts)} are both given; say which one is meant.")
    if parts:
        return parts[0], _to_list(given[parts[0]])
    by_part: dict[str, dict[str, str]] = {}  # of each part the columns of the classes
    for name in columns:
        known = split_class_column(name)
        if known is not None:
            by_part.setdefault(known[0], {})[name] = known[1]
    for part in VALUE_PARTS:
        ends = by_part.get(part, {})
        names = list(ends)
        if all(map(is_count, ends.values())):  # by number, else as they stand
            names.sort(key=lambda name: int(ends[name]))
        if len(names) > 1 or (names and is_one_of_two(ends[names[0]], classes)):
            return part, tuple(names)
    answered = any(alias in columns for alias in COLUMN_ALIASES["prediction"])
    for part in VALUE_PARTS:
        for alias in COLUMN_ALIASES[part]:
            if alias in columns and not (alias == UNSURE_ALIAS and answered):
                return part, (alias,)
    if UNSURE_ALIAS in columns:
        raise InputError(
            f"the table has {UNSURE_ALIAS} beside an answer; say what it is: probs='{UNSURE_ALIAS}' if the "
            f"probability of class 1, confidence='{UNSURE_ALIAS}' if how sure the answer is."
        )
    # As pandas numbers the columns of a matrix.
    numbered = [name for name in columns if is_count(name)]
    example = ["p_well", "p_ill"]
    if len(numbered) > 1:
        example = numbered
    truth = next((name for name in COLUMN_ALIASES["labels"] if name in columns), "y")
    raise InputError(
        f"the table has {_list_columns(columns)}; say which columns hold the probabilities, as in "
        f"Predictions.from_frame(df, probs={example!r}, label={truth!r}), probs='risk' for that of class 1, "
        "or confidence='sure' for how sure each answer is."
    )


def _find_label_columns(
    given: ColumnNames, columns: Sequence[str], values: Sequence[str]
) -> tuple[str, ...]:
    """The columns with the labels: those given, else the `label_x` of each `prob_x`; none where a
    column has lists.
    """
    names = given.get("labels")
    if isinstance(names, str):
        return ()
    if names is not None:
        return tuple(names)
    if not any(name.startswith(LABEL_COLUMN_START) for name in columns):
        return ()
    wanted = tuple(f"{LABEL_COLUMN_START}{name.partition('_')[2]}" for name in values)
    for name in wanted:
        if name not in columns:
            raise InputError(
                f"the table has no column {name!r}; with many labels each prob_x has a label_x."
            )
    return wanted


def _get_column(frame: object, key: object) -> object:
    return checks.unmasked(cast("Mapping[object, object]", frame)[key], f"column {str(key)!r}")


def _take_column(frame: object, key: object) -> Array:
    """A column without missing values."""
    column = read_array(_get_column(frame, key))
    if column.ndim == 1:
        absent = find_missing(column)
        if absent.any():
            raise InputError(
                f"column {str(key)!r}",
                got=f"has {int(absent.sum()):,} missing values",
                first=checks.find_first(absent),
                need="none may be missing",
                hint="Remove these rows or fill them",
            )
    return column


def _stack_columns(columns: Sequence[Array], names: Sequence[str]) -> Array:
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
            got = f"has dtype {column.dtype}"
            for i, cell in enumerate(column.tolist()):
                if isinstance(cell, str):
                    got = f"holds the text {shorten(str(column[i]), 40)!r} in row {i}"
                    break
            raise InputError(f"column {name!r}", got=got, need="numbers are needed")
    if len(columns) == 1:
        return columns[0]
    return np.stack(columns, axis=1)


def _list_columns(names: Sequence[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:COLUMNS_SHOWN]) or "no columns"
    if len(names) > COLUMNS_SHOWN:
        shown += f" and {len(names) - COLUMNS_SHOWN:,} more"
    return shown


# Batches of network outputs.

OutputKind: TypeAlias = Literal["logits", "probs"]


def check_output_kind(outputs: OutputKind) -> OutputKind:
    """Return `outputs`; raise unless it says what the numbers are."""
    if outputs not in ("logits", "probs"):
        raise InputError(
            f"outputs is {outputs!r}; say 'logits' or 'probs', whichever the model returns."
        )
    return outputs


def build_batch(
    preds: object,
    target: object,
    outputs: OutputKind,
    *,
    class_axis: int = -1,
    ignore: int | None = None,
) -> Predictions | None:
    """Predictions of one row per label that is not `ignore`; None where there is no such label.

    Where an image or a text has one label per pixel or token, `class_axis` holds the classes.

    >>> build_batch(np.zeros((2, 3, 4)), np.array([[0, 1, -100], [2, -100, -100]]), "logits", ignore=-100)
    <Predictions: n=3, k=4, logits, accuracy 0.3333>
    """
    rows, labels = _read_output(preds, "preds"), _read_output(target, "target")
    if rows.ndim >= 2:  # a binary model may give one number per label instead
        last = np.moveaxis(rows, class_axis, -1)
        if last.shape[:-1] != labels.shape:
            raise InputError(
                f"target has shape {labels.shape} for preds of shape {rows.shape}; one class number for each sample, "
                f"shape {last.shape[:-1]}, is needed. Of one-hot labels take the argmax."
            )
        rows, labels = last.reshape(-1, last.shape[-1]), labels.reshape(-1)
    if ignore is not None:
        keep = labels != ignore
        rows, labels = rows[keep], labels[keep]
    if not len(labels):
        return None
    if outputs == "probs":
        return Predictions.from_probs(rows, labels)
    _refuse_probs(rows)
    return Predictions.from_logits(rows, labels)


def _read_output(given: object, name: str) -> Array:
    if is_row(given) or is_dict(given):
        raise InputError(
            f"{name} is a {type(given).__name__} of {len(given)}; pass the one array that is meant."
        )
    return checks.array(given, name)


def _refuse_probs(rows: Array) -> None:
    """Raise if all rows are distributions. A single row may be one by chance."""
    if rows.ndim == 1 or rows.shape[1] == 1 or len(rows) == 1:
        return
    off = np.abs(rows.sum(axis=1, dtype=np.float64) - 1)
    if rows.min() >= 0 and (off <= ROW_SUM_TOLERANCE.get(rows.itemsize, 1e-6)).all():
        raise InputError(
            f"all {len(rows):,} rows are non-negative and sum to 1: these are probabilities, not logits. "
            "Say outputs='probs', or pass what comes before the softmax."
        )
