"""Which files a path, pattern or address names, and whether they are too large to load.

An address such as s3://bucket/a.parquet is opened through fsspec.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from howsure._core.checks import InputError, need
from howsure._core.frozen import frozen
from howsure.formats.contents import describe_error

# Above either limit a command streams.
LARGE_BYTES = 1 << 30
LARGE_ROWS = 10_000_000

# Tables whose footers tell their rows.
ARROW_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")

# What file systems call the version of a file.
VERSION_KEYS = ("ETag", "etag", "LastModified", "mtime", "updated", "created")


def list_matching_files(path: str) -> list[str]:
    """The files that a path or pattern names, in the order of their names."""
    remote = is_remote(path)
    # A file may be called a[1].csv: what exists is no pattern.
    if not glob.has_magic(path) or (not remote and os.path.exists(path)):
        return [path]
    if remote:
        file_system, pattern = open_file_system(path)
        files = [file_system.unstrip_protocol(key) for key in sorted(file_system.glob(pattern))]
    else:
        files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise InputError(f"no file matches {path!r}.")
    return files


def group_files(files: Sequence[str]) -> dict[str, list[str]]:
    """Every file once, with those that are read with it: NumPy files that belong together are one.

    The same file twice is a mistake, whatever its two names are.
    """
    seen: set[str] = set()
    groups: dict[str, list[str]] = {}
    for file in files:
        real = file
        # A name with \0 is refused with a sentence when it is opened; realpath would raise here.
        if not is_remote(file) and "\0" not in file:
            real = os.path.realpath(file)
        if real in seen:
            raise InputError(
                f"{file} is given twice; its rows would count twice, so name every file once."
            )
        seen.add(real)
        # A family of NumPy files is known by the first of them.
        if not is_remote(file) and (file.lower().endswith(".npy") or not os.path.exists(file)):
            from howsure.formats.npy import find_family

            family = find_family(Path(file)).values()
            real = min(map(os.path.realpath, family), default=real)
        groups.setdefault(real, []).append(file)
    return {group[0]: group for group in groups.values()}


def explain_streaming(paths: Sequence[str]) -> str | None:
    """Why these files are streamed unless told otherwise: where they are, their bytes or their
    rows; None: they fit.
    """
    for path in paths:
        if is_remote(path) or (not os.path.exists(path) and glob.has_magic(path)):
            return "a pattern or an address"
    files = [path for path in paths if os.path.isfile(path)]
    size = sum(map(os.path.getsize, files))
    if size >= LARGE_BYTES:
        return f"{size / 2**30:.1f} GiB"
    rows = 0
    for path in files:
        if path.lower().endswith(ARROW_SUFFIXES):
            from howsure.formats.arrow import read_outline

            try:
                rows += sum(read_outline(Path(path)).pieces or ())
            except (InputError, ModuleNotFoundError):  # reading them will say it better
                return None
    return f"{rows:,} rows" if rows >= LARGE_ROWS else None


def is_remote(path: str) -> bool:
    """Whether this is an address and not a local path."""
    return "://" in path


class RemoteStat(NamedTuple):
    """The part of a file's state that readers ask for."""

    st_size: int


@frozen
class Remote:
    """Plays the part of a path for readers that open it, ask for its size, or name it."""

    address: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(self.address).name

    @property
    def suffix(self) -> str:
        """How the name ends."""
        return PurePosixPath(self.address).suffix

    @property
    def suffixes(self) -> list[str]:
        """All its ends."""
        return PurePosixPath(self.address).suffixes

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return open_file_system(self.address)

    def info(self) -> dict[str, Any]:
        """What the file system knows of the file."""
        file_system, key = self._place
        try:
            return file_system.info(key)
        except FileNotFoundError:
            raise InputError(self.address, got="does not exist") from None

    def stat(self) -> RemoteStat:
        """Its size."""
        return RemoteStat(int(self.info()["size"]))

    def open(self, mode: str = "rb") -> Any:
        """The bytes, fetched when they are asked for."""
        file_system, key = self._place
        return file_system.open(key, mode)

    def fetch(self, to: Path) -> None:
        """Copy the whole file."""
        file_system, key = self._place
        file_system.get_file(key, str(to))

    def stamp(self) -> str:
        """What changes when the file does."""
        info = self.info()
        for name in VERSION_KEYS:
            if info.get(name) is not None:
                return str(info[name])
        return ""


def open_file_system(address: str) -> tuple[Any, str]:
    """The file system and the key of an address; whatever it raises while connecting becomes one
    sentence.
    """
    fsspec = need("fsspec", for_=address, extra="dask")
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as e:
        raise ModuleNotFoundError(f"{address}: {e}", name=e.name) from None
    except Exception as e:
        raise InputError(address, got=f"cannot be opened: {describe_error(e)}") from None
