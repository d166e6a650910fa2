"""JSON lines, one object on each; and lines as such, which tables of text are made of too.

Lines keep their numbers, and one that cannot be read is handed on with its error: `read` refuses it,
a stream sets it apart.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, TypeAlias

import numpy as np

from howsure._core.checks import Array, InputError
from howsure._core.file_access import Budget, estimate_json_bytes, open_budget
from howsure._core.frozen import frozen
from howsure._core.text import escape_json
from howsure.formats.column_names import name_column
from howsure.formats.contents import (
    SAVE_AGAIN,
    Contents,
    Damaged,
    FileEntry,
    as_record,
    describe_error,
)

NumberedLine: TypeAlias = tuple[int, bytes]
JsonObject: TypeAlias = dict[str, Any]
OBJECTS_AT_A_TIME = 1 << 13
READ_BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 26  # what is longer is no line
LINE_END = re.compile(rb"\r(?=[^\n])|\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows; a `.json` file holds them in one list."""
    parser = JsonLinesParser(path)
    if path.suffix.lower() == ".json":
        return parser.take_list(path.read_bytes())
    return read_rows(path, rows, parser)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One object per sample, its vector as a list, or as an object by class where the classes have
    names, which then are its label too: a class may be called by a number.
    """
    columns: dict[str, list[Any]] = {}
    names = arrays.get("class_names")
    by_class = names is not None and len(set(names)) == len(names)
    by_class = by_class and any(array.ndim == 2 for array in arrays.values())
    for part, array in arrays.items():
        if part == "labels" and array.ndim == 1 and names is not None and by_class:
            array = names[array]
        if part != "class_names":
            columns[name_column(part)] = _list_rows(array, arrays.get("class_names"))
    with open_text_to_write(path, suffix) as file:
        for values in zip(*columns.values(), strict=True):
            record = dict(zip(columns, values, strict=True))
            file.write(escape_json(json.dumps(record, ensure_ascii=False)))
            file.write("\n")


def _list_rows(array: Array, names: Array | None) -> list[Any]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 3:
        array = array.transpose(1, 0, 2)
    rows: list[Any] = array.tolist()
    if array.ndim == 2 and names is not None and len(set(names)) == len(names):
        classes = [str(name) for name in names]
        return [dict(zip(classes, row, strict=True)) for row in rows]
    return rows


# Lines → objects → columns


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # NaN and Infinity are no JSON
OBJECTS_ON_A_LINE = re.compile(rb"\}\s*,\s*\{")


class JsonLinesParser:
    """A parser of lines. `group_keys` tells which keys may not stand in one run with which others."""

    rows = OBJECTS_AT_A_TIME
    columns = None  # every line names its own
    open_lines = 0  # and is complete

    def __init__(self, path: Path, group_keys: Callable[[tuple[str, ...]], Hashable] | None = None):
        self.path = path
        self.group_keys = group_keys
        # Packed lines may become far more than the file; others are as long as they are.
        self.budget: Budget | None = open_budget(path) if is_packed(path) else None

    def take_lines(self, lines: Sequence[NumberedLine]) -> Iterator[Contents | BadLine]:
        """Runs of objects, and the lines that hold none."""
        plain = self._parse_plain_lines(lines)
        if plain is not None:
            yield from self._build_runs(plain, 0)
            return
        rows: list[tuple[int, JsonObject]] = []
        size = 0  # about the bytes of these rows, where the file is packed
        for line in lines:
            number, raw = line
            if not raw.strip():
                continue
            try:
                text = decode_line(line, self.path.name).strip()
                if self.budget is not None:
                    size += estimate_json_bytes(text)
                    self.budget.pass_by(size)
                rows.append((number, self._parse_object(text, number)))
            except InputError as e:
                yield from self._build_runs(rows, size)
                rows, size = [], 0
                yield BadLine(number=number, error=e)
        yield from self._build_runs(rows, size)

    def _parse_plain_lines(
        self, lines: Sequence[NumberedLine]
    ) -> list[tuple[int, JsonObject]] | None:
        """Every line one object; None where it may not be so."""
        raw = [line for _, line in lines]
        # Read as one list, which takes half the time. A comma between two objects on a line could
        # hide that another object stands on two lines.
        if self.budget is not None or OBJECTS_ON_A_LINE.search(b"\n".join(raw)):
            return None
        try:
            values: list[JsonObject] = DECODER.decode(f"[{b','.join(raw).decode('utf-8')}]")
        except (ValueError, RecursionError):
            return None
        if len(values) != len(lines) or set(map(type, values)) != {dict}:
            return None
        return [(number, value) for (number, _), value in zip(lines, values, strict=True)]

    def take_list(self, data: bytes) -> Iterator[Contents]:
        """All objects of a list as one run; they are numbered from 1 on."""
        where = self.path.name
        try:
            values: list[Any] = DECODER.decode(decode_line((1, data), where).strip())
        except (ValueError, RecursionError) as e:
            got = f"is not JSON ({describe_error(e)})"
            raise InputError(where, got=got, hint=SAVE_AGAIN) from None
        rows: list[tuple[int, JsonObject]] = []
        for number, value in enumerate(values, start=1):
            record = as_record(value)
            if record is None:
                got = f"is a {type(value).__name__}, not an object"
                raise InputError(f"{where}, entry {number}", got=got, hint=SAVE_AGAIN)
            rows.append((number, record))
        if not rows:
            raise self.make_empty_error()
        yield from self._build_runs(rows, len(data))

    def close(self) -> Iterator[Contents | BadLine]:
        """Nothing is kept."""
        return iter(())

    def make_empty_error(self) -> InputError:
        """What to say where there was no row."""
        need = "at least one JSON object on a line is needed"
        return InputError(self.path.name, got="is empty", need=need)

    def _parse_object(self, text: str, number: int) -> JsonObject:
        where = f"{self.path.name}, line {number}"
        try:
            value = DECODER.decode(text)
        except json.JSONDecodeError as e:
            got = f"is not JSON ({e.msg} at character {e.pos})"
            raise InputError(where, got=got, need="one object per line is needed") from None
        except (ValueError, RecursionError) as e:
            why = "nested too deeply"
            if isinstance(e, ValueError):
                why = str(e).splitlines()[0]
            raise InputError(where, got=f"cannot be read: {why}", hint="repair the value") from None
        record = as_record(value)
        if record is None:
            hint = 'write {"confidence": 0.9, …}'
            raise InputError(where, got=f"is a {type(value).__name__}, not an object", hint=hint)
        return record

    def _build_runs(self, rows: list[tuple[int, JsonObject]], size: int) -> Iterator[Contents]:
        if not rows:
            return
        group_keys = self.group_keys
        if group_keys is None or len(set(map(tuple, (record for _, record in rows)))) == 1:
            yield _build_contents(rows, self.path, size)
            return
        for _, run in groupby(rows, key=lambda row: group_keys(tuple(row[1]))):
            yield _build_contents(list(run), self.path, size)


def _build_contents(rows: list[tuple[int, JsonObject]], path: Path, size: int) -> Contents:
    records = [record for _, record in rows]
    # Most rows have the same keys, so each set of keys is looked at once; a dictionary keeps order.
    names: dict[str, None] = {}
    for keys in dict.fromkeys(map(tuple, records)):
        names |= dict.fromkeys(keys)

    def load(name: str) -> list[Any]:
        return [record.get(name) for record in records]

    # Columns are gathered when they are asked for: a file may have as many names as lines.
    entries: dict[str, FileEntry] = {}
    for name in names:
        entries[name] = FileEntry(
            shape=(len(records),),
            dtype="text",
            load=partial(load, name),
        )
    return Contents(
        path=path,
        entries=entries,
        table=True,
        lines=np.array([number for number, _ in rows], dtype=np.int64),
        size=size,
    )


# Lines of text, whatever stands on them


@frozen
class BadLine:
    """A line that cannot be read, and why."""

    number: int
    error: InputError


class LineParser(Protocol):
    """Takes the lines of one source as they come. `rows` is how many lines it wants at a time, at
    most.
    """

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> Contents | None:
        """The columns without rows, where a header has named them."""
        ...

    @property
    def open_lines(self) -> int:
        """Lines of a row that is not complete yet."""
        ...

    def take_lines(self, lines: Sequence[NumberedLine]) -> Iterator[Contents | BadLine]:
        """Runs of rows and bad lines, in order; the lines of a row that is not complete yet are
        kept.
        """
        ...

    def close(self) -> Iterator[Contents | BadLine]:
        """What is left at the end."""
        ...

    def make_empty_error(self) -> InputError:
        """What to say where there was no row."""
        ...


def read_rows(path: Path, rows: int | None, parser: LineParser) -> Iterator[Contents]:
    """Runs of rows of a file; the first bad line is refused, and so is a file without rows."""

    def parse_file() -> Iterator[Contents | BadLine]:
        waiting: list[NumberedLine] = []
        for lines in number_lines(read_blocks(path), path.name):
            waiting += lines
            start = 0
            while True:
                # The parser knows how many lines it can take only when it has seen the header.
                step = max(1, min(rows or parser.rows, parser.rows))
                if len(waiting) - start < step:
                    break
                yield from parser.take_lines(waiting[start : start + step])
                start += step
            del waiting[:start]
        if waiting:
            yield from parser.take_lines(waiting)
        yield from parser.close()

    empty = True
    for run in parse_file():
        if isinstance(run, BadLine):
            raise run.error
        empty = False
        yield run
    if empty:
        raise parser.make_empty_error()


def is_packed(path: Path) -> bool:
    """Whether the lines of a file are packed, by its name."""
    return path.name.lower().endswith(".gz")


def read_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a text file, unpacked where its name ends with .gz."""
    if is_packed(path):
        budget = Budget(path.name, path.stat().st_size)
        # Unpack it once to see how much it is: parsing takes far longer.
        for block in _unpack_blocks(path):
            budget.spend(len(block), held=False)
        yield from _unpack_blocks(path)
        return
    with path.open("rb") as file:
        while block := file.read(READ_BLOCK_BYTES):
            yield block


