"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from howsure._core.budget import Budget, estimate_json_bytes, open_budget
from howsure._core.check import Array, InputError
from howsure._core.text import escape_json
from howsure.formats.column_names import name_column
from howsure.formats.contents import Contents, FileEntry, as_record
from howsure.formats.text_lines import (
    BadLine,
    NumberedLine,
    decode_line,
    is_packed,
    open_text_to_write,
    read_rows,
)

OBJECTS_AT_A_TIME = 1 << 13
JsonObject: TypeAlias = dict[str, Any]


def read(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    return read_rows(path, rows, JsonLinesParser(path))


class JsonLinesParser:
    """A parser of lines. `group_keys` tells which keys may not stand in one run with which others."""

    rows = OBJECTS_AT_A_TIME
    columns = None  # every line names its own

    def __init__(self, path: Path, group_keys: Callable[[tuple[str, ...]], Hashable] | None = None):
        self.path = path
        self.group_keys = group_keys
        # Packed lines may become far more than the file; others are as long as they are.
        self.budget: Budget | None = open_budget(path) if is_packed(path) else None

    def take_lines(self, lines: Sequence[NumberedLine]) -> Iterator[Contents | BadLine]:
        """Runs of objects, and the lines that hold none."""
        rows: list[tuple[int, JsonObject]] = []
        size = 0  # about the bytes of these rows, where the file is packed
        for line in lines:
            number, raw = line
            if not raw.strip():
                continue
            try:
                text = decode_line(line, self.path.name).strip()
                if self.budget is not None:
                    size += estimate_json_bytes(text)
                    self.budget.pass_by(size)
                rows.append((number, _parse_object(text, f"{self.path.name}, line {number}")))
            except InputError as e:
                yield from self._build_runs(rows, size)
                rows, size = [], 0
                yield BadLine(number=number, error=e)
        yield from self._build_runs(rows, size)

    def close(self) -> Iterator[Contents | BadLine]:
        """Nothing is kept."""
        return iter(())

    def make_empty_error(self) -> InputError:
        """What to say where there was no row."""
        need = "at least one JSON object on a line is needed"
        return InputError(self.path.name, got="is empty", need=need)

    def _build_runs(self, rows: list[tuple[int, JsonObject]], size: int) -> Iterator[Contents]:
        if not rows:
            return
        group_keys = self.group_keys
        if group_keys is None or len({tuple(record) for _, record in rows}) == 1:
            yield _build_contents(rows, self.path, size)
            return
        for _, run in groupby(rows, key=lambda row: group_keys(tuple(row[1]))):
            yield _build_contents(list(run), self.path, size)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # NaN and Infinity are no JSON


def _parse_object(text: str, where: str) -> JsonObject:
    try:
        value = DECODER.decode(text)
    except json.JSONDecodeError as e:
        got = f"is not JSON ({e.msg} at character {e.pos})"
        raise InputError(where, got=got, need="one object per line is needed") from None
    except (ValueError, RecursionError) as e:
        why = "nested too deeply"
        if isinstance(e, ValueError):
            why = str(e).splitlines()[0]
        raise InputError(where, got=f"cannot be read: {why}", hint="repair the value") from None
    record = as_record(value)
    if record is None:
        hint = 'write {"confidence": 0.9, …}'
        raise InputError(where, got=f"is a {type(value).__name__}, not an object", hint=hint)
    return record


def _build_contents(rows: list[tuple[int, JsonObject]], path: Path, size: int) -> Contents:
    records = [record for _, record in rows]
    # Most rows have the same keys, so each set of keys is looked at once; a dictionary keeps order.
    names: dict[str, None] = {}
    for keys in dict.fromkeys(map(tuple, records)):
        names |= dict.fromkeys(keys)
    return Contents(
        path=path,
        entries={name: _make_entry(records, name) for name in names},
        table=True,
        lines=np.array([number for number, _ in rows], dtype=np.int64),
        size=size,
    )


def _make_entry(records: list[JsonObject], name: str) -> FileEntry:
    """A column that is gathered when it is asked for: a file may have as many names as lines."""

    def load() -> list[Any]:
        return [record.get(name) for record in records]

    return FileEntry(shape=(len(records),), dtype="text", load=load)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One object per sample, its vector as a list, or as an object by class where the classes have
    names.
    """
    columns: dict[str, list[Any]] = {}
    for part, array in arrays.items():
        if part != "class_names":
            columns[name_column(part)] = _list_rows(array, arrays.get("class_names"))
    with open_text_to_write(path, suffix) as file:
        for values in zip(*columns.values(), strict=True):
            record = dict(zip(columns, values, strict=True))
            file.write(escape_json(json.dumps(record, ensure_ascii=False)))
            file.write("\n")


def _list_rows(array: Array, names: Array | None) -> list[Any]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 3:
        array = array.transpose(1, 0, 2)
    rows: list[Any] = array.tolist()
    if array.ndim == 2 and names is not None and len(set(names)) == len(names):
        classes = [str(name) for name in names]
        return [dict(zip(classes, row, strict=True)) for row in rows]
    return rows
