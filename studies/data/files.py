"""Finding the files of a data set and making sure that they are the right ones."""

import gzip
import hashlib
import zlib
from pathlib import Path


class DataError(ValueError):
    """A data set that is missing, damaged or of another shape; the message says where to get it."""


def find(root: Path, name: str, *, source: str) -> Path:
    """The file `name`, or `name.gz`, in `root` or in a folder of `root`."""
    if not root.is_dir():
        raise DataError(f"data folder {str(root)!r} does not exist. {source}")
    for pattern in (name, f"{name}.gz", f"*/{name}", f"*/{name}.gz"):
        for path in sorted(root.glob(pattern)):
            return path
    raise DataError(f"{name!r} is neither in {str(root)!r} nor in a folder of it. {source}")


def content(path: Path, *, source: str, sha256: str | None = None) -> bytes:
    """The bytes of a file, unzipped; the checksum is that of the unzipped bytes, so either form may
    be given.
    """
    raw = path.read_bytes()
    data = unzipped(raw, path, source=source) if path.suffix == ".gz" else raw
    if sha256 is not None:
        check(hashlib.sha256(data).hexdigest(), sha256, path=path, source=source)
    return data


def unzipped(raw: bytes, path: Path, *, source: str) -> bytes:
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} is damaged or not a gzip file ({error}). {source}") from error


def check(found: str, expected: str, *, path: Path, source: str) -> None:
    """Stop when a checksum is not the recorded one."""
    if found != expected:
        raise DataError(
            f"{path.name} has checksum {found[:12]}…, expected {expected[:12]}…: damaged or another edition. {source}"
        )
