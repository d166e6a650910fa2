"""Parts of a file → Predictions, and those of several files as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from shlex import quote

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, InputError
from howsure._core.indices import repeat_values
from howsure.formats.column_names import ATTRIBUTE, TOP_ANSWER_VALUES
from howsure.formats.fields import Fields, concat_arrays, from_logprob, same_answer
from howsure.predictions import Predictions
from howsure.predictions.given_answers import (
    check_ids,
    refuse_class_1_confidence,
    refuse_other_numbers,
    refuse_top_probability,
    take_answers,
)
from howsure.predictions.input_shapes import concat_layouts, lay_out_units
from howsure.predictions.predictions import SCORE_OPTION, GivenColumns
from howsure.predictions.read_options import ReadOptions, Several

TELLING_LABELS = 20  # equal labels of fewer rows may be chance
# The columns of predictions, beside their values, that files are joined by.
COLUMNS_BESIDE = (
    "known_labels",
    "known_correct",
    "known_prediction",
    "known_loss",
    "ids",
    "group",
    "weight",
)


def build_predictions(data: Fields, options: ReadOptions, *, first_image: int = 0) -> Predictions:
    """The predictions that the parts describe; every complaint names the file. Images and cases are
    numbered from `first_image` on.
    """
    kind = data.kind
    try:
        if options.multilabel:
            if kind not in ("probs", "logits"):
                need = "many labels per case need probs or logits (cases, labels)"
                raise InputError(kind, got="is not one number for each label", need=need)
            check_ids(data.arrays.get("ids"))
            values = checks.array(data.arrays[kind], kind)
            preds = Predictions.from_multilabel(
                probs=values if kind == "probs" else None,
                logits=values if kind == "logits" else None,
                labels=data.arrays.get("labels"),
                label_names=data.class_names,
                sums_to_one=options.sums_to_one,
                first=first_image,
                **_collect_extras(data.arrays),
            )
            return replace(preds, unanswered=data.unanswered)
        flat = flatten_pixels(data, first_image)
        check_ids(flat.arrays.get("ids"))
        preds = _build_plain(flat, options)
        answers = flat.arrays.get("prediction")
        if answers is not None and preds.vectors and options.answers != "argmax":
            preds = take_answers(preds, answers, flat.arrays.get("count"), options.answers)
        preds = replace(preds, unanswered=data.unanswered)
        if flat is data:
            return preds
        shape = _find_image_shape(data) or (1,)
        layout = lay_out_units("pixels", preds.n // prod(shape), shape, first=first_image)
        return replace(preds, layout=layout)
    except InputError as e:
        raise locate_error(e, data) from None


def locate_error(error: InputError, data: Fields) -> InputError:
    """The error with the file's name, and with the line and the number of its row in the file."""
    line: int | None = None
    if data.lines is not None and error.row is not None and error.row < len(data.lines):
        line = int(data.lines[error.row])
    error.hint = error.hint.replace(SCORE_OPTION, f"--name {quote(f'score={data.column}')}")
    return error.at(data.path.name, line, first=data.first)


def _build_plain(data: Fields, options: ReadOptions) -> Predictions:
    """Predictions of one row per sample."""
    kind = data.kind
    arrays = data.arrays
    extras = _collect_extras(arrays)
    extras["class_names"] = data.class_names
    values = checks.array(arrays[kind], kind)
    labels = arrays.get("labels")
    renormalise = options.renormalise
    if kind == "mc_logits":
        return Predictions.from_samples(values, labels, renormalise=renormalise, **extras)
    if kind == "mc_probs":
        return Predictions.from_samples(
            probs=values, labels=labels, renormalise=renormalise, **extras
        )
    told = kind in options.names or options.kind is not None
    if kind == "probs":
        if "prediction" in arrays and not told:
            refuse_top_probability(values, arrays["prediction"], data.column)
        return Predictions.from_probs(
            values, labels, renormalise=renormalise, digits=data.digits, **extras
        )
    if kind not in TOP_ANSWER_VALUES:
        if not told:
            refuse_other_numbers(kind, values, data.column, data.class_names is not None)
        if values.ndim == 3:
            need = f"samples of shape (s, n, k) must be named mc_{kind}"
            raise InputError(kind, got=f"has shape {values.shape}", need=need)
        return Predictions.from_logits(values, labels, **extras)

    # One confidence per sample.
    correct = arrays.get("correct")
    prediction = arrays.get("prediction")
    if kind == "confidence" and prediction is not None and not told:
        refuse_class_1_confidence(values, prediction, data.column)
    if correct is None and prediction is not None and labels is not None:
        checks.same_length(prediction, "prediction", len(np.atleast_1d(labels)), "labels")
        correct = same_answer(prediction, labels)
    loss = arrays.get("loss")
    # A grade counts where it is all that is known: the loss is what it is short of 1.
    if loss is None and correct is None and "grade" in arrays:
        grade = checks.column(arrays["grade"], "grade")
        bad = ~((grade >= 0) & (grade <= 1))
        if bad.any():
            i = checks.find_first(bad)
            need, hint = "a grade lies in [0, 1]", "For anything else give a loss"
            raise InputError("grade", row=i, got=f"is {grade[i]:g}", need=need, hint=hint)
        loss = 1 - grade
    if loss is not None and correct is None and np.isin(loss, (0, 1)).all():
        correct, loss = loss == 0, None  # right and wrong, under another name
    make = Predictions.from_score if kind == "score" else Predictions.from_confidence
    return make(
        from_logprob(values) if kind == "logprob" else values,
        correct,
        prediction=prediction,
        labels=labels,
        loss=loss,
        **extras,
    )


