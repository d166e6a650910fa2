"""Files → Predictions, whole or streamed, and Predictions → files.

To add a format: one module with `read` and `write`, and its line in `FORMATS`. A module is imported
when a file of its kind is met.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, InputError
from howsure._core.file_access import check_readable, replace_file
from howsure._core.frozen import frozen
from howsure.formats.assembly import build_predictions, join_files
from howsure.formats.column_names import (
    ATTRIBUTE,
    SUGGESTION_ROWS,
    choose_values,
    find_label_columns,
    find_parts,
    plan_attributes,
    plan_parts,
)
from howsure.formats.contents import (
    ARROW_SUFFIXES,
    Contents,
    FileEntry,
    check_arms,
    group_files,
    make_array_entry,
    select_runs_where,
)
from howsure.formats.fields import Fields, load_cells, load_fields, select_file, select_runs
from howsure.formats.receipts import add_receipt, build_receipt
from howsure.predictions import ROW_SUM_TOLERANCE, Predictions, needs_predictions
from howsure.predictions.input_shapes import strip_label_names
from howsure.predictions.read_options import Names, NoAnswer, ReadOptions, Receipt, choose_options

if TYPE_CHECKING:
    from howsure.formats.logs import Log

PathLike: TypeAlias = str | os.PathLike[str]
STREAM_CHUNK_ROWS = 1 << 16
# What `logs.is_log` may recognise. Others are no logs, unless the caller says so or they are folders:
# the logs of tools need not be imported for them.
LIKELY_LOG_SUFFIXES = (".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt")


# Which reader


class Reader(Protocol):
    """What the module of a format offers."""

    def read(self, path: Path, rows: int | None) -> Iterator[Contents]:
        """Runs of about `rows` rows; one run where the entries can be read in part."""
        ...

    def write(self, arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
        """Write the arrays by name."""
        ...


LOG_NAMES = ("ids", "labels", "confidence")  # what the reader of a decision model's log looks up


@frozen
class FileFormat:
    """A format: its module in this folder, what people call it, and how its files' names end."""

    module: str
    title: str
    suffixes: tuple[str, ...]

    def load_reader(self) -> Reader:
        """Import the module."""
        return cast("Reader", import_module(f"howsure.formats.{self.module}"))


NPY = FileFormat(
    module="npy", title="NumPy files, x_logits.npy with x_labels.npy", suffixes=(".npy",)
)
FORMATS = (
    FileFormat(module="npy", title="NumPy archive", suffixes=(".npz",)),
    NPY,
    FileFormat(
        module="delimited",
        title="comma- or tab-separated table",
        suffixes=(".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    ),
    FileFormat(
        module="json_lines",
        title="JSON lines",
        suffixes=(".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    ),
    FileFormat(module="arrow", title="Parquet or Arrow table", suffixes=ARROW_SUFFIXES),
    FileFormat(module="tensors", title="safetensors", suffixes=(".safetensors",)),
    FileFormat(module="tensors", title="torch tensors", suffixes=(".pt", ".pth")),
)
# Read only: a list of objects, as `DataFrame.to_json(orient="records")` writes it.
JSON_TABLE = FileFormat(module="json_lines", title="JSON list of objects", suffixes=(".json",))
SHEET_HINT = (
    "save the sheet as CSV, or pandas.read_excel('{name}').to_csv('{stem}.csv', index=False)"
)
PICKLE_HINT = (
    "a pickle can run code, so none is read: load it yourself and save what it holds, such as "
    "np.savez('{stem}.npz', probs=…, labels=…) or frame.to_csv('{stem}.csv', index=False)"
)
CONVERSIONS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), SHEET_HINT),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), PICKLE_HINT),
}
FORMAT_BY_SUFFIX: dict[str, FileFormat] = {}
for _format in FORMATS:
    FORMAT_BY_SUFFIX.update(dict.fromkeys(_format.suffixes, _format))


def suffixes() -> dict[str, str]:
    """Every suffix that is read and written, with the name of its format.

    >>> suffixes()[".npz"]
    'NumPy archive'
    """
    return {suffix: form.title for suffix, form in FORMAT_BY_SUFFIX.items()}


def get_suffix(path: Path) -> str:
    """How the name of a file ends: `.csv`, or `.csv.gz`."""
    last = path.suffix.lower()
    if last == ".gz" and len(path.suffixes) > 1:
        return f"{path.suffixes[-2].lower()}{last}"
    return last


