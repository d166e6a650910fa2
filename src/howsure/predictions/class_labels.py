"""Labels of any kind → class numbers, and what columns with classes and labels are called."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, InputError, Ints
from howsure._core.text import is_count

# What columns and arrays are called by convention, in files and in frames.
COLUMN_ALIASES = {
    "logits": ("logits",),
    "probs": ("probs", "probabilities", "y_prob", "y_proba", "proba", "y_score"),
    "logprobs": ("logprobs", "option_logprobs"),
    "confidence": ("confidence", "conf", "max_proba", "max_prob", "scores", "score"),
    "logprob": ("logprob",),
    "score": (),  # by name alone: a column `score` is taken for a confidence
    "samples": ("samples",),
    "labels": (
        "labels",
        "label",
        "y",
        "targets",
        "target",
        "y_true",
        "true_label",
        "ground_truth",
        "gold",
        "expected",
    ),
    "correct": ("correct", "is_correct"),
    "prediction": (
        "prediction",
        "predictions",
        "pred",
        "preds",
        "y_pred",
        "predicted",
        "predicted_label",
        "predicted_class",
        "prediction_label",
        "pred_label",
        "pred_class",
        ".pred_class",
        "predict",
        "y_hat",
        "yhat",
        "answer",
    ),
    "grade": ("grade",),
    "loss": ("loss",),
    "no_answer": ("no_answer",),
    "ids": ("ids", "id", "idx"),
    "weight": ("weight", "weights", "sample_weight"),
    "count": ("count",),
    "group": ("group", "groups"),
    "images": ("image_ids",),
    "class_names": ("class_names", "classes", "label_names"),
    "split": ("split",),
}
SAVETXT_NUMBER = re.compile(r"\d\.\d{6,}e\+\d\d")  # how np.savetxt writes every number
UNSURE_ALIAS = "y_score"  # a probability of class 1 only where no answer stands beside it
# How the columns of the classes begin in a table; of several beginnings the first counts.
CLASS_COLUMN_STARTS = {
    "logit_": "logits",
    "logits_": "logits",
    "prob_": "probs",
    "probs_": "probs",
    "proba_": "probs",
    "probability_": "probs",
    "prob.": "probs",  # as R's mlr3 writes them
    ".pred_": "probs",  # and tidymodels
}
POSITIVE_ENDS = ("yes", "true", "positive", "pos", "1.0")  # of a column that stands alone
LABEL_COLUMN_START = "label_"  # columns of a table with many labels per case
TRUTH_NUMBERS = {"true": 1, "false": 0}
HINT_CHARACTERS = 60  # of names that a hint repeats, and of a single name
HINT_NAMES = 6
INT64_DIGITS = 18  # a longer number may not fit into 64 bits


def split_class_column(name: str) -> tuple[str, str] | None:
    """The part and the class of a column such as `prob_well`; None of any other.

    >>> split_class_column("prob_well"), split_class_column(".pred_class")
    (('probs', 'well'), None)
    """
    if name in COLUMN_ALIASES["prediction"]:
        return None
    for start, part in CLASS_COLUMN_STARTS.items():
        if name.startswith(start):
            return part, name[len(start) :]
    return None


def is_one_of_two(end: str, labels: Iterable[str]) -> bool:
    """Whether a class column that stands alone is that of class 1 by its end, or of one of two
    labels: `prob_correct` is something else.
    """
    return end.lower() in POSITIVE_ENDS or is_count(end) or end in labels


def number_classes(
    given: object, k: int, names: tuple[str, ...] | None = None, name: str = "labels"
) -> Ints:
    """The class of each sample, 0 to k - 1.

    Whole numbers are class numbers, also as floats; booleans are classes 0 and 1 of two; texts are
    class names, or whole numbers, or true and false; a matrix (n, k) of 0 and 1 has exactly one 1
    per row. A missing value is refused.

    >>> number_classes(["ill", "well"], 2, ("well", "ill"))
    array([1, 0])
    >>> number_classes([[0, 1], [1, 0]], 2), number_classes([True, False], 2), number_classes([1.0, 0.0], 2)
    (array([1, 0]), array([1, 0]), array([1, 0]))
    """
    return checks.labels(read_class_numbers(given, k, names, name), k, name)


def read_class_numbers(
    given: object, k: int, names: tuple[str, ...] | None = None, name: str = "labels"
) -> Ints:
    """The same, before anyone looks whether there are so many classes."""
    a = _read_label_column(read_array(checks.unmasked(given, name)), k, name)
    absent = find_missing(a)
    if absent.any():
        raise InputError(
            name,
            got=f"has {int(absent.sum()):,} missing values",
            first=checks.find_first(absent),
            need="every sample needs its label",
            hint="Remove these rows or label them",
        )
    kind = a.dtype.kind
    if kind in "OU":
        return _read_texts([str(cell) for cell in a.tolist()], k, names, name)
    need = "class numbers or names are needed"
    if kind == "c":
        raise InputError(name, got="holds complex numbers", need=need)
    if kind == "b" and k != 2:
        raise InputError(name, got=f"holds true and false for {k} classes", need=need)
    if kind == "f":
        broken = a != np.floor(a)
        if broken.any():
            i = checks.find_first(broken)
            need = f"whole class numbers 0 to {k - 1} are needed"
            raise InputError(name, row=i, got=f"is {a[i]:g}", need=need)
    if kind in "uf":
        # As int64 it would be another number, and the message must say what it was.
        huge = np.abs(a) >= 2.0**62
        if huge.any():
            i = checks.find_first(huge)
            raise InputError(name, row=i, got=f"is {a[i]}", need=_describe_range(k))
    return a.astype(np.int64)


def simplify_text(text: str) -> str:
    """A text without regard to case and white space.

    >>> simplify_text(" New  York ")
    'new york'
    """
    return " ".join(text.split()).casefold()


def _describe_range(k: int) -> str:
    return f"with {k} classes labels run from 0 to {k - 1}"


def read_array(given: object) -> Array:
    """Any column as an array: of pandas, polars, arrow, torch or a list; missing values stay what
    they are.
    """
    detach = getattr(given, "detach", None)
    a = np.asarray(detach() if callable(detach) else given)
    if a.dtype.kind == "T":  # texts of any length have no cast to texts of one width
        return np.array([str(cell) for cell in a.ravel().tolist()]).reshape(a.shape)
    if a.dtype.kind == "S":
        return a.astype(np.str_)
    if a.dtype.kind != "O":
        return a
    # Objects that are all booleans, or all numbers, become such.
    cells: list[object] = a.ravel().tolist()
    kinds = {type(cell) for cell in cells}
    if kinds and kinds <= {bool, np.bool_}:
        return a.astype(np.bool_)
    if kinds and kinds <= {bytes, np.bytes_}:
        return a.astype(np.bytes_).astype(np.str_)
    if kinds and kinds <= {int, float, np.int64, np.float64}:
        numbers = np.float64 if kinds & {float, np.float64} else np.int64
        try:
            return a.astype(numbers)
        except OverflowError:  # whoever needs a number refuses it by its value
            return a
    return a


def find_missing(a: Array) -> Bools:
    """Which cells hold nothing: nan, None, pandas' NA and NaT, an empty text."""
    if a.dtype.kind == "f":
        return np.isnan(a)
    if a.dtype.kind == "U":
        return a == ""
    if a.dtype.kind in "mM":
        return np.isnat(a)
    if a.dtype.kind == "O":
        return np.array([_is_missing(cell) for cell in a.tolist()], dtype=np.bool_)
    return a != a


