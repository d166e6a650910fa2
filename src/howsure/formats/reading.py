"""Files → Predictions, whole or streamed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError
from howsure.formats import answers, arrow, joining, logs
from howsure.formats.answers import NoAnswer
from howsure.formats.assembly import assembled
from howsure.formats.catalogue import existing, format_of, found
from howsure.formats.contents import Contents, Entry, Report, in_memory, refuse
from howsure.formats.fields import Fields, fields
from howsure.formats.logs import columns
from howsure.formats.names import Wanted, kind, plan
from howsure.formats.splits import of_file, of_runs
from howsure.predictions import Predictions

PathLike: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = Mapping[str, str | Sequence[str]]
ROWS = 1 << 16


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
    tell: Callable[[str], None] | None = None,
) -> Predictions:
    """The predictions of a file, or of several files as one data set. The format follows from the suffix.

    Arrays and columns are found by name (docs/formats.md): `logits`, `probs` or `confidence` say what the numbers
    are; nothing is guessed from their range. `split="test"` takes `test_logits`, `test_labels`, …; it is needed
    where a file has several splits. `mc=True` takes the samples `mc_logits` instead of `logits`.
    `names={"labels": "gold"}` says which array plays which part where names differ from the convention.
    `renormalise=True` divides probabilities by their row sum. No pickle is ever loaded.

    Logs of language-model harnesses (docs/language_models.md) are found by their structure; `format="inspect"` says
    it, and `tell` is called with one line about each. `percent=True` divides a confidence by 100. Questions without
    an answer are counted and left out, or kept as wrong with `no_answer="wrong"`; `drop_outside=True` counts a
    confidence outside [0, 1] as missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.1,0\\n0.4,0.6,0\\n")
    >>> read(path)
    <Predictions: n=2, k=2, probs, accuracy 0.5>
    """
    wanted = Wanted(split, mc, names or {}, renormalise, format, percent, no_answer, drop_outside)
    files = _listed(paths)
    parts: list[Predictions] = []
    images = 0
    for path in files:
        runs, meant = opened(path, wanted, None, tell)
        data = whole(runs, meant)
        parts.append(assembled(data, renormalise=renormalise, first_image=images))
        images += len(data.arrays[data.kind])
    return joining.joined(parts, [path.name for path in files])


def scan(
    paths: PathLike | Iterable[PathLike],
    *,
    rows: int = ROWS,
    split: str | None = None,
    mc: bool = False,
    names: Names | None = None,
    renormalise: bool = False,
) -> Iterator[Predictions]:
    """The same as `read`, in parts of at most `rows` samples (one image at least), one after the other.

    Memory stays bounded for tables, JSON lines, record batches and arrays stored row by row; samples (`mc=True`)
    are loaded whole and handed out in parts. Ids are checked for repetition within a part only.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,correct\\n0.9,1\\n0.8,0\\n0.7,1\\n")
    >>> [part.n for part in scan(path, rows=2)]
    [2, 1]
    """
    check.at_least(rows, 1, "rows")
    wanted = Wanted(split, mc, names or {}, renormalise)
    images = 0
    for path in _listed(paths):
        runs, meant = opened(path, wanted, rows)
        for data in _runs(runs, meant, rows):
            yield from _parts(data, renormalise, images, rows)
            images += len(data.arrays[data.kind])


def opened(
    path: Path, wanted: Wanted, rows: int | None, tell: Callable[[str], None] | None = None
) -> tuple[Iterable[Contents], Wanted]:
    """What a file holds in runs of rows, and what is wanted of it; a log of a tool is one run."""
    if not logs.is_log(path, wanted.format):
        module, file = found(path)
        return module.scan(file, rows), wanted
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
    return logs.read_log(there, tool=wanted.format, metric=metric if isinstance(metric, str) else None)


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
    runs = arrow.scan(path, rows, piece) if module is arrow else module.scan(path, rows)
    images = 0
    for data in _runs(runs, wanted, rows, whole=piece is None):
        yield from _parts(data, wanted.renormalise, images, rows)
        images += len(data.arrays[data.kind])


def _runs(contents: Iterable[Contents], wanted: Wanted, rows: int, *, whole: bool = True) -> Iterator[Fields]:
    parts = (part for run in contents for part in _slices(run, wanted, rows))
    data = of_runs((fields(part, wanted) for part in parts), wanted.split, whole=whole)
    return answers.in_runs(_answers(one, wanted) for one in data)


def _parts(data: Fields, renormalise: bool, first_image: int, rows: int) -> Iterator[Predictions]:
    preds = assembled(data, renormalise=renormalise, first_image=first_image)
    parts = (preds[i : i + rows] for i in range(0, preds.n, rows))
    return (replace(part, unanswered=preds.unanswered) if i == 0 else part for i, part in enumerate(parts))


def _listed(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    listed = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(p) for p in paths]
    if not listed:
        raise InputError("no file is given; name at least one.")
    return listed


def _slices(contents: Contents, wanted: Wanted, rows: int) -> Iterator[Contents]:
    """Runs of rows of arrays that can be read in part, all in step; else everything at once."""
    found = plan(contents, wanted)
    value = kind(found, wanted)
    used = {name: contents.entries[name] for part, names in found.items() for name in names if part != "class_names"}
    n = len_of(contents.entries[found[value][0]])
    in_step = all(entry.blocks is not None and len_of(entry) == n for entry in used.values())
    if contents.lines is not None or value.startswith("mc_") or not in_step:
        yield contents
        return
    pixels = int(np.prod(contents.entries[found[value][0]].shape[2:]))
    yield from _in_step(contents, used, max(1, rows // pixels))


def len_of(entry: Entry) -> int:
    """Rows of an entry."""
    return entry.shape[0] if entry.shape else 0


def _in_step(contents: Contents, used: dict[str, Entry], step: int) -> Iterator[Contents]:
    streams = {name: entry.blocks(step) for name, entry in used.items() if entry.blocks is not None}
    for run in zip(*streams.values(), strict=True):
        there: dict[str, Array] = dict(zip(streams, run, strict=True))
        yield Contents(
            contents.path, {**contents.entries, **{n: in_memory(a) for n, a in there.items()}}, contents.table
        )