def find_format(path: Path) -> FileFormat:
    """The format of a path, by its suffix."""
    suffix = get_suffix(path)
    if suffix in FORMAT_BY_SUFFIX:
        return FORMAT_BY_SUFFIX[suffix]
    if suffix in CONVERSIONS:
        need = CONVERSIONS[suffix].format(name=path.name, stem=path.stem)
        raise InputError(path.name, got=f"has the unknown suffix {suffix!r}", need=need)
    close = difflib.get_close_matches(suffix, FORMAT_BY_SUFFIX, n=1)
    raise InputError(
        path.name,
        got=f"has the unknown suffix {suffix!r}",
        need=f"known are {', '.join(FORMAT_BY_SUFFIX)}",
        hint=f"Did you mean {close[0]}?" if close else "",
    )


def load_reader(path: Path) -> Reader:
    """The module for a path, by its suffix."""
    return find_format(path).load_reader()


def locate_file(path: Path) -> tuple[FileFormat, Path]:
    """The format and the file for a path; the beginning of `x_logits.npy`, `x`, stands for the
    whole family.
    """
    if path.suffix.lower() in ("", ".npy") and not path.exists():
        from howsure.formats.npy import find_family

        if find_family(path):
            return NPY, path
    file = check_readable(path)
    if file.suffix.lower() == ".json":
        return JSON_TABLE, file
    return find_format(file), file


@frozen
class OpenFile:
    """What a file is called and what it holds, in runs of rows; the log of a tool is one run."""

    path: Path
    title: str
    runs: Iterable[Contents]
    log: Log | None = None
    announced: bool = False  # it is a log, which is said

    def resolve_options(self, options: ReadOptions) -> ReadOptions:
        """The options with the confidence of a log that is meant."""
        if self.log is None:
            return options
        from howsure.formats.logs.log import choose_names

        return choose_names(self.log, options, self.path)


def open_file(
    path: Path,
    options: ReadOptions,
    rows: int | None,
    truth: tuple[PathLike, str] | None = None,
) -> OpenFile:
    """Open a file of predictions, or a log of a tool, in runs of about so many rows. `truth` is the
    file with the labels of a decision model's log, and the column to join by.
    """
    may_be_log = options.format is not None or path.suffix.lower() in LIKELY_LOG_SUFFIXES
    if may_be_log or os.path.isdir(path):  # which, unlike Path.is_dir, never raises
        from howsure.formats import logs

        if logs.is_decision_log(path, options.format):
            from howsure.formats.logs.question_labels import open_decision_log

            title, contents = open_decision_log(path, options, truth)
            return OpenFile(path=path, title=title, runs=[contents], announced=True)
        if logs.is_log(path, options.format):
            from howsure.formats.logs.log import build_contents

            metric = options.names.get("correct")
            log = logs.read_log(
                path if path.is_dir() else check_readable(path),
                tool=options.format,
                metric=metric if isinstance(metric, str) else None,
            )
            runs = [build_contents(log, path)]
            return OpenFile(path=path, title=log.title, runs=runs, log=log)
    form, file = locate_file(path)
    return OpenFile(path=file, title=form.title, runs=form.load_reader().read(file, rows))


def choose_rows(file: OpenFile, options: ReadOptions) -> OpenFile:
    """The rows that `options.where` names, of one model each; a decision model's log has its own."""
    if file.announced:
        return file
    runs = file.runs
    if options.where:
        runs = select_runs_where(runs, options.where, file.path)
    return replace(file, runs=map(check_arms, runs))


def open_runs(
    path: Path,
    options: ReadOptions,
    rows: int | None,
    tell: Callable[[str], None] | None = None,
    truth: tuple[PathLike, str] | None = None,
) -> tuple[Iterable[Contents], ReadOptions]:
    """What a file holds, and how it is read; what is doubtful about a log is warned of."""
    file = open_file(path, options, rows, truth)
    if tell is not None and (file.log is not None or file.announced):
        tell(f"{path.name}: {file.title}")
    if file.announced:
        # Its reader has found these already; the table that it made calls them by their own names.
        own = {part: name for part, name in options.names.items() if part not in LOG_NAMES}
        return file.runs, replace(options, names=own)
    file = choose_rows(file, options)
    if file.log is not None:
        for doubt in file.log.doubts:
            warnings.warn(f"{path.name}: {doubt}.", stacklevel=3)
        if truth is None and "labels" in options.names and file.log.gold is None:
            raise InputError(
                path.name,
                got="is a log that says itself what is right, so its labels cannot be named",
                hint="leave out --name labels=…, or give labels of your own by --labels FILE",
            )
    return file.runs, file.resolve_options(options)


