"""What is in a file, and everything that is wrong with it, each found by one small function."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.budget import of_file
from howsure._core.check import Array, Bools, InputError
from howsure._core.frozen import frozen
from howsure.formats import llm, logs
from howsure.formats.assembly import assembled, by_pixel, located
from howsure.formats.catalogue import found
from howsure.formats.contents import Contents, Problem
from howsure.formats.fields import Fields
from howsure.formats.files import log_of, whole
from howsure.formats.logs import columns
from howsure.formats.names import Names, NoAnswer, Wanted, parts_of, splits
from howsure.predictions import ROW_SUM_TOLERANCE
from howsure.predictions.classes import class_places

SHOWN = 5
SPLITS = 20  # that are examined
TOP = ("confidence", "logprob")


@frozen
class Item:
    """One array or column: its name, shape and type, and the part it plays ("" if none)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    part: str


@frozen
class Description:
    """What a file holds: its format, its arrays or columns, and its splits ("" for arrays without a
    prefix).
    """

    path: str
    format: str
    items: tuple[Item, ...]
    splits: tuple[str, ...]


def describe(path: str | os.PathLike[str], *, format: str | None = None) -> Description:
    """What a file holds, without reading more of it than needed; `format` names the tool that wrote
    a log.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,correct,note\\n0.9,1,good\\n")
    >>> [(item.name, item.part) for item in describe(path).items]
    [('confidence', 'confidence'), ('correct', 'correct'), ('note', '')]
    """
    title, runs = _held(Path(path), Wanted(format=format))
    parts, shapes = parts_of(runs[0]), _shapes(runs)
    items = [
        Item(name, shapes[name], entry.dtype, parts.get(name, ""))
        for name, entry in runs[0].entries.items()
    ]
    return Description(str(path), title, tuple(items), tuple(_splits(runs)))


def _held(path: Path, wanted: Wanted) -> tuple[str, list[Contents]]:
    """What a file is, and what it holds."""
    if logs.is_log(path, wanted.format):
        log = log_of(path, wanted)
        return log.title, [columns.contents(log, path)]
    module, file = found(path)
    return module.title, list(_counted(module.read(file, None), file))


def _counted(runs: Iterable[Contents], path: Path) -> Iterator[Contents]:
    """The runs of a file, which are all held here: those of packed text may be far larger than it."""
    budget = of_file(path)
    for run in runs:
        if budget is not None and run.size:
            budget.spend(run.size)
        yield run


def _splits(runs: Sequence[Contents]) -> list[str]:
    """The splits by prefix, or those of a table's column `split`."""
    column = next((name for name, part in parts_of(runs[0]).items() if part == "split"), None)
    if column is None or not runs[0].table:
        return splits(runs[0])
    return sorted(
        {str(cell) for run in runs if column in run.entries for cell in run.entries[column].load()}
    )


def _shapes(runs: Sequence[Contents]) -> dict[str, tuple[int, ...]]:
    """The shape of every entry over all runs of rows."""
    shapes: dict[str, tuple[int, ...]] = {}
    for run in runs:
        for name, entry in run.entries.items():
            before = shapes.get(name)
            shapes[name] = entry.shape if not before else (before[0] + entry.rows, *before[1:])
    return shapes


