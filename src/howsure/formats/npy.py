"""The npy layout: a small header, then the numbers. Read without pickle and without trusting the header."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np

from howsure._core.check import Array, InputError
from howsure.formats.contents import Entry

Opener: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]
MAGIC = b"\x93NUMPY"
HEADER = 1 << 16
DTYPES = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|[US]\d{1,9})")


@dataclass(frozen=True)
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
    """Read the header; `size` is the number of bytes of the whole, and shape × dtype must account for all of them."""
    start = stream.read(8)
    if start[:6] != MAGIC or len(start) < 8 or start[6] not in (1, 2):
        raise InputError(f"{where} is not a NumPy array (version 1 or 2); write it with np.save or np.savez.")
    wide = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(wide), "little")
    if length > HEADER:
        raise InputError(f"{where} has a header of {length:,} bytes; at most {HEADER:,} are read.")
    shape, fortran, dtype = _fields(stream.read(length), where)
    offset = 8 + wide + length
    _check_size(shape, dtype, size - offset, where)
    return Header(shape, fortran, dtype, offset)


def _fields(text: bytes, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise InputError(f"{where} has a header that is not readable; save it again.") from None
    if not isinstance(shape, tuple) or not all(type(s) is int and s >= 0 for s in shape) or len(shape) > 32:
        raise InputError(f"{where} has a header with shape {str(shape)[:60]}; save it again.")
    return shape, bool(fortran), _dtype(descr, where)


def _dtype(descr: Any, where: str) -> np.dtype[Any]:
    if isinstance(descr, str) and DTYPES.fullmatch(descr):
        try:
            dtype = np.dtype(descr)
        except (TypeError, ValueError):
            dtype = None
        if dtype is not None and dtype.itemsize:
            return dtype
    kind = "Python objects (pickled), which are never loaded" if "O" in str(descr) else f"dtype {str(descr)[:60]!r}"
    raise InputError(f"{where} holds {kind}; numbers or plain text are needed, so convert with .astype and save again.")


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], present: int, where: str) -> None:
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != present:
        raise InputError(
            f"{where} claims shape {shape} of {dtype} ({claimed:,} bytes) but holds {present:,} bytes; "
            "it is truncated or damaged, so save or copy it again."
        )
    if claimed == 0:
        raise InputError(f"{where} has shape {shape}, so it is empty; at least one sample is needed.")


def entry(opened: Opener, head: Header, where: str) -> Entry:
    """The array as an entry that stays in its file; `opened` gives the bytes from the start."""

    def load() -> Array:
        with opened() as stream:
            stream.read(head.offset)
            return data(stream, head, where)

    def runs(step: int) -> Iterator[Array]:
        with opened() as stream:
            stream.read(head.offset)
            yield from blocks(stream, head, step, where)

    in_order = head.shape and not head.fortran
    return Entry(head.shape, str(head.dtype), load, runs if in_order else None)


def data(stream: IO[bytes], head: Header, where: str) -> Array:
    """The array; the stream stands after the header, and must end with the array."""
    a = _numbers(stream, math.prod(head.shape), head, where)
    if stream.read(1):  # reading to the end is also what makes a zip archive verify its checksum
        raise InputError(f"{where} has bytes after the array; save it again.")
    return a.reshape(head.shape, order="F" if head.fortran else "C")


def blocks(stream: IO[bytes], head: Header, step: int, where: str) -> Iterator[Array]:
    """Runs of `step` rows, read one after the other."""
    for start in range(0, head.shape[0], step):
        rows = min(step, head.shape[0] - start)
        a = _numbers(stream, rows * math.prod(head.shape[1:]), head, where)
        yield a.reshape(rows, *head.shape[1:])


def _numbers(stream: IO[bytes], count: int, head: Header, where: str) -> Array:
    wanted = count * head.dtype.itemsize
    raw = stream.read(wanted)
    if len(raw) != wanted:
        raise InputError(f"{where} ends after {len(raw):,} of {wanted:,} bytes; save or copy it again.")
    a = native(raw, head.dtype)
    return a if a.dtype.kind not in "US" else text(a, where)


def text(a: Array, where: str) -> Array:
    """Text of which every character exists: NumPy takes any number for one, and Python stumbles over it later."""
    try:
        return np.char.decode(a, "utf-8") if a.dtype.kind == "S" else _encodable(a)
    except UnicodeError:
        raise InputError(f"{where} holds text with characters that do not exist; save it again.") from None


def _encodable(a: Array) -> Array:
    code = a.view(np.uint32)
    if ((code > 0x10FFFF) | ((code >= 0xD800) & (code < 0xE000))).any():
        raise UnicodeError
    return a


def native(raw: bytes, dtype: np.dtype[Any]) -> Array:
    """Bytes as an array in this machine's order; a truth value is true where its byte is not 0."""
    if dtype == np.bool_:
        return np.frombuffer(raw, dtype=np.uint8) != 0
    a = np.frombuffer(raw, dtype=dtype)
    return a if dtype.isnative else a.astype(dtype.newbyteorder("="))
