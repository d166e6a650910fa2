"""Zip archives, checked before anything is unpacked: NumPy, torch and Inspect write them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from howsure._core.check import InputError
from howsure.formats.contents import SAVE_AGAIN, Damaged, describe_error

MAX_MEMBERS = 10_000
MAX_DEFLATE_RATIO = 1032  # the most that deflate can shrink anything
# Everything that the zipfile module raises for a damaged archive.
ZIP_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    EOFError,
    OverflowError,
    KeyError,
    IndexError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def refuse_damaged_zip(path: Path) -> Generator[None, None, None]:
    """Turn everything that a damaged archive can raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except ZIP_ERRORS as e:
        got = f"is damaged or not complete ({describe_error(e)})"
        raise Damaged(path.name, got=got, hint=SAVE_AGAIN) from None


def check_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; raise if one cannot be what it claims."""
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        got = f"has {len(infos):,} members"
        raise InputError(path.name, got=got, need=f"at most {MAX_MEMBERS:,} are read")
    for info in infos:
        _check_member(info, _name_member(info, path))
    # Members that share their bytes would multiply when they are unpacked.
    end = path.stat().st_size
    for info in sorted(infos, key=lambda info: info.header_offset, reverse=True):
        if info.header_offset + info.compress_size > end:
            where = _name_member(info, path)
            raise InputError(where, got="overlaps another or the end", hint="save it again")
        end = info.header_offset
    by_name = {info.filename: info for info in infos}
    if len(by_name) < len(infos):
        got = "holds two members of the same name"
        raise InputError(path.name, got=got, hint="save it again with distinct names")
    return by_name


def _name_member(info: zipfile.ZipInfo, path: Path) -> str:
    return f"{path.name}, member {info.filename[:60]!r}"


def _check_member(info: zipfile.ZipInfo, where: str) -> None:
    if info.flag_bits & 1:
        raise InputError(where, got="is encrypted", hint="save it without a password")
    if info.compress_type == zipfile.ZIP_STORED:
        largest = info.compress_size
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        largest = MAX_DEFLATE_RATIO * (info.compress_size + 1)
    else:
        got = f"is packed by method {info.compress_type}"
        raise InputError(where, got=got, hint="use np.savez or np.savez_compressed")
    if info.file_size > largest:
        packed = f"{info.compress_size:,} packed bytes"
        got = f"claims {info.file_size:,} bytes, which {packed} cannot hold"
        raise InputError(where, got=got, hint="save it again")
