"""Parts of a file → Predictions, and those of several files as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError, Ints
from howsure.formats import llm
from howsure.formats.fields import Fields, together
from howsure.formats.names import ATTRIBUTE, Wanted
from howsure.predictions import Predictions
from howsure.predictions.layout import Layout, regular
from howsure.predictions.layout import together as laid_out

BESIDE = (
    "known_labels",
    "known_correct",
    "known_prediction",
    "known_loss",
    "ids",
    "group",
    "weight",
)


def assembled(data: Fields, wanted: Wanted | None = None, *, first_image: int = 0) -> Predictions:
    """The predictions that the parts describe; every complaint names the file. Images and cases
    have numbers.
    """
    how = wanted or Wanted()
    try:
        if how.multilabel:
            return replace(_many_labels(data, how, first_image), unanswered=data.unanswered)
        flat = by_pixel(data, first_image)
        _check_ids(flat.arrays.get("ids"))
        made = replace(_made(flat, how.renormalise), unanswered=data.unanswered)
        return made if flat is data else replace(made, layout=_pixels(data, made.n, first_image))
    except InputError as e:
        raise located(e, data) from None


def located(error: InputError, data: Fields) -> InputError:
    """The error with the file's name, and with the line and the number of its row in the file."""
    known = data.lines is not None and error.row is not None and error.row < len(data.lines)
    line = (
        int(data.lines[error.row])
        if known and data.lines is not None and error.row is not None
        else None
    )
    return error.at(data.path.name, line, first=data.first)


def _made(data: Fields, renormalise: bool) -> Predictions:
    a, kind = data.arrays, data.kind
    beside: dict[str, Any] = {name: a[name] for name in ("ids", "group", "weight") if name in a}
    beside["class_names"] = data.class_names
    beside |= _attributes(a)
    if kind in ("confidence", "logprob"):
        return _top_label(data, beside)
    values = check.array(a[kind], kind)
    labels = a.get("labels")
    if kind.startswith("mc_"):
        sort = kind.removeprefix("mc_")
        return Predictions.from_samples(
            labels=labels, **{sort: values}, renormalise=renormalise, **beside
        )
    if kind == "probs":
        return Predictions.from_probs(values, labels, renormalise=renormalise, **beside)
    if values.ndim == 3:
        need = f"samples of shape (s, n, k) must be named mc_{kind}"
        raise InputError(kind, got=f"has shape {values.shape}", need=need)
    return Predictions.from_logits(values, labels, **beside)


def _attributes(a: dict[str, Array]) -> dict[str, dict[str, Array]]:
    further = {
        part.removeprefix(ATTRIBUTE): column
        for part, column in a.items()
        if part.startswith(ATTRIBUTE)
    }
    return {"attributes": further} if further else {}


def _many_labels(data: Fields, wanted: Wanted, first: int) -> Predictions:
    a, kind = data.arrays, data.kind
    if kind not in ("probs", "logits"):
        need = "many labels per case need probs or logits (cases, labels)"
        raise InputError(kind, got="is not one number for each label", need=need)
    _check_ids(a.get("ids"))
    beside: dict[str, Any] = {name: a[name] for name in ("ids", "group", "weight") if name in a}
    beside |= _attributes(a)
    return Predictions.from_multilabel(
        labels=a.get("labels"),
        **{kind: check.array(a[kind], kind)},
        label_names=data.class_names,
        sums_to_one=wanted.sums_to_one,
        first=first,
        **beside,
    )


def _top_label(data: Fields, beside: dict[str, Any]) -> Predictions:
    a = data.arrays
    values = check.array(a[data.kind], data.kind)
    correct, said, true = (a.get(part) for part in ("correct", "prediction", "labels"))
    if correct is None and said is not None and true is not None:
        check.same_length(said, "prediction", len(np.atleast_1d(true)), "labels")
        correct = llm.same_answer(said, true)
    confidence = values if data.kind == "confidence" else llm.from_logprob(values)
    return Predictions.from_confidence(
        confidence,
        correct,
        prediction=said,
        labels=true,
        loss=_loss(a, known=correct is not None),
        **beside,
    )


def _loss(a: dict[str, Array], *, known: bool) -> Array | None:
    """The loss that is given, or what a grade is short of 1 where it is all that is known."""
    if "loss" in a or "grade" not in a or known:
        return a.get("loss")
    grade = check.column(a["grade"], "grade")
    bad = ~((grade >= 0) & (grade <= 1))
    if bad.any():
        i = check.first(bad)
        hint = "For anything else give a loss"
        raise InputError(
            "grade", row=i, got=f"is {grade[i]:g}", need="a grade lies in [0, 1]", hint=hint
        )
    return 1 - grade


