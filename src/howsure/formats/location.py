"""Which files a path or pattern names, and whether they are too large to load."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from howsure._core.check import InputError
from howsure.formats import arrow, npy
from howsure.formats.remote import is_remote, matches

LARGE_BYTES, LARGE_ROWS = 1 << 30, 10_000_000  # from here on the command streams


def matching(path: str) -> list[str]:
    """The files that a path or pattern names, in the order of their names."""
    if not glob.has_magic(path) or (not is_remote(path) and os.path.exists(path)):
        return [path]
    found = matches(path) if is_remote(path) else sorted(glob.glob(path, recursive=True))
    if not found:
        raise InputError(f"no file matches {path!r}.")
    return found


def together(files: Sequence[str]) -> dict[str, list[str]]:
    """Every file once, with those that are read with it: NumPy files that belong together are one.

    The same file twice is a mistake, whatever its two names are.
    """
    seen: set[str] = set()
    groups: dict[str, list[str]] = {}
    for file in files:
        real = (
            file if is_remote(file) or "\0" in file else os.path.realpath(file)
        )  # \0: refused when it is opened
        if real in seen:
            raise InputError(
                f"{file} is given twice; its rows would count twice, so name every file once."
            )
        seen.add(real)
        groups.setdefault(_first_of_all(file, real), []).append(file)
    return {group[0]: group for group in groups.values()}


def _first_of_all(file: str, real: str) -> str:
    """What stands for a file and all that are read with it."""
    if is_remote(file) or (os.path.exists(file) and not file.lower().endswith(npy.suffixes)):
        return real
    family = npy.family(Path(file)).values()
    return min((os.path.realpath(path) for path in family), default=real)


def large(paths: Sequence[str]) -> str | None:
    """Why these files are streamed unless told otherwise: where they are, their bytes or their
    rows; None: they fit.
    """
    if any(
        is_remote(path) or (not os.path.exists(path) and glob.has_magic(path)) for path in paths
    ):
        return "a pattern or an address"
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    if size >= LARGE_BYTES:
        return f"{size / 2**30:.1f} GiB"
    tables = [
        Path(path)
        for path in paths
        if Path(path).suffix.lower() in arrow.suffixes and os.path.isfile(path)
    ]
    try:
        rows = sum(sum(arrow.outline(path).pieces or ()) for path in tables)
    except (InputError, ModuleNotFoundError):  # reading them will say it better
        return None
    return f"{rows:,} rows" if rows >= LARGE_ROWS else None
