"""What a file holds before anything is known about its meaning, and what may be wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from howsure._core.checks import Array, InputError, Ints
from howsure._core.frozen import frozen

Cells: TypeAlias = Sequence[Any]  # the values of a text column, not yet numbers
SAVE_AGAIN = "save or copy it again"


class Damaged(InputError):
    """The bytes of a file are broken, whatever it was meant to hold."""


@frozen
class FileEntry:
    """One array or column: what the header says of it, and how to get it, whole or in runs of rows."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array | Cells]
    blocks: Callable[[int], Iterator[Array]] | None = None

    @property
    def rows(self) -> int:
        """Length along the first axis."""
        return self.shape[0] if self.shape else 0


@frozen
class Contents:
    """The entries of a file, or of a run of rows of it that begins with row `first`.

    `lines` are the line numbers of a text file's rows.
    """

    path: Path
    entries: dict[str, FileEntry]
    table: bool = False
    lines: Ints | None = None
    numbered: bool = True  # columns such as logit_0, prob_cat hold a value for each class
    class_names: tuple[str, ...] | None = None  # where the format keeps them outside its arrays
    first: int = 0
    commas: bool = False  # a number may have a comma in place of its point
    size: int = 0  # about the bytes of its cells, where the file is packed text

    def get_line(self, row: int) -> int | None:
        """The line that a row stands on, where the file has lines."""
        return None if self.lines is None else int(self.lines[row])

    def describe_place(self, row: int) -> str:
        """Where a row stands, in the words of the file."""
        return f"row {row}" if self.lines is None else f"line {self.get_line(row)}"


@frozen
class FileProblem:
    """One thing that is wrong with a file: where, what, how to repair it, and what can be evaluated
    without a repair.

    `stops` tells a problem that `read` refuses from one that only makes some numbers undefined or
    doubtful.
    """

    where: str
    what: str
    fix: str
    anyway: str = ""
    stops: bool = True
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}."

    @classmethod
    def of(cls, error: InputError, path: Path) -> FileProblem:
        """A refusal as a problem."""
        where = error.where or path.name
        if error.line is not None and error.row is not None:
            where = f"{where}, line {error.line}"
        what = f"{error.what} {error.got}".strip().removesuffix(".")
        fix = "; ".join(part.removesuffix(".") for part in (error.need, error.hint) if part)
        # An error without a fix is one whole sentence, which needs its subject.
        if fix:
            what = what.removeprefix(f"{path.name} ")
        return cls(
            where=where,
            what=what,
            fix=fix or "repair the file",
            anyway="nothing",
            line=error.line,
        )


Report: TypeAlias = Callable[[FileProblem], None]  # called with every problem of a cell


def refuse(problem: FileProblem) -> NoReturn:
    """Raise the first problem that is reported: what `read` does, unlike the doctor."""
    raise InputError(problem.what, hint=problem.fix).at(problem.where, problem.line)


def make_array_entry(array: Array) -> FileEntry:
    """An entry whose array is in memory already."""

    def read_blocks(step: int) -> Iterator[Array]:
        return (array[i : i + step] for i in range(0, len(array), step))

    return FileEntry(
        shape=array.shape,
        dtype=str(array.dtype),
        load=lambda: array,
        blocks=read_blocks if array.ndim else None,
    )


def make_text_entry(cells: Cells) -> FileEntry:
    """An entry of a text table."""
    return FileEntry(shape=(len(cells),), dtype="text", load=lambda: cells)


def as_list(value: object) -> list[Any] | None:
    """`value` where it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def as_record(value: object) -> dict[str, Any] | None:
    """`value` where it is a dictionary, as every object of JSON is."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def describe_error(error: BaseException) -> str:
    """What another library says, in one line."""
    if not str(error):
        return type(error).__name__
    return str(error).splitlines()[0][:120].rstrip(".")