def problems(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    mc: bool = False,
    names: Names | None = None,
    renormalise: bool = False,
    format: str | None = None,
    percent: bool = False,
    no_answer: NoAnswer = "apart",
    drop_outside: bool = False,
    multilabel: bool = False,
    sums_to_one: bool = False,
) -> list[Problem]:
    """Everything that is wrong with a file, not only the first thing; empty where all is well.

    Every split is looked at where none is named. A problem says where it is, what it is, how to
    repair it, and what can be evaluated anyway; `stops` tells those that `read` refuses.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.2,0\\n0.4,0.6,2\\n")
    >>> for problem in problems(path):
    ...     print(problem)
    a.csv, line 2: probs sum to 1.1, expected 1; read with renormalise=True (--renormalise), or write more digits.
    a.csv, line 3: labels are 2, with 2 classes they run from 0 to 1; number them from 0.
    """
    wanted = Wanted(
        split,
        mc,
        names or {},
        renormalise,
        format,
        percent,
        no_answer,
        drop_outside,
        multilabel,
        sums_to_one,
    )
    try:
        runs, wanted, doubts = _examined(Path(path), wanted)
        chosen = _splits(runs) if split is None else [split]
    except InputError as e:
        return [Problem.of(e, Path(path))]
    if len(chosen) < 2:
        return [*doubts, *_of_split(runs, wanted)]
    return [*doubts, *_too_many(chosen, Path(path))] + [
        replace(problem, where=f"split {name!r}, {problem.where}")
        for name in chosen[:SPLITS]
        for problem in _of_split(runs, replace(wanted, split=name))
    ]


def _too_many(splits: Sequence[str], path: Path) -> Iterator[Problem]:
    """Each split is looked for among all rows, so that not every one of many can be examined."""
    if len(splits) > SPLITS:
        what = f"has {len(splits):,} splits, of which the first {SPLITS} are examined"
        yield Problem(
            path.name,
            what,
            "name another one with split= (--split)",
            "each split by itself",
            stops=False,
        )


def _examined(path: Path, wanted: Wanted) -> tuple[list[Contents], Wanted, list[Problem]]:
    """What a file holds, what is wanted of it, and what is doubtful about a log."""
    if not logs.is_log(path, wanted.format):
        return _held(path, wanted)[1], wanted, []
    log = log_of(path, wanted)
    doubts = [
        Problem(path.name, doubt, "read the numbers with care", "everything", stops=False)
        for doubt in log.doubts
    ]
    return [columns.contents(log, path)], columns.wanted_of(log, wanted, path), doubts


def _of_split(runs: Sequence[Contents], wanted: Wanted) -> list[Problem]:
    out: list[Problem] = []
    path = runs[0].path
    try:
        data = whole(runs, wanted, out.append)
        out += (
            () if wanted.multilabel else _of_parts(data, wanted)
        )  # labels of many are checked as they are assembled
        if not any(problem.stops for problem in out):
            assembled(data, wanted)
    except InputError as e:
        out.append(Problem.of(e, path))
    return out


def _of_parts(data: Fields, wanted: Wanted) -> Iterator[Problem]:
    return _found(by_pixel(data, 0), wanted)


