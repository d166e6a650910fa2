"""The parts of a file as typed arrays, and runs of rows joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from howsure._core.check import Array, InputError, Ints
from howsure.formats import cells, llm
from howsure.formats.cells import Column
from howsure.formats.contents import Contents, Report, refuse
from howsure.formats.names import Wanted, class_names, kind, plan
from howsure.predictions.unanswered import Unanswered

BESIDE = ("labels", "correct", "prediction", "grade", "loss", "no_answer", "ids", "weight", "group", "images", "split")
VECTORS = ("logits", "probs", "logprobs", "mc_logits", "mc_probs")
TYPED: dict[str, Callable[[Column], Array]] = {
    "confidence": cells.confidences,
    "logprob": cells.numbers,
    "weight": cells.numbers,
    "correct": cells.truths,
    "grade": cells.numbers,
    "loss": cells.numbers,
    "no_answer": cells.reasons,
}


@dataclass(frozen=True)
class Fields:
    """Arrays by part, of one file or a run of its rows. `kind` says which part holds the values."""

    path: Path
    kind: str
    arrays: dict[str, Array]
    class_names: tuple[str, ...] | None = None
    lines: Ints | None = None
    unanswered: Unanswered | None = None


@dataclass(frozen=True)
class _Loaded:
    """An array and the class names that its cells carry."""

    array: Array
    names: tuple[str, ...] | None = None


def fields(contents: Contents, wanted: Wanted, report: Report = refuse) -> Fields:
    """Find the parts by name and load them."""
    found = plan(contents, wanted)
    value = kind(found, wanted)
    beside = BESIDE if contents.table else BESIDE[:-1]  # arrays have splits by name
    parts = {part: found[part] for part in (value, *beside, "class_names") if part in found}
    loaded = {part: _load(part, names, contents, report) for part, names in parts.items() if part != "samples"}
    if value == "samples":
        loaded |= _sampled(Column(_cells_of(contents, parts[value][0]), parts[value][0], contents, report), loaded)
    arrays = {part: one.array for part, one in loaded.items() if part != "class_names"}
    value = "confidence" if value == "samples" else value
    return Fields(contents.path, value, arrays, _classes(loaded, parts, contents), contents.lines)


def _cells_of(contents: Contents, name: str) -> Sequence[object]:
    values = contents.entries[name].load()
    return values.tolist() if isinstance(values, np.ndarray) else values


def _load(part: str, names: tuple[str, ...], contents: Contents, report: Report) -> _Loaded:
    values = [(name, contents.entries[name].load()) for name in names]
    arrays = [v for _, v in values if isinstance(v, np.ndarray)]
    if len(arrays) == len(values):
        return _Loaded(_stacked(arrays, part, names, contents))
    columns = [Column(v.tolist() if isinstance(v, np.ndarray) else v, name, contents, report) for name, v in values]
    return _vectors(part, columns) if part in VECTORS else _Loaded(TYPED.get(part, cells.names)(columns[0]))


def _stacked(arrays: list[Array], part: str, names: tuple[str, ...], contents: Contents) -> Array:
    """One array as it is; the columns of a table side by side; the samples of a table's rows as (s, n, k)."""
    if len(arrays) == 1:
        turned = contents.table and part.startswith("mc_") and arrays[0].ndim == 3
        return arrays[0].swapaxes(0, 1) if turned else arrays[0]
    for a, name in zip(arrays, names, strict=True):
        if a.dtype.kind not in "biuf" or a.shape != arrays[0].shape or a.ndim != 1:
            raise InputError(f"{contents.path.name}, column {name!r} is {a.dtype} {a.shape}; numbers are needed.")
    return np.stack(arrays, axis=1)


def _vectors(part: str, columns: list[Column]) -> _Loaded:
    """Columns side by side, or one column of lists."""
    half = part.endswith("probs")
    if len(columns) > 1:
        return _Loaded(cells.narrow(cells.side_by_side(columns), half=half))
    a, names = cells.lists(columns[0])
    turned = part.startswith("mc_") and a.ndim == 3
    return _Loaded(cells.narrow(a.swapaxes(0, 1) if turned else a, half=half), names)


def _sampled(column: Column, loaded: dict[str, _Loaded]) -> dict[str, _Loaded]:
    """The share of samples that agree with the answer, which is the most frequent one where none is given."""
    samples = cells.texts(column)
    given = loaded.get("prediction")
    answers = [llm.majority(row) for row in samples] if given is None else [str(a) for a in given.array.tolist()]
    if len(answers) != len(samples):
        raise InputError(f"{column.contents.path.name}: prediction and samples have different lengths.")
    shares = _Loaded(llm.agreement(samples, answers))
    return {"confidence": shares, "prediction": given or _Loaded(cells.text(answers))}


def _classes(
    loaded: dict[str, _Loaded], parts: dict[str, tuple[str, ...]], contents: Contents
) -> tuple[str, ...] | None:
    if contents.class_names is not None:
        return contents.class_names
    if "class_names" in loaded and not contents.table:
        return tuple(str(c) for c in np.atleast_1d(loaded["class_names"].array).tolist())
    carried = next((one.names for one in loaded.values() if one.names is not None), None)
    vector = next((names for part, names in parts.items() if part in VECTORS), None)
    return carried or (class_names(vector) if vector else None)


def joined(runs: Sequence[Fields]) -> Fields:
    """Runs of rows of one file as one."""
    first = runs[0]
    if len(runs) == 1:
        return first
    for run in runs[1:]:
        if run.kind != first.kind or set(run.arrays) != set(first.arrays) or run.class_names != first.class_names:
            raise InputError(_changed(first, run))
    arrays = {part: _concatenated([run.arrays[part] for run in runs], part, first) for part in first.arrays}
    lines = None if first.lines is None else np.concatenate([run.lines for run in runs if run.lines is not None])
    return Fields(first.path, first.kind, arrays, first.class_names, lines)


def _changed(first: Fields, run: Fields) -> str:
    start = "" if run.lines is None else f" from line {int(run.lines[0])} on"
    odd = ", ".join(sorted(set(run.arrays) ^ set(first.arrays))) or "the classes"
    return f"{run.path.name} changes{start}: {odd} is not the same in all rows; give every row the same columns."


def _concatenated(arrays: list[Array], part: str, first: Fields) -> Array:
    if len({a.dtype.kind in "UO" for a in arrays}) > 1:  # whole numbers in one run, text in another
        arrays = [a if a.dtype.kind in "UO" else a.astype(np.str_) for a in arrays]
    try:
        return np.concatenate(arrays, axis=1 if part.startswith("mc_") else 0)
    except ValueError:
        shapes = ", ".join(sorted({str(a.shape[1:]) for a in arrays}))
        raise InputError(f"{first.path.name}: {part} changes its shape between rows ({shapes}).") from None
