"""What is in a file, and everything that is wrong with it: what `howsure doctor` prints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np

from howsure._core.checks import Array, Bools, InputError
from howsure._core.file_access import open_budget
from howsure._core.frozen import frozen
from howsure.formats.assembly import build_predictions, flatten_pixels, locate_error
from howsure.formats.column_names import CELL_ENDS, TOP_ANSWER_VALUES, find_parts, list_splits
from howsure.formats.contents import Contents, FileProblem
from howsure.formats.fields import Fields, load_fields, same_answer, select_file
from howsure.formats.files import OpenFile, choose_rows, open_file
from howsure.predictions import ROW_SUM_TOLERANCE
from howsure.predictions.class_labels import read_class_numbers
from howsure.predictions.input_shapes import ROUNDING_SLACK, find_rounding
from howsure.predictions.read_options import Names, NoAnswer, ReadOptions, choose_options

LISTED_ROWS = 5
EXAMINED_SPLITS = 20
DECISIONS_ONLY = "decisions, not metrics"  # where nothing says what is right


# What is in a file


@frozen
class EntryDescription:
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
    items: tuple[EntryDescription, ...]
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
    file = open_file(Path(path), ReadOptions(format=format), None)
    runs = _hold_runs(file)
    shapes: dict[str, tuple[int, ...]] = {}
    for run in runs:
        for name, entry in run.entries.items():
            before = shapes.get(name)
            if before:
                shapes[name] = (before[0] + entry.rows, *before[1:])
            else:
                shapes[name] = entry.shape
    parts = find_parts(runs[0])
    items: list[EntryDescription] = []
    for name, entry in runs[0].entries.items():
        part = parts.get(name, "")
        items.append(EntryDescription(name=name, shape=shapes[name], dtype=entry.dtype, part=part))
    return Description(
        path=str(path),
        format=file.title,
        items=tuple(items),
        splits=tuple(_list_splits(runs)),
    )


def _hold_runs(file: OpenFile) -> list[Contents]:
    """All runs of a file at once: those of packed text may be far larger than it."""
    budget = None
    if file.log is None:
        budget = open_budget(file.path)
    runs: list[Contents] = []
    for run in file.runs:
        if budget is not None and run.size:
            budget.spend(run.size)
        runs.append(run)
    return runs


def _list_splits(runs: Sequence[Contents]) -> list[str]:
    """The splits by prefix, or those of a table's column `split`."""
    columns = [name for name, part in find_parts(runs[0]).items() if part == "split"]
    if not columns or not runs[0].table:
        return list_splits(runs[0])
    splits: set[str] = set()
    for run in runs:
        if columns[0] in run.entries:
            splits.update(map(str, run.entries[columns[0]].load()))
    return sorted(splits)


# What is wrong with it


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
    options: ReadOptions | None = None,
) -> list[FileProblem]:
    """Everything that is wrong with a file, not only the first thing; empty where all is well.

    Every split is looked at where none is named. A problem says where it is, what it is, how to
    repair it, and what can be evaluated anyway; `stops` tells those that `read` refuses. The
    keywords are those of `howsure.read`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.2,0\\n0.4,0.6,2\\n")
    >>> for problem in problems(path):
    ...     print(problem)
    a.csv, line 2: probs sum to 1.1, expected 1; read with renormalise=True (--renormalise), or write more digits.
    a.csv, line 3: labels are 2, with 2 classes they run from 0 to 1; number them from 0.
    """
    keywords = ReadOptions(
        split=split,
        mc=mc,
        names=names or {},
        renormalise=renormalise,
        format=format,
        percent=percent,
        no_answer=no_answer,
        drop_outside=drop_outside,
        multilabel=multilabel,
        sums_to_one=sums_to_one,
    )
    options = choose_options(options, keywords)
    try:
        file = choose_rows(open_file(Path(path), options, None), options)
        runs = _hold_runs(file)
        resolved = file.resolve_options(options)
        splits = [options.split]
        if options.split is None:
            splits = _list_splits(runs)
    except InputError as e:
        return [FileProblem.of(e, Path(path))]
    out: list[FileProblem] = []
    for doubt in () if file.log is None else file.log.doubts:
        problem = FileProblem(
            where=Path(path).name,
            what=doubt,
            fix="read the numbers with care",
            anyway="everything",
            stops=False,
        )
        out.append(problem)
    if len(splits) < 2:
        return out + _examine_split(runs, resolved)
    # Each split is looked for among all rows, so that not every one of many can be examined.
    if len(splits) > EXAMINED_SPLITS:
        what = f"has {len(splits):,} splits, of which the first {EXAMINED_SPLITS} are examined"
        problem = FileProblem(
            where=Path(path).name,
            what=what,
            fix="name another one with split= (--split)",
            anyway="each split by itself",
            stops=False,
        )
        out.append(problem)
    for name in splits[:EXAMINED_SPLITS]:
        for problem in _examine_split(runs, replace(resolved, split=name)):
            out.append(replace(problem, where=f"split {name!r}, {problem.where}"))
    return out