def _rows(bad: Bools, data: Fields) -> str:
    """The places of the bad rows: the first few, and how many there are."""
    found = np.flatnonzero(bad)
    numbers = found if data.lines is None else data.lines[found]
    word = "row" if data.lines is None else "line"
    listed = ", ".join(str(int(i)) for i in numbers[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{data.path.name}, {word}{'s' if len(found) > 1 else ''} {listed}{more}"


def _rest(bad: Bools) -> str:
    """What remains when the bad rows are left out."""
    good = int((~bad).sum())
    return "nothing" if not good else "the other row" if good == 1 else f"the other {good:,} rows"


def _in_row(bad: Array) -> Bools:
    """Rows with at least one True."""
    return np.asarray(bad.any(axis=1), dtype=np.bool_)


def _untold(bad: Array, a: Array, data: Fields) -> Bools:
    """Bad values less those of a text file that stand for a cell which its reader has complained
    about already.
    """
    return bad & ~np.isnan(a) if data.lines is not None else bad


def _found(data: Fields, wanted: Wanted) -> Iterator[Problem]:
    """All problems of the parts, in the order in which a reader would meet them."""
    values = data.arrays[data.kind]
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        what = (
            f"{data.kind} holds {values.dtype} of shape {values.shape}, not numbers for each sample"
        )
        yield Problem(data.path.name, what, "convert it", "nothing")
        return
    yield from _lengths(data)
    yield from _not_finite(data)
    yield from _top(data) if data.kind in TOP else _vector(data, wanted)
    yield from _truth(data)
    yield from _identity(data)
    yield from _weights(data)


def _per_row(data: Fields) -> Array:
    """The values with samples as the first axis, and everything else flattened behind it."""
    values = data.arrays[data.kind]
    turned = values.swapaxes(0, 1) if data.kind.startswith("mc_") and values.ndim > 1 else values
    return (
        np.asarray(turned, dtype=np.float64).reshape(len(turned), -1)
        if turned.size
        else turned.reshape(0, 1)
    )


def _lengths(data: Fields) -> Iterator[Problem]:
    n = len(_per_row(data))
    if n == 0:
        yield Problem(
            data.path.name, f"{data.kind} has no rows", "at least one sample is needed", "nothing"
        )
    for part, a in data.arrays.items():
        if part != data.kind and (a.ndim != 1 or len(a) != n):
            what = f"{part} has shape {a.shape}, {data.kind} has {n:,} rows"
            yield Problem(
                data.path.name, what, "give one value per sample", f"{data.kind} without {part}"
            )


def _not_finite(data: Fields) -> Iterator[Problem]:
    values = _per_row(data)
    for bad, what in ((np.isnan(values), "nan"), (np.isinf(values), "infinite")):
        hit = _in_row(_untold(bad, values, data))
        if hit.any():
            fix = "repair or remove these rows; a missing answer is not an unsure one"
            yield Problem(_rows(hit, data), f"{data.kind} is {what}", fix, _rest(hit))


def _vector(data: Fields, wanted: Wanted) -> Iterator[Problem]:
    values = data.arrays[data.kind]
    if values.ndim == 3 and not data.kind.startswith("mc_"):
        yield Problem(
            data.path.name,
            f"{data.kind} has shape {values.shape}",
            f"name samples mc_{data.kind}",
            "nothing",
        )
    elif data.kind.endswith("probs") and data.kind != "logprobs":
        yield from _distributions(data, wanted)
    elif values.ndim == 2 and values.shape[1] > 1 and data.kind == "logits" and _like_probs(values):
        fix = "if they are probabilities, name them probs"
        yield Problem(
            data.path.name,
            "logits are all in [0, 1] with rows that sum to 1",
            fix,
            "everything",
            stops=False,
        )


def _like_probs(values: Array) -> bool:
    sums = values.sum(axis=-1, dtype=np.float64)
    return bool((values >= 0).all() and (np.abs(sums - 1) < 1e-3).all())


def _distributions(data: Fields, wanted: Wanted) -> Iterator[Problem]:
    values = data.arrays[data.kind]
    tolerance = ROW_SUM_TOLERANCE.get(values.dtype.itemsize, 1e-6)
    flat = _per_row(data)
    outside = _in_row((flat < -tolerance) | (flat > 1 + tolerance))
    if outside.any():
        yield Problem(
            _rows(outside, data),
            "probs lie outside [0, 1]",
            "if these are logits, name them so",
            _rest(outside),
        )
    if values.ndim < 2 or values.shape[-1] == 1 or wanted.renormalise:
        return
    sums = flat.reshape(len(flat), -1, values.shape[-1]).sum(axis=2)
    off = _in_row(np.abs(sums - 1) > tolerance) & ~outside
    if off.any():
        first = float(sums[off][0][np.argmax(np.abs(sums[off][0] - 1))])
        fix = "read with renormalise=True (--renormalise), or write more digits"
        yield Problem(_rows(off, data), f"probs sum to {first:.6g}, expected 1", fix, _rest(off))


def _top(data: Fields) -> Iterator[Problem]:
    values = _per_row(data)[:, 0]
    top = data.kind == "confidence"
    bad = (values < 0) | (values > 1) if top else values > 0
    if bad.any():
        what = f"{data.kind} is {values[bad][0]:g}"
        fix = (
            'a confidence lies in [0, 1], or is a percentage such as "85%"'
            if top
            else "a log-probability is at most 0"
        )
        yield Problem(_rows(bad, data), what, fix, _rest(bad))
    elif len(values) > 1 and (values == values[0]).all():
        fix = "give a score that differs between samples"
        yield Problem(
            data.path.name,
            f"every {data.kind} is {values[0]:g}",
            fix,
            "accuracy and calibration",
            stops=False,
        )


def _truth(data: Fields) -> Iterator[Problem]:
    if data.kind in TOP:
        yield from _right_or_wrong(data)
    elif "labels" in data.arrays:
        yield from _labels(data)
    else:
        yield Problem(
            data.path.name,
            "there are no labels",
            "add a column label",
            "decisions, not metrics",
            stops=False,
        )


def _right_or_wrong(data: Fields) -> Iterator[Problem]:
    correct, said, true = (data.arrays.get(part) for part in ("correct", "prediction", "labels"))
    known = said is not None and true is not None and said.shape == true.shape
    if correct is None and not known:
        fix = "add a column correct, or prediction and label"
        yield Problem(
            data.path.name,
            "nothing says which answers are right",
            fix,
            "decisions, not metrics",
            stops=False,
        )
    if correct is None or correct.dtype.kind not in "biuf" or correct.ndim != 1:
        return
    bad = _untold((correct != 0) & (correct != 1), correct, data)
    if bad.any():
        yield Problem(
            _rows(bad, data),
            f"correct is {correct[bad][0]:g}",
            "use 0 for wrong and 1 for right",
            _rest(bad),
        )
    elif known and said is not None and true is not None and len(said) == len(correct):
        differ = llm.same_answer(said, true) != correct.astype(np.bool_)
        if differ.any():
            fix = "correct is what counts; check these rows"
            yield Problem(
                _rows(differ, data),
                "correct disagrees with prediction and label",
                fix,
                "everything",
                stops=False,
            )


def _labels(data: Fields) -> Iterator[Problem]:
    shape = data.arrays[data.kind].shape
    k = 2 if len(shape) == 1 or shape[-1] == 1 else int(shape[-1])
    try:
        labels = class_places(data.arrays["labels"], k, data.class_names)
    except InputError as e:
        yield replace(Problem.of(located(e, data), data.path), anyway="decisions, not metrics")
        return
    bad = (labels < 0) | (labels >= k)
    if bad.any():
        from_one = labels.min() == 1 and labels.max() == k
        fix = f"number them from 0{' (subtract 1)' if from_one else ''}"
        what = f"labels are {int(labels[bad][0])}, with {k} classes they run from 0 to {k - 1}"
        yield Problem(_rows(bad, data), what, fix, _rest(bad))


def _identity(data: Fields) -> Iterator[Problem]:
    ids = data.arrays.get("ids")
    if ids is None or ids.ndim != 1:
        return
    _, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if (counts > 1).any():
        again = np.ones(len(ids), dtype=np.bool_)
        again[first] = False
        fix = "give every sample an id of its own, and use group for what several share"
        yield Problem(
            _rows(again, data),
            f"ids repeat (first: {ids[again][0]})",
            fix,
            "everything without ids",
        )


def _weights(data: Fields) -> Iterator[Problem]:
    weight = data.arrays.get("weight")
    if weight is None or weight.dtype.kind not in "biuf" or weight.ndim != 1:
        return
    bad = _untold(~((weight >= 0) & np.isfinite(weight)), weight, data)
    if bad.any():
        yield Problem(
            _rows(bad, data),
            f"weight is {weight[bad][0]:g}",
            "use finite weights of at least 0",
            _rest(bad),
        )
    elif not weight.any():
        yield Problem(
            data.path.name,
            "every weight is 0",
            "at least one sample must count",
            "everything without weight",
        )
