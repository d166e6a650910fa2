"""How many bytes Parquet and Arrow files unpack to, from the headers of pages and buffers, before
any is unpacked.

The footers of both say it too, but a footer may lie; what is counted here is what a decoder would
go by. A value counts at least eight bytes: columns of nothing, of one value or of truth values take
next to none in a file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, TypeAlias

from howsure._core.frozen import frozen

VALUE = 8
HEADER = 1 << 24  # bytes of a page's header, as Arrow has it
Fields: TypeAlias = "dict[int, int | Fields | list[Fields]]"
Shape: TypeAlias = "dict[int, Shape]"  # the fields of a structure that are kept
PAGE: Shape = {2: {}, 3: {}, 5: {1: {}}, 7: {1: {}}, 8: {1: {}}}
FOOTER: Shape = {4: {1: {3: {5: {}, 6: {}, 7: {}, 9: {}, 11: {}}}, 3: {}}}


@frozen
class Chunk:
    """Where the pages of a Parquet column stand, how many values there are, and their bytes when
    unpacked.
    """

    start: int
    length: int
    values: int
    bytes: int


@frozen
class Group:
    """A row group of Parquet, as the footer has it."""

    rows: int
    chunks: tuple[Chunk, ...]

    @property
    def bytes(self) -> int:
        """All of it, unpacked."""
        return max(sum(max(c.bytes, VALUE * c.values) for c in self.chunks), VALUE * self.rows)


def row_groups(file: IO[bytes]) -> tuple[Group, ...]:
    """The row groups of a Parquet file. Raises `ValueError` where the footer makes no sense.

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
        footer = _Compact(file.read(length)).fields(FOOTER)
    except IndexError:
        raise ValueError("its footer is not complete") from None
    return tuple(
        Group(_count(group, 3), tuple(map(_chunk, _parts(group, 1)))) for group in _parts(footer, 4)
    )


def _chunk(column: Fields) -> Chunk:
    meta = column.get(3)
    if not isinstance(meta, dict):
        raise ValueError("a column that is elsewhere")
    starts = [at for at in (_count(meta, 9), _count(meta, 11)) if at]
    return Chunk(min(starts, default=0), _count(meta, 7), _count(meta, 5), _count(meta, 6))


def _parts(fields: Fields, key: int) -> list[Fields]:
    found = fields.get(key)
    return found if isinstance(found, list) else []


def _count(fields: Fields, key: int) -> int:
    found = _number(fields, key)
    if found < 0:
        raise ValueError("a negative count")
    return found


def of_pages(file: IO[bytes], chunk: Chunk) -> int:
    """Bytes of a column chunk of Parquet when unpacked. Raises `ValueError` where a header makes no
    sense.
    """
    at, end, total = chunk.start, chunk.start + chunk.length, 0
    while at < end:
        head, length = _page(file, at)
        size, packed = _count(head, 2), _count(head, 3)
        parts = (
            head.get(field) for field in (5, 7, 8)
        )  # data, dictionary, data of the second version
        values = max((_count(part, 1) for part in parts if isinstance(part, dict)), default=0)
        total += max(size, VALUE * values)
        at += length + packed
    return total


def _number(fields: Fields, key: int) -> int:
    found = fields.get(key, 0)
    return found if isinstance(found, int) else 0


def _page(file: IO[bytes], at: int) -> tuple[Fields, int]:
    """The header of a page and its length."""
    wanted = 1 << 10
    while True:
        file.seek(at)
        raw = file.read(wanted)
        try:
            reader = _Compact(raw)
            return reader.fields(PAGE), reader.at
        except IndexError:
            if len(raw) < wanted or wanted >= HEADER:
                raise ValueError("a page without a header") from None
            wanted *= 16


