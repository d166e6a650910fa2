"""Parquet and Arrow (Feather) tables, read by record batches."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from howsure._core.checks import Array, InputError, need
from howsure._core.file_access import Budget
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure._core.text import FIXED_WIDTH_LETTERS
from howsure.formats.column_names import name_column
from howsure.formats.contents import (
    SAVE_AGAIN,
    Cells,
    Contents,
    Damaged,
    FileEntry,
    Remote,
    as_list,
    describe_error,
)
from howsure.formats.unpacked_sizes import (
    ARROW_MAGIC,
    VALUE_BYTES,
    RowGroup,
    measure_pages,
    read_layout,
    read_row_groups,
)

PARQUET_SUFFIXES = (".parquet", ".pq")
BATCH_ROWS = 1 << 16
TEXT_KINDS = ("STRING", "JSON", "NONE")  # logical types of bytes in Parquet that are text
# The same of Arrow; polars writes its categories as views.
TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}


def read(path: Path, rows: int | None, piece: int | None = None) -> Iterator[Contents]:
    """Record batches of at most `rows` rows, of the whole file or of one row group or stored batch."""
    _import_pyarrow()
    budget = Budget(path.name, path.stat().st_size)
    step = rows or BATCH_ROWS
    batches = _read_batches(path, step, piece, budget, held=rows is None)
    first_row = 0
    while True:
        with _refuse_damaged(path):
            batch = next(batches, None)
            if batch is None:
                break
            batch.validate(full=True)  # offsets of a damaged file could point anywhere
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield _build_contents(part, path, first_row, budget)
            first_row += part.num_rows
    if not first_row and piece is None:
        raise InputError(path.name, got="has no rows", need="at least one sample is needed")


def _import_pyarrow() -> Any:
    return need("pyarrow", for_="a Parquet or Arrow file", extra="files")


@contextmanager
def _refuse_damaged(path: Path) -> Generator[None, None, None]:
    """Turn what the decoder finds wrong into one sentence: its own errors, and those that its
    bindings raise about sizes, texts and files.
    """
    arrow_errors = _import_pyarrow().lib.ArrowException
    try:
        yield
    except InputError:
        raise
    except (arrow_errors, ValueError, OSError, OverflowError, MemoryError) as e:
        got = f"is not a readable table ({describe_error(e)})"
        raise Damaged(path.name, got=got, hint=SAVE_AGAIN) from None


# The pieces of a file


@frozen
class TableOutline:
    """What a file says of itself: its columns without rows, and the rows of each piece that can be
    read alone.

    A piece is a row group of Parquet or a batch of an Arrow file; None where the layout has to be
    read in one go.
    """

    contents: Contents
    pieces: tuple[int, ...] | None


def read_outline(path: Path) -> TableOutline:
    """Columns and pieces, from the footer alone."""
    pa = _import_pyarrow()
    budget = Budget(path.name, path.stat().st_size)
    with _refuse_damaged(path), path.open("rb") as file:
        if path.suffix.lower() in PARQUET_SUFFIXES:
            parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
            with parquet.ParquetFile(file, pre_buffer=False) as table:
                groups = _load_row_groups(table, file, path)
                schema = table.schema_arrow
            size = 0
            for group in groups:
                try:
                    size += _measure_group(group, path)
                except ValueError:
                    # A damaged row group is refused where it is read, not with its whole file.
                    size += group.bytes
            budget.spend(size, held=False)
            pieces = tuple(group.rows for group in groups)
        else:
            layout = read_layout(file)
            budget.spend(layout.bytes, held=False)
            if _is_stream(file):
                schema, pieces = pa.ipc.open_stream(file).schema, None
            else:
                schema = pa.ipc.open_file(file).schema
                pieces = tuple(batch.rows for batch in layout.batches)
        columns = [pa.nulls(0, field.type) for field in schema]  # pa.array() would import pandas
        empty = pa.RecordBatch.from_arrays(columns, schema=schema)
    return TableOutline(contents=_build_contents(empty, path, 0, budget), pieces=pieces)


def _is_stream(file: Any) -> bool:
    """Whether this is the streaming layout, not that of a file; a stream is left at its start."""
    file.seek(0)
    if file.read(len(ARROW_MAGIC)) == ARROW_MAGIC:
        return False
    file.seek(0)
    return True


class FileState(NamedTuple):
    """A file as it is now: headers that were read of it once need not be read again for each of its
    row groups.
    """

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of a file of this machine."""
        stat = path.stat()
        return cls(path=path, size=stat.st_size, modified=stat.st_mtime_ns)


