"""Zip archives, checked before anything is unpacked."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from howsure._core.check import InputError
from howsure.formats.contents import AGAIN, Damaged, reason

MEMBERS = 10_000
DEFLATE = 1032  # the most that deflate can shrink anything
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
TROUBLE = (
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    EOFError,
    OverflowError,
    KeyError,
    IndexError,
)


@contextmanager
def opened(path: Path) -> Generator[dict[str, zipfile.ZipInfo], None, None]:
    """The members of an archive by name, after all checks that need no unpacking."""
    with reading(path), zipfile.ZipFile(path) as archive:
        yield members(archive, path)


@contextmanager
def reading(path: Path) -> Generator[None, None, None]:
    """Turn everything that a damaged archive can raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (*TROUBLE, zipfile.BadZipFile, zlib.error) as e:
        raise Damaged(
            path.name, got=f"is damaged or not complete ({reason(e)})", hint=AGAIN
        ) from None


def members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The checked members by name."""
    infos = archive.infolist()
    if len(infos) > MEMBERS:
        raise InputError(
            path.name, got=f"has {len(infos):,} members", need=f"at most {MEMBERS:,} are read"
        )
    for info in infos:
        _check_member(info, path)
    _check_overlap(infos, path)
    by_name = {info.filename: info for info in infos}
    if len(by_name) < len(infos):
        got = "holds two members of the same name"
        raise InputError(path.name, got=got, hint="save it again with distinct names")
    return by_name


def _check_member(info: zipfile.ZipInfo, path: Path) -> None:
    name, size, packed = info.filename, info.file_size, info.compress_size
    where = f"{path.name}, member {name[:60]!r}"
    if info.flag_bits & 1:
        raise InputError(where, got="is encrypted", hint="save it without a password")
    if info.compress_type not in (STORED, DEFLATED):
        raise InputError(
            where,
            got=f"is packed by method {info.compress_type}",
            hint="use np.savez or np.savez_compressed",
        )
    if size > (packed if info.compress_type == STORED else DEFLATE * (packed + 1)):
        got = f"claims {size:,} bytes, which {packed:,} packed bytes cannot hold"
        raise InputError(where, got=got, hint="save it again")


def _check_overlap(infos: list[zipfile.ZipInfo], path: Path) -> None:
    """Members that share their bytes would multiply when they are unpacked."""
    ends = [path.stat().st_size]
    for info in sorted(infos, key=lambda i: i.header_offset, reverse=True):
        if info.header_offset + info.compress_size > ends[-1]:
            where = f"{path.name}, member {info.filename[:60]!r}"
            raise InputError(where, got="overlaps another or the end", hint="save it again")
        ends.append(info.header_offset)
