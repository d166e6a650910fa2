"""Which module reads which file. To add a format: one file with `suffixes`, `title`, `read`,
`write`, named here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from howsure._core.check import Array, InputError
from howsure._core.paths import existing
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
    return (
        f"{path.suffixes[-2].lower()}{last}" if last == ".gz" and len(path.suffixes) > 1 else last
    )


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
    """The module and the file for a path; the beginning of `x_logits.npy`, `x`, stands for the
    whole family.
    """
    if path.suffix.lower() in ("", ".npy") and not path.exists() and npy.family(path):
        return npy, path
    there = existing(path)
    return format_of(there), there