class _Compact:
    """Thrift's compact protocol, as far as whole numbers, structures and lists of them go; the rest
    is passed over.
    """

    def __init__(self, raw: bytes):
        self.raw, self.at = raw, 0

    def fields(self, shape: Shape, depth: int = 0) -> Fields:
        if depth > 16:
            raise ValueError("structures in structures")
        out: Fields = {}
        key = 0
        while head := self.byte():
            key = key + (head >> 4) if head >> 4 else self.signed()
            kind, wanted = head & 15, shape.get(key)
            if wanted is None:
                self.skip(kind, depth)
            elif kind == 12:
                out[key] = self.fields(wanted, depth + 1)
            elif kind in (4, 5, 6):
                out[key] = self.signed()
            elif kind == 9:
                out[key] = self.parts(wanted, depth)
            else:
                self.skip(kind, depth)
        return out

    def parts(self, shape: Shape, depth: int) -> list[Fields]:
        """A list of structures."""
        size, kind = self.length()
        if kind != 12:
            raise ValueError("a list of something else")
        return [self.fields(shape, depth + 1) for _ in range(size)]

    def skip(self, kind: int, depth: int) -> None:
        if kind in (1, 2):  # a truth value stands in the head of its field
            return
        if kind == 12:
            self.fields({}, depth + 1)
        elif kind in (4, 5, 6):
            self.unsigned()
        elif kind == 8:
            self.forward(self.unsigned())
        elif kind in (9, 10):
            self._skip_list(depth)
        elif kind in (3, 7):
            self.forward(1 if kind == 3 else 8)
        else:
            raise ValueError("a field of unknown type")

    def _skip_list(self, depth: int) -> None:
        size, kind = self.length()
        for _ in range(size):
            self.forward(1) if kind in (1, 2) else self.skip(kind, depth + 1)

    def length(self) -> tuple[int, int]:
        """How many parts a list has, and their kind."""
        head = self.byte()
        return (self.unsigned() if head >> 4 == 15 else head >> 4), head & 15

    def byte(self) -> int:
        found = self.raw[self.at]
        self.at += 1
        return found

    def forward(self, n: int) -> None:
        self.at += n
        if self.at > len(self.raw):
            raise IndexError

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number that does not end")

    def signed(self) -> int:
        n = self.unsigned()
        return (n >> 1) ^ -(n & 1)


@frozen
class Stored:
    """A batch of an Arrow file: its rows, and its bytes when unpacked."""

    rows: int
    bytes: int


@frozen
class Layout:
    """The dictionaries and batches of an Arrow file, in order."""

    dictionaries: tuple[Stored, ...]
    batches: tuple[Stored, ...]

    @property
    def bytes(self) -> int:
        """All of it, unpacked."""
        return sum(one.bytes for one in (*self.dictionaries, *self.batches))


MAGIC = b"ARROW1"
SCHEMA, DICTIONARY, BATCH = 1, 2, 3