def _collect_extras(arrays: dict[str, Array]) -> GivenColumns:
    """The columns that every kind of predictions may have."""
    attributes: dict[str, Array] = {}
    for part, column in arrays.items():
        if part.startswith(ATTRIBUTE):
            attributes[part.removeprefix(ATTRIBUTE)] = column
    return GivenColumns(
        ids=arrays.get("ids"),
        group=arrays.get("group"),
        weight=arrays.get("weight"),
        count=arrays.get("count"),
        attributes=attributes or None,
    )


def flatten_pixels(data: Fields, first_image: int) -> Fields:
    """Segmentation: arrays (image, class, height, width) become one row per pixel, with the image
    as group; other data is returned as it is.
    """
    shape = _find_image_shape(data)
    if shape is None:
        return data
    values = data.arrays[data.kind]
    images = values.shape[1] if data.kind.startswith("mc_") else values.shape[0]
    group: Array = np.arange(first_image, first_image + images, dtype=np.int64)
    for part in ("images", "group", "ids"):
        if part in data.arrays:
            group = data.arrays[part]
            break
    checks.same_length(group, "group", images, "the images")
    arrays: dict[str, Array] = {}
    for part, a in data.arrays.items():
        if part in ("ids", "images", "group"):
            continue
        if part.startswith("mc_"):
            arrays[part] = np.moveaxis(a, 2, -1).reshape(len(a), -1, a.shape[2])
        elif a.ndim == len(shape) + 2:
            arrays[part] = np.moveaxis(a, 1, -1).reshape(-1, a.shape[1])
        elif part.startswith(ATTRIBUTE) and a.shape == (images,):
            arrays[part] = repeat_values(a, prod(shape))
        elif a.shape == (images, *shape):
            arrays[part] = a.reshape(-1)
        else:
            need = f"one value per pixel, {' × '.join(map(str, (images, *shape)))}, is needed"
            raise InputError(part, got=f"has shape {a.shape}", need=need)
    arrays["group"] = repeat_values(group, prod(shape))
    # A pixel has no line.
    return Fields(path=data.path, kind=data.kind, arrays=arrays, class_names=data.class_names)


def _find_image_shape(data: Fields) -> tuple[int, ...] | None:
    """The axes of an image, or None where rows are samples."""
    values = data.arrays[data.kind]
    if data.kind.startswith("mc_"):
        return values.shape[3:] or None
    if data.kind in TOP_ANSWER_VALUES:
        return values.shape[1:] or None
    if values.ndim > 3:
        return values.shape[2:]
    # Three axes are (sample, row, class) as well as (image, class, pixel): the labels decide.
    labels = data.arrays.get("labels")
    if values.ndim == 3 and labels is not None and labels.shape == (len(values), values.shape[2]):
        return values.shape[2:]
    return None


class SameRows(InputError):
    """Two files may be models on the same rows, and nothing says what they are."""

    @classmethod
    def of(cls, name: str, other: str, got: str) -> SameRows:
        """The error about two files, with the three ways to read them."""
        return cls(
            f"{name} and {other}",
            got=got,
            need=f"say what they are: howsure compare {name} {other} (models), "
            "--ensemble (members, averaged) or --parts (of one data set)",
            hint="in Python, ReadOptions(several='ensemble') or 'parts'",
        )


def join_files(
    parts: Sequence[Predictions], names: Sequence[str], several: Several | None
) -> Predictions:
    """Files as one data set, or as the members of an ensemble; refused where they may be models on
    the same rows and nothing says what they are.
    """
    if several == "ensemble":
        return average_members(parts, names)
    if several is None:
        for part, name in zip(parts[1:], names[1:], strict=True):
            same = find_same_rows(parts[0], part)
            if same:
                raise SameRows.of(names[0], name, f"have the same {part.n:,} rows ({same})")
    return concat_predictions(parts, names)


