"""NumPy files that belong together: `x_logits.npy` with `x_labels.npy`, and `x_ids.npy`, … where there are more."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from howsure._core.atomic import replacing
from howsure._core.check import Array, InputError
from howsure.formats import npy
from howsure.formats.contents import Contents, Entry
from howsure.formats.names import array_part

suffixes = (".npy",)
title = "NumPy files, x_logits.npy with x_labels.npy"


def family(path: Path) -> dict[str, Path]:
    """The files with the same beginning as `path`, by their part of the name; `path` may be that beginning itself."""
    known = array_part(path.stem.lower()) if path.suffix.lower() == ".npy" and path.exists() else None
    name = path.stem if path.suffix.lower() == ".npy" else path.name
    begin = name.lower() if known is None else known[0]
    try:
        beside = sorted(p for p in path.parent.iterdir() if p.suffix.lower() == ".npy")
    except (OSError, ValueError):
        return {}
    parts = {p: array_part(p.stem.lower()) for p in beside}
    return {part[1]: p for p, part in parts.items() if part is not None and part[0] == begin}


def scan(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - entries are read when they are asked for
    """The arrays of all files of the family; they stay in the files until they are loaded."""
    files = family(path)
    if not files or (path.exists() and path not in files.values()):
        raise InputError(f"{path.name} does not say what it holds; name it x_logits.npy, its labels x_labels.npy.")
    yield Contents(path, {part: _entry(file) for part, file in files.items()})


def _entry(path: Path) -> Entry:
    @contextmanager
    def opened() -> Generator[IO[bytes], None, None]:
        try:
            with path.open("rb") as stream:
                yield stream
        except OSError as e:
            raise InputError(f"{path.name} cannot be read: {e.strerror or e}.") from None

    with opened() as stream:
        head = npy.header(stream, path.stat().st_size, path.name)
    return npy.entry(opened, head, path.name)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - the names follow from the stem
    """One file for each array, all renamed at the end."""
    stale = sorted(set(family(path)) - set(arrays))
    if stale:
        other = family(path)[stale[0]].name
        raise InputError(f"{other} is there from other predictions and would be read with these; delete it first.")
    with ExitStack() as stack:
        for name, array in arrays.items():
            temporary = stack.enter_context(replacing(path.with_name(f"{path.stem}_{name}.npy")))
            with temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
