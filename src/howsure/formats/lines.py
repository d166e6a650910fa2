"""Bytes → numbered lines, in bounded memory, and lines → the rows of a text table, each with its
fault or without.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from howsure._core.budget import Budget
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.formats.contents import AGAIN, Contents, Damaged, reason

Numbered: TypeAlias = tuple[int, bytes]
BLOCK = 1 << 18
LONGEST = 1 << 26  # a line beyond this is no line
FIRST_END = re.compile(rb"\r(?=[^\n])|\n")
MARK = b"\xef\xbb\xbf"


@frozen
class BadLine:
    """A line that cannot be read, and why."""

    number: int
    error: InputError


class Parser(Protocol):
    """Takes the lines of one source as they come. `rows` is how many lines it wants at a time, at
    most.
    """

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> Contents | None:
        """The columns without rows, where a header has named them."""
        ...

    def take(self, lines: Sequence[Numbered]) -> Iterator[Contents | BadLine]:
        """Runs of rows and bad lines, in order; the lines of a row that is not complete yet are
        kept.
        """
        ...

    def close(self) -> Iterator[Contents | BadLine]:
        """What is left at the end."""
        ...

    def nothing(self) -> InputError:
        """What to say where there was no row."""
        ...


def parsed(path: Path, rows: int | None, parser: Parser) -> Iterator[Contents]:
    """Runs of rows of a file; the first bad line is refused, and so is a file without rows."""
    found = False
    for run in _every_run(path, rows, parser):
        if isinstance(run, BadLine):
            raise run.error
        found = True
        yield run
    if not found:
        raise parser.nothing()


def _every_run(path: Path, rows: int | None, parser: Parser) -> Iterator[Contents | BadLine]:
    step: Callable[[], int] = lambda: max(1, min(rows or parser.rows, parser.rows))
    for lines in _regrouped(numbered(file_blocks(path), path.name), step):
        yield from parser.take(lines)
    yield from parser.close()


def _regrouped(
    batches: Iterable[list[Numbered]], step: Callable[[], int]
) -> Iterator[list[Numbered]]:
    """The same lines in groups of `step()`, which may change while it runs."""
    held: list[Numbered] = []
    for batch in batches:
        held += batch
        start = 0
        while len(held) - start >= (size := step()):
            yield held[start : start + size]
            start += size
        del held[:start]
    if held:
        yield held


def is_packed(path: Path) -> bool:
    """Whether the lines of a file are packed, by its name."""
    return path.name.lower().endswith(".gz")


def file_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a text file, unpacked where its name ends with .gz."""
    if is_packed(path):
        yield from _unpacked(path)
        return
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _unpacked(path: Path) -> Iterator[bytes]:
    budget = Budget(path.name, path.stat().st_size)
    with path.open("rb") as raw, gzip.open(raw, "rb") as file:
        while block := _block(file, path):  # once to see how much it is: parsing takes far longer
            budget.spend(len(block), held=False)
    with path.open("rb") as raw, gzip.open(raw, "rb") as file:
        while block := _block(file, path):
            yield block


def _block(file: gzip.GzipFile, path: Path) -> bytes:
    try:
        return file.read(BLOCK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise Damaged(
            path.name, got=f"is not a complete gzip file ({reason(e)})", hint=AGAIN
        ) from None


def numbered(blocks: Iterable[bytes], name: str) -> Iterator[list[Numbered]]:
    """Complete lines with their numbers, as many as each block brought; a last line needs no end.

    A file whose first line ends with a carriage return alone is split there. No byte is copied more
    than twice, however small the blocks and however long the line.
    """
    number, held, size, end = 1, list[bytes](), 0, b""
    for block in blocks:
        end = end or _end_of_line(block)
        *lines, rest = block.split(end or b"\n")
        if lines:
            lines[0] = b"".join((*held, lines[0]))
            yield list(enumerate(lines, start=number))
            number, held, size = number + len(lines), [], 0
        held.append(rest)
        size += len(rest)
        if size > LONGEST:
            got = f"is longer than {LONGEST >> 20} MB"
            raise InputError(f"{name}, line {number}", got=got, hint="is this a text file?")
    last = b"".join(held)
    if last.strip():
        yield [(number, last)]


def _end_of_line(block: bytes) -> bytes:
    """How the first line ends; nothing where it does not end here."""
    found = FIRST_END.search(block)
    return b"" if found is None else found[0]


def decoded(line: Numbered, name: str) -> str:
    """The line as text; a byte order mark before the first one is dropped."""
    number, raw = line
    try:
        return (raw.removeprefix(MARK) if number == 1 else raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{name}, line {number}", got="is not UTF-8 text", hint="save it as UTF-8"
        ) from None


@contextmanager
def written(path: Path, suffix: str) -> Generator[IO[str]]:
    """A text file to write, packed where the suffix ends with .gz; the same rows give the same
    bytes.
    """
    with path.open("wb") as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if suffix.endswith(".gz") else raw
        with TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            yield file