@lru_cache(maxsize=16)
def _load_local_groups(state: FileState) -> tuple[RowGroup, ...]:
    with state.path.open("rb") as file:
        return read_row_groups(file)


@lru_cache(maxsize=1 << 12)
def _measure_local_pages(state: FileState, group: RowGroup) -> int:
    with state.path.open("rb") as file:
        return sum(measure_pages(file, chunk) for chunk in group.chunks)


def _is_remote(path: Path) -> bool:
    return isinstance(cast("object", path), Remote)


def _load_row_groups(table: Any, file: Any, path: Path) -> tuple[RowGroup, ...]:
    at = file.tell()
    groups = read_row_groups(file) if _is_remote(path) else _load_local_groups(FileState.of(path))
    file.seek(at)
    if len(groups) != table.metadata.num_row_groups:
        raise ValueError("its footer can be read in two ways")
    return groups


def _measure_group(group: RowGroup, path: Path) -> int:
    """What a row group of Parquet unpacks to: by its footer, and where the file is at hand by its
    pages too.
    """
    if _is_remote(path):
        return group.bytes
    return max(group.bytes, _measure_local_pages(FileState.of(path), group))


def _read_batches(
    path: Path, rows: int, piece: int | None, budget: Budget, *, held: bool
) -> Iterator[Any]:
    """Record batches: of Parquet of at most `rows` rows, of Arrow as they are stored."""
    if path.suffix.lower() not in PARQUET_SUFFIXES:
        pa = _import_pyarrow()
        with path.open("rb") as file:
            layout = read_layout(file)
            stored = range(len(layout.batches)) if piece is None else [piece]
            size = sum(dictionary.bytes for dictionary in layout.dictionaries)
            size += sum(layout.batches[i].bytes for i in stored)
            budget.spend(size, held=held)
            if _is_stream(file):
                yield from pa.ipc.open_stream(file)
                return
            table = pa.ipc.open_file(file)  # the file layout, which Feather shares
            for i in stored:
                yield table.get_batch(i)
        return
    parquet = need("pyarrow.parquet", for_=f"reading {path.name}", extra="files")
    # pre_buffer would keep every row group that was read.
    with path.open("rb") as file, parquet.ParquetFile(file, pre_buffer=False) as table:
        groups = _load_row_groups(table, file, path)
        wanted = list(range(len(groups))) if piece is None else [piece]
        budget.spend(sum(_measure_group(groups[i], path) for i in wanted), held=held)
        texts: list[str] = []
        for i in range(table.metadata.num_columns):
            column = table.metadata.schema.column(i)
            if column.physical_type == "BYTE_ARRAY" and column.logical_type.type in TEXT_KINDS:
                texts.append(column.path)
        if not texts:
            yield from table.iter_batches(batch_size=rows, row_groups=wanted, use_threads=False)
            return
    # As a dictionary a text that stands in many rows is held once.
    with (
        path.open("rb") as file,
        parquet.ParquetFile(file, pre_buffer=False, read_dictionary=texts) as table,
    ):
        yield from table.iter_batches(batch_size=rows, row_groups=wanted, use_threads=False)


# A record batch → columns


