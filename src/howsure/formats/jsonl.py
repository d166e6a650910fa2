"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from howsure._core.check import Array, InputError
from howsure.formats.contents import Contents, in_cells
from howsure.formats.names import column_name

suffixes = (".jsonl", ".ndjson")
title = "JSON lines"
ROWS = 1 << 13  # objects held at a time


def scan(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    with path.open("rb") as file:
        yield from from_lines(file, path, rows)


def from_lines(lines: Iterable[bytes | str], path: Path, rows: int | None = None) -> Iterator[Contents]:
    """Runs of rows from any source of lines; `path` names it in messages."""
    numbered = ((i, line) for i, line in enumerate(lines, start=1) if line.strip())
    step = min(rows or ROWS, ROWS)
    found = False
    while records := [(i, _record(line, i, path)) for i, line in islice(numbered, step)]:
        found = True
        yield _contents(records, path)
    if not found:
        raise InputError(f"{path.name} is empty; at least one JSON object on a line is needed.")


def _record(line: bytes | str, number: int, path: Path) -> dict[str, Any]:
    where = f"{path.name}, line {number}"
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8") if isinstance(line, bytes) else line
        record = json.loads(text, parse_constant=_not_a_number)
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text; save the file as UTF-8.") from None
    except json.JSONDecodeError as e:
        raise InputError(
            f"{where} is not JSON ({e.msg} at character {e.pos}); one object per line is needed."
        ) from None
    except (ValueError, RecursionError) as e:
        reason = str(e).splitlines()[0] if isinstance(e, ValueError) else "nested too deeply"
        raise InputError(f"{where} cannot be read: {reason}; repair the value.") from None
    if not isinstance(record, dict):
        raise InputError(f'{where} is a {type(record).__name__}, not an object; write {{"confidence": 0.9, …}}.')
    return record


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _contents(records: list[tuple[int, dict[str, Any]]], path: Path) -> Contents:
    names = dict.fromkeys(name for _, record in records for name in record)
    columns = {name: [record.get(name) for _, record in records] for name in names}
    lines = np.array([i for i, _ in records], dtype=np.int64)
    return Contents(path, {n: in_cells(c) for n, c in columns.items()}, table=True, lines=lines)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - one layout for all suffixes
    """One object per sample, its vector as a list, or as an object by class where the classes have names."""
    columns = {column_name(n): _column(a, arrays.get("class_names")) for n, a in arrays.items() if n != "class_names"}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for values in zip(*columns.values(), strict=True):
            file.write(json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False) + "\n")


def _column(array: Array, names: Array | None) -> list[Any]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 3:
        array = array.transpose(1, 0, 2)
    rows = array.tolist()
    if array.ndim == 2 and names is not None and len(set(names)) == len(names):
        return [dict(zip(map(str, names), row, strict=True)) for row in rows]
    return rows
