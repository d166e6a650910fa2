"""Parquet and Arrow (Feather) tables, read by record batches."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from howsure._core.budget import Budget
from howsure._core.check import Array, InputError
from howsure._core.frozen import frozen
from howsure._core.optional import need
from howsure._core.text import WIDTH
from howsure.formats import packed
from howsure.formats.contents import AGAIN, Cells, Contents, Damaged, Entry, as_list, reason
from howsure.formats.names import column_name
from howsure.formats.remote import Remote

suffixes = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
title = "Parquet or Arrow table"
PARQUET = (".parquet", ".pq")
ROWS = 1 << 16
FLAT = ("STRING", "JSON", "NONE")  # kinds of bytes in Parquet that are text


def read(path: Path, rows: int | None, piece: int | None = None) -> Iterator[Contents]:
    """Record batches of at most `rows` rows, of the whole file or of one row group or stored batch."""
    _pyarrow()
    found, budget = 0, Budget(path.name, path.stat().st_size)
    for batch in _batches(path, rows or ROWS, piece, budget, held=rows is None):
        if batch.num_rows:
            yield _contents(batch, path, found, budget)
            found += batch.num_rows
    if not found and piece is None:
        raise InputError(path.name, got="has no rows", need="at least one sample is needed")


@frozen
class Outline:
    """What a file says of itself: its columns without rows, and the rows of each piece that can be
    read alone.

    A piece is a row group of Parquet or a batch of an Arrow file; None where the layout has to be
    read in one go.
    """

    contents: Contents
    pieces: tuple[int, ...] | None


def outline(path: Path) -> Outline:
    """Columns and pieces, from the footer alone."""
    _pyarrow()
    budget = Budget(path.name, path.stat().st_size)
    with _decoding(path), path.open("rb") as file:
        if path.suffix.lower() in PARQUET:
            schema, pieces = _parquet_pieces(path, file, budget)
        else:
            schema, pieces = _ipc_pieces(file, budget)
        empty = _no_rows(schema)
    return Outline(_contents(empty, path, 0, budget), pieces)


def _no_rows(schema: Any) -> Any:
    pa = _pyarrow()
    empty = [pa.nulls(0, field.type) for field in schema]  # pa.array() would import pandas
    return pa.RecordBatch.from_arrays(empty, schema=schema)


def _parquet_pieces(path: Path, file: Any, budget: Budget) -> tuple[Any, tuple[int, ...]]:
    parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
    with parquet.ParquetFile(file, pre_buffer=False) as table:
        groups = _groups(table, file, path)
        budget.spend(sum(_planned_bytes(group, path) for group in groups), held=False)
        return table.schema_arrow, tuple(group.rows for group in groups)


class State(NamedTuple):
    """A file as it is now: headers that were read of it once need not be read again for each of its
    row groups.
    """

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> State:
        """The state of a file of this machine."""
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _footer(state: State) -> tuple[packed.Group, ...]:
    with state.path.open("rb") as file:
        return packed.row_groups(file)


@lru_cache(maxsize=1 << 12)
def _page_bytes(state: State, group: packed.Group) -> int:
    with state.path.open("rb") as file:
        return sum(packed.of_pages(file, chunk) for chunk in group.chunks)


def _is_remote(path: Path) -> bool:
    return isinstance(cast("object", path), Remote)


def _groups(table: Any, file: Any, path: Path) -> tuple[packed.Group, ...]:
    at = file.tell()
    found = packed.row_groups(file) if _is_remote(path) else _footer(State.of(path))
    file.seek(at)
    if len(found) != table.metadata.num_row_groups:
        raise ValueError("its footer can be read in two ways")
    return found


def _planned_bytes(group: packed.Group, path: Path) -> int:
    """The same before anything is read: a damaged row group is refused where it is read, not with
    its whole file.
    """
    try:
        return _group_bytes(group, path)
    except ValueError:
        return group.bytes


def _group_bytes(group: packed.Group, path: Path) -> int:
    """What a row group of Parquet unpacks to: by its footer, and where the file is at hand by its
    pages too.
    """
    return group.bytes if _is_remote(path) else max(group.bytes, _page_bytes(State.of(path), group))


def _ipc_pieces(file: Any, budget: Budget) -> tuple[Any, tuple[int, ...] | None]:
    pa = _pyarrow()
    found = packed.layout(file)
    budget.spend(found.bytes, held=False)
    file.seek(0)
    if file.read(6) != packed.MAGIC:
        file.seek(0)
        return pa.ipc.open_stream(file).schema, None
    return pa.ipc.open_file(file).schema, tuple(batch.rows for batch in found.batches)


def _pyarrow() -> Any:
    return need("pyarrow", for_="a Parquet or Arrow file", extra="files")


def _batches(
    path: Path, rows: int, piece: int | None, budget: Budget, *, held: bool
) -> Iterator[Any]:
    parquet = path.suffix.lower() in PARQUET
    source = (
        _parquet(path, rows, piece, budget, held) if parquet else _ipc(path, piece, budget, held)
    )
    while True:
        with _decoding(path):
            batch = next(source, None)
            if batch is None:
                return
            batch.validate(full=True)  # offsets of a damaged file could point anywhere
        for start in range(0, max(1, batch.num_rows), rows):
            yield batch.slice(start, rows)


@contextmanager
def _decoding(path: Path) -> Generator[None, None, None]:
    """Whatever the decoder finds wrong is one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as e:
        raise Damaged(path.name, got=f"is not a readable table ({reason(e)})", hint=AGAIN) from None