def _examine_split(runs: Sequence[Contents], options: ReadOptions) -> list[FileProblem]:
    out: list[FileProblem] = []
    # Cells of several scores are evaluated as they are, though they tell no single answer.
    ends = [name for name in CELL_ENDS if name in runs[0].entries]
    options = replace(options, attributes=(*options.attributes, *ends))
    try:
        data = select_file([load_fields(run, options, out.append) for run in runs], options)
        if not options.multilabel:  # labels of many are checked as they are assembled
            out.extend(_check_parts(flatten_pixels(data, 0), options))
        if not any(problem.stops for problem in out):
            build_predictions(data, options)
    except InputError as e:
        out.append(FileProblem.of(e, runs[0].path))
    return out


def _check_parts(data: Fields, options: ReadOptions) -> Iterator[FileProblem]:
    """All problems of the parts, in the order in which a reader would meet them."""
    values = data.arrays[data.kind]
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        what = (
            f"{data.kind} holds {values.dtype} of shape {values.shape}, not numbers for each sample"
        )
        yield FileProblem(where=data.path.name, what=what, fix="convert it", anyway="nothing")
        return
    rows = _flatten_rows(data)
    if not len(rows):
        yield FileProblem(
            where=data.path.name,
            what=f"{data.kind} has no rows",
            fix="at least one sample is needed",
            anyway="nothing",
        )
    for part, a in data.arrays.items():
        if part == "labels" and a.shape == values.shape:
            continue  # one-hot rows
        if part != data.kind and (a.ndim != 1 or len(a) != len(rows)):
            yield FileProblem(
                where=data.path.name,
                what=f"{part} has shape {a.shape}, {data.kind} has {len(rows):,} rows",
                fix="give one value per sample",
                anyway=f"{data.kind} without {part}",
            )
    for bad, what in ((np.isnan(rows), "nan"), (np.isinf(rows), "infinite")):
        bad_rows = _any_in_row(_drop_reported(bad, rows, data))
        if bad_rows.any():
            fix = "repair or remove these rows; a missing answer is not an unsure one"
            yield _make_row_problem(data, bad_rows, f"{data.kind} is {what}", fix)
    if data.kind in TOP_ANSWER_VALUES:
        yield from _check_confidences(data)
        yield from _check_correct(data)
    else:
        yield from _check_vectors(data, options)
        yield from _check_labels(data)
    yield from _check_ids_and_weights(data)


# Each check names its first few rows, and what remains without them.


def _make_row_problem(data: Fields, bad: Bools, what: str, fix: str) -> FileProblem:
    """A problem of some rows; the others can be evaluated."""
    good = int((~bad).sum())
    anyway = f"the other {good:,} rows"
    if good == 0:
        anyway = "nothing"
    elif good == 1:
        anyway = "the other row"
    return FileProblem(where=_name_rows(data, bad), what=what, fix=fix, anyway=anyway)


