"""NumPy files that belong together: `x_logits.npy` with `x_labels.npy`, and `x_ids.npy`, … where
there are more.

The npy layout is a small header, then the numbers. It is read without pickle and without trusting
the header.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from howsure._core.atomic import replacing
from howsure._core.budget import Budget, number_bytes
from howsure._core.check import Array, InputError
from howsure._core.frozen import frozen
from howsure._core.paths import existing
from howsure.formats.contents import AGAIN, Contents, Entry
from howsure.formats.names import array_part

suffixes = (".npy",)
title = "NumPy files, x_logits.npy with x_labels.npy"
Opener: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]
MAGIC = b"\x93NUMPY"
HEADER = 1 << 16
BLOCK = 1 << 20  # bytes that are read at a time
DTYPES = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|[US]\d{1,9})")


def family(path: Path) -> dict[str, Path]:
    """The files with the same beginning as `path`, by their part of the name; `path` may be that
    beginning itself.
    """
    known = (
        array_part(path.stem.lower()) if path.suffix.lower() == ".npy" and path.exists() else None
    )
    name = path.stem if path.suffix.lower() == ".npy" else path.name
    begin = name.lower() if known is None else known[0]
    try:
        beside = sorted(p for p in path.parent.iterdir() if p.suffix.lower() == ".npy")
    except (OSError, ValueError):
        return {}
    parts = {p: array_part(p.stem.lower()) for p in beside}
    return {part[1]: p for p, part in parts.items() if part is not None and part[0] == begin}


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - entries are read when they are asked for
    """The arrays of all files of the family; they stay in the files until they are loaded."""
    files = family(path)
    if not files or (path.exists() and path not in files.values()):
        raise InputError(
            path.name,
            got="does not say what it holds",
            hint="name it x_logits.npy, its labels x_labels.npy",
        )
    yield Contents(path, {part: _file_entry(file) for part, file in files.items()})


def _file_entry(path: Path) -> Entry:
    @contextmanager
    def opened() -> Generator[IO[bytes], None, None]:
        try:
            with path.open("rb") as stream:
                yield stream
        except OSError as e:
            raise InputError(path.name, got=f"cannot be read: {e.strerror or e}") from None

    size = existing(path).stat().st_size
    with opened() as stream:
        head = header(stream, size, path.name)
    return entry(opened, head, path.name, Budget(path.name, size))


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - the names follow from the stem
    """One file for each array, all renamed at the end."""
    stale = sorted(set(family(path)) - set(arrays))
    if stale:
        got = "is there from other predictions and would be read with these"
        raise InputError(family(path)[stale[0]].name, got=got, hint="delete it first")
    with ExitStack() as stack:
        for name, array in arrays.items():
            temporary = stack.enter_context(replacing(path.with_name(f"{path.stem}_{name}.npy")))
            with temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)


@frozen
class Header:
    """What an npy file says of itself, checked against the bytes that are there."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one step along the first axis."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def header(stream: IO[bytes], size: int, where: str) -> Header:
    """Read the header; `size` is the number of bytes of the whole, and shape × dtype must account
    for all of them.
    """
    start = stream.read(8)
    if start[:6] != MAGIC or len(start) < 8 or start[6] not in (1, 2):
        raise InputError(
            where,
            got="is not a NumPy array (version 1 or 2)",
            hint="write it with np.save or np.savez",
        )
    wide = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(wide), "little")
    if length > HEADER:
        raise InputError(
            where, got=f"has a header of {length:,} bytes", need=f"at most {HEADER:,} are read"
        )
    shape, fortran, dtype = _fields(stream.read(length), where)
    offset = 8 + wide + length
    _check_size(shape, dtype, size - offset, where)
    return Header(shape, fortran, dtype, offset)