def _parquet(path: Path, rows: int, piece: int | None, budget: Budget, held: bool) -> Iterator[Any]:
    parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
    # pre_buffer would keep every row group that was read
    with path.open("rb") as file, parquet.ParquetFile(file, pre_buffer=False) as table:
        names, found = _texts(table.metadata), _groups(table, file, path)
        groups = range(len(found)) if piece is None else [piece]
        budget.spend(sum(_group_bytes(found[i], path) for i in groups), held=held)
        if not names:
            yield from table.iter_batches(
                batch_size=rows, row_groups=list(groups), use_threads=False
            )
            return
    # a text that stands in many rows is held once
    with (
        path.open("rb") as file,
        parquet.ParquetFile(file, pre_buffer=False, read_dictionary=names) as table,
    ):
        yield from table.iter_batches(batch_size=rows, row_groups=list(groups), use_threads=False)


def _texts(metadata: Any) -> list[str]:
    """The columns of Parquet that hold text."""
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    return [
        c.path for c in columns if c.physical_type == "BYTE_ARRAY" and c.logical_type.type in FLAT
    ]


def _ipc(path: Path, piece: int | None, budget: Budget, held: bool) -> Iterator[Any]:
    """The file layout, which Feather shares, or the streaming layout."""
    pa = _pyarrow()
    with path.open("rb") as file:
        found = packed.layout(file)
        wanted = range(len(found.batches)) if piece is None else [piece]
        here = sum(found.batches[i].bytes for i in wanted) + sum(
            d.bytes for d in found.dictionaries
        )
        budget.spend(here, held=held)
        file.seek(0)
        if file.read(6) != packed.MAGIC:
            file.seek(0)
            yield from pa.ipc.open_stream(file)
            return
        table = pa.ipc.open_file(file)
        for i in wanted:
            yield table.get_batch(i)


def _contents(batch: Any, path: Path, before: int, budget: Budget) -> Contents:
    with _decoding(path):
        names = batch.schema.names
    if len(set(names)) < len(names):
        raise InputError(path.name, got="has two columns of the same name", hint="rename one")
    entries = {
        name: _entry(batch.column(i), name, path, before, budget) for i, name in enumerate(names)
    }
    return Contents(path, entries, table=True, class_names=_class_names(batch.schema.metadata))


def _class_names(metadata: dict[bytes, bytes] | None) -> tuple[str, ...] | None:
    try:
        names = as_list(json.loads((metadata or {})[b"class_names"]))
    except (KeyError, ValueError, RecursionError):
        return None
    return None if names is None else tuple(str(n) for n in names)


def _entry(column: Any, name: str, path: Path, before: int, budget: Budget) -> Entry:
    where = f"{path.name}, column {name[:60]!r}"

    def load() -> Array | Cells:
        with _decoding(path):
            return _values(column, where, before, budget)

    return Entry((len(column),), str(column.type), load)


def _values(column: Any, where: str, before: int, budget: Budget) -> Array | Cells:
    """Numbers and lists of numbers as an array; everything else as cells, like those of a text
    table.
    """
    _check_full(column, where, before)
    kind = column.type
    if _pyarrow().types.is_dictionary(kind) and not _is_text(kind.value_type):
        budget.spend(_decoded_bytes(column), where)
        column = column.dictionary_decode()
    if _is_list(column.type):
        inner = column.flatten()
        if _is_list(inner.type) or _is_number(inner.type):
            return _nested(column, inner, where, before, budget)
    if _is_number(column.type):
        return _numbers(column)
    plain = (str, int, float, list, dict)
    return [
        cell if isinstance(cell, plain) else str(cell) for cell in _cells(column, where, budget)
    ]