def by_pixel(data: Fields, first_image: int) -> Fields:
    """Segmentation: arrays (image, class, height, width) become one row per pixel, with the image
    as group.
    """
    value = data.arrays[data.kind]
    space = _space(value, data)
    if space is None:
        return data
    images = (value.shape[1] if data.kind.startswith("mc_") else value.shape[0], *space)
    named: Array | None = next(
        (data.arrays[p] for p in ("images", "group", "ids") if p in data.arrays), None
    )
    counted: Ints = np.arange(first_image, first_image + images[0], dtype=np.int64)
    group: Array = counted if named is None else named
    check.same_length(group, "group", images[0], "the images")
    arrays = {
        part: _flat(a, part, images)
        for part, a in data.arrays.items()
        if part not in ("ids", "images", "group")
    }
    arrays["group"] = np.repeat(group, int(np.prod(space)))
    return Fields(data.path, data.kind, arrays, data.class_names)  # a pixel has no line


def _pixels(data: Fields, n: int, first: int) -> Layout:
    """Where each row stands in its image."""
    space = _space(data.arrays[data.kind], data) or (1,)
    return regular("pixels", n // int(np.prod(space)), space, first=first)


def _space(value: Array, data: Fields) -> tuple[int, ...] | None:
    """The axes of an image, or None where rows are samples."""
    if data.kind.startswith("mc_"):
        return value.shape[3:] or None
    if data.kind in ("confidence", "logprob"):
        return value.shape[1:] or None
    labels = data.arrays.get("labels")
    pixels = value.ndim > 3 or (
        value.ndim == 3 and labels is not None and labels.shape == (len(value), value.shape[2])
    )
    return value.shape[2:] if pixels else None


def _flat(a: Array, part: str, images: tuple[int, ...]) -> Array:
    if part.startswith("mc_"):
        return np.moveaxis(a, 2, -1).reshape(len(a), -1, a.shape[2])
    if a.ndim == len(images) + 1:
        return np.moveaxis(a, 1, -1).reshape(-1, a.shape[1])
    if part.startswith(ATTRIBUTE) and a.shape == images[:1]:
        return np.repeat(a, int(np.prod(images[1:])))
    if a.shape != images:
        shape = " × ".join(map(str, images))
        raise InputError(
            part, got=f"has shape {a.shape}", need=f"one value per pixel, {shape}, is needed"
        )
    return a.reshape(-1)


def _check_ids(ids: Array | None) -> None:
    if ids is None or ids.ndim != 1:
        return
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(same):
        i, j = sorted((int(order[same[0]]), int(order[same[0] + 1])))
        raise InputError(
            "ids",
            row=j,
            got=f"is {str(ids[j])[:60]!r} like row {i} ({len(same):,} repeated ids)",
            need="an id names one sample, so use `group` for what several samples share",
        )


def joined(parts: Sequence[Predictions], names: Sequence[str]) -> Predictions:
    """All rows, in the order of the files, which must hold the same kind of thing."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part, name in zip(parts[1:], names[1:], strict=True):
        _check_alike(first, part, names[0], name)
    axis = 1 if first.values.ndim == 3 else 0
    beside = {column: _column(parts, column, names) for column in BESIDE}
    counted = [p.unanswered for p in parts if p.unanswered is not None]
    total = sum(counted[1:], counted[0]) if counted else None
    values, layout = (
        np.concatenate([p.values for p in parts], axis=axis),
        laid_out([p.layout for p in parts]),
    )
    return replace(
        first, values=values, unanswered=total, layout=layout, attributes=_further(parts), **beside
    )


def _further(parts: Sequence[Predictions]) -> dict[str, Array] | None:
    """The further columns, which all files have: they were asked for by name."""
    every = [p.attributes for p in parts if p.attributes is not None]
    return (
        {name: together([found[name] for found in every]) for name in every[0]} if every else None
    )


def _check_alike(a: Predictions, b: Predictions, name_a: str, name_b: str) -> None:
    facts = {
        "kind": (a.kind, b.kind),
        "number of classes": (a.k, b.k),
        "number of samples (mc)": (a.samples, b.samples),
        "class names": (a.class_names, b.class_names),
        "the labels": (_labels_of(a), _labels_of(b)),
    }
    for what, (x, y) in facts.items():
        if x != y:
            got = f"differ in {what} ({str(x)[:200]} and {str(y)[:200]})"
            raise InputError(f"{name_a} and {name_b}", got=got, hint="read them separately")


def _labels_of(p: Predictions) -> tuple[str, ...] | None:
    return None if p.layout is None or p.layout.parts != "labels" else p.layout.names


def _column(parts: Sequence[Predictions], column: str, names: Sequence[str]) -> Array | None:
    found: list[Array | None] = [getattr(p, column) for p in parts]
    there = [a for a in found if a is not None]
    if not there:
        return None
    if len(there) < len(found):
        lacking = names[[a is None for a in found].index(True)]
        got = f"has no {column.removeprefix('known_')}, others do"
        raise InputError(lacking, got=got, hint="give it to all files or to none")
    return together(there)
