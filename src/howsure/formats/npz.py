"""NumPy archives: named arrays in a zip file, checked before NumPy allocates anything."""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from howsure._core.budget import Budget
from howsure._core.check import Array
from howsure.formats import npy, zipped
from howsure.formats.contents import Contents, Entry

suffixes = (".npz",)
title = "NumPy archive"


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - entries are read when they are asked for
    """The arrays of the archive; they stay in the file until they are loaded."""
    with zipped.reading(path), zipfile.ZipFile(path) as archive:
        members = zipped.members(archive, path)
        headers = {
            name: _header(archive, path, info)
            for name, info in members.items()
            if name.endswith(".npy")
        }
    budget = Budget(path.name, path.stat().st_size)
    yield Contents(
        path, {name[:-4]: _entry(path, name, head, budget) for name, head in headers.items()}
    )


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - one layout
    """An uncompressed archive, so that it can be read in part."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _where(path: Path, name: str) -> str:
    return f"{path.name}, array {name.removesuffix('.npy')!r}"


def _header(archive: zipfile.ZipFile, path: Path, info: zipfile.ZipInfo) -> npy.Header:
    with archive.open(info) as stream:
        return npy.header(stream, info.file_size, _where(path, info.filename))


def _entry(path: Path, name: str, head: npy.Header, budget: Budget) -> Entry:
    @contextmanager
    def opened() -> Generator[IO[bytes], None, None]:
        with zipped.reading(path), zipfile.ZipFile(path) as archive, archive.open(name) as stream:
            yield stream

    return npy.entry(opened, head, _where(path, name), budget)
