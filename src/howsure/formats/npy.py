"""NumPy arrays: archives (.npz), and files that belong together, `x_logits.npy` with
`x_labels.npy`, and `x_ids.npy`, … where there are more.

The npy layout is a small header, then the numbers. It is read without pickle and without trusting
the header: shape and type must account for all bytes before NumPy allocates anything.
"""

from __future__ import annotations

import ast
import math
import re
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from howsure._core.checks import Array, InputError
from howsure._core.file_access import Budget, check_readable, count_number_bytes, replace_file
from howsure._core.frozen import frozen
from howsure.formats.column_names import find_array_part
from howsure.formats.contents import SAVE_AGAIN, Contents, FileEntry
from howsure.formats.unpacked_sizes import check_members, refuse_damaged_zip

OpenBytes: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]
NPY_MAGIC = b"\x93NUMPY"
MAX_NPY_HEADER_BYTES = 1 << 16
MAX_AXES = 32
COPY_BLOCK_BYTES = 1 << 20
NPY_DTYPE = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|[US]\d{1,9})")


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - entries are read when they are asked for
    """The arrays, which stay in their files until they are loaded."""
    entries: dict[str, FileEntry] = {}
    if path.suffix.lower() == ".npz":
        budget = Budget(path.name, path.stat().st_size)
        with refuse_damaged_zip(path), zipfile.ZipFile(path) as archive:
            for member, info in check_members(archive, path).items():
                if not member.endswith(".npy"):
                    continue
                name = member.removesuffix(".npy")
                where = f"{path.name}, array {name!r}"
                with archive.open(info) as stream:
                    header = read_header(stream, info.file_size, where)
                open_bytes = partial(_open_member, path, member)
                array = StoredArray(
                    header=header, open_bytes=open_bytes, where=where, budget=budget
                )
                entries[name] = array.make_entry()
        yield Contents(path=path, entries=entries)
        return
    files = find_family(path)
    if not files or (path.exists() and path not in files.values()):
        raise InputError(
            path.name,
            got="does not say what it holds",
            hint="name it x_logits.npy, its labels x_labels.npy",
        )
    for part, file in files.items():
        size = check_readable(file).stat().st_size
        with _open_file(file) as stream:
            header = read_header(stream, size, file.name)
        array = StoredArray(
            header=header,
            open_bytes=partial(_open_file, file),
            where=file.name,
            budget=Budget(file.name, size),
        )
        entries[part] = array.make_entry()
    yield Contents(path=path, entries=entries)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """An archive, or one file for each array, all renamed at the end."""
    if suffix == ".npz":
        # Uncompressed, so that it can be read in part.
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
        return
    family = find_family(path)
    stale = sorted(set(family) - set(arrays))
    if stale:
        got = "is there from other predictions and would be read with these"
        raise InputError(family[stale[0]].name, got=got, hint="delete it first")
    with ExitStack() as stack:
        for name, array in arrays.items():
            temporary = stack.enter_context(replace_file(path.with_name(f"{path.stem}_{name}.npy")))
            with temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)


def find_family(path: Path) -> dict[str, Path]:
    """The files with the same beginning as `path`, by their part of the name; `path` may be that
    beginning itself.
    """
    begin = path.name.lower()
    if path.suffix.lower() == ".npy":
        begin = path.stem.lower()
        known = find_array_part(begin) if path.exists() else None
        if known is not None:
            begin = known[0]
    try:
        files = sorted(file for file in path.parent.iterdir() if file.suffix.lower() == ".npy")
    except (OSError, ValueError):
        return {}
    family: dict[str, Path] = {}
    for file in files:
        known = find_array_part(file.stem.lower())
        if known is not None and known[0] == begin:
            family[known[1]] = file
    return family


@contextmanager
def _open_member(path: Path, member: str) -> Generator[IO[bytes], None, None]:
    with refuse_damaged_zip(path), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        yield stream


@contextmanager
def _open_file(path: Path) -> Generator[IO[bytes], None, None]:
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as e:
        raise InputError(path.name, got=f"cannot be read: {e.strerror or e}") from None


# The npy layout