def _is_missing(cell: object) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, float):
        return cell != cell
    return isinstance(cell, str) and cell == ""


def _read_label_column(a: Array, k: int, name: str) -> Array:
    """One value per sample; the class of one-hot rows."""
    if a.ndim == 2 and a.shape[1] == 1:
        return a[:, 0]
    if a.ndim != 2 or a.shape[1] != k or k < 2:
        return checks.one_dimensional(a, name)
    if a.dtype.kind not in "biuf":
        got = f"has shape {a.shape} and holds texts"
        raise InputError(name, got=got, need="one label per sample is needed")
    is_other_number = ((a != 0) & (a != 1)).any(axis=1)
    bad = is_other_number | ((a == 1).sum(axis=1) != 1)
    if bad.any():
        raise InputError(
            name,
            row=checks.find_first(bad),
            got=f"has {k} numbers that are not a single 1 among 0 ({int(bad.sum()):,} such rows)",
            need="one class per row is needed",
            hint="Many labels per case? Predictions.from_multilabel; of a file, multilabel=True (--multilabel)",
        )
    return a.argmax(axis=1)


def _read_texts(texts: list[str], k: int, names: tuple[str, ...] | None, name: str) -> Ints:
    """The classes of texts: of names that are known, else of numbers, or of true and false."""
    if names:
        place = {text: i for i, text in enumerate(names)}
        for i, text in enumerate(texts):
            if text not in place:
                shown = list_names(names)
                got = f"is {text[:HINT_CHARACTERS]!r}, which is none of the classes {shown}"
                raise InputError(name, row=i, got=got, hint="correct the name")
        return np.array([place[text] for text in texts], dtype=np.int64)
    for i, text in enumerate(texts):
        if len(text) > INT64_DIGITS and text.lstrip("-").isdecimal():
            got = f"is {text[:HINT_CHARACTERS]}"
            raise InputError(name, row=i, got=got, need=_describe_range(k))
    if all(t.endswith(".0") and _is_whole(t[:-2]) for t in texts):
        texts = [t[:-2] for t in texts]  # as pandas writes whole numbers
    if all(map(SAVETXT_NUMBER.fullmatch, texts)) and all(float(t).is_integer() for t in texts):
        texts = [str(int(float(t))) for t in texts]
    if all(map(_is_whole, texts)):
        return np.array([int(t) for t in texts], dtype=np.int64)
    if k == 2 and all(t.lower() in TRUTH_NUMBERS for t in texts):
        return np.array([TRUTH_NUMBERS[t.lower()] for t in texts], dtype=np.int64)
    bad = next(i for i, t in enumerate(texts) if not _is_whole(t))
    labels = sorted(set(texts))
    shown = list_names(labels)
    hint = f"labels are {shown}"
    if len(labels) == k and len(shown) < HINT_CHARACTERS:
        hint += f"; of a file, --name classes={','.join(labels)}"
        if k == 2:
            hint += " (mind the order: a single column is the probability of the second)"
    raise InputError(
        name,
        row=bad,
        got=f"is {texts[bad][:HINT_CHARACTERS]!r}",
        need="texts need class_names=, in the order of the columns",
        hint=hint,
    )


def list_names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(repr(name[:HINT_CHARACTERS]) for name in names[:HINT_NAMES])
    if len(names) > HINT_NAMES:
        shown += ", …"
    return shown


def _is_whole(text: str) -> bool:
    return is_count(text.strip().removeprefix("-"))
