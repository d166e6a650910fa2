"""Files → Predictions, whole or streamed, and Predictions → files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.atomic import replacing
from howsure._core.check import Array, InputError
from howsure._core.paths import existing
from howsure.formats import answers, arrow, assembly, likely, logs, npy
from howsure.formats.assembly import assembled
from howsure.formats.catalogue import format_of, found, suffix_of
from howsure.formats.contents import Contents, Entry, Report, in_memory, refuse
from howsure.formats.fields import Fields, cells_of, fields, of_file, of_runs
from howsure.formats.location import together
from howsure.formats.logs import columns
from howsure.formats.names import ATTRIBUTE, Names, NoAnswer, Wanted, kind, parts_of, plan
from howsure.formats.names import attributes as further
from howsure.predictions import ROW_SUM_TOLERANCE, Layout, Predictions, needs_predictions
from howsure.predictions.layout import case_ids

PathLike: TypeAlias = str | os.PathLike[str]
ROWS = 1 << 16
BESIDE = {
    "labels": "known_labels",
    "correct": "known_correct",
    "prediction": "known_prediction",
    "ids": "ids",
    "group": "group",
    "weight": "weight",
}


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

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.1,0\\n0.4,0.6,0\\n")
    >>> read(path)
    <Predictions: n=2, k=2, probs, accuracy 0.5>
    """
    wanted = Wanted(
        *(
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
        ),
        attributes=tuple(attributes),
    )
    files = _listed(paths)
    parts: list[Predictions] = []
    images = 0
    for path in files:
        runs, meant = opened(path, wanted, None, tell)
        data = whole(runs, meant)
        parts.append(assembled(data, meant, first_image=images))
        images += len(data.arrays[data.kind])
    return assembly.joined(parts, [path.name for path in files])


def column_names(path: PathLike) -> list[str]:
    """The names of the columns or arrays of a file."""
    return list(_beginning(path, 1).entries)


def label_columns(path: PathLike, k: int, n: int) -> list[str]:
    """The columns or arrays that play no part and may hold the labels of n samples of k classes."""
    first = _beginning(path, likely.ROWS)
    known = parts_of(first)
    return [name for name in likely.may_be_labels(first, k, n) if name not in known]


def _beginning(path: PathLike, rows: int) -> Contents:
    """The first rows of a file, or all of it where it cannot be read in parts."""
    module, file = found(Path(path))
    return next(iter(module.read(file, rows)))


def read_column(paths: PathLike | Iterable[PathLike], name: str) -> list[str]:
    """One column of a file, or of several one after the other, as text: a group to slice by, a
    month, an id.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,ward\\n0.9,a\\n0.4,b\\n")
    >>> read_column(path, "ward")
    ['a', 'b']
    """
    out: list[str] = []
    for path in _listed(paths):
        for run in opened(path, Wanted(), None)[0]:
            if name not in run.entries:
                raise InputError(
                    path.name,
                    got=f"has no column {name!r}",
                    need=f"it has {', '.join(run.entries)}",
                )
            out.extend(str(cell) for cell in cells_of(run, name))
    return out