def _list_files(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Every file once; NumPy files that belong together count as one."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    files = [str(Path(path)) for path in paths]
    if not files:
        raise InputError("no file is given", hint="name at least one")
    return [Path(file) for file in group_files(files)]


# Reading


def read(
    paths: PathLike | Iterable[PathLike],
    *,
    split: str | None = None,
    mc: bool = False,
    names: Names | None = None,
    renormalise: bool = False,
    format: str | None = None,
    percent: bool = False,
    no_answer: NoAnswer = "apart",
    drop_outside: bool = False,
    attributes: Iterable[str] = (),
    multilabel: bool = False,
    sums_to_one: bool = False,
    options: ReadOptions | None = None,
    labels: PathLike | None = None,
    join: str = "id",
    tell: Callable[[str], None] | None = None,
) -> Predictions:
    """The predictions of a file, or of several files as one data set. The format follows from the
    suffix.

    Arrays and columns are found by name (docs/formats.md): `logits`, `probs` or `confidence` say
    what the numbers are; nothing is guessed from their range. `split="test"` takes `test_logits`,
    `test_labels`, …; it is needed where a file has several splits. `mc=True` takes the samples
    `mc_logits` instead of `logits`. `names={"labels": "gold"}` says which array plays which part
    where names differ from the convention. `renormalise=True` divides probabilities by their row
    sum. `attributes=["hospital", "age"]` keeps further columns, for slices. No pickle is ever
    loaded.

    Logs of language-model harnesses (docs/language_models.md) are found by their structure;
    `format="inspect"` says it, and `tell` is called with one line about each. `percent=True`
    divides a confidence by 100. Questions without an answer are counted and left out, or kept as
    wrong with `no_answer="wrong"`; `drop_outside=True` counts a confidence outside [0, 1] as
    missing.

    `multilabel=True` reads many labels per case: `probs` or `logits` (n, labels) with `labels` of
    the same shape, 0 or 1 (tables: `prob_cat, …` with `label_cat, …`); `sums_to_one=True` says that
    rows which sum to 1 are meant.

    `options=ReadOptions(...)` says all of this in one value, in place of the keywords. `labels` is a
    file with the labels, where the predictions have none: both are joined by the column `join`, or
    by `join="item_id=id"` where the predictions and the labels call it differently.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.1,0\\n0.4,0.6,0\\n")
    >>> read(path)
    <Predictions: n=2, k=2, probs, accuracy 0.5>
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
        attributes=tuple(attributes),
    )
    asked = choose_options(options, keywords)
    files = _list_files(paths)
    given = None if labels is None else (labels, join)
    truth = None
    parts: list[Predictions] = []
    images = 0
    for path in files:
        runs, resolved = open_runs(path, asked, None, tell, given)
        receipt: Receipt | None = None
        loaded: list[Fields] = []
        for run in runs:
            if labels is not None and run.asked is None:  # else they are joined already
                from howsure.formats.label_files import read_label_file

                column = asked.get_column("labels")
                truth = truth or read_label_file(Path(labels), join, column)
                run = truth.join_to(run)
            receipt = receipt or build_receipt(run, resolved)
            loaded.append(load_fields(run, resolved))
        data = select_file(loaded, resolved)
        preds = build_predictions(data, resolved, first_image=images)
        parts.append(preds if receipt is None else add_receipt(preds, receipt))
        images += len(data.arrays[data.kind])
    return join_files(parts, [path.name for path in files], asked.several)


def read_column(paths: PathLike | Iterable[PathLike], name: str) -> list[str]:
    """One column of a file, or of several one after the other, as text: a group to slice by, a
    month, an id.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,ward\\n0.9,a\\n0.4,b\\n")
    >>> read_column(path, "ward")
    ['a', 'b']
    """
    column: list[str] = []
    for path in _list_files(paths):
        runs, _ = open_runs(path, ReadOptions(), None)
        for run in runs:
            if name not in run.entries:
                need = f"it has {', '.join(run.entries)}"
                raise InputError(path.name, got=f"has no column {name!r}", need=need)
            column.extend(map(str, load_cells(run, name)))
    return column


def list_columns(path: PathLike) -> list[str]:
    """The names of the columns or arrays of a file."""
    return list(read_beginning(path, 1).entries)


def list_likely_labels(path: PathLike, k: int, n: int) -> list[str]:
    """The columns or arrays that play no part and may hold the labels of n samples of k classes."""
    beginning = read_beginning(path, SUGGESTION_ROWS)
    known = find_parts(beginning)
    return [name for name in find_label_columns(beginning, k, n) if name not in known]


def read_receipt(path: Path, options: ReadOptions) -> Receipt:
    """What the columns of a file are taken for, of its beginning alone."""
    form = find_format(path)
    if form.module == "arrow":
        from howsure.formats import arrow

        return build_receipt(arrow.read_outline(path).contents, options)
    return build_receipt(next(iter(form.load_reader().read(path, 1))), options)


def read_beginning(path: PathLike, rows: int) -> Contents:
    """The first rows of a file, or all of it where it cannot be read in parts."""
    form, file = locate_file(Path(path))
    return next(iter(form.load_reader().read(file, rows)))


# Streaming


def scan(
    paths: PathLike | Iterable[PathLike],
    *,
    rows: int = STREAM_CHUNK_ROWS,
    split: str | None = None,
    mc: bool = False,
    names: Names | None = None,
    renormalise: bool = False,
    multilabel: bool = False,
    sums_to_one: bool = False,
    options: ReadOptions | None = None,
) -> Iterator[Predictions]:
    """The same as `read`, in parts of at most `rows` samples (one image at least), one after the
    other.

    Memory stays bounded for tables, JSON lines, record batches and arrays stored row by row;
    samples (`mc=True`) are loaded whole and handed out in parts. Ids are checked for repetition
    within a part only.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,correct\\n0.9,1\\n0.8,0\\n0.7,1\\n")
    >>> [part.n for part in scan(path, rows=2)]
    [2, 1]
    """
    checks.at_least(rows, 1, "rows")
    keywords = ReadOptions(
        split=split,
        mc=mc,
        names=names or {},
        renormalise=renormalise,
        multilabel=multilabel,
        sums_to_one=sums_to_one,
    )
    return scan_files(_list_files(paths), choose_options(options, keywords), rows)


def scan_files(paths: Iterable[Path], options: ReadOptions, rows: int) -> Iterator[Predictions]:
    """`scan` of files that are listed already."""
    images = 0
    for path in paths:
        runs, resolved = open_runs(path, options, rows)
        receipt: list[Receipt] = []
        slices = _load_slices(runs, resolved, rows, receipt)
        for data in select_runs(slices, resolved):
            for part in _split_predictions(data, resolved, images, rows):
                yield add_receipt(part, receipt[0])
            images += len(data.arrays[data.kind])


def scan_piece(
    path: Path, options: ReadOptions, rows: int, piece: int | None
) -> Iterator[Predictions]:
    """`scan` of one file, or of one row group or stored batch of a Parquet or Arrow file."""
    form = find_format(path)
    if form.module == "arrow":
        from howsure.formats import arrow

        runs = arrow.read(path, rows, piece)
    else:
        runs = form.load_reader().read(path, rows)
    images = 0
    slices = _load_slices(runs, options, rows)
    for data in select_runs(slices, options, whole=piece is None):
        yield from _split_predictions(data, options, images, rows)
        images += len(data.arrays[data.kind])


def _load_slices(
    runs: Iterable[Contents], options: ReadOptions, rows: int, receipt: list[Receipt] | None = None
) -> Iterator[Fields]:
    """The fields of runs of rows, where all arrays can be read in part and in step; else everything
    at once. What the first run was taken for is put into `receipt`.
    """
    for run in runs:
        if receipt is not None and not receipt:
            receipt.append(build_receipt(run, options))
        plan = plan_parts(run, options)
        kind = choose_values(plan, options)
        plan |= plan_attributes(run, options)
        used: dict[str, FileEntry] = {}
        for part, names in plan.items():
            if part == kind or part in options.beside or part.startswith(ATTRIBUTE):
                used |= {name: run.entries[name] for name in names}
        values = run.entries[plan[kind][0]]
        in_step = all(one.blocks is not None and one.rows == values.rows for one in used.values())
        if run.lines is not None or kind.startswith("mc_") or not in_step:
            yield load_fields(run, options)
            continue
        step = max(1, rows // prod(values.shape[2:]))  # whole images
        streams: dict[str, Iterator[Array]] = {}
        for name, entry in used.items():
            if entry.blocks is not None:
                streams[name] = entry.blocks(step)
        for blocks in zip(*streams.values(), strict=True):
            there = {name: make_array_entry(a) for name, a in zip(streams, blocks, strict=True)}
            yield load_fields(replace(run, entries={**run.entries, **there}), options)


def _split_predictions(
    data: Fields, options: ReadOptions, first_image: int, rows: int
) -> Iterator[Predictions]:
    """Parts of at most so many rows; the first carries the count of rows without an answer."""
    preds = build_predictions(data, options, first_image=first_image)
    if options.case is not None:  # the answers of a case may stand anywhere
        yield preds
        return
    size = 1 if preds.layout is None else preds.layout.size
    step = max(1, rows // size) * size  # cases and images stay whole
    for start in range(0, preds.n, step):
        part = preds[start : start + step]
        if start == 0:
            part = replace(part, unanswered=preds.unanswered)
        yield part


# Writing


def write(preds: Predictions, path: str | os.PathLike[str]) -> None:
    """Write predictions so that `read` gives the same scores, bit for bit. The format follows from
    the suffix.

    The file appears whole or not at all. Values, labels, ids, groups, weights and class names are
    kept where the format can hold them (docs/formats.md).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.npz"
    >>> write(Predictions.from_probs([[0.9, 0.1]], [0]), path)
    >>> read(path)
    <Predictions: n=1, k=2, probs, accuracy 1>
    """
    needs_predictions(preds, "write")
    target = Path(path)
    form = find_format(target)
    reader = form.load_reader()
    suffix = get_suffix(target)
    arrays = _collect_arrays(preds)
    if form is NPY:  # several files, each with a temporary name of its own
        reader.write(arrays, target, suffix=suffix)
        return
    with replace_file(target) as temporary:
        reader.write(arrays, temporary, suffix=suffix)


def _collect_arrays(preds: Predictions) -> dict[str, Array]:
    """The arrays of a file, by their names in the convention."""
    layout = preds.layout
    values = preds.values
    if layout is not None and layout.parts == "labels":
        # Values and labels (cases, labels), as `read(..., multilabel=True)` takes them.
        if not layout.whole:
            hint = "write cases with all their labels"
            raise InputError("these rows are not whole cases", hint=hint)
        size = layout.size
        arrays = {preds.kind: np.ascontiguousarray(values[:, 1].reshape(-1, size))}
        if preds.known_labels is not None:
            arrays["labels"] = preds.known_labels.reshape(-1, size)
        if preds.ids is not None:
            arrays["ids"] = strip_label_names(preds.ids, layout)
        if preds.group is not None and not layout.alone:
            arrays["group"] = _convert_objects(preds.group[::size], "group")
        if preds.weight is not None:
            arrays["weight"] = preds.weight[::size]
        arrays["class_names"] = np.array(layout.names, dtype=np.str_)
        return arrays
    if preds.kind == "probs" and values.dtype == np.float32:
        # Only where they were given as float16 may rows miss 1 by so much: back to float16.
        off = np.abs(values.sum(axis=-1, dtype=np.float64) - 1).max()
        half = values.astype(np.float16)
        if off > ROW_SUM_TOLERANCE[4] and np.array_equal(half, values):
            values = half
    arrays: dict[str, Array] = {f"mc_{preds.kind}" if values.ndim == 3 else preds.kind: values}
    beside = {
        "labels": preds.known_labels,
        "correct": preds.known_correct,
        "prediction": preds.known_prediction,
        "ids": preds.ids,
        "group": preds.group,
        "weight": preds.weight,
    }
    for column, array in beside.items():
        if array is not None:
            arrays[column] = _convert_objects(array, column)
    if preds.class_names is not None:
        arrays["class_names"] = np.array(preds.class_names, dtype=np.str_)
    return arrays


def _convert_objects(array: Array, name: str) -> Array:
    """Text held as Python objects, as pandas does, becomes a text array."""
    if array.dtype.kind in "biufU":
        return array
    cells = array.tolist()
    if all(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=np.str_)
    if all(isinstance(cell, int) for cell in cells):
        return np.array(cells, dtype=np.int64)
    need = "only numbers or texts can be written, so convert it first"
    raise InputError(name, got=f"has dtype {array.dtype}", need=need)