def _name_rows(data: Fields, bad: Bools) -> str:
    """The places of the bad rows: the first few, and how many there are."""
    rows = np.flatnonzero(bad)
    word, numbers = "row", rows
    if data.lines is not None:
        word, numbers = "line", data.lines[rows]
    if len(rows) > 1:
        word += "s"
    listed = ", ".join(map(str, numbers[:LISTED_ROWS].tolist()))
    if len(rows) > LISTED_ROWS:
        listed += f" and {len(rows) - LISTED_ROWS:,} more"
    return f"{data.path.name}, {word} {listed}"


def _any_in_row(bad: Array) -> Bools:
    return np.asarray(bad.any(axis=1), dtype=np.bool_)


def _drop_reported(bad: Array, a: Array, data: Fields) -> Bools:
    """Bad values less the nan of a text file, which stands for a cell that was reported already."""
    return bad & ~np.isnan(a) if data.lines is not None else bad


def _flatten_rows(data: Fields) -> Array:
    """The values with samples as the first axis, and everything else flattened behind it."""
    values = data.arrays[data.kind]
    if data.kind.startswith("mc_") and values.ndim > 1:
        values = values.swapaxes(0, 1)
    if not values.size:
        return values.reshape(0, 1)
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _check_vectors(data: Fields, options: ReadOptions) -> Iterator[FileProblem]:
    """Numbers for each class: samples by their name, probabilities in range and with their sum."""
    kind = data.kind
    values = data.arrays[kind]
    if values.ndim == 3 and not kind.startswith("mc_"):
        yield FileProblem(
            where=data.path.name,
            what=f"{kind} has shape {values.shape}",
            fix=f"name samples mc_{kind}",
            anyway="nothing",
        )
        return
    if kind == "logits" and values.ndim == 2 and values.shape[1] > 1:
        sums = values.sum(axis=-1, dtype=np.float64)
        if (values >= 0).all() and (np.abs(sums - 1) < 1e-3).all():
            yield FileProblem(
                where=data.path.name,
                what="logits are all in [0, 1] with rows that sum to 1",
                fix="if they are probabilities, name them probs",
                anyway="everything",
                stops=False,
            )
    if kind not in ("probs", "mc_probs"):
        return
    tolerance = ROW_SUM_TOLERANCE.get(values.dtype.itemsize, 1e-6)
    flat = _flatten_rows(data)
    outside = _any_in_row((flat < -tolerance) | (flat > 1 + tolerance))
    if outside.any():
        fix = "if these are logits, name them so"
        yield _make_row_problem(data, outside, "probs lie outside [0, 1]", fix)
    if values.ndim < 2 or values.shape[-1] == 1 or options.renormalise:
        return
    sums = flat.reshape(len(flat), -1, values.shape[-1]).sum(axis=2)
    allowed = max(tolerance, find_rounding(values.shape[-1], data.digits) + ROUNDING_SLACK)
    off = _any_in_row(np.abs(sums - 1) > allowed) & ~outside
    if off.any():
        first = sums[off][0]
        worst = float(first[np.argmax(np.abs(first - 1))])
        fix = "read with renormalise=True (--renormalise), or write more digits"
        yield _make_row_problem(data, off, f"probs sum to {worst:.6g}, expected 1", fix)


def _check_confidences(data: Fields) -> Iterator[FileProblem]:
    values = _flatten_rows(data)[:, 0]
    if data.kind == "confidence":
        bad = (values < 0) | (values > 1)
        fix = (
            'a confidence lies in [0, 1], or is a percentage such as "85%"; '
            f"any other score is read with --name {quote(f'score={data.column}')}"
        )
    elif data.kind == "score":
        bad = np.zeros(len(values), dtype=np.bool_)
        fix = ""
    else:
        bad = values > 0
        fix = "a log-probability is at most 0"
    if bad.any():
        yield _make_row_problem(data, bad, f"{data.kind} is {values[bad][0]:g}", fix)
    elif len(values) > 1 and (values == values[0]).all():
        yield FileProblem(
            where=data.path.name,
            what=f"every {data.kind} is {values[0]:g}",
            fix="give a score that differs between samples",
            anyway="accuracy and calibration",
            stops=False,
        )