@frozen
class NpyHeader:
    """What an npy file says of itself, checked against the bytes that are there."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_header(stream: IO[bytes], size: int, where: str) -> NpyHeader:
    """Read the header; `size` is the number of bytes of the whole, and shape × dtype must account
    for all of them.
    """
    start = stream.read(8)
    if start[:6] != NPY_MAGIC or len(start) < 8 or start[6] not in (1, 2):
        raise InputError(
            where,
            got="is not a NumPy array (version 1 or 2)",
            hint="write it with np.save or np.savez",
        )
    wide = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(wide), "little")
    if length > MAX_NPY_HEADER_BYTES:
        got = f"has a header of {length:,} bytes"
        raise InputError(where, got=got, need=f"at most {MAX_NPY_HEADER_BYTES:,} are read")
    try:
        facts = ast.literal_eval(stream.read(length).decode("latin1").strip())
        descr, fortran = facts["descr"], facts["fortran_order"]
        shape = cast("tuple[Any, ...]", facts["shape"])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        got = "has a header that is not readable"
        raise InputError(where, got=got, hint="save it again") from None
    is_tuple = isinstance(cast("object", shape), tuple) and len(shape) <= MAX_AXES
    if not is_tuple or not all(type(axis) is int and axis >= 0 for axis in shape):
        got = f"has a header with shape {str(shape)[:60]}"
        raise InputError(where, got=got, hint="save it again")
    dtype = _parse_dtype(descr, where)
    offset = 8 + wide + length
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != size - offset:
        claim = f"claims shape {shape} of {dtype} ({claimed:,} bytes)"
        got = f"{claim} but holds {size - offset:,} bytes"
        raise InputError(where, got=got, hint=f"it is truncated or damaged, so {SAVE_AGAIN}")
    if claimed == 0:
        got = f"has shape {shape}, so it is empty"
        raise InputError(where, got=got, need="at least one sample is needed")
    return NpyHeader(shape=shape, fortran=bool(fortran), dtype=dtype, offset=offset)


def _parse_dtype(descr: Any, where: str) -> np.dtype[Any]:
    if isinstance(descr, str) and NPY_DTYPE.fullmatch(descr):
        try:
            dtype = np.dtype(descr)
        except (TypeError, ValueError):
            dtype = None
        if dtype is not None and dtype.itemsize:
            return dtype
    kind = f"dtype {str(descr)[:60]!r}"
    if "O" in str(descr):
        kind = "Python objects (pickled), which are never loaded"
    need = "numbers or plain text are needed, so convert with .astype and save again"
    raise InputError(where, got=f"holds {kind}", need=need)


@frozen
class StoredArray:
    """An array that stays in its file; `open_bytes` gives the bytes from the start."""

    header: NpyHeader
    open_bytes: OpenBytes
    where: str
    budget: Budget

    def make_entry(self) -> FileEntry:
        """The array as an entry; one in Fortran's order cannot be read row by row."""
        header = self.header
        by_rows = header.shape and not header.fortran
        return FileEntry(
            shape=header.shape,
            dtype=str(header.dtype),
            load=self.load,
            blocks=self.read_blocks if by_rows else None,
        )

    @property
    def bytes(self) -> int:
        """What the array counts in memory."""
        return count_number_bytes(math.prod(self.header.shape), self.header.dtype.itemsize)

    def load(self) -> Array:
        """The whole array; the stream must end with it."""
        header = self.header
        self.budget.spend(self.bytes, self.where)
        with self.open_bytes() as stream:
            stream.read(header.offset)
            a = self._read_numbers(stream, math.prod(header.shape))
            # Reading to the end is also what makes a zip archive verify its checksum.
            if stream.read(1):
                raise InputError(self.where, got="has bytes after the array", hint="save it again")
        return a.reshape(header.shape, order="F" if header.fortran else "C")

    def read_blocks(self, step: int) -> Iterator[Array]:
        """Runs of `step` rows, read one after the other."""
        shape = self.header.shape
        self.budget.spend(self.bytes, self.where, held=False)
        with self.open_bytes() as stream:
            stream.read(self.header.offset)
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                a = self._read_numbers(stream, rows * math.prod(shape[1:]))
                yield a.reshape(rows, *shape[1:])

    def _read_numbers(self, stream: IO[bytes], count: int) -> Array:
        """The next numbers of the stream. In blocks: at once, zip would join two copies."""
        dtype = self.header.dtype
        wanted = count * dtype.itemsize
        raw = np.empty(wanted, np.uint8)
        there = 0
        while there < wanted:
            block = stream.read(min(COPY_BLOCK_BYTES, wanted - there))
            if not block:
                got = f"ends after {there:,} of {wanted:,} bytes"
                raise InputError(self.where, got=got, hint=SAVE_AGAIN)
            raw[there : there + len(block)] = np.frombuffer(block, np.uint8)
            there += len(block)
        a = convert_bytes(raw.data, dtype)
        # NumPy takes any number for a character, and Python stumbles over it later.
        exist = True
        if dtype.kind == "S":
            try:
                a = np.char.decode(a, "utf-8")
            except UnicodeError:
                exist = False
        elif dtype.kind == "U":
            code = a.view(np.uint32)
            surrogate = (code >= 0xD800) & (code < 0xE000)
            exist = not ((code > 0x10FFFF) | surrogate).any()
        if not exist:
            got = "holds text with characters that do not exist"
            raise InputError(self.where, got=got, hint="save it again")
        return a


def convert_bytes(raw: bytes | memoryview, dtype: np.dtype[Any]) -> Array:
    """Bytes as an array in this machine's order; a truth value is true where its byte is not 0."""
    if dtype == np.bool_:
        return np.frombuffer(raw, dtype=np.uint8) != 0
    a = np.frombuffer(raw, dtype=dtype)
    return a if dtype.isnative else a.astype(dtype.newbyteorder("="))