def _fields(text: bytes, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise InputError(
            where, got="has a header that is not readable", hint="save it again"
        ) from None
    shown, sizes = (
        str(shape)[:60],
        cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else (-1,),
    )
    if not all(type(s) is int and s >= 0 for s in sizes) or len(sizes) > 32:
        raise InputError(where, got=f"has a header with shape {shown}", hint="save it again")
    return sizes, bool(fortran), _dtype(descr, where)


def _dtype(descr: Any, where: str) -> np.dtype[Any]:
    if isinstance(descr, str) and DTYPES.fullmatch(descr):
        try:
            dtype = np.dtype(descr)
        except (TypeError, ValueError):
            dtype = None
        if dtype is not None and dtype.itemsize:
            return dtype
    kind = (
        "Python objects (pickled), which are never loaded"
        if "O" in str(descr)
        else f"dtype {str(descr)[:60]!r}"
    )
    raise InputError(
        where,
        got=f"holds {kind}",
        need="numbers or plain text are needed, so convert with .astype and save again",
    )


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], present: int, where: str) -> None:
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != present:
        got = f"claims shape {shape} of {dtype} ({claimed:,} bytes) but holds {present:,} bytes"
        raise InputError(where, got=got, hint=f"it is truncated or damaged, so {AGAIN}")
    if claimed == 0:
        raise InputError(
            where, got=f"has shape {shape}, so it is empty", need="at least one sample is needed"
        )


def entry(opened: Opener, head: Header, where: str, budget: Budget) -> Entry:
    """The array as an entry that stays in its file; `opened` gives the bytes from the start."""
    amount = number_bytes(math.prod(head.shape), head.dtype.itemsize)

    def load() -> Array:
        budget.spend(amount, where)
        with opened() as stream:
            stream.read(head.offset)
            return data(stream, head, where)

    def runs(step: int) -> Iterator[Array]:
        budget.spend(amount, where, held=False)
        with opened() as stream:
            stream.read(head.offset)
            yield from blocks(stream, head, step, where)

    in_order = head.shape and not head.fortran
    return Entry(head.shape, str(head.dtype), load, runs if in_order else None)


def data(stream: IO[bytes], head: Header, where: str) -> Array:
    """The array; the stream stands after the header, and must end with the array."""
    a = _numbers(stream, math.prod(head.shape), head, where)
    if stream.read(1):  # reading to the end is also what makes a zip archive verify its checksum
        raise InputError(where, got="has bytes after the array", hint="save it again")
    return a.reshape(head.shape, order="F" if head.fortran else "C")


def blocks(stream: IO[bytes], head: Header, step: int, where: str) -> Iterator[Array]:
    """Runs of `step` rows, read one after the other."""
    for start in range(0, head.shape[0], step):
        rows = min(step, head.shape[0] - start)
        a = _numbers(stream, rows * math.prod(head.shape[1:]), head, where)
        yield a.reshape(rows, *head.shape[1:])


def _numbers(stream: IO[bytes], count: int, head: Header, where: str) -> Array:
    wanted, there = count * head.dtype.itemsize, 0
    raw = np.empty(wanted, np.uint8)
    while there < wanted and (
        part := stream.read(min(BLOCK, wanted - there))
    ):  # at once, zip would join two copies
        raw[there : there + len(part)] = np.frombuffer(part, np.uint8)
        there += len(part)
    if there != wanted:
        raise InputError(where, got=f"ends after {there:,} of {wanted:,} bytes", hint=AGAIN)
    a = native(raw.data, head.dtype)
    return a if a.dtype.kind not in "US" else text(a, where)


def text(a: Array, where: str) -> Array:
    """Text of which every character exists: NumPy takes any number for one, and Python stumbles
    over it later.
    """
    try:
        return np.char.decode(a, "utf-8") if a.dtype.kind == "S" else _encodable(a)
    except UnicodeError:
        raise InputError(
            where, got="holds text with characters that do not exist", hint="save it again"
        ) from None


def _encodable(a: Array) -> Array:
    code = a.view(np.uint32)
    if ((code > 0x10FFFF) | ((code >= 0xD800) & (code < 0xE000))).any():
        raise UnicodeError
    return a


def native(raw: bytes | memoryview, dtype: np.dtype[Any]) -> Array:
    """Bytes as an array in this machine's order; a truth value is true where its byte is not 0."""
    if dtype == np.bool_:
        return np.frombuffer(raw, dtype=np.uint8) != 0
    a = np.frombuffer(raw, dtype=dtype)
    return a if dtype.isnative else a.astype(dtype.newbyteorder("="))
