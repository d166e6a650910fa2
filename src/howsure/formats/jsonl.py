"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from howsure._core.budget import Budget, json_bytes, of_file
from howsure._core.check import Array, InputError
from howsure._core.text import json_safe
from howsure.formats.contents import Contents, Entry, as_record
from howsure.formats.lines import BadLine, Numbered, decoded, is_packed, parsed, written
from howsure.formats.names import column_name

suffixes = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
title = "JSON lines"
ROWS = 1 << 13  # objects held at a time
Record: TypeAlias = dict[str, Any]


def read(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    return parsed(path, rows, Objects(path))


def _budget(path: Path) -> Budget | None:
    """What the lines of a packed file may become; others are as long as they are."""
    return of_file(path) if is_packed(path) else None


class Objects:
    """A parser of lines; `apart` tells which keys may not stand in one run with which others."""

    rows = ROWS
    columns = None  # every line names its own

    def __init__(self, path: Path, apart: Callable[[tuple[str, ...]], Hashable] | None = None):
        self.path, self.apart, self.budget = path, apart, _budget(path)

    def take(self, lines: Sequence[Numbered]) -> Iterator[Contents | BadLine]:
        """Runs of objects, and the lines that hold none."""
        good, held = list[tuple[int, Record]](), 0
        for line in lines:
            if not line[1].strip():
                continue
            try:
                text = decoded(line, self.path.name).strip()
                held += self._size(text, held)
                good.append((line[0], _record(text, f"{self.path.name}, line {line[0]}")))
            except InputError as e:
                yield from self._runs(good, held)
                good, held = [], 0
                yield BadLine(line[0], e)
        yield from self._runs(good, held)

    def _size(self, text: str, held: int) -> int:
        """What one more line of a packed file becomes; raises where it would be too much beside
        those that are held.
        """
        if self.budget is None:
            return 0
        size = json_bytes(text)
        self.budget.pass_by(held + size)
        return size

    def close(self) -> Iterator[Contents | BadLine]:
        """Nothing is kept."""
        return iter(())

    def nothing(self) -> InputError:
        """What to say where there was no row."""
        return InputError(
            self.path.name, got="is empty", need="at least one JSON object on a line is needed"
        )

    def _runs(self, rows: list[tuple[int, Record]], size: int) -> Iterator[Contents]:
        if not rows:
            return
        apart = self.apart
        if apart is None or len({tuple(record) for _, record in rows}) == 1:
            yield _contents(rows, self.path, size)
            return
        for _, run in groupby(rows, key=lambda row: apart(tuple(row[1]))):
            yield _contents(list(run), self.path, size)


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


DECODE = json.JSONDecoder(parse_constant=_not_a_number).decode


def _record(text: str, where: str) -> Record:
    try:
        value = DECODE(text)
    except (ValueError, RecursionError) as e:
        raise _refusal(e, where) from None
    record = as_record(value)
    if record is None:
        need = 'write {"confidence": 0.9, …}'
        raise InputError(where, got=f"is a {type(value).__name__}, not an object", hint=need)
    return record


def _refusal(error: ValueError | RecursionError, where: str) -> InputError:
    if isinstance(error, json.JSONDecodeError):
        got = f"is not JSON ({error.msg} at character {error.pos})"
        return InputError(where, got=got, need="one object per line is needed")
    why = str(error).splitlines()[0] if isinstance(error, ValueError) else "nested too deeply"
    return InputError(where, got=f"cannot be read: {why}", hint="repair the value")


def _contents(rows: list[tuple[int, Record]], path: Path, size: int) -> Contents:
    records = [record for _, record in rows]
    names = dict.fromkeys(name for keys in dict.fromkeys(map(tuple, records)) for name in keys)
    lines = np.array([number for number, _ in rows], dtype=np.int64)
    return Contents(
        path, {name: _entry(records, name) for name in names}, table=True, lines=lines, size=size
    )


def _entry(records: list[Record], name: str) -> Entry:
    """A column that is gathered when it is asked for: a file may have as many names as lines."""
    return Entry((len(records),), "text", lambda: [record.get(name) for record in records])


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One object per sample, its vector as a list, or as an object by class where the classes have
    names.
    """
    columns = {
        column_name(n): _column(a, arrays.get("class_names"))
        for n, a in arrays.items()
        if n != "class_names"
    }
    with written(path, suffix) as file:
        for values in zip(*columns.values(), strict=True):
            file.write(
                json_safe(json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False))
                + "\n"
            )


def _column(array: Array, names: Array | None) -> list[Any]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 3:
        array = array.transpose(1, 0, 2)
    rows: list[Any] = array.tolist()
    if array.ndim == 2 and names is not None and len(set(names)) == len(names):
        return [dict(zip(map(str, names), row, strict=True)) for row in rows]
    return rows