def _build_contents(batch: Any, path: Path, first_row: int, budget: Budget) -> Contents:
    with _refuse_damaged(path):
        names = batch.schema.names
    if len(set(names)) < len(names):
        raise InputError(path.name, got="has two columns of the same name", hint="rename one")
    entries: dict[str, FileEntry] = {}
    for i, name in enumerate(names):
        column = _TableColumn(
            values=batch.column(i),
            where=f"{path.name}, column {name[:60]!r}",
            path=path,
            first_row=first_row,
            budget=budget,
        )
        entries[name] = FileEntry(
            shape=(len(column.values),), dtype=str(column.values.type), load=column.load
        )
    class_names: tuple[str, ...] | None = None
    metadata: dict[bytes, bytes] = batch.schema.metadata or {}
    try:
        listed = as_list(json.loads(metadata[b"class_names"]))
    except (KeyError, ValueError, RecursionError):
        listed = None
    if listed is not None:
        class_names = tuple(map(str, listed))
    return Contents(path=path, entries=entries, table=True, class_names=class_names)


@frozen
class _TableColumn:
    """A column of a record batch that begins with row `first_row` of the file."""

    values: Any
    where: str
    path: Path
    first_row: int
    budget: Budget

    def load(self) -> Array | Cells:
        """Numbers and lists of numbers as an array; everything else as cells, like those of a text
        table.
        """
        with _refuse_damaged(self.path):
            return self._convert(self.values)

    def _convert(self, column: Any) -> Array | Cells:
        self._check_full(column)
        types = _import_pyarrow().types
        # A text that many rows refer to stays one; everything else is put into its rows.
        kind = column.type
        if types.is_dictionary(kind) and str(kind.value_type) not in TEXT_TYPES:
            self.budget.spend(_measure_decoded(column), self.where)
            column = column.dictionary_decode()
        if _is_list(column.type):
            inner = column.flatten()
            if _is_list(inner.type) or _is_number(inner.type):
                return self._convert_lists(column, inner)
        if _is_number(column.type):
            # `column.to_numpy()` gives the same and imports pandas where it is installed, and
            # older releases of pyarrow need pandas to name the dtype.
            first = column.offset
            values = column.buffers()[1]
            if types.is_boolean(column.type):
                raw = np.frombuffer(values or b"", np.uint8)
                bits = np.unpackbits(raw, count=first + len(column), bitorder="little")
                return bits[first:].view(np.bool_)
            sign = "i"
            if types.is_floating(column.type):
                sign = "f"
            elif types.is_unsigned_integer(column.type):
                sign = "u"
            dtype = np.dtype(f"{sign}{column.type.bit_width // 8}")
            if values is None:
                return np.empty(0, dtype)
            return np.frombuffer(values, dtype, count=len(column), offset=first * dtype.itemsize)
        cells: list[Any] = []
        for cell in self._list_cells(column):
            plain = isinstance(cell, (str, int, float, list, dict))
            cells.append(cell if plain else str(cell))
        return cells

    def _check_full(self, column: Any, width: int = 1) -> None:
        """Refuse empty values; `width` of them belong to a row."""
        if column.null_count:
            empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            raise InputError(
                self.where,
                got=f"has {column.null_count:,} empty values",
                first=self.first_row + int(empty[0]) // width,
                hint="fill or remove these rows",
            )

    def _convert_lists(self, column: Any, inner: Any) -> Array:
        """Lists of equal length as the rows of an array."""
        if hasattr(column, "offsets"):
            lengths = np.diff(column.offsets.to_numpy())
            width = int(lengths[0])
            uneven = np.flatnonzero(lengths != width)
            if len(uneven):
                row = int(uneven[0])
                what = f"{lengths[row]} numbers, {width} in row {self.first_row}"
                where = f"{self.where}, row {self.first_row + row}"
                raise InputError(what, where=where, need="lists must be equal")
        else:
            width = column.type.list_size
        self._check_full(inner, max(1, width))
        values = self._convert(inner)
        if not isinstance(values, np.ndarray) or not width:
            got = "has lists without numbers"
            raise InputError(self.where, got=got, need="one number per class is needed")
        return values.reshape(len(column), width, *values.shape[1:])

    def _list_cells(self, column: Any) -> list[Any]:
        """Python values; a text that many rows refer to is one object."""
        types = _import_pyarrow().types
        kind = column.type
        if types.is_dictionary(kind):
            return self._list_dictionary_cells(column)
        if _is_list(kind):
            values = self._list_cells(column.flatten())
            cells: list[Any] = []
            start = 0
            for length in _import_compute("lists").list_value_length(column).to_pylist():
                cells.append(None if length is None else values[start : start + length])
                start += length or 0
            return cells
        if types.is_struct(kind):
            parts: dict[str, list[Any]] = {}
            for field, part in zip(kind, column.flatten(), strict=True):
                parts[field.name] = self._list_cells(part)
            cells = []
            for i, valid in enumerate(column.is_valid().to_pylist()):
                record = {name: part[i] for name, part in parts.items()}
                cells.append(record if valid else None)
            return cells
        if types.is_nested(kind) or types.is_run_end_encoded(kind):
            got = f"has type {str(kind)[:60]}"
            raise InputError(self.where, got=got, need="numbers, text or lists of them are needed")
        if str(kind).endswith("_view"):
            # Many rows may look at the same text; a view of 16 bytes begins with its length.
            views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
            lengths = views[column.offset : column.offset + len(column), 0].astype(np.int64)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            self.budget.spend(int(lengths[valid].sum()), self.where)
        return column.to_pylist()

    def _list_dictionary_cells(self, column: Any) -> list[Any]:
        words = self._list_cells(column.dictionary)
        rows = column.indices.to_pylist()
        long: dict[int, int] = {}
        for i, word in enumerate(words):
            if isinstance(word, str) and len(word) > FIXED_WIDTH_LETTERS:
                long[i] = len(word)
        # Each row works on its text, though all of them hold the same one.
        if long:
            self.budget.spend(sum(long.get(i, 0) for i in rows), self.where, held=False)
        return [None if i is None else words[i] for i in rows]


