"""Tables with a header line, separated by commas or tabs, or by semicolons as spreadsheets write
them beside 0,5.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from howsure._core.budget import text_bytes
from howsure._core.check import Array, InputError
from howsure.formats.cells import decimal_mark
from howsure.formats.contents import Contents, in_cells
from howsure.formats.lines import BadLine, Numbered, decoded, is_packed, parsed, written
from howsure.formats.names import column_name, holds_numbers

suffixes = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
title = "comma- or tab-separated table"
SEPARATORS = ",;\t"
CELLS = 1 << 18  # cells held as text at a time
Row: TypeAlias = tuple[
    int, list[str] | InputError
]  # the line that it ends on, and its cells or what is wrong


def read(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    return parsed(path, rows, Table(path, exact=rows))


class Table:
    """A parser of lines. The first row is the header; a quoted cell may go on over several lines.

    The suffix names the separator; where the header has none of it, the one that it has. With
    `exact` rows wait until there are so many of them.
    """

    def __init__(self, path: Path, exact: int | None = None):
        self.exact, self._waiting = exact, list[Row]()
        self.path, self.delimiter = path, "\t" if ".tsv" in path.suffixes[-2:] else ","
        self.header: list[str] = []
        self._numbers: list[int] = []  # columns that hold numbers, and the decimal mark of each
        self._marks: dict[int, str] = {}
        self.columns: Contents | None = None
        self._held: list[tuple[int, str]] = []  # the lines of a row whose quotes are open
        self._size = 0

    @property
    def rows(self) -> int:
        """So many lines that the cells of a run stay few; the header alone until it is known."""
        return max(1, CELLS // len(self.header)) if self.header else 1

    def take(self, lines: Sequence[Numbered]) -> Iterator[Contents | BadLine]:
        """Runs of rows, and the lines that are none."""
        if not self.header and not self._held:
            self.delimiter = separator((line for _, line in lines), self.delimiter)
        rows = self._quick(lines)
        return self._runs(self._slow(lines) if rows is None else rows)

    def close(self) -> Iterator[Contents | BadLine]:
        """The row whose quotes are still open is a bad one; what it swallowed is read again."""
        while self._held:
            held, self._held, self._size = self._held, [], 0
            yield from self._runs(
                [(held[0][0], self._error("unexpected end of data", held[-1][0]))]
            )
            yield from self._runs(self._joined(deque(held[1:])))
        yield from self._runs((), end=True)

    def nothing(self) -> InputError:
        """What to say where there was no row."""
        if self.header:
            return InputError(
                self.path.name, got="has a header but no rows", need="at least one sample is needed"
            )
        need = "a header line and at least one row are needed"
        return InputError(self.path.name, got="is empty", need=need)

    def _quick(self, lines: Sequence[Numbered]) -> list[Row] | None:
        """Every line a row, which it is where there are no quotes; None where it may not be."""
        raw = b"\n".join(line for _, line in lines)
        if self._held or not self.header or b'"' in raw:
            return None
        try:
            cells = list(
                csv.reader(raw.decode("utf-8").split("\n"), delimiter=self.delimiter, strict=True)
            )
        except (csv.Error, UnicodeDecodeError):
            return None
        if len(cells) != len(lines):  # a carriage return inside a line
            return None
        return [(number, row) for (number, _), row in zip(lines, cells, strict=True)]

    def _slow(self, lines: Sequence[Numbered]) -> Iterator[Row]:
        texts: deque[tuple[int, str]] = deque()
        for line in lines:
            try:
                texts.append((line[0], decoded(line, self.path.name)))
            except InputError as e:
                yield from self._joined(texts)
                yield line[0], e
        yield from self._joined(texts)

    def _joined(self, texts: deque[tuple[int, str]]) -> Iterator[Row]:
        """Rows of one line or more. Where one is bad, only its first line is given up."""
        while texts:
            line = texts.popleft()
            inside = _inside(line[1], self.delimiter, bool(self._held))
            self._held.append(line)
            self._size += len(line[1])
            if inside and self._size <= csv.field_size_limit():
                continue
            row, self._held, self._size = self._held, [], 0
            cells = self._cells(row)
            yield (row[-1][0] if isinstance(cells, list) else row[0][0]), cells
            if isinstance(cells, InputError):
                texts.extendleft(reversed(row[1:]))

    def _cells(self, lines: list[tuple[int, str]]) -> list[str] | InputError:
        texts = [*(f"{text}\n" for _, text in lines[:-1]), lines[-1][1]]
        try:
            return next(csv.reader(texts, delimiter=self.delimiter, strict=True), list[str]())
        except csv.Error as e:
            why = (
                "a carriage return stands inside the line"
                if "new-line character" in str(e)
                else str(e)
            )
            return self._error(why, lines[-1][0])

    def _error(self, why: str, line: int) -> InputError:
        return InputError(
            why, where=f"{self.path.name}, line {line}", hint="repair the quotes or the cell"
        )

    def _runs(self, rows: Iterable[Row], *, end: bool = False) -> Iterator[Contents | BadLine]:
        full = (row for row in rows if row[1])
        if not self.header:
            self._name(next(full, None))
        if self.exact is None:
            yield from self._sorted(full)
            return
        self._waiting += full
        step = min(self.exact, self.rows)
        while len(self._waiting) >= step or (end and self._waiting):
            yield from self._sorted(self._waiting[:step])
            del self._waiting[:step]

    def _sorted(self, rows: Iterable[Row]) -> Iterator[Contents | BadLine]:
        checked = ((number, self._checked(number, cells)) for number, cells in rows)
        for good, run in groupby(checked, key=lambda row: isinstance(row[1], list)):
            if good:
                yield self._contents(
                    [(number, cells) for number, cells in run if isinstance(cells, list)]
                )
            else:
                yield from (BadLine(number, e) for number, e in run if isinstance(e, InputError))

    def _checked(self, number: int, cells: list[str] | InputError) -> list[str] | InputError:
        if isinstance(cells, InputError):
            return cells
        if len(cells) == len(self.header):
            return cells if self.delimiter != ";" else self._alike(number, cells)
        return InputError(
            f"{len(cells)} cells for {len(self.header)} columns",
            where=f"{self.path.name}, line {number}",
            hint="add the missing cells or quote those that hold the separator",
        )

    def _alike(self, number: int, cells: list[str]) -> list[str] | InputError:
        """A row whose numbers are written as those above: 1.234 beside 0,5 may be a thousand."""
        for i in self._numbers:
            mark = decimal_mark(cells[i])
            if mark and self._marks.setdefault(i, mark) != mark:
                where = f"{self.path.name}, line {number}, column {self.header[i]!r}"
                got = f"has numbers with decimal commas and with points ({cells[i].strip()[:60]!r})"
                return InputError(where, got=got, hint="write all of them alike")
        return cells

    def _contents(self, rows: list[tuple[int, list[str]]]) -> Contents:
        columns = list(zip(*(cells for _, cells in rows), strict=True))
        entries = {name: in_cells(cells) for name, cells in zip(self.header, columns, strict=True)}
        lines = np.array([number for number, _ in rows], dtype=np.int64)
        size = sum(map(text_bytes, columns)) if is_packed(self.path) else 0
        return Contents(
            self.path, entries, table=True, lines=lines, commas=self.delimiter == ";", size=size
        )

    def _name(self, row: Row | None) -> None:
        """Take the header, which cannot be skipped where it is bad."""
        if row is None:
            return
        if isinstance(row[1], InputError):
            raise row[1]
        names, where = row[1], f"{self.path.name}, line {row[0]}"
        if not any(names):
            raise self.nothing()
        twice = next((name for name, times in Counter(names).items() if times > 1), None)
        if twice is not None:
            raise InputError(
                f"column {twice[:60]!r}", got="stands there twice", where=where, hint="rename one"
            )
        if len(names) == 1 and any(mark in names[0] for mark in f"{SEPARATORS}|"):
            got = f"{names[0][:60]!r} is one column"
            raise InputError(
                got, where=where, hint="separate the columns by commas, semicolons or tabs"
            )
        self.header = names
        self._numbers = [i for i, name in enumerate(names) if holds_numbers(name)]
        self.columns = Contents(self.path, {n: in_cells(()) for n in names}, table=True)


def separator(lines: Iterable[bytes], usual: str) -> str:
    """What separates the columns of a header: the usual mark, or another one that stands there
    where it does not.

    >>> separator([b'"id";"claim, in %"'], ","), separator([b"id,a;b"], ","), separator([b"id"], ",")
    (';', ',', ',')
    """
    header = next((line for line in lines if line.strip()), b"").decode("utf-8", "replace")
    bare = "".join(header.split('"')[::2])  # what stands in quotes belongs to a name
    return next((mark for mark in (usual, *SEPARATORS) if mark in bare), usual)


def _inside(text: str, delimiter: str, inside: bool) -> bool:
    """Whether a quoted cell is open at the end of a line; `inside` says so of its beginning."""
    at, end = 0, len(text)
    while at < end:
        if not inside:
            if text[at] != '"':  # quotes open a cell only at its beginning
                at = text.find(delimiter, at) + 1
                if not at:
                    return False
                continue
            inside, at = True, at + 1
        at = text.find('"', at)
        if at < 0:
            return True
        at += 1
        if text[at : at + 1] == '"':  # two of them stand for one
            at += 1
            continue
        inside = False
        at = text.find(delimiter, at) + 1
        if not at:
            return False
    return inside


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One column per class; every number with all its digits."""
    columns: dict[str, list[Any]] = {}
    names = arrays.get("class_names")
    for name, array in arrays.items():
        if name != "class_names":
            columns.update(_columns(column_name(name), array, names))
    with written(path, suffix) as file:
        writer = csv.writer(file, delimiter="\t" if ".tsv" in suffix else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _columns(name: str, array: Array, names: Array | None) -> dict[str, list[Any]]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 1:
        return {
            name: array.astype(np.int64).tolist() if array.dtype == np.bool_ else array.tolist()
        }
    if array.ndim == 3:
        return {name: [json.dumps(row) for row in array.transpose(1, 0, 2).tolist()]}
    ends = [str(i) for i in range(array.shape[1])] if names is None else _headings(names)
    return {
        f"{name.removesuffix('s')}_{end}": column
        for end, column in zip(ends, array.T.tolist(), strict=True)
    }


def _headings(names: Array) -> list[str]:
    ends = [str(n) for n in names]
    if any(e.isdigit() or e != e.strip() or not e for e in ends) or len(set(ends)) < len(ends):
        got = "that are numbers, blank or equal cannot be column headings"
        raise InputError("class names", got=got, hint="use another format")
    return ends