def scan(
    paths: PathLike | Iterable[PathLike],
    *,
    rows: int = ROWS,
    split: str | None = None,
    mc: bool = False,
    names: Names | None = None,
    renormalise: bool = False,
    multilabel: bool = False,
    sums_to_one: bool = False,
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
    check.at_least(rows, 1, "rows")
    wanted = Wanted(
        split, mc, names or {}, renormalise, multilabel=multilabel, sums_to_one=sums_to_one
    )
    return scan_wanted(_listed(paths), wanted, rows)


def scan_wanted(paths: Iterable[Path], wanted: Wanted, rows: int) -> Iterator[Predictions]:
    """`scan` by a value that says how to read."""
    images = 0
    for path in paths:
        runs, meant = opened(path, wanted, rows)
        for data in _runs(runs, meant, rows):
            yield from _parts(data, wanted, images, rows)
            images += len(data.arrays[data.kind])


def opened(
    path: Path, wanted: Wanted, rows: int | None, tell: Callable[[str], None] | None = None
) -> tuple[Iterable[Contents], Wanted]:
    """What a file holds in runs of rows, and what is wanted of it; a log of a tool is one run."""
    if not logs.is_log(path, wanted.format):
        module, file = found(path)
        return module.read(file, rows), wanted
    log = log_of(path, wanted)
    if tell is not None:
        tell(f"{path.name}: {log.title}")
    for doubt in log.doubts:
        warnings.warn(f"{path.name}: {doubt}.", stacklevel=3)
    return [columns.contents(log, path)], columns.wanted_of(log, wanted, path)


def log_of(path: Path, wanted: Wanted) -> logs.Log:
    """The log in a file, with the metric that was asked for as `correct`."""
    metric = wanted.names.get("correct")
    there = path if path.is_dir() else existing(path)
    return logs.read_log(
        there, tool=wanted.format, metric=metric if isinstance(metric, str) else None
    )


def whole(runs: Iterable[Contents], wanted: Wanted, report: Report = refuse) -> Fields:
    """All wanted rows of a file, those without an answer counted."""
    everything = of_file([fields(run, wanted, report) for run in runs], wanted.split)
    return next(answers.in_runs([_answers(everything, wanted)]))


def _answers(data: Fields, wanted: Wanted) -> Fields:
    data = answers.in_percent(data) if wanted.percent else data
    data = answers.without_outside(data) if wanted.drop_outside else data
    return answers.answered(data, wanted.no_answer)


def scan_piece(path: Path, wanted: Wanted, rows: int, piece: int | None) -> Iterator[Predictions]:
    """`scan` of one file, or of one row group or stored batch of a Parquet or Arrow file."""
    module = format_of(path)
    runs = arrow.read(path, rows, piece) if module is arrow else module.read(path, rows)
    images = 0
    for data in _runs(runs, wanted, rows, whole=piece is None):
        yield from _parts(data, wanted, images, rows)
        images += len(data.arrays[data.kind])


def _runs(
    contents: Iterable[Contents], wanted: Wanted, rows: int, *, whole: bool = True
) -> Iterator[Fields]:
    parts = (part for run in contents for part in _slices(run, wanted, rows))
    data = of_runs((fields(part, wanted) for part in parts), wanted.split, whole=whole)
    return answers.in_runs(_answers(one, wanted) for one in data)


def _parts(data: Fields, wanted: Wanted, first_image: int, rows: int) -> Iterator[Predictions]:
    preds = assembled(data, wanted, first_image=first_image)
    size = 1 if preds.layout is None else preds.layout.size
    step = max(1, rows // size) * size  # cases and images stay whole
    parts = (preds[i : i + step] for i in range(0, preds.n, step))
    return (
        replace(part, unanswered=preds.unanswered) if i == 0 else part
        for i, part in enumerate(parts)
    )


def _listed(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    listed = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(p) for p in paths]
    if not listed:
        raise InputError("no file is given", hint="name at least one")
    return [Path(head) for head in together([str(path) for path in listed])]


def _slices(contents: Contents, wanted: Wanted, rows: int) -> Iterator[Contents]:
    """Runs of rows of arrays that can be read in part, all in step; else everything at once."""
    names = plan(contents, wanted)
    value = kind(names, wanted)
    parts = (value, *wanted.beside)
    names |= further(contents, wanted)
    parts += tuple(part for part in names if part.startswith(ATTRIBUTE))
    used = {name: contents.entries[name] for part in parts for name in names.get(part, ())}
    values = contents.entries[names[value][0]]
    in_step = all(entry.blocks is not None and entry.rows == values.rows for entry in used.values())
    if contents.lines is not None or value.startswith("mc_") or not in_step:
        yield contents
        return
    pixels = int(np.prod(values.shape[2:]))
    yield from _in_step(contents, used, max(1, rows // pixels))


def _in_step(contents: Contents, used: dict[str, Entry], step: int) -> Iterator[Contents]:
    streams = {name: entry.blocks(step) for name, entry in used.items() if entry.blocks is not None}
    for run in zip(*streams.values(), strict=True):
        there: dict[str, Array] = dict(zip(streams, run, strict=True))
        yield Contents(
            contents.path,
            {**contents.entries, **{n: in_memory(a) for n, a in there.items()}},
            contents.table,
        )


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
    module = format_of(target)
    if module is npy:  # several files, each with a temporary name of its own
        npy.write(arrays_of(preds), target, suffix=".npy")
        return
    with replacing(target) as temporary:
        module.write(arrays_of(preds), temporary, suffix=suffix_of(target))


def arrays_of(preds: Predictions) -> dict[str, Array]:
    """The arrays of a file, by their names in the convention."""
    if preds.layout is not None and preds.layout.parts == "labels":
        return _many_labels(preds, preds.layout)
    name = f"mc_{preds.kind}" if preds.values.ndim == 3 else preds.kind
    out = {name: _stored(preds)}
    for column, attribute in BESIDE.items():
        array = getattr(preds, attribute)
        if array is not None:
            out[column] = _plain(array, column)
    if preds.class_names is not None:
        out["class_names"] = np.array(preds.class_names, dtype=np.str_)
    return out


def _many_labels(preds: Predictions, layout: Layout) -> dict[str, Array]:
    """Values and labels (cases, labels), as `read(..., multilabel=True)` takes them."""
    if not layout.whole:
        raise InputError("these rows are not whole cases", hint="write cases with all their labels")
    many = layout.size
    out = {preds.kind: np.ascontiguousarray(preds.values[:, 1].reshape(-1, many))}
    if preds.known_labels is not None:
        out["labels"] = preds.known_labels.reshape(-1, many)
    if preds.ids is not None:
        out["ids"] = case_ids(preds.ids, layout)
    if preds.group is not None and not layout.alone:
        out["group"] = _plain(preds.group[::many], "group")
    if preds.weight is not None:
        out["weight"] = preds.weight[::many]
    out["class_names"] = np.array(layout.names, dtype=np.str_)
    return out


def _stored(preds: Predictions) -> Array:
    """Probabilities given as float16 go back to float16: only there may rows miss 1 by so much."""
    values = preds.values
    if preds.kind == "probs" and values.dtype == np.float32:
        off = np.abs(values.sum(axis=-1, dtype=np.float64) - 1).max()
        half = values.astype(np.float16)
        if off > ROW_SUM_TOLERANCE[4] and np.array_equal(half, values):
            return half
    return values


def _plain(array: Array, name: str) -> Array:
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