def _import_compute(purpose: str) -> Any:
    return need("pyarrow.compute", for_=purpose, extra="files")


def _measure_decoded(column: Any) -> int:
    """What a column of references unpacks to, each row counted with what it refers to."""
    words = column.dictionary
    sizes = np.full(len(words), VALUE_BYTES, dtype=np.int64)
    if _is_list(words.type):
        lengths = _import_compute("a dictionary of lists").list_value_length(words)
        known = np.nan_to_num(lengths.to_numpy(zero_copy_only=False))
        sizes = VALUE_BYTES * known.astype(np.int64)
    indices = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    used = count_values(indices, minlength=len(words))
    deeper = max(1, words.nbytes // max(1, int(sizes.sum())))  # lists of lists
    return int((used * sizes).sum()) * deeper


def _is_list(kind: Any) -> bool:
    types = _import_pyarrow().types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    types = _import_pyarrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One column per part, vectors as lists; class names in the metadata of the schema."""
    pa = need("pyarrow", for_=f"writing {suffix} files", extra="files")
    columns: dict[str, Any] = {}
    for part, array in arrays.items():
        if part == "class_names":
            continue
        by_row = array.swapaxes(0, 1) if array.ndim == 3 else array  # samples stand in their row
        column = pa.array(np.ascontiguousarray(by_row).reshape(-1))
        for width in by_row.shape[:0:-1]:
            column = pa.FixedSizeListArray.from_arrays(column, width)
        columns[name_column(part)] = column
    table = pa.table(columns)
    if "class_names" in arrays:
        names = json.dumps(arrays["class_names"].tolist())
        table = table.replace_schema_metadata({"class_names": names})
    if suffix in PARQUET_SUFFIXES:
        parquet = need("pyarrow.parquet", for_="writing Parquet", extra="files")
        parquet.write_table(table, path)
    else:
        feather = need("pyarrow.feather", for_="writing Arrow", extra="files")
        feather.write_feather(table, str(path), compression="uncompressed")
