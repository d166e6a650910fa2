"""Everything that can be wrong with the parts of a file, each found by one small function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from howsure._core.check import Array, Bools, InputError
from howsure.formats import llm
from howsure.formats.assembly import class_numbers
from howsure.formats.contents import Problem
from howsure.formats.fields import Fields
from howsure.predictions import ROW_SUM_TOLERANCE

SHOWN = 5
TOP = ("confidence", "logprob")


def rows(bad: Bools, data: Fields) -> str:
    """The places of the bad rows: the first few, and how many there are."""
    found = np.flatnonzero(bad)
    numbers = found if data.lines is None else data.lines[found]
    word = "row" if data.lines is None else "line"
    listed = ", ".join(str(int(i)) for i in numbers[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{data.path.name}, {word}{'s' if len(found) > 1 else ''} {listed}{more}"


def rest(bad: Bools) -> str:
    """What remains when the bad rows are left out."""
    good = int((~bad).sum())
    return "nothing" if not good else "the other row" if good == 1 else f"the other {good:,} rows"


def in_row(bad: Array) -> Bools:
    """Rows with at least one True."""
    return np.asarray(bad.any(axis=1), dtype=np.bool_)


def untold(bad: Array, a: Array, data: Fields) -> Bools:
    """Bad values less those of a text file that stand for a cell which its reader has complained about already."""
    return bad & ~np.isnan(a) if data.lines is not None else bad


def problems(data: Fields) -> Iterator[Problem]:
    """All problems of the parts, in the order in which a reader would meet them."""
    values = data.arrays[data.kind]
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        what = f"{data.kind} holds {values.dtype} of shape {values.shape}, not numbers for each sample"
        yield Problem(data.path.name, what, "convert it", "nothing")
        return
    yield from _lengths(data)
    yield from _not_finite(data)
    yield from _top(data) if data.kind in TOP else _vector(data)
    yield from _truth(data)
    yield from _identity(data)
    yield from _weights(data)


def per_row(data: Fields) -> Array:
    """The values with samples as the first axis, and everything else flattened behind it."""
    values = data.arrays[data.kind]
    turned = values.swapaxes(0, 1) if data.kind.startswith("mc_") and values.ndim > 1 else values
    return np.asarray(turned, dtype=np.float64).reshape(len(turned), -1) if turned.size else turned.reshape(0, 1)


def _lengths(data: Fields) -> Iterator[Problem]:
    n = len(per_row(data))
    if n == 0:
        yield Problem(data.path.name, f"{data.kind} has no rows", "at least one sample is needed", "nothing")
    for part, a in data.arrays.items():
        if part != data.kind and (a.ndim != 1 or len(a) != n):
            what = f"{part} has shape {a.shape}, {data.kind} has {n:,} rows"
            yield Problem(data.path.name, what, "give one value per sample", f"{data.kind} without {part}")


def _not_finite(data: Fields) -> Iterator[Problem]:
    values = per_row(data)
    for bad, what in ((np.isnan(values), "nan"), (np.isinf(values), "infinite")):
        hit = in_row(untold(bad, values, data))
        if hit.any():
            fix = "repair or remove these rows; a missing answer is not an unsure one"
            yield Problem(rows(hit, data), f"{data.kind} is {what}", fix, rest(hit))


def _vector(data: Fields) -> Iterator[Problem]:
    values = data.arrays[data.kind]
    if values.ndim == 3 and not data.kind.startswith("mc_"):
        yield Problem(
            data.path.name, f"{data.kind} has shape {values.shape}", f"name samples mc_{data.kind}", "nothing"
        )
    elif data.kind.endswith("probs") and data.kind != "logprobs":
        yield from _distributions(data)
    elif values.ndim == 2 and values.shape[1] > 1 and data.kind == "logits" and _like_probs(values):
        fix = "if they are probabilities, name them probs"
        yield Problem(
            data.path.name, "logits are all in [0, 1] with rows that sum to 1", fix, "everything", stops=False
        )


def _like_probs(values: Array) -> bool:
    sums = values.sum(axis=-1, dtype=np.float64)
    return bool((values >= 0).all() and (np.abs(sums - 1) < 1e-3).all())


def _distributions(data: Fields) -> Iterator[Problem]:
    values = data.arrays[data.kind]
    tolerance = ROW_SUM_TOLERANCE.get(values.dtype.itemsize, 1e-6)
    flat = per_row(data)
    outside = in_row((flat < -tolerance) | (flat > 1 + tolerance))
    if outside.any():
        yield Problem(
            rows(outside, data), "probs lie outside [0, 1]", "if these are logits, name them so", rest(outside)
        )
    if values.ndim < 2 or values.shape[-1] == 1:
        return
    sums = flat.reshape(len(flat), -1, values.shape[-1]).sum(axis=2)
    off = in_row(np.abs(sums - 1) > tolerance) & ~outside
    if off.any():
        first = float(sums[off][0][np.argmax(np.abs(sums[off][0] - 1))])
        fix = "read with renormalise=True (--renormalise), or write more digits"
        yield Problem(rows(off, data), f"probs sum to {first:.6g}, expected 1", fix, rest(off))


def _top(data: Fields) -> Iterator[Problem]:
    values = per_row(data)[:, 0]
    top = data.kind == "confidence"
    bad = (values < 0) | (values > 1) if top else values > 0
    if bad.any():
        what = f"{data.kind} is {values[bad][0]:g}"
        fix = (
            'a confidence lies in [0, 1], or is a percentage such as "85%"' if top else "a log-probability is at most 0"
        )
        yield Problem(rows(bad, data), what, fix, rest(bad))
    elif len(values) > 1 and (values == values[0]).all():
        fix = "give a score that differs between samples"
        yield Problem(
            data.path.name, f"every {data.kind} is {values[0]:g}", fix, "accuracy and calibration", stops=False
        )


def _truth(data: Fields) -> Iterator[Problem]:
    if data.kind in TOP:
        yield from _right_or_wrong(data)
    elif "labels" in data.arrays:
        yield from _labels(data)
    else:
        yield Problem(
            data.path.name, "there are no labels", "add a column label", "decisions, not metrics", stops=False
        )


def _right_or_wrong(data: Fields) -> Iterator[Problem]:
    correct, said, true = (data.arrays.get(part) for part in ("correct", "prediction", "labels"))
    known = said is not None and true is not None and said.shape == true.shape
    if correct is None and not known:
        fix = "add a column correct, or prediction and label"
        yield Problem(
            data.path.name, "nothing says which answers are right", fix, "decisions, not metrics", stops=False
        )
    if correct is None or correct.dtype.kind not in "biuf" or correct.ndim != 1:
        return
    bad = untold((correct != 0) & (correct != 1), correct, data)
    if bad.any():
        yield Problem(rows(bad, data), f"correct is {correct[bad][0]:g}", "use 0 for wrong and 1 for right", rest(bad))
    elif known and said is not None and true is not None and len(said) == len(correct):
        differ = llm.same_answer(said, true) != correct.astype(np.bool_)
        if differ.any():
            fix = "correct is what counts; check these rows"
            yield Problem(
                rows(differ, data), "correct disagrees with prediction and label", fix, "everything", stops=False
            )


def _labels(data: Fields) -> Iterator[Problem]:
    try:
        labels = class_numbers(data.arrays["labels"], data.class_names)
    except InputError as e:
        what, _, fix = str(e).rstrip(".").rpartition("; ")
        yield Problem(data.path.name, what, fix, "decisions, not metrics")
        return
    if labels.dtype.kind == "f":
        yield Problem(
            data.path.name, f"labels are {labels.dtype}", "use whole numbers, labels.astype(int)", "decisions"
        )
        return
    shape = data.arrays[data.kind].shape
    k = 2 if len(shape) == 1 or shape[-1] == 1 else shape[-1]
    bad = (labels < 0) | (labels >= k) if labels.ndim == 1 else np.zeros(0, dtype=np.bool_)
    if bad.any():
        from_one = labels.min() == 1 and labels.max() == k
        fix = f"number them from 0{' (subtract 1)' if from_one else ''}"
        what = f"labels are {int(labels[bad][0])}, with {k} classes they run from 0 to {k - 1}"
        yield Problem(rows(bad, data), what, fix, rest(bad))


def _identity(data: Fields) -> Iterator[Problem]:
    ids = data.arrays.get("ids")
    if ids is None or ids.ndim != 1:
        return
    _, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if (counts > 1).any():
        again = np.ones(len(ids), dtype=np.bool_)
        again[first] = False
        fix = "give every sample an id of its own, and use group for what several share"
        yield Problem(rows(again, data), f"ids repeat (first: {ids[again][0]})", fix, "everything without ids")


def _weights(data: Fields) -> Iterator[Problem]:
    weight = data.arrays.get("weight")
    if weight is None or weight.dtype.kind not in "biuf" or weight.ndim != 1:
        return
    bad = untold(~((weight >= 0) & np.isfinite(weight)), weight, data)
    if bad.any():
        yield Problem(rows(bad, data), f"weight is {weight[bad][0]:g}", "use finite weights of at least 0", rest(bad))
    elif not weight.any():
        yield Problem(
            data.path.name, "every weight is 0", "at least one sample must count", "everything without weight"
        )
