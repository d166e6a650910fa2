"""Lines that arrive one after the other → predictions, by the same rules as a file; a line at fault
is told apart.

What a line means does not depend on the lines that happened to arrive with it: numbers are float64,
ids and answers stay what they were, and lines with other fields go apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.formats import delimited, jsonl
from howsure.formats.answers import in_percent
from howsure.formats.assembly import assembled
from howsure.formats.catalogue import suffix_of
from howsure.formats.cells import Column
from howsure.formats.contents import Cells, Contents, Entry, refuse
from howsure.formats.fields import Fields, cells_of, fields
from howsure.formats.lines import MARK, BadLine, Numbered, Parser, numbered
from howsure.formats.names import Plan, Wanted, choose, kind, no_split, parts_of, plan, plays
from howsure.predictions import Predictions

KEPT = 1 << 10  # sets of keys whose fields are remembered


@frozen
class Batch:
    """The predictions of some lines, the numbers of those lines, and their ids as they were given.

    A line has one prediction, or one for each of many labels.
    """

    preds: Predictions
    lines: Sequence[int]
    ids: Sequence[Any] | None

    @property
    def names(self) -> tuple[str, ...]:
        """What many labels are called; none where a line has one prediction."""
        layout = self.preds.layout
        return layout.names if layout is not None and layout.parts == "labels" else ()

    @property
    def each(self) -> int:
        """Predictions of a line."""
        return rows_of_a_case(self.preds)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, keep: Sequence[int]) -> Batch:
        """Some of the lines."""
        if len(keep) == len(self):
            return self
        ids = None if self.ids is None else [self.ids[i] for i in keep]
        rows = (np.array(keep)[:, None] * self.each + np.arange(self.each)).reshape(-1)
        return Batch(self.preds[rows], [self.lines[i] for i in keep], ids)


def rows_of_a_case(preds: Predictions) -> int:
    """How many rows belong together: the labels of a case, else 1."""
    layout = preds.layout
    return layout.size if layout is not None and layout.parts == "labels" else 1


def is_lines(path: Path) -> bool:
    """Whether a file holds a row on every line."""
    return suffix_of(path) in (*delimited.suffixes, *jsonl.suffixes)


def batches(blocks: Iterable[bytes], path: Path, wanted: Wanted) -> Iterator[Batch | BadLine]:
    """Predictions of lines as the blocks bring them, and bad lines, in order.

    The suffix of `path` says the format; without one the first line does: JSON begins with a brace.
    A header that makes no sense is refused at once.
    """
    kept = (
        "ids",
        "no_answer",
    )  # ids stay as they were given, and a line with a confidence has an answer
    beside = tuple(part for part in wanted.beside if part not in kept)
    how, seen, shapes = replace(wanted, narrow=False, beside=beside), dict[str, None](), _Shapes()
    for run in _runs(blocks, path, wanted):
        if isinstance(run, BadLine):
            yield run
        elif (there := _of_split(run, wanted, seen)) is not None:
            yield from _made(there, how, shapes)
    if wanted.split is not None and seen and wanted.split not in seen:
        raise no_split(wanted.split, sorted(seen), path)


def _runs(blocks: Iterable[bytes], path: Path, wanted: Wanted) -> Iterator[Contents | BadLine]:
    """Runs of rows, each with the number of its first; a header is checked before the first of
    them.
    """
    row = 0
    for run, columns in _parsed(blocks, path, wanted):
        if not row and columns is not None:
            plan(columns, wanted)
        if isinstance(run, Contents) and run.lines is not None:
            yield replace(run, first=row)
            row += len(run.lines)
        elif isinstance(run, BadLine):
            yield run
            row += 1


def _parsed(
    blocks: Iterable[bytes], path: Path, wanted: Wanted
) -> Iterator[tuple[Contents | BadLine | None, Contents | None]]:
    parser, found = _by_suffix(path, wanted), False
    for lines in numbered(blocks, path.name):
        parser = parser or _parser(lines, path, wanted)
        for run in () if parser is None else parser.take(lines):
            found = True
            yield run, None if parser is None else parser.columns
        yield None, None if parser is None else parser.columns  # a header may have come alone
    for run in () if parser is None else parser.close():
        found = True
        yield run, None if parser is None else parser.columns
    if parser is not None and path.suffix and not found:  # a pipe may be empty, a file may not
        raise parser.nothing()


def _parser(lines: Sequence[Numbered], path: Path, wanted: Wanted) -> Parser | None:
    """By the first line that is not blank; None where there is none yet."""
    first = next((raw for _, raw in lines if raw.strip()), None)
    if first is None:
        return None
    json = first.removeprefix(MARK).lstrip().startswith(b"{")
    return jsonl.Objects(path, _apart(wanted)) if json else delimited.Table(path)


def _by_suffix(path: Path, wanted: Wanted) -> Parser | None:
    """The parser of a file; None where it has no suffix, as a pipe."""
    if not path.suffix:
        return None
    return (
        jsonl.Objects(path, _apart(wanted))
        if suffix_of(path) in jsonl.suffixes
        else delimited.Table(path)
    )


def _apart(wanted: Wanted) -> Callable[[tuple[str, ...]], frozenset[str]]:
    """The keys of an object that mean something: lines that differ in these are not read together."""
    known: dict[tuple[str, ...], frozenset[str]] = {}

    def apart(keys: tuple[str, ...]) -> frozenset[str]:
        found = known.get(keys)
        if found is None:
            if len(known) >= KEPT:  # a new key on every line must not fill the memory
                known.clear()
            found = known[keys] = frozenset(key for key in keys if plays(key, wanted))
        return found

    return apart


def _of_split(run: Contents, wanted: Wanted, seen: dict[str, None]) -> Contents | None:
    """The rows of the split that is wanted; a source with several is refused where none is named."""
    name = next((n for n, part in parts_of(run).items() if part == "split"), None)
    if name is None:
        return run
    words = [str(cell).strip() for cell in run.entries[name].load()]
    seen |= dict.fromkeys(words)
    if wanted.split is None and len(seen) > 1:
        raise choose(run.path, sorted(seen))
    keep = [i for i, word in enumerate(words) if wanted.split in (None, word)]
    return _rows(run, keep) if keep else None


def _rows(run: Contents, keep: Sequence[int]) -> Contents:
    """Some rows of a run."""
    if run.lines is None or len(keep) == len(run.lines):
        return run
    entries = {name: _rows_of(entry, keep) for name, entry in run.entries.items()}
    return replace(run, entries=entries, lines=run.lines[list(keep)], first=run.first + keep[0])


def _rows_of(entry: Entry, keep: Sequence[int]) -> Entry:
    def load() -> Cells:
        cells = entry.load()
        return [cells[i] for i in keep]

    return Entry((len(keep),), entry.dtype, load)


class _Shapes:
    """What the first good line of each kind looks like: how many numbers, and for which classes in
    which order.
    """

    def __init__(self) -> None:
        self.first: dict[str, tuple[tuple[int, ...], tuple[str, ...] | None]] = {}

    def keep(self, data: Fields) -> None:
        """Remember the first."""
        self.first.setdefault(data.kind, (data.arrays[data.kind].shape[1:], data.class_names))

    def alike(self, data: Fields, run: Contents, name: str) -> Fields:
        """Rows like the first one, their classes in the same order; else its first row is refused."""
        values = data.arrays[data.kind]
        shape, classes = self.first.get(data.kind, (values.shape[1:], data.class_names))
        if values.shape[1:] != shape or sorted(data.class_names or ()) != sorted(classes or ()):
            need = f"a list of {' × '.join(map(str, shape))} numbers, as in the other rows,"
            Column(cells_of(run, name), name, run, refuse).bad(0, need)
        if data.class_names is None or classes is None or data.class_names == classes:
            return data
        order = [data.class_names.index(one) for one in classes]
        return replace(
            data, arrays=data.arrays | {data.kind: values[..., order]}, class_names=classes
        )


def _made(run: Contents, wanted: Wanted, shapes: _Shapes) -> Iterator[Batch | BadLine]:
    """One batch where all lines are good; else halves of it, down to the lines at fault."""
    lines: list[int] = [] if run.lines is None else run.lines.tolist()
    try:
        yield _batch(run, lines, wanted, shapes)
    except InputError as e:
        if len(lines) == 1:
            yield BadLine(lines[0], e if e.line is not None else e.at(f"line {lines[0]}"))
            return
        middle = len(lines) // 2
        for half in (range(middle), range(middle, len(lines))):
            yield from _made(_rows(run, half), wanted, shapes)


def _batch(run: Contents, lines: list[int], wanted: Wanted, shapes: _Shapes) -> Batch:
    found = plan(run, wanted)
    ids = _ids(run, found["ids"][0]) if "ids" in found else None
    try:
        preds, data = _predictions(run, found, wanted, shapes)
    except InputError:
        if not kind(found, wanted).endswith("probs"):
            raise
        how = replace(wanted, narrow=True)  # rows of half precision may miss 1 by more
        narrow, data = _predictions(run, found, how, shapes)
        preds = replace(narrow, values=narrow.values.astype(np.float64))
    if preds.n != len(lines) * rows_of_a_case(preds):
        what = kind(found, wanted)
        raise InputError(
            what, got=f"gives {preds.n:,} samples", need="one sample per line is needed"
        ).at(run.path.name)
    shapes.keep(data)
    return Batch(preds, lines, ids)


def _predictions(
    run: Contents, found: Plan, wanted: Wanted, shapes: _Shapes
) -> tuple[Predictions, Fields]:
    data = fields(run, wanted)
    data = shapes.alike(
        in_percent(data) if wanted.percent else data, run, found[kind(found, wanted)][0]
    )
    if "prediction" in data.arrays and "prediction" in found:
        said = np.empty(len(data.arrays["prediction"]), dtype=object)  # 1 beside "cat" stays 1
        said[:] = run.entries[found["prediction"][0]].load()
        data = replace(data, arrays=data.arrays | {"prediction": said})
    return assembled(data, wanted), data


def _ids(run: Contents, name: str) -> Cells:
    """Ids as they were given: texts, whole numbers, or nothing."""
    cells = cells_of(run, name)
    if not set(map(type, cells)) <= {str, int, NoneType}:
        column = Column(cells, name, run, refuse)
        bad = next(i for i, cell in enumerate(cells) if type(cell) not in (str, int, NoneType))
        column.bad(bad, "a whole number or a text")
    return cells
