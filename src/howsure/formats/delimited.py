"""Comma- and tab-separated tables with a header line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.check import Array, InputError
from howsure.formats.contents import Contents, in_cells
from howsure.formats.names import column_name

suffixes = (".csv", ".tsv")
title = "comma- or tab-separated table"
CELLS = 1 << 18  # cells held as text at a time


def scan(path: Path, rows: int | None) -> Iterator[Contents]:
    """Runs of rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path), strict=True)
        try:
            yield from _runs(reader, path, rows)
        except csv.Error as e:
            raise InputError(f"{path.name}, line {reader.line_num}: {e}; repair the quotes or the cell.") from None
        except UnicodeDecodeError as e:
            raise InputError(f"{path.name} is not UTF-8 text (byte {e.start} of a block); save it as UTF-8.") from None


def _runs(reader: Any, path: Path, rows: int | None) -> Iterator[Contents]:
    header = _header(next(reader, []), path)
    step = max(1, min(rows or CELLS, CELLS // len(header)))
    found = False
    while True:
        records = [(reader.line_num, record) for record in islice(reader, step)]
        if not records:
            break
        kept = [(line, record) for line, record in records if record]
        if kept:
            found = True
            yield _contents(kept, header, path)
    if not found:
        raise InputError(f"{path.name} has a header but no rows; at least one sample is needed.")


def _header(names: list[str], path: Path) -> list[str]:
    if not any(names):
        raise InputError(f"{path.name} is empty; a header line and at least one row are needed.")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise InputError(f"{path.name}, line 1: column {twice!r} stands there twice; rename one.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|,"):
        need = "tabs" if path.suffix.lower() == ".tsv" else "commas"
        raise InputError(f"{path.name}, line 1: {names[0][:60]!r} is one column; separate the columns by {need}.")
    return names


def _contents(records: list[tuple[int, list[str]]], header: list[str], path: Path) -> Contents:
    for line, record in records:
        if len(record) != len(header):
            raise InputError(
                f"{path.name}, line {line}: {len(record)} cells for {len(header)} columns; "
                "add the missing cells or quote those that hold the separator."
            )
    columns = zip(*(record for _, record in records), strict=True)
    lines = np.array([line for line, _ in records], dtype=np.int64)
    return Contents(path, {n: in_cells(c) for n, c in zip(header, columns, strict=True)}, table=True, lines=lines)


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """One column per class; every number with all its digits."""
    columns: dict[str, list[Any]] = {}
    names = arrays.get("class_names")
    for name, array in arrays.items():
        if name != "class_names":
            columns.update(_columns(column_name(name), array, names))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _columns(name: str, array: Array, names: Array | None) -> dict[str, list[Any]]:
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # the digits of a float32 would be read as another float64
    if array.ndim == 1:
        return {name: array.astype(np.int64).tolist() if array.dtype == np.bool_ else array.tolist()}
    if array.ndim == 3:
        return {name: [json.dumps(row) for row in array.transpose(1, 0, 2).tolist()]}
    ends = [str(i) for i in range(array.shape[1])] if names is None else _headings(names)
    return {f"{name[:-1]}_{end}": column for end, column in zip(ends, array.T.tolist(), strict=True)}


def _headings(names: Array) -> list[str]:
    ends = [str(n) for n in names]
    if any(e.isdigit() or e != e.strip() or not e for e in ends) or len(set(ends)) < len(ends):
        raise InputError("class names that are numbers, blank or equal cannot be column headings; use another format.")
    return ends


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","
