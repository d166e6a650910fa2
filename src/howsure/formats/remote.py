"""Files behind an address such as s3://bucket/a.parquet, through fsspec."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure._core.optional import need
from howsure.formats.contents import reason

STAMPS = (
    "ETag",
    "etag",
    "LastModified",
    "mtime",
    "updated",
    "created",
)  # what file systems call a file's version


class Size(NamedTuple):
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
        return file_system(self.address)

    def info(self) -> dict[str, Any]:
        """What the file system knows of the file."""
        fs, key = self._place
        try:
            return fs.info(key)
        except FileNotFoundError:
            raise InputError(self.address, got="does not exist") from None

    def stat(self) -> Size:
        """Its size."""
        return Size(int(self.info()["size"]))

    def open(self, mode: str = "rb") -> Any:
        """The bytes, fetched when they are asked for."""
        fs, key = self._place
        return fs.open(key, mode)

    def fetch(self, to: Path) -> None:
        """Copy the whole file."""
        fs, key = self._place
        fs.get_file(key, str(to))

    def stamp(self) -> str:
        """What changes when the file does."""
        info = self.info()
        return next((str(info[name]) for name in STAMPS if info.get(name) is not None), "")


def is_remote(path: str) -> bool:
    """Whether this is an address and not a local path."""
    return "://" in path


def file_system(address: str) -> tuple[Any, str]:
    """The file system and the key of an address; whatever it raises while connecting is one
    sentence.
    """
    fsspec = need("fsspec", for_=address, extra="dask")
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as e:
        raise ModuleNotFoundError(f"{address}: {e}", name=e.name) from None
    except Exception as e:
        raise InputError(address, got=f"cannot be opened: {reason(e)}") from None


def matches(address: str) -> list[str]:
    """The addresses that a pattern stands for."""
    fs, pattern = file_system(address)
    return [fs.unstrip_protocol(key) for key in sorted(fs.glob(pattern))]
