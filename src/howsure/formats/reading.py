"""Files → Predictions, whole or streamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError
from howsure.formats import arrow, joining
from howsure.formats.assembly import assembled
from howsure.formats.catalogue import format_of, found
from howsure.formats.contents import Contents, Entry, in_memory
from howsure.formats.fields import Fields, fields
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
) -> Predictions:
    """The predictions of a file, or of several files as one data set. The format follows from the suffix.

    Arrays and columns are found by name (docs/formats.md): `logits`, `probs` or `confidence` say what the numbers
    are; nothing is guessed from their range. `split="test"` takes `test_logits`, `test_labels`, …; it is needed
    where a file has several splits. `mc=True` takes the samples `mc_logits` instead of `logits`.
    `names={"labels": "gold"}` says which array plays which part where names differ from the convention.
    `renormalise=True` divides probabilities by their row sum. No pickle is ever loaded.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.1,0\\n0.4,0.6,0\\n")
    >>> read(path)
    <Predictions: n=2, k=2, probs, accuracy 0.5>
    """
    wanted = Wanted(split, mc, names or {}, renormalise)
    files = _listed(paths)
    parts: list[Predictions] = []
    images = 0
    for path in files:
        module, file = found(path)
        data = of_file([fields(run, wanted) for run in module.scan(file, None)], split)
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
        module, file = found(path)
        for data in _runs(module.scan(file, rows), wanted, rows):
            yield from _parts(data, renormalise, images, rows)
            images += len(data.arrays[data.kind])


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
    return of_runs((fields(part, wanted) for part in parts), wanted.split, whole=whole)


def _parts(data: Fields, renormalise: bool, first_image: int, rows: int) -> Iterator[Predictions]:
    preds = assembled(data, renormalise=renormalise, first_image=first_image)
    return (preds[i : i + rows] for i in range(0, preds.n, rows))


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
