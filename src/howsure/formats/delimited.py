"""Tables with a header line, separated by commas or tabs, or by semicolons as spreadsheets write
them beside 0,5.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from howsure._core.checks import Array, InputError
from howsure._core.file_access import count_text_bytes
from howsure.formats.cells import find_decimal_mark
from howsure.formats.column_names import is_numeric, name_column
from howsure.formats.contents import Contents, make_text_entry
from howsure.formats.json_lines import (
    BadLine,
    NumberedLine,
    decode_line,
    is_packed,
    open_text_to_write,
    read_rows,
)

SEPARATORS = ",;\t"
NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)
CELLS_AT_A_TIME = 1 << 18  # cells held as text
TextLine: TypeAlias = tuple[int, str]
# The line that a row ends on, and its cells or what is wrong with it.
ParsedRow: TypeAlias = tuple[int, list[str] | InputError]


def read(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    return read_rows(path, rows, DelimitedTable(path, exact=rows))


class DelimitedTable:
    """A parser of lines. The first row is the header; a quoted cell may go on over several lines.

    The suffix names the separator; where the header has none of it, the one that it has. With
    `exact` rows wait until there are so many of them.
    """

    def __init__(self, path: Path, exact: int | None = None):
        self.path = path
        self.exact = exact
        self.delimiter = "\t" if ".tsv" in path.suffixes[-2:] else ","
        self.header: list[str] = []
        self.columns: Contents | None = None
        self._waiting: list[ParsedRow] = []
        self._open_lines: list[TextLine] = []  # the lines of a row whose quotes are open
        self._open_letters = 0
        self._numeric_columns: list[int] = []
        self._decimal_marks: dict[int, str] = {}  # of numeric columns that have shown one

    @property
    def rows(self) -> int:
        """So many lines that the cells of a run stay few; the header alone until it is known."""
        return max(1, CELLS_AT_A_TIME // len(self.header)) if self.header else 1

    @property
    def open_lines(self) -> int:
        """Lines of a row whose quotes are open."""
        return len(self._open_lines)

    def take_lines(self, lines: Sequence[NumberedLine]) -> Iterator[Contents | BadLine]:
        """Runs of rows, and the lines that are none."""
        if not self.header and not self._open_lines:
            self.delimiter = find_separator((line for _, line in lines), self.delimiter)
        columns = self._split_plain_lines(lines)
        if columns is not None:
            yield self._build_contents([number for number, _ in lines], columns)
            return
        rows: Iterable[ParsedRow] | None = self._parse_plain_lines(lines)
        if rows is None:
            rows = self._parse_lines(lines)
        yield from self._build_runs(rows)

    def close(self) -> Iterator[Contents | BadLine]:
        """The row whose quotes are still open is a bad one; what it swallowed is read again."""
        while self._open_lines:
            lines = self._take_open_lines()
            error = self._make_error("unexpected end of data", lines[-1][0])
            yield from self._build_runs([(lines[0][0], error)])
            yield from self._build_runs(self._parse_texts(deque(lines[1:])))
        yield from self._build_runs((), end=True)

    def make_empty_error(self) -> InputError:
        """What to say where there was no row."""
        if self.header:
            got, need = "has a header but no rows", "at least one sample is needed"
        else:
            got, need = "is empty", "a header line and at least one row are needed"
        return InputError(self.path.name, got=got, need=need)

    # Lines → rows of cells, or at once → columns

    def _split_plain_lines(self, lines: Sequence[NumberedLine]) -> list[list[str]] | None:
        """The columns of a run of any length where every line is a whole row without quotes; None
        where it may not be.
        """
        width, mark = len(self.header), self.delimiter.encode()
        raw = [line for _, line in lines]
        if self._open_lines or not width or self.exact is not None or self.delimiter == ";":
            return None
        if any(line.count(mark) != width - 1 or not line.strip(mark) for line in raw):
            return None
        whole = mark.join(raw)
        if (
            b'"' in whole
            or b"\r" in whole
            or max(map(len, raw), default=0) > csv.field_size_limit()
        ):
            return None
        try:
            cells = whole.decode("utf-8").split(self.delimiter)
        except UnicodeDecodeError:
            return None
        return [cells[i::width] for i in range(width)]

    def _parse_plain_lines(self, lines: Sequence[NumberedLine]) -> list[ParsedRow] | None:
        """Every line a row, which it is where there are no quotes; None where it may not be."""
        raw = b"\n".join([line for _, line in lines])
        if self._open_lines or not self.header or b'"' in raw:
            return None
        try:
            texts = raw.decode("utf-8").split("\n")
            rows = list(csv.reader(texts, delimiter=self.delimiter, strict=True))
        except (csv.Error, UnicodeDecodeError):
            return None
        if len(rows) != len(lines):  # a carriage return inside a line
            return None
        return [(number, row) for (number, _), row in zip(lines, rows, strict=True)]

    def _parse_lines(self, lines: Sequence[NumberedLine]) -> Iterator[ParsedRow]:
        """The same for lines with quotes, or with bytes that are no text."""
        texts: deque[TextLine] = deque()
        for line in lines:
            try:
                texts.append((line[0], decode_line(line, self.path.name)))
            except InputError as e:
                yield from self._parse_texts(texts)
                yield line[0], e
        yield from self._parse_texts(texts)

    def _parse_texts(self, texts: deque[TextLine]) -> Iterator[ParsedRow]:
        """Rows of one line or more. Where one is bad, only its first line is given up."""
        while texts:
            line = texts.popleft()
            is_open = _ends_inside_quotes(line[1], self.delimiter, bool(self._open_lines))
            self._open_lines.append(line)
            self._open_letters += len(line[1])
            if is_open and self._open_letters <= csv.field_size_limit():
                continue
            lines = self._take_open_lines()
            cells = self._parse_row(lines)
            if isinstance(cells, InputError):
                yield lines[0][0], cells
                texts.extendleft(reversed(lines[1:]))
            else:
                yield lines[-1][0], cells

    def _take_open_lines(self) -> list[TextLine]:
        lines = self._open_lines
        self._open_lines = []
        self._open_letters = 0
        return lines

    def _parse_row(self, lines: list[TextLine]) -> list[str] | InputError:
        """The cells of a row that stands on these lines."""
        texts = [f"{text}\n" for _, text in lines[:-1]]
        texts.append(lines[-1][1])
        try:
            return next(csv.reader(texts, delimiter=self.delimiter, strict=True), list[str]())
        except csv.Error as e:
            why = str(e)
            if "new-line character" in why:
                why = "a carriage return stands inside the line"
            return self._make_error(why, lines[-1][0])

    def _make_error(self, why: str, line: int) -> InputError:
        where = f"{self.path.name}, line {line}"
        return InputError(why, where=where, hint="repair the quotes or the cell")

    # Rows of cells → runs of columns

    def _build_runs(
        self, rows: Iterable[ParsedRow], *, end: bool = False
    ) -> Iterator[Contents | BadLine]:
        # Spreadsheets end with rows of empty cells.
        filled = (row for row in rows if isinstance(row[1], InputError) or any(row[1]))
        if not self.header:
            self._take_header(next(filled, None))
        if self.exact is None:
            yield from self._split_bad_rows(filled)
            return
        self._waiting += filled
        step = min(self.exact, self.rows)
        while len(self._waiting) >= step or (end and self._waiting):
            yield from self._split_bad_rows(self._waiting[:step])
            del self._waiting[:step]

    def _split_bad_rows(self, rows: Iterable[ParsedRow]) -> Iterator[Contents | BadLine]:
        rows = list(rows)
        width = len(self.header)
        whole = [(n, row) for n, row in rows if isinstance(row, list) and len(row) == width]
        if len(whole) == len(rows) > 0 and self.delimiter != ";":
            columns = list(zip(*(row for _, row in whole), strict=True))
            yield self._build_contents([n for n, _ in whole], columns)
            return
        checked = ((number, self._check_row(number, cells)) for number, cells in rows)
        for good, run in groupby(checked, key=lambda row: isinstance(row[1], list)):
            numbers: list[int] = []
            cells: list[list[str]] = []
            for number, row in run:
                if isinstance(row, InputError):
                    yield BadLine(number=number, error=row)
                else:
                    numbers.append(number)
                    cells.append(row)
            if good:
                yield self._build_contents(numbers, list(zip(*cells, strict=True)))

    def _check_row(self, number: int, cells: list[str] | InputError) -> list[str] | InputError:
        """Return the cells, or what is wrong with them."""
        if isinstance(cells, InputError):
            return cells
        if len(cells) != len(self.header):
            return InputError(
                f"{len(cells)} cells for {len(self.header)} columns",
                where=f"{self.path.name}, line {number}",
                hint="add the missing cells or quote those that hold the separator",
            )
        if self.delimiter != ";":
            return cells
        # Numbers must be written as those above: 1.234 beside 0,5 may be a thousand.
        for i in self._numeric_columns:
            mark = find_decimal_mark(cells[i])
            if mark and self._decimal_marks.setdefault(i, mark) != mark:
                where = f"{self.path.name}, line {number}, column {self.header[i]!r}"
                got = f"has numbers with decimal commas and with points ({cells[i].strip()[:60]!r})"
                return InputError(where, got=got, hint="write all of them alike")
        return cells

    def _build_contents(self, numbers: list[int], columns: Sequence[Sequence[str]]) -> Contents:
        pairs = zip(self.header, columns, strict=True)
        return Contents(
            path=self.path,
            entries={name: make_text_entry(cells) for name, cells in pairs},
            table=True,
            lines=np.array(numbers, dtype=np.int64),
            commas=self.delimiter == ";",
            size=sum(map(count_text_bytes, columns)) if is_packed(self.path) else 0,
        )

    def _take_header(self, row: ParsedRow | None) -> None:
        """Take the names of the columns; a bad header cannot be skipped."""
        if row is None:
            return
        number, names = row
        if isinstance(names, InputError):
            raise names
        if names[0].lower() == "sep=" and not any(names[1:]):
            return  # so spreadsheets are told the separator; the header comes next
        where = f"{self.path.name}, line {number}"
        if names[0].startswith("#") and len(names) == 1:
            got = "is a remark where the names of the columns should stand"
            raise InputError(where, got=got, hint="take it out")
        names = [names[0].removeprefix("# "), *names[1:]]  # so np.savetxt begins a header
        numbers = [name for name in names if NUMBER.fullmatch(name.strip())]
        if len(numbers) == len(names) > 1:
            got = "holds numbers where the names of the columns should stand"
            hint = "put a header before it, such as prob_0,prob_1,label (np.savetxt: header=, delimiter=',')"
            raise InputError(where, got=got, hint=hint)
        for name, times in Counter(names).items():
            if times > 1:
                what = f"column {name[:60]!r}"
                raise InputError(what, got="stands there twice", where=where, hint="rename one")
        if len(names) == 1 and any(mark in names[0] for mark in f"{SEPARATORS}|"):
            what = f"{names[0][:60]!r} is one column"
            hint = "separate the columns by commas, semicolons or tabs"
            raise InputError(what, where=where, hint=hint)
        self.header = names
        self._numeric_columns = [i for i, name in enumerate(names) if is_numeric(name)]
        entries = {name: make_text_entry(()) for name in names}
        self.columns = Contents(path=self.path, entries=entries, table=True)


def find_separator(lines: Iterable[bytes], usual: str) -> str:
    """What separates the columns of a header: the usual mark, or another one that stands there
    where it does not.

    >>> find_separator([b'"id";"claim, in %"'], ","), find_separator([b"id,a;b"], ",")
    (';', ',')
    >>> find_separator([b"id"], ",")
    ','
    """
    header = next((line for line in lines if line.strip()), b"").decode("utf-8", "replace")
    bare = "".join(header.split('"')[::2])  # what stands in quotes belongs to a name
    for mark in (usual, *SEPARATORS):
        if mark in bare:
            return mark
    return usual


def _ends_inside_quotes(text: str, delimiter: str, inside: bool) -> bool:
    """Whether a quoted cell is open at the end of a line; `inside` says so of its beginning."""
    at = 0
    while at < len(text):
        if not inside:
            if text[at] == '"':  # quotes open a cell only at its beginning
                inside = True
                at += 1
            else:
                at = text.find(delimiter, at) + 1
                if not at:
                    return False
                continue
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
    for part, array in arrays.items():
        if part != "class_names":
            columns |= _list_columns(name_column(part), array, arrays.get("class_names"))
    with open_text_to_write(path, suffix) as file:
        delimiter = "\t" if ".tsv" in suffix else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _list_columns(name: str, array: Array, class_names: Array | None) -> dict[str, list[Any]]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.dtype == np.bool_ and array.ndim == 1:
        array = array.astype(np.int64)
    if array.ndim == 1:
        return {name: array.tolist()}
    if array.ndim == 3:
        return {name: [json.dumps(row) for row in array.transpose(1, 0, 2).tolist()]}
    ends = [str(i) for i in range(array.shape[1])]
    if class_names is not None:
        ends = [str(end) for end in class_names]
        unfit = any(end.isdigit() or end != end.strip() or not end for end in ends)
        if unfit or len(set(ends)) < len(ends):
            got = "that are numbers, blank or equal cannot be column headings"
            raise InputError("class names", got=got, hint="use another format")
    singular = name.removesuffix("s")
    pairs = zip(ends, array.T.tolist(), strict=True)
    return {f"{singular}_{end}": column for end, column in pairs}
