"""Parquet and Arrow (Feather) tables, read by record batches."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.check import Array, InputError
from howsure._core.optional import need
from howsure.formats.contents import AGAIN, Cells, Contents, Damaged, Entry, as_list, reason
from howsure.formats.names import column_name

suffixes = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
title = "Parquet or Arrow table"
PARQUET = (".parquet", ".pq")
ROWS = 1 << 16
PER_BYTE = 1000  # rows that one byte of a file may stand for; a constant column packs well, but not without end


def read(path: Path, rows: int | None, piece: int | None = None) -> Iterator[Contents]:
    """Record batches of at most `rows` rows, of the whole file or of one row group or stored batch."""
    _pyarrow()
    found = 0
    for batch in _batches(path, rows or ROWS, piece):
        if batch.num_rows:
            yield _contents(batch, path, found)
            found += batch.num_rows
    if not found and piece is None:
        raise InputError(path.name, got="has no rows", need="at least one sample is needed")


@dataclass(frozen=True)
class Outline:
    """What a file says of itself: its columns without rows, and the rows of each piece that can be read alone.

    A piece is a row group of Parquet or a batch of an Arrow file; None where the layout has to be read in one go.
    """

    contents: Contents
    pieces: tuple[int, ...] | None


def outline(path: Path) -> Outline:
    """Columns and pieces, from the footer alone."""
    _pyarrow()
    with _decoding(path), path.open("rb") as file:
        if path.suffix.lower() in PARQUET:
            schema, pieces = _parquet_pieces(path, file)
        else:
            schema, pieces = _ipc_pieces(file)
        empty = schema.empty_table().combine_chunks().to_batches() or [_no_rows(schema)]
    return Outline(_contents(empty[0], path, 0), pieces)


def _no_rows(schema: Any) -> Any:
    pa = _pyarrow()
    return pa.RecordBatch.from_arrays([pa.array([], type=field.type) for field in schema], schema=schema)


def _parquet_pieces(path: Path, file: Any) -> tuple[Any, tuple[int, ...]]:
    parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
    with parquet.ParquetFile(file, pre_buffer=False) as table:
        _check_rows(table.metadata.num_rows, path)
        groups = range(table.metadata.num_row_groups)
        return table.schema_arrow, tuple(table.metadata.row_group(i).num_rows for i in groups)


def _ipc_pieces(file: Any) -> tuple[Any, tuple[int, ...] | None]:
    pa = _pyarrow()
    if file.read(6) != b"ARROW1":
        file.seek(0)
        return pa.ipc.open_stream(file).schema, None
    table = pa.ipc.open_file(file)
    return table.schema, tuple(table.get_batch(i).num_rows for i in range(table.num_record_batches))


def _pyarrow() -> Any:
    return need("pyarrow", for_="a Parquet or Arrow file", extra="files")


def _batches(path: Path, rows: int, piece: int | None) -> Iterator[Any]:
    source = _parquet(path, rows, piece) if path.suffix.lower() in PARQUET else _ipc(path, piece)
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


def _parquet(path: Path, rows: int, piece: int | None) -> Iterator[Any]:
    parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
    # pre_buffer would keep every row group that was read
    with path.open("rb") as file, parquet.ParquetFile(file, pre_buffer=False) as table:
        _check_rows(table.metadata.num_rows, path)
        groups = None if piece is None else [piece]
        yield from table.iter_batches(batch_size=rows, row_groups=groups, use_threads=False)


def _ipc(path: Path, piece: int | None) -> Iterator[Any]:
    """The file layout, which Feather shares, or the streaming layout."""
    pa = _pyarrow()
    with path.open("rb") as file:
        if file.read(6) != b"ARROW1":
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            yield from reader
            return
        table = pa.ipc.open_file(file)
        for i in range(table.num_record_batches) if piece is None else [piece]:
            batch = table.get_batch(i)
            _check_rows(batch.num_rows, path)
            yield batch


def _check_rows(n: int, path: Path) -> None:
    size = path.stat().st_size
    if n > PER_BYTE * size:
        got = f"claims {n:,} rows in {size:,} bytes"
        raise Damaged(path.name, got=got, hint=f"it is damaged, so {AGAIN}")


def _contents(batch: Any, path: Path, before: int) -> Contents:
    with _decoding(path):
        names = batch.schema.names
    if len(set(names)) < len(names):
        raise InputError(path.name, got="has two columns of the same name", hint="rename one")
    entries = {name: _entry(batch.column(i), name, path, before) for i, name in enumerate(names)}
    return Contents(path, entries, table=True, class_names=_class_names(batch.schema.metadata))


def _class_names(metadata: dict[bytes, bytes] | None) -> tuple[str, ...] | None:
    try:
        names = as_list(json.loads((metadata or {})[b"class_names"]))
    except (KeyError, ValueError, RecursionError):
        return None
    return None if names is None else tuple(str(n) for n in names)


def _entry(column: Any, name: str, path: Path, before: int) -> Entry:
    where = f"{path.name}, column {name[:60]!r}"

    def load() -> Array | Cells:
        with _decoding(path):
            return _values(column, where, before)

    return Entry((len(column),), str(column.type), load)


def _values(column: Any, where: str, before: int) -> Array | Cells:
    """Numbers and lists of numbers as an array; everything else as cells, like those of a text table."""
    _check_full(column, where, before)
    if isinstance(column, _pyarrow().DictionaryArray):
        column = column.dictionary_decode()
    if _is_list(column.type):
        inner = column.flatten()
        if _is_list(inner.type) or _is_number(inner.type):
            return _nested(column, inner, where, before)
    return column.to_numpy(zero_copy_only=False) if _is_number(column.type) else _cells(column)


def _check_full(column: Any, where: str, before: int, width: int = 1) -> None:
    if column.null_count:
        row = before + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]) // width
        raise InputError(
            where, got=f"has {column.null_count:,} empty values", first=row, hint="fill or remove these rows"
        )


def _nested(column: Any, inner: Any, where: str, before: int) -> Array:
    lengths = np.diff(column.offsets.to_numpy()) if hasattr(column, "offsets") else None
    width = column.type.list_size if lengths is None else int(lengths[0])
    if lengths is not None and (lengths != width).any():
        row = int(np.flatnonzero(lengths != width)[0])
        got = f"{lengths[row]} numbers, {width} in row {before}"
        raise InputError(got, where=f"{where}, row {before + row}", need="lists must be equal")
    _check_full(inner, where, before, max(1, width))
    values = _values(inner, where, before)
    if not isinstance(values, np.ndarray) or not width:
        raise InputError(where, got="has lists without numbers", need="one number per class is needed")
    return values.reshape(len(column), width, *values.shape[1:])


def _cells(column: Any) -> list[Any]:
    plain = (str, int, float, list, dict)
    return [cell if isinstance(cell, plain) else str(cell) for cell in column.to_pylist()]


def _is_list(kind: Any) -> bool:
    types = _pyarrow().types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    types = _pyarrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One column per part, vectors as lists; class names in the metadata of the schema."""
    pa = need("pyarrow", for_=f"writing {suffix} files", extra="files")
    columns = {column_name(n): _column(pa, a) for n, a in arrays.items() if n != "class_names"}
    table = pa.table(columns)
    if "class_names" in arrays:
        table = table.replace_schema_metadata({"class_names": json.dumps(arrays["class_names"].tolist())})
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