def _unpack_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as packed, gzip.open(packed, "rb") as file:
        while True:
            try:
                block = file.read(READ_BLOCK_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as e:
                got = f"is not a complete gzip file ({describe_error(e)})"
                raise Damaged(path.name, got=got, hint=SAVE_AGAIN) from None
            if not block:
                return
            yield block


def number_lines(blocks: Iterable[bytes], name: str) -> Iterator[list[NumberedLine]]:
    """Complete lines with their numbers, as many as each block brought; a last line needs no end.

    A file whose first line ends with a carriage return alone is split there. No byte is copied more
    than twice, however small the blocks and however long the line.
    """
    number = 1
    end = b""  # how the first line ends, once it is known
    held: list[bytes] = []  # the beginning of the next line
    held_bytes = 0
    for block in blocks:
        if not end and (first_end := LINE_END.search(block)):
            end = first_end[0]
        *lines, rest = block.split(end or b"\n")
        if lines:
            lines[0] = b"".join((*held, lines[0]))
            yield list(enumerate(lines, start=number))
            number += len(lines)
            held, held_bytes = [], 0
        held.append(rest)
        held_bytes += len(rest)
        if held_bytes > MAX_LINE_BYTES:
            got = f"is longer than {MAX_LINE_BYTES >> 20} MB"
            raise InputError(f"{name}, line {number}", got=got, hint="is this a text file?")
    last = b"".join(held)
    if last.strip():
        yield [(number, last)]


def decode_line(line: NumberedLine, name: str) -> str:
    """The line as text; a byte order mark before the first one is dropped."""
    number, raw = line
    if number == 1:
        raw = raw.removeprefix(BYTE_ORDER_MARK)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        where = f"{name}, line {number}"
        raise InputError(where, got="is not UTF-8 text", hint="save it as UTF-8") from None


@contextmanager
def open_text_to_write(path: Path, suffix: str) -> Generator[IO[str]]:
    """A text file to write, packed where the suffix ends with .gz; the same rows give the same
    bytes.
    """
    with path.open("wb") as raw:
        stream = raw
        if suffix.endswith(".gz"):
            # Without a name and a time, which gzip would store.
            stream = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
        with TextIOWrapper(stream, encoding="utf-8", newline="") as file:
            yield file