def layout(file: IO[bytes]) -> Layout:
    """What an Arrow file or stream holds. Raises `ValueError` where its headers make no sense."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        found = _by_footer(file, size) if file.read(6) == MAGIC else _by_messages(file, size)
        every = list(found)
    except (struct.error, IndexError):
        raise ValueError("its headers are not complete") from None
    kinds = {kind: tuple(one for k, one in every if k == kind) for kind in (DICTIONARY, BATCH)}
    return Layout(kinds[DICTIONARY], kinds[BATCH])


def _by_footer(file: IO[bytes], size: int) -> Iterator[tuple[int, Stored]]:
    """Every block that the footer names, as often as it does."""
    if size < 18:
        raise ValueError("it ends too early")
    file.seek(size - 10)
    (length,) = struct.unpack("<i", file.read(4))
    if not 0 < length <= size - 18:
        raise ValueError("its footer has no size")
    file.seek(size - 10 - length)
    footer = _Table.root(file.read(length))
    for field in (2, 3):
        for at in footer.structs(field, 24):
            offset, meta = struct.unpack_from("<qi", footer.raw, at)
            if not 0 <= offset < size or not 0 <= meta <= size:
                raise ValueError("a block that is not there")
            kind, stored, _ = _message(file, offset, size)
            yield kind, stored


def _by_messages(file: IO[bytes], size: int) -> Iterator[tuple[int, Stored]]:
    """Every message from the beginning on."""
    at = 0
    while at + 8 <= size:
        kind, stored, at = _message(file, at, size)
        if kind == 0:
            return
        yield kind, stored


def _message(file: IO[bytes], at: int, size: int) -> tuple[int, Stored, int]:
    """The kind of a message, what it holds, and where the next one begins; kind 0 is the end."""
    file.seek(at)
    first, second = struct.unpack("<ii", file.read(8))
    start, length = (at + 8, second) if first == -1 else (at + 4, first)
    if length == 0:
        return 0, Stored(0, 0), size
    if not 0 < length <= size - start:
        raise ValueError("a message that is not there")
    file.seek(start)
    message = _Table.root(file.read(length))
    kind, body = message.number(1, "B"), message.number(3, "q")
    if not 0 <= body <= size - start - length:
        raise ValueError("a message without its body")
    following = start + length + body
    if kind not in (DICTIONARY, BATCH):
        return kind, Stored(0, 0), following
    batch = message.table(2) if kind == BATCH else message.table(2).table(1)
    return kind, _stored(batch, file, start + length, body), following


def _stored(batch: _Table, file: IO[bytes], body: int, length: int) -> Stored:
    packed, total = batch.has(3), 0
    for at in batch.structs(2, 16):
        offset, size = struct.unpack_from("<qq", batch.raw, at)
        if offset < 0 or size < 0 or offset + size > length:
            raise ValueError("a buffer that is not there")
        total += _unpacked(file, body + offset, size) if packed and size >= 8 else size
    values = sum(struct.unpack_from("<q", batch.raw, at)[0] for at in batch.structs(1, 16))
    return Stored(batch.number(0, "q"), max(total, VALUE * values))


def _unpacked(file: IO[bytes], at: int, size: int) -> int:
    """A packed buffer begins with its size; -1 says that it was not packed after all."""
    file.seek(at)
    (found,) = struct.unpack("<q", file.read(8))
    if found < -1:
        raise ValueError("a buffer of negative size")
    return size - 8 if found == -1 else found


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, raw: bytes, at: int):
        self.raw, self.at = raw, at
        if not 0 <= at <= len(raw) - 4:
            raise ValueError("a table that is not there")
        self.fields = at - self._at("i", at)
        if not 0 <= self.fields <= len(raw) - 4:
            raise ValueError("a table without fields")
        self.size = self._at("H", self.fields)

    @classmethod
    def root(cls, raw: bytes) -> _Table:
        return cls(raw, struct.unpack_from("<I", raw, 0)[0])

    def _at(self, kind: str, at: int) -> int:
        return struct.unpack_from(f"<{kind}", self.raw, at)[0]

    def _place(self, field: int) -> int:
        """Where a field stands; 0 where it has its default."""
        entry = 4 + 2 * field
        offset = self._at("H", self.fields + entry) if entry + 2 <= self.size else 0
        return self.at + offset if offset else 0

    def has(self, field: int) -> bool:
        return bool(self._place(field))

    def number(self, field: int, kind: str) -> int:
        place = self._place(field)
        return self._at(kind, place) if place else 0

    def table(self, field: int) -> _Table:
        place = self._place(field)
        if not place:
            raise ValueError("a message without its header")
        return _Table(self.raw, place + self._at("I", place))

    def structs(self, field: int, size: int) -> range:
        """Where the entries of a vector of structures stand."""
        place = self._place(field)
        if not place:
            return range(0)
        start = place + self._at("I", place)
        count = self._at("I", start)
        if start + 4 + count * size > len(self.raw):
            raise ValueError("a vector that is not there")
        return range(start + 4, start + 4 + count * size, size)
