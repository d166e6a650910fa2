"""Which module reads which file. To add a format: one file with `suffixes`, `title`, `read`, `write`, named here."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from howsure._core.check import Array, InputError
from howsure.formats import arrow, delimited, jsonl, npy, npz, safetensors, tensors
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

    def read(self, path: Path, rows: int | None) -> Iterator[Contents]:
        """Runs of about `rows` rows; one run where the entries can be read in part."""
        ...

    def write(self, arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
        """Write the arrays by name."""
        ...


FORMATS: tuple[Format, ...] = (npz, npy, delimited, jsonl, arrow, safetensors, tensors)
BY_SUFFIX = {suffix: module for module in FORMATS for suffix in module.suffixes}


def suffixes() -> dict[str, str]:
    """Every suffix that is read and written, with the name of its format.

    >>> suffixes()[".npz"]
    'NumPy archive'
    """
    return {suffix: module.title for suffix, module in BY_SUFFIX.items()}


def suffix_of(path: Path) -> str:
    """How the name of a file ends: `.csv`, or `.csv.gz`."""
    last = path.suffix.lower()
    return f"{path.suffixes[-2].lower()}{last}" if last == ".gz" and len(path.suffixes) > 1 else last


def format_of(path: Path) -> Format:
    """The module for a path, by its suffix."""
    suffix = suffix_of(path)
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    close = difflib.get_close_matches(suffix, BY_SUFFIX, n=1)
    raise InputError(
        path.name,
        got=f"has the unknown suffix {suffix!r}",
        need=f"known are {', '.join(BY_SUFFIX)}",
        hint=f"Did you mean {close[0]}?" if close else "",
    )


def found(path: Path) -> tuple[Format, Path]:
    """The module and the file for a path; the beginning of `x_logits.npy`, `x`, stands for the whole family."""
    if path.suffix.lower() in ("", ".npy") and not path.exists() and npy.family(path):
        return npy, path
    there = existing(path)
    return format_of(there), there


def existing(path: str | os.PathLike[str]) -> Path:
    """`path`, if it is a file that can be opened."""
    p = Path(path)
    try:
        mode = p.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(str(p), got="is a folder", hint="name the files in it")
        if not stat.S_ISREG(mode):  # opening a pipe would wait for a writer, a device may never end
            raise InputError(str(p), got="is a pipe or a device", need="a file is needed", hint="save it first")
        with p.open("rb"):
            return p
    except FileNotFoundError:
        raise InputError(str(p), got="does not exist", hint=_neighbour(p)) from None
    except InputError:
        raise
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(repr(str(p)), got=f"cannot be read: {why}") from None


def _neighbour(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    except OSError:
        return f"The folder {path.parent} does not exist either"
    return f"Did you mean {close[0]!r}?" if close else ""
