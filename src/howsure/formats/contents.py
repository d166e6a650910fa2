"""What a file holds, before anything is known about what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from howsure._core.check import Array, InputError, Ints

Cells: TypeAlias = Sequence[Any]  # the values of a text column, not yet numbers


class Damaged(InputError):
    """The bytes of a file are broken, whatever it was meant to hold."""


@dataclass(frozen=True)
class Entry:
    """One array or column: what the header says of it, and how to get it, whole or in runs of rows."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array | Cells]
    blocks: Callable[[int], Iterator[Array]] | None = None


@dataclass(frozen=True)
class Contents:
    """The entries of a file, or of a run of rows of it. `lines` are the line numbers of a text file's rows."""

    path: Path
    entries: dict[str, Entry]
    table: bool = False
    lines: Ints | None = None
    numbered: bool = True  # columns such as logit_0, prob_cat hold a value for each class
    class_names: tuple[str, ...] | None = None  # where the format keeps them outside its arrays

    def place(self, row: int) -> str:
        """Where a row stands, in the words of the file."""
        return f"row {row}" if self.lines is None else f"line {int(self.lines[row])}"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file: where, what, how to repair it, and what can be evaluated without a repair.

    `stops` tells a problem that `read` refuses from one that only makes some numbers undefined or doubtful.
    """

    where: str
    what: str
    fix: str
    anyway: str = ""
    stops: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}."


Report: TypeAlias = Callable[[Problem], None]


def refuse(problem: Problem) -> NoReturn:
    """The strict way to report a problem."""
    raise InputError(str(problem))


def in_memory(array: Array) -> Entry:
    """An entry whose array is there already."""

    def blocks(step: int) -> Iterator[Array]:
        return (array[i : i + step] for i in range(0, len(array), step))

    return Entry(array.shape, str(array.dtype), lambda: array, blocks if array.ndim else None)


def in_cells(cells: Cells) -> Entry:
    """An entry of a text table."""
    return Entry((len(cells),), "text", lambda: cells)
