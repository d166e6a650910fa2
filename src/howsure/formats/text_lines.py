"""Bytes → numbered lines in bounded memory, for parsers that turn lines into rows."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from howsure._core.budget import Budget
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.formats.contents import SAVE_AGAIN, Contents, Damaged, describe_error

NumberedLine: TypeAlias = tuple[int, bytes]
READ_BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 26  # what is longer is no line
LINE_END = re.compile(rb"\r(?=[^\n])|\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    empty = True
    for run in _parse_file(path, rows, parser):
        if isinstance(run, BadLine):
            raise run.error
        empty = False
        yield run
    if empty:
        raise parser.make_empty_error()


def _parse_file(path: Path, rows: int | None, parser: LineParser) -> Iterator[Contents | BadLine]:
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
