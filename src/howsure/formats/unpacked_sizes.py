"""How many bytes packed files unpack to, before any is unpacked: Parquet, Arrow and zip archives.

A footer may lie, so what is counted here is what a decoder would go by: the headers of pages,
buffers and members. A value of a table counts at least eight bytes: columns of nothing, of one value
or of truth values take next to none in a file.

Headers of tables that make no sense raise `ValueError`; an archive is refused with a sentence.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from howsure._core.checks import InputError, need
from howsure._core.frozen import frozen
from howsure.formats.contents import SAVE_AGAIN, Damaged, describe_error

VALUE_BYTES = 8

# Parquet: its headers are structures of Thrift, in which fields have numbers.

PAGE_HEADER_BYTES = 1 << 10  # most are shorter
MAX_PAGE_HEADER_BYTES = 1 << 24  # as Arrow has it
MAX_THRIFT_DEPTH = 16
ThriftFields: TypeAlias = "dict[int, int | ThriftFields | list[ThriftFields]]"
ThriftSchema: TypeAlias = "dict[int, ThriftSchema]"  # the fields of a structure that are kept

# PageHeader: 2 unpacked and 3 packed bytes; 5 data, 7 dictionary, 8 data of the second version,
# each with 1, its number of values.
PAGE_SCHEMA: ThriftSchema = {2: {}, 3: {}, 5: {1: {}}, 7: {1: {}}, 8: {1: {}}}
# FileMetaData: 4 row groups, each with 3, its rows, and 1, its columns; the metadata (3) of a column
# has 5 values, 6 unpacked and 7 packed bytes, 9 the first data page and 11 the dictionary page.
COLUMN_SCHEMA: ThriftSchema = {5: {}, 6: {}, 7: {}, 9: {}, 11: {}}
GROUP_SCHEMA: ThriftSchema = {1: {3: COLUMN_SCHEMA}, 3: {}}
FOOTER_SCHEMA: ThriftSchema = {4: GROUP_SCHEMA}

# The types of Thrift's compact protocol.
TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET = range(1, 11)
STRUCT = 12


@frozen
class ColumnChunk:
    """Where the pages of a Parquet column stand, how many values there are, and their bytes when
    unpacked.
    """

    start: int
    length: int
    values: int
    bytes: int


@frozen
class RowGroup:
    """A row group of Parquet, as the footer has it."""

    rows: int
    chunks: tuple[ColumnChunk, ...]

    @property
    def bytes(self) -> int:
        """All of it, unpacked."""
        total = sum(max(chunk.bytes, VALUE_BYTES * chunk.values) for chunk in self.chunks)
        return max(total, VALUE_BYTES * self.rows)


def read_row_groups(file: IO[bytes]) -> tuple[RowGroup, ...]:
    """The row groups of a Parquet file.

    pyarrow has a way to ask for them, but one that ends the process where a footer is damaged.
    """
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        raise ValueError("it ends too early")
    file.seek(size - 8)
    (length,) = struct.unpack("<I", file.read(8)[:4])
    if length > size - 12:
        raise ValueError("its footer has no size")
    file.seek(size - 8 - length)
    try:
        footer = _ThriftReader(file.read(length)).read_fields(FOOTER_SCHEMA)
    except IndexError:
        raise ValueError("its footer is not complete") from None
    groups: list[RowGroup] = []
    for group in _get_structs(footer, 4):
        rows = _get_count(group, 3)
        chunks: list[ColumnChunk] = []
        for column in _get_structs(group, 1):
            metadata = column.get(3)
            if not isinstance(metadata, dict):
                raise ValueError("a column that is elsewhere")
            pages = (_get_count(metadata, 9), _get_count(metadata, 11))
            chunk = ColumnChunk(
                start=min(filter(None, pages), default=0),
                length=_get_count(metadata, 7),
                values=_get_count(metadata, 5),
                bytes=_get_count(metadata, 6),
            )
            chunks.append(chunk)
        groups.append(RowGroup(rows=rows, chunks=tuple(chunks)))
    return tuple(groups)


def measure_pages(file: IO[bytes], chunk: ColumnChunk) -> int:
    """Bytes of a column chunk of Parquet when unpacked, by the headers of its pages."""
    at = chunk.start
    total = 0
    wanted = PAGE_HEADER_BYTES
    while at < chunk.start + chunk.length:
        file.seek(at)
        raw = file.read(wanted)
        reader = _ThriftReader(raw)
        try:
            header = reader.read_fields(PAGE_SCHEMA)
        except IndexError:
            # Nothing says how long a header is: try again with more of it.
            if len(raw) < wanted or wanted >= MAX_PAGE_HEADER_BYTES:
                raise ValueError("a page without a header") from None
            wanted *= 16
            continue
        wanted = PAGE_HEADER_BYTES
        values = 0
        for key in (5, 7, 8):
            part = header.get(key)
            if isinstance(part, dict):
                values = max(values, _get_count(part, 1))
        total += max(_get_count(header, 2), VALUE_BYTES * values)
        at += reader.at + _get_count(header, 3)
    return total


def _get_structs(fields: ThriftFields, key: int) -> list[ThriftFields]:
    structs = fields.get(key)
    return structs if isinstance(structs, list) else []


def _get_count(fields: ThriftFields, key: int) -> int:
    count = fields.get(key, 0)
    if not isinstance(count, int):
        return 0
    if count < 0:
        raise ValueError("a negative count")
    return count


class _ThriftReader:
    """Thrift's compact protocol, as far as whole numbers, structures and lists of them go; the rest
    is passed over. Raises `IndexError` where the bytes end too early.
    """

    def __init__(self, raw: bytes):
        self.raw = raw
        self.at = 0

    def read_fields(self, schema: ThriftSchema, depth: int = 0) -> ThriftFields:
        """The fields of a structure that the schema names."""
        if depth > MAX_THRIFT_DEPTH:
            raise ValueError("structures in structures")
        out: ThriftFields = {}
        key = 0
        while head := self._read_byte():
            # The number of a field is told as the step from the one before, where that is small.
            if head >> 4:
                key += head >> 4
            else:
                key = self._read_signed()
            kind = head & 15
            wanted = schema.get(key)
            if wanted is None:
                self._skip(kind, depth)
            elif kind == STRUCT:
                out[key] = self.read_fields(wanted, depth + 1)
            elif kind in (INT16, INT32, INT64):
                out[key] = self._read_signed()
            elif kind == LIST:
                size, inner = self._read_list_head()
                if inner != STRUCT:
                    raise ValueError("a list of something else")
                out[key] = [self.read_fields(wanted, depth + 1) for _ in range(size)]
            else:
                self._skip(kind, depth)
        return out

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):  # a truth value stands in the head of its field
            return
        if kind == STRUCT:
            self.read_fields({}, depth + 1)
        elif kind in (INT16, INT32, INT64):
            self._read_unsigned()
        elif kind == BINARY:
            self._forward(self._read_unsigned())
        elif kind in (LIST, SET):
            size, inner = self._read_list_head()
            for _ in range(size):
                if inner in (TRUE, FALSE):  # in a list it has a byte of its own
                    self._forward(1)
                else:
                    self._skip(inner, depth + 1)
        elif kind == BYTE:
            self._forward(1)
        elif kind == DOUBLE:
            self._forward(8)
        else:
            raise ValueError("a field of unknown type")

    def _read_list_head(self) -> tuple[int, int]:
        """How many parts a list has, and their kind."""
        head = self._read_byte()
        size = head >> 4
        if size == 15:
            size = self._read_unsigned()
        return size, head & 15

    def _read_byte(self) -> int:
        byte = self.raw[self.at]
        self.at += 1
        return byte

    def _forward(self, n: int) -> None:
        self.at += n
        if self.at > len(self.raw):
            raise IndexError

    def _read_unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._read_byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number that does not end")

    def _read_signed(self) -> int:
        n = self._read_unsigned()
        return (n >> 1) ^ -(n & 1)  # zigzag: 0, -1, 1, -2, …


# Arrow: messages, or a footer that says where they stand; their headers are flatbuffers, in which
# fields have numbers too.

ARROW_MAGIC = b"ARROW1"
END, DICTIONARY, BATCH = 0, 2, 3  # kinds of messages


@frozen
class ArrowBatch:
    """A batch of an Arrow file: its rows, and its bytes when unpacked."""

    rows: int
    bytes: int


@frozen
class ArrowLayout:
    """The dictionaries and batches of an Arrow file, in order."""

    dictionaries: tuple[ArrowBatch, ...]
    batches: tuple[ArrowBatch, ...]

    @property
    def bytes(self) -> int:
        """All of it, unpacked."""
        return sum(batch.bytes for batch in (*self.dictionaries, *self.batches))


def read_layout(file: IO[bytes]) -> ArrowLayout:
    """What an Arrow file or stream holds: of a stream every message from the beginning on, of a
    file every block that the footer names, as often as it does.
    """
    size = file.seek(0, os.SEEK_END)
    messages: list[tuple[int, ArrowBatch]] = []
    try:
        file.seek(0)
        if file.read(len(ARROW_MAGIC)) != ARROW_MAGIC:
            at = 0
            while at + 8 <= size:
                kind, batch, at = _read_message(file, at, size)
                messages.append((kind, batch))
                if kind == END:
                    break
        else:
            if size < 18:
                raise ValueError("it ends too early")
            file.seek(size - 10)
            (length,) = struct.unpack("<i", file.read(4))
            if not 0 < length <= size - 18:
                raise ValueError("its footer has no size")
            file.seek(size - 10 - length)
            footer = _FlatTable.read_root(file.read(length))
            for field in (2, 3):  # dictionaries, record batches
                for at in footer.locate_structs(field, 24):
                    offset, metadata = struct.unpack_from("<qi", footer.raw, at)
                    if not 0 <= offset < size or not 0 <= metadata <= size:
                        raise ValueError("a block that is not there")
                    kind, batch, _ = _read_message(file, offset, size)
                    messages.append((kind, batch))
    except (struct.error, IndexError):
        raise ValueError("its headers are not complete") from None
    return ArrowLayout(
        dictionaries=tuple(batch for kind, batch in messages if kind == DICTIONARY),
        batches=tuple(batch for kind, batch in messages if kind == BATCH),
    )


def _read_message(file: IO[bytes], at: int, size: int) -> tuple[int, ArrowBatch, int]:
    """The kind of a message, what it holds, and where the next one begins."""
    file.seek(at)
    first, second = struct.unpack("<ii", file.read(8))
    start, length = at + 4, first
    if first == -1:  # since Arrow 0.15 a mark stands before the length
        start, length = at + 8, second
    if length == 0:
        return END, ArrowBatch(rows=0, bytes=0), size
    if not 0 < length <= size - start:
        raise ValueError("a message that is not there")
    file.seek(start)
    message = _FlatTable.read_root(file.read(length))
    kind = message.read_number(1, "B")
    body = message.read_number(3, "q")
    if not 0 <= body <= size - start - length:
        raise ValueError("a message without its body")
    following = start + length + body
    if kind not in (DICTIONARY, BATCH):
        return kind, ArrowBatch(rows=0, bytes=0), following
    header = message.read_table(2)
    if kind == DICTIONARY:
        header = header.read_table(1)
    return kind, _measure_batch(header, file, start + length, body), following


def _measure_batch(header: _FlatTable, file: IO[bytes], body: int, length: int) -> ArrowBatch:
    """The rows and bytes of a batch whose buffers stand in `length` bytes from `body` on."""
    packed = header.has_field(3)
    total = 0
    for at in header.locate_structs(2, 16):  # buffers
        offset, size = struct.unpack_from("<qq", header.raw, at)
        if offset < 0 or size < 0 or offset + size > length:
            raise ValueError("a buffer that is not there")
        if packed and size >= 8:
            # A packed buffer begins with its size; -1 says that it was not packed after all.
            file.seek(body + offset)
            (unpacked,) = struct.unpack("<q", file.read(8))
            if unpacked < -1:
                raise ValueError("a buffer of negative size")
            size = size - 8 if unpacked == -1 else unpacked
        total += size
    values = 0
    for at in header.locate_structs(1, 16):  # columns, and lists in columns
        values += struct.unpack_from("<q", header.raw, at)[0]
    return ArrowBatch(rows=header.read_number(0, "q"), bytes=max(total, VALUE_BYTES * values))


class _FlatTable:
    """A table of a flatbuffer."""

    def __init__(self, raw: bytes, at: int):
        self.raw = raw
        self.at = at
        if not 0 <= at <= len(raw) - 4:
            raise ValueError("a table that is not there")
        self.fields = at - self._unpack("i", at)
        if not 0 <= self.fields <= len(raw) - 4:
            raise ValueError("a table without fields")
        self.size = self._unpack("H", self.fields)

    @classmethod
    def read_root(cls, raw: bytes) -> _FlatTable:
        """The table that everything else hangs on."""
        return cls(raw, struct.unpack_from("<I", raw, 0)[0])

    def _unpack(self, kind: str, at: int) -> int:
        return struct.unpack_from(f"<{kind}", self.raw, at)[0]

    def _locate(self, field: int) -> int:
        """Where a field stands; 0 where it has its default."""
        entry = 4 + 2 * field
        if entry + 2 > self.size:
            return 0
        offset = self._unpack("H", self.fields + entry)
        return self.at + offset if offset else 0

    def has_field(self, field: int) -> bool:
        """Whether a field is set."""
        return bool(self._locate(field))

    def read_number(self, field: int, kind: str) -> int:
        """A whole number of a kind that `struct` names; 0 where it is not set."""
        place = self._locate(field)
        return self._unpack(kind, place) if place else 0

    def read_table(self, field: int) -> _FlatTable:
        """A table inside this one."""
        place = self._locate(field)
        if not place:
            raise ValueError("a message without its header")
        return _FlatTable(self.raw, place + self._unpack("I", place))

    def locate_structs(self, field: int, size: int) -> range:
        """Where the entries of a vector of structures stand."""
        place = self._locate(field)
        if not place:
            return range(0)
        start = place + self._unpack("I", place)
        end = start + 4 + self._unpack("I", start) * size
        if end > len(self.raw):
            raise ValueError("a vector that is not there")
        return range(start + 4, end, size)


# Zip archives: of NumPy arrays, of torch tensors, of the samples of a log

MAX_MEMBERS = 10_000
MAX_DEFLATE_RATIO = 1032  # the most that deflate can shrink anything
ZIP_ZSTANDARD = 93  # the method of a member that is packed with zstd
MAX_ZSTANDARD_RATIO = 1 << 15  # a block of 128 KiB takes at least four bytes
LOCAL_HEADER_BYTES = 30
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


def check_members(
    archive: zipfile.ZipFile, path: Path, *, zstandard: bool = False
) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; raise if one cannot be what it claims. `zstandard`: members that
    are packed with zstd are expected too.
    """
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        got = f"has {len(infos):,} members"
        raise InputError(path.name, got=got, need=f"at most {MAX_MEMBERS:,} are read")
    by_name = {info.filename: info for info in infos}
    where = {name: f"{path.name}, member {name[:60]!r}" for name in by_name}
    for info in infos:
        member = where[info.filename]
        if info.flag_bits & 1:
            raise InputError(member, got="is encrypted", hint="save it without a password")
        if info.compress_type == zipfile.ZIP_STORED:
            largest = info.compress_size
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            largest = MAX_DEFLATE_RATIO * (info.compress_size + 1)
        elif info.compress_type == ZIP_ZSTANDARD and zstandard:
            largest = MAX_ZSTANDARD_RATIO * (info.compress_size + 1)
        else:
            got = f"is packed by method {info.compress_type}"
            raise InputError(member, got=got, hint="use np.savez or np.savez_compressed")
        if info.file_size > largest:
            packed = f"{info.compress_size:,} packed bytes"
            got = f"claims {info.file_size:,} bytes, which {packed} cannot hold"
            raise InputError(member, got=got, hint="save it again")
    # Members that share their bytes would multiply when they are unpacked.
    end = path.stat().st_size
    for info in sorted(infos, key=lambda info: info.header_offset, reverse=True):
        if info.header_offset + info.compress_size > end:
            got = "overlaps another or the end"
            raise InputError(where[info.filename], got=got, hint="save it again")
        end = info.header_offset
    if len(by_name) < len(infos):
        got = "holds two members of the same name"
        raise InputError(path.name, got=got, hint="save it again with distinct names")
    return by_name


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> bytes:
    """A member, unpacked to the size that was checked and to no more; zstd needs a package."""
    if info.compress_type != ZIP_ZSTANDARD:
        return archive.read(info)
    zstandard = need("zstandard", for_=f"reading {path.name}", extra="logs")
    with path.open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(LOCAL_HEADER_BYTES)
        name_length, extra_length = struct.unpack("<HH", header[-4:])
        file.seek(name_length + extra_length, os.SEEK_CUR)
        packed = io.BytesIO(file.read(info.compress_size))
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        data: bytes = reader.read(info.file_size + 1)
    except zstandard.ZstdError as e:
        raise ValueError(str(e)) from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError(f"{info.filename[:60]} is not what was packed")
    return data