def find_same_rows(a: Predictions, b: Predictions) -> str:
    """What says that two files are about the same rows; "" where nothing does."""
    if a.n != b.n:
        return ""
    if a.ids is not None and b.ids is not None and np.array_equal(a.ids, b.ids):
        # Every part of a data set may be numbered from 0 or 1 on.
        numbered = a.ids.dtype.kind in "iu" and bool((np.diff(a.ids) == 1).all())
        if not numbered and a.n > 1:
            return "identical ids"
    labels, others = a.known_labels, b.known_labels
    if labels is None or others is None or a.n < TELLING_LABELS:
        return ""
    if np.array_equal(labels, others) and len(set(labels.tolist())) > 1:
        return "identical labels"
    return ""


def average_members(parts: Sequence[Predictions], names: Sequence[str]) -> Predictions:
    """Members of an ensemble: their probabilities are averaged, and their disagreement is known."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if not part.vectors:
            need = "members of an ensemble need logits or probabilities of all classes"
            raise InputError(name, got="has a confidence alone", need=need)
        _check_alike(first, part, names[0], name)
        for column in ("known_labels", "ids"):
            ours, theirs = getattr(first, column), getattr(part, column)
            if part.n != first.n or not np.array_equal(ours, theirs):
                got = f"differ in their {column.removeprefix('known_')}"
                need = "members of an ensemble answer the same rows"
                raise InputError(f"{names[0]} and {name}", got=got, need=need)
    members: list[Array] = []
    for part in parts:
        members.append(part.values if part.values.ndim == 3 else part.values[None])
    receipt = first.receipt
    if receipt is not None:
        note = f"average of {len(parts)} files ({', '.join(names)})"
        receipt = replace(receipt, notes=(*receipt.notes, note))
    return replace(first, values=np.concatenate(members), receipt=receipt)


def concat_predictions(parts: Sequence[Predictions], names: Sequence[str]) -> Predictions:
    """All rows, in the order of the files, which must hold the same kind of thing."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part, name in zip(parts[1:], names[1:], strict=True):
        _check_alike(first, part, names[0], name)
    unanswered = None
    counts = [part.unanswered for part in parts if part.unanswered is not None]
    if counts:
        unanswered = sum(counts[1:], counts[0])
    attributes: dict[str, Array] = {}
    for column in dict.fromkeys(name for part in parts for name in part.attributes or ()):
        further = [(part.attributes or {}).get(column) for part in parts]
        attributes[column] = _concat_column(column, further, names)
    beside: dict[str, Array] = {}
    for column in COLUMNS_BESIDE:
        arrays: list[Array | None] = [getattr(part, column) for part in parts]
        if any(a is not None for a in arrays):
            beside[column] = _concat_column(column.removeprefix("known_"), arrays, names)
    receipts = [part.receipt for part in parts if part.receipt is not None]
    receipt = None
    if receipts:
        receipt = replace(receipts[0], rows=sum(one.rows for one in receipts))
    return replace(
        first,
        receipt=receipt,
        rounded=any(part.rounded for part in parts),
        values=np.concatenate([p.values for p in parts], axis=1 if first.values.ndim == 3 else 0),
        unanswered=unanswered,
        layout=concat_layouts([part.layout for part in parts]),
        attributes=attributes or None,
        **beside,
    )


def _concat_column(column: str, arrays: Sequence[Array | None], names: Sequence[str]) -> Array:
    """One column of all files, which all must have."""
    there: list[Array] = []
    for a, name in zip(arrays, names, strict=True):
        if a is None:
            hint = "give it to all files or to none"
            raise InputError(name, got=f"has no {column}, others do", hint=hint)
        there.append(a)
    return concat_arrays(there)


def _check_alike(a: Predictions, b: Predictions, name_a: str, name_b: str) -> None:
    facts = {
        "kind": (a.kind, b.kind),
        "number of classes": (a.k, b.k),
        "number of samples (mc)": (a.samples, b.samples),
        "class names": (a.class_names, b.class_names),
        "the labels": (_get_label_names(a), _get_label_names(b)),
    }
    for what, (x, y) in facts.items():
        if x != y:
            got = f"differ in {what} ({str(x)[:200]} and {str(y)[:200]})"
            raise InputError(f"{name_a} and {name_b}", got=got, hint="read them separately")


def _get_label_names(preds: Predictions) -> tuple[str, ...] | None:
    if preds.layout is None or preds.layout.parts != "labels":
        return None
    return preds.layout.names