def _decoded_bytes(column: Any) -> int:
    """What a column of references unpacks to, each row counted with what it refers to."""
    words = column.dictionary
    sizes = np.full(len(words), packed.VALUE, dtype=np.int64)
    if _is_list(words.type):
        length = need(
            "pyarrow.compute", for_="a dictionary of lists", extra="files"
        ).list_value_length(words)
        sizes = packed.VALUE * np.nan_to_num(length.to_numpy(zero_copy_only=False)).astype(np.int64)
    used = np.bincount(
        column.indices.to_numpy(zero_copy_only=False).astype(np.int64), minlength=len(words)
    )
    deeper = max(1, words.nbytes // max(1, int(sizes.sum())))  # lists of lists
    return int((used * sizes).sum()) * deeper


def _cells(column: Any, where: str, budget: Budget) -> list[Any]:
    """Python values; a text that many rows refer to is one object."""
    types, kind = _pyarrow().types, column.type
    if types.is_dictionary(kind):
        words, rows = _cells(column.dictionary, where, budget), column.indices.to_pylist()
        long = {
            i: len(word)
            for i, word in enumerate(words)
            if isinstance(word, str) and len(word) > WIDTH
        }
        if long:  # each row works on its text, though all of them hold the same one
            budget.spend(sum(long.get(i, 0) for i in rows), where, held=False)
        return [None if i is None else words[i] for i in rows]
    if _is_list(kind):
        items, start = _cells(column.flatten(), where, budget), 0
        out: list[Any] = []
        for length in _lengths(column):
            out.append(None if length is None else items[start : start + length])
            start += length or 0
        return out
    if types.is_struct(kind):
        fields = {
            field.name: _cells(part, where, budget)
            for field, part in zip(kind, column.flatten(), strict=True)
        }
        there = column.is_valid().to_pylist()
        return [
            {name: cells[i] for name, cells in fields.items()} if there[i] else None
            for i in range(len(column))
        ]
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise InputError(
            where,
            got=f"has type {str(kind)[:60]}",
            need="numbers, text or lists of them are needed",
        )
    if str(kind).endswith("_view"):
        budget.spend(_viewed_bytes(column), where)
    return column.to_pylist()


def _viewed_bytes(column: Any) -> int:
    """The bytes of all texts, though many rows may look at the same ones; a view of 16 bytes begins
    with a length.
    """
    views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
    length = views[column.offset : column.offset + len(column), 0].astype(np.int64)
    return int(length[column.is_valid().to_numpy(zero_copy_only=False)].sum())


def _lengths(column: Any) -> list[int | None]:
    return (
        need("pyarrow.compute", for_="lists", extra="files").list_value_length(column).to_pylist()
    )


def _numbers(column: Any) -> Array:
    """Numbers without gaps as an array; `column.to_numpy()` gives the same and imports pandas where
    it is installed.
    """
    types, n, first = _pyarrow().types, len(column), column.offset
    values = column.buffers()[1]
    if values is None:
        return np.empty(0, column.type.to_pandas_dtype())
    if types.is_boolean(column.type):
        bits = np.unpackbits(np.frombuffer(values, np.uint8), count=first + n, bitorder="little")
        return bits[first:].view(np.bool_)
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(values, dtype, count=n, offset=first * dtype.itemsize)


def _check_full(column: Any, where: str, before: int, width: int = 1) -> None:
    if column.null_count:
        row = (
            before
            + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]) // width
        )
        raise InputError(
            where,
            got=f"has {column.null_count:,} empty values",
            first=row,
            hint="fill or remove these rows",
        )


def _nested(column: Any, inner: Any, where: str, before: int, budget: Budget) -> Array:
    lengths = np.diff(column.offsets.to_numpy()) if hasattr(column, "offsets") else None
    width = column.type.list_size if lengths is None else int(lengths[0])
    if lengths is not None and (lengths != width).any():
        row = int(np.flatnonzero(lengths != width)[0])
        got = f"{lengths[row]} numbers, {width} in row {before}"
        raise InputError(got, where=f"{where}, row {before + row}", need="lists must be equal")
    _check_full(inner, where, before, max(1, width))
    values = _values(inner, where, before, budget)
    if not isinstance(values, np.ndarray) or not width:
        raise InputError(
            where, got="has lists without numbers", need="one number per class is needed"
        )
    return values.reshape(len(column), width, *values.shape[1:])


def _is_list(kind: Any) -> bool:
    types = _pyarrow().types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_text(kind: Any) -> bool:
    types = _pyarrow().types
    return (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _is_number(kind: Any) -> bool:
    types = _pyarrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One column per part, vectors as lists; class names in the metadata of the schema."""
    pa = need("pyarrow", for_=f"writing {suffix} files", extra="files")
    columns = {column_name(n): _column(pa, a) for n, a in arrays.items() if n != "class_names"}
    table = pa.table(columns)
    if "class_names" in arrays:
        table = table.replace_schema_metadata(
            {"class_names": json.dumps(arrays["class_names"].tolist())}
        )
    if suffix in PARQUET:
        need("pyarrow.parquet", for_="writing Parquet", extra="files").write_table(table, path)
    else:
        need("pyarrow.feather", for_="writing Arrow", extra="files").write_feather(
            table, str(path), compression="uncompressed"
        )


def _column(pa: Any, array: Array) -> Any:
    if array.ndim == 3:
        array = array.swapaxes(0, 1)
    flat = pa.array(np.ascontiguousarray(array).reshape(-1))
    for width in array.shape[:0:-1]:
        flat = pa.FixedSizeListArray.from_arrays(flat, width)
    return flat
