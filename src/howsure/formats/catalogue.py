"""Which module reads which file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from howsure._core.check import Array, InputError
from howsure.formats import arrow, delimited, jsonl, npz, pair, safetensors, tensors
from howsure.formats.contents import Contents


class Format(Protocol):
    """What a module of this folder offers."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files end."""
        ...

    @property
    def title(self) -> str:
        """What people call it."""
        ...

    def scan(self, path: Path, rows: int | None) -> Iterator[Contents]:
        """Runs of about `rows` rows; one run where the entries can be read in part."""
        ...

    def write(self, arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
        """Write the arrays by name."""
        ...


FORMATS: tuple[Format, ...] = (npz, pair, delimited, jsonl, arrow, safetensors, tensors)
BY_SUFFIX = {suffix: module for module in FORMATS for suffix in module.suffixes}


def suffixes() -> dict[str, str]:
    """Every suffix that is read and written, with the name of its format.

    >>> suffixes()[".npz"]
    'NumPy archive'
    """
    return {suffix: module.title for suffix, module in BY_SUFFIX.items()}


def format_of(path: Path) -> Format:
    """The module for a path, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    close = difflib.get_close_matches(suffix, BY_SUFFIX, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    raise InputError(f"{path.name} has the unknown suffix {suffix!r}; known are {', '.join(BY_SUFFIX)}.{meant}")


def found(path: Path) -> tuple[Format, Path]:
    """The module and the file for a path; the beginning of `x_logits.npy`, `x`, stands for the whole family."""
    if path.suffix.lower() in ("", ".npy") and not path.exists() and pair.family(path):
        return pair, path
    there = existing(path)
    return format_of(there), there


def existing(path: str | os.PathLike[str]) -> Path:
    """`path`, if it is a file that can be opened."""
    p = Path(path)
    try:
        if p.is_dir():
            raise InputError(f"{p} is a folder; name the files in it.")
        with p.open("rb"):
            return p
    except FileNotFoundError:
        raise InputError(f"{p} does not exist.{_neighbour(p)}") from None
    except (OSError, ValueError) as e:
        if isinstance(e, InputError):
            raise
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(f"{str(p)!r} cannot be read: {reason}.") from None


def _neighbour(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    except OSError:
        return f" The folder {path.parent} does not exist either."
    return f" Did you mean {close[0]!r}?" if close else ""