def _check_correct(data: Fields) -> Iterator[FileProblem]:
    """Right or wrong, as it is said and as prediction and label have it."""
    correct = data.arrays.get("correct")
    prediction = data.arrays.get("prediction")
    labels = data.arrays.get("labels")
    pair: tuple[Array, Array] | None = None
    if prediction is not None and labels is not None and prediction.shape == labels.shape:
        pair = (prediction, labels)
    if correct is None and pair is None and not {"grade", "loss"} & set(data.arrays):
        yield FileProblem(
            where=data.path.name,
            what="nothing says which answers are right",
            fix="add a column correct, or prediction and label",
            anyway=DECISIONS_ONLY,
            stops=False,
        )
    if correct is None or correct.dtype.kind not in "biuf" or correct.ndim != 1:
        return
    bad = _drop_reported((correct != 0) & (correct != 1), correct, data)
    if bad.any():
        what = f"correct is {correct[bad][0]:g}"
        yield _make_row_problem(data, bad, what, "use 0 for wrong and 1 for right")
    elif pair is not None and len(pair[0]) == len(correct):
        differ = same_answer(*pair) != correct.astype(np.bool_)
        if differ.any():
            yield FileProblem(
                where=_name_rows(data, differ),
                what="correct disagrees with prediction and label",
                fix="correct is what counts; check these rows",
                anyway="everything",
                stops=False,
            )


def _check_labels(data: Fields) -> Iterator[FileProblem]:
    if "labels" not in data.arrays:
        yield FileProblem(
            where=data.path.name,
            what="there are no labels",
            fix="add a column label",
            anyway=DECISIONS_ONLY,
            stops=False,
        )
        return
    shape = data.arrays[data.kind].shape
    k = int(shape[-1])
    if len(shape) == 1 or k == 1:  # of a binary model
        k = 2
    try:
        labels = read_class_numbers(data.arrays["labels"], k, data.class_names)
    except InputError as e:
        problem = FileProblem.of(locate_error(e, data), data.path)
        yield replace(problem, anyway=DECISIONS_ONLY)
        return
    bad = (labels < 0) | (labels >= k)
    if bad.any():
        fix = "number them from 0"
        if labels.min() == 1 and labels.max() == k:
            fix += " (subtract 1)"
        what = f"labels are {int(labels[bad][0])}, with {k} classes they run from 0 to {k - 1}"
        yield _make_row_problem(data, bad, what, fix)


def _check_ids_and_weights(data: Fields) -> Iterator[FileProblem]:
    ids = data.arrays.get("ids")
    if ids is not None and ids.ndim == 1:
        _, first = np.unique(ids, return_index=True)
        repeated = np.ones(len(ids), dtype=np.bool_)
        repeated[first] = False
        if repeated.any():
            yield FileProblem(
                where=_name_rows(data, repeated),
                what=f"ids repeat (first: {ids[repeated][0]})",
                fix="give every sample an id of its own, and use group for what several share",
                anyway="everything without ids",
            )
    weight = data.arrays.get("weight")
    if weight is None or weight.dtype.kind not in "biuf" or weight.ndim != 1:
        return
    bad = _drop_reported(~((weight >= 0) & np.isfinite(weight)), weight, data)
    if bad.any():
        what = f"weight is {weight[bad][0]:g}"
        yield _make_row_problem(data, bad, what, "use finite weights of at least 0")
    elif not weight.any():
        yield FileProblem(
            where=data.path.name,
            what="every weight is 0",
            fix="at least one sample must count",
            anyway="everything without weight",
        )
