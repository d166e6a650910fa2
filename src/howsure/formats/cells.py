"""Text cells → typed columns. A cell that does not fit is reported with its line and column."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, KeysView
from typing import Any

import numpy as np

from howsure._core.budget import Budget, json_bytes, of_file
from howsure._core.check import Array, Floats
from howsure._core.frozen import frozen
from howsure._core.text import array_of, is_count
from howsure.formats.contents import Cells, Contents, Problem, Report, as_list, as_record

TRUTH = {
    "1": 1.0,
    "0": 0.0,
    "true": 1.0,
    "false": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "1.0": 1.0,
    "0.0": 0.0,
}
DECIMAL = re.compile(
    r"\s*[+-]?\d+(?:,\d+)?(?:[eE][+-]?\d+)?\s*(?:%\s*)?", re.ASCII
)  # a number that has no point
REASONS = ("", "unparseable", "refused", "missing")


@frozen
class Column:
    """The cells of one column, with where they stand and how to report one that does not fit."""

    cells: Cells
    name: str
    contents: Contents
    report: Report

    def bad(self, row: int, need: str, fix: str = "") -> None:
        """Report the cell of a row."""
        cell = self.cells[row]
        shown = "empty" if cell is None or cell == "" else repr(cell)[:60]
        where = f"{self.contents.path.name}, {self.contents.place(row)}, column {self.name!r}"
        line = self.contents.line(row)
        self.report(
            Problem(
                where,
                f"the value is {shown}",
                fix or f"{need} is needed",
                "the other rows",
                line=line,
            )
        )


def decimal_mark(cell: str) -> str:
    """What stands before the fraction of a number; nothing where it has none, or where this is no
    number.

    >>> decimal_mark("0,5"), decimal_mark("0.5"), decimal_mark("12"), decimal_mark("[0.5, 0.5]")
    (',', '.', '', '')
    """
    if "," in cell:
        return "," if DECIMAL.fullmatch(cell) else ""
    return "." if "." in cell else ""


def with_points(cells: Cells) -> Cells:
    """Each number with a decimal comma as one with a point; everything else as it is.

    >>> with_points(("0,5", "0.5", "1,2,3", " 85,5 % "))
    ('0.5', '0.5', '1,2,3', ' 85.5 % ')
    """
    return tuple(
        cell.replace(",", ".") if "," in cell and DECIMAL.fullmatch(cell) else cell
        for cell in cells
    )


def all_with_points(cells: Cells) -> Cells:
    """The same where every cell is a number: the column may hold numbers or names.

    >>> all_with_points(("0,5", "1", "")), all_with_points(("0,5", "a"))
    (('0.5', '1', ''), ('0,5', 'a'))
    """
    return with_points(cells) if all(DECIMAL.fullmatch(cell) for cell in cells if cell) else cells


def numbers(column: Column) -> Floats:
    """Numbers; nan is not one."""
    quick = _quick(column.cells)
    if quick is not None and quick.ndim == 1:
        return quick
    return _each(column, _number, "a number")


def confidences(column: Column) -> Floats:
    """Numbers in [0, 1], or percentages with their sign, as "85%"."""
    if any(isinstance(cell, str) and "%" in cell for cell in column.cells):
        return _each(column, _share, 'a number from 0 to 1, or a percentage such as "85%",')
    return numbers(column)


def truths(column: Column) -> Floats:
    """Right or wrong: 0, 1, true, false, yes or no."""
    quick = _quick(column.cells)
    if quick is not None and quick.ndim == 1 and ((quick == 0) | (quick == 1)).all():
        return quick
    return _each(column, _truth, "0, 1, true, false, yes or no")


def reasons(column: Column) -> Array:
    """Why there is no answer: unparseable, refused, missing; empty where there is one."""
    found = ["" if cell is None else str(cell).strip().lower() for cell in column.cells]
    for row, word in enumerate(found):
        if word not in REASONS:
            column.bad(row, "unparseable, refused, missing, or nothing where there is an answer,")
    return array_of(found)


def names(column: Column) -> Array:
    """Whole numbers where all cells are, else text. "007" is text: as a number it would lose its
    zeros.
    """
    quick = _quick_whole(column.cells)
    if quick is not None:
        return quick
    for row, cell in enumerate(column.cells):
        if cell is None or cell == "" or not isinstance(cell, str | int):
            column.bad(row, "a whole number or a text")
    texts = ["" if cell is None else str(cell).strip() for cell in column.cells]
    return whole(texts) if all(map(is_whole, texts)) else array_of(texts)


def anything(column: Column) -> Array:
    """Whole numbers or numbers where all cells are (nan for missing ones), else text (empty for
    missing ones).
    """
    texts = ["" if cell is None else str(cell).strip() for cell in column.cells]
    known = [t for t in texts if t]
    if known and all(map(is_whole, known)) and len(known) == len(texts):
        return whole(texts)
    try:
        if not any(t[:1] == "0" and t[1:2].isdigit() for t in known):  # "007" is a name
            return np.array([float(t) if t else np.nan for t in texts], dtype=np.float64)
    except ValueError:
        pass
    return array_of(texts)


def whole(texts: list[str]) -> Array:
    """Texts of whole numbers as int64."""
    return np.array([int(t) for t in texts], dtype=np.int64)


def is_number(column: Column) -> bool:
    """Whether the first cell that holds something holds a number: the column is no column of lists."""
    return (
        _number(next((cell for cell in column.cells if cell is not None and cell != ""), None))
        is not None
    )


def lists(column: Column) -> tuple[Array, tuple[str, ...] | None]:
    """Lists of equal shape, one per row, or one object {class: number} per row; with the class
    names of the latter.
    """
    cells = _documents(column)
    first = as_record(cells[0])
    if first is not None:
        cells = [_by_key(cell, first.keys()) for cell in cells]
    keys = None if first is None else tuple(first)
    if all(isinstance(c, int | float) and not isinstance(c, bool) for c in cells):
        return numbers(column), None  # one number per row: P(y=1), or the logit of class 1
    quick = _quick(cells)
    if quick is not None and quick.ndim > 1 and quick.size:
        return quick, keys
    return _slow_lists(column, cells), keys


def _by_key(cell: Any, keys: KeysView[str]) -> list[Any] | None:
    """The values of an object in the order of the keys of the first one, which must be the same."""
    record = as_record(cell)
    return None if record is None or record.keys() != keys else [record[key] for key in keys]


def side_by_side(columns: list[Column]) -> Floats:
    """Columns of numbers as a matrix."""
    quick = _quick([cell for column in columns for cell in column.cells])
    if quick is not None and quick.ndim == 1:
        return np.ascontiguousarray(quick.reshape(len(columns), -1).T)
    return np.stack([numbers(column) for column in columns], axis=1)


def texts(column: Column) -> list[list[str]]:
    """Lists of texts, one list per row."""
    out: list[list[str]] = []
    for row, cell in enumerate(_documents(column)):
        items = as_list(cell)
        if not items or not all(isinstance(c, str | int | float) for c in items):
            column.bad(row, "a list of at least one text")
            items = [""]
        out.append([str(c) for c in items])
    return out


def narrow(a: Floats, *, half: bool) -> Array:
    """The same numbers in half the bytes where none changes: a text file of float32 numbers is read
    as float32.
    """
    for dtype in (np.float16, np.float32) if half else (np.float32,):
        with np.errstate(over="ignore"):
            small = a.astype(dtype)
        if np.array_equal(small, a):
            return small
    return a


def _quick(cells: Cells) -> Floats | None:
    """All cells at once, or None if one of them may not be a number."""
    try:
        a = np.array(cells, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if np.isnan(a).any() or _underscored(cells) else a


def _underscored(cells: Cells) -> bool:
    if not isinstance(cells[0], str):
        return False
    try:
        return "_" in "".join(cells)
    except TypeError:  # not all of them are texts
        return any("_" in c for c in cells if isinstance(c, str))


def _quick_whole(cells: Cells) -> Array | None:
    """All cells at once as whole numbers, or None if one of them may not be one."""
    kinds = set(map(type, cells))
    if kinds not in ({str}, {int}):
        return None
    try:
        a = np.array(cells, dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return a if kinds == {int} or a.astype(np.str_).tolist() == list(cells) else None


def _each(column: Column, parse: Callable[[Any], float | None], need: str) -> Floats:
    out = np.full(len(column.cells), np.nan)
    for row, cell in enumerate(column.cells):
        value = parse(cell)
        if value is None:
            column.bad(row, need)
        else:
            out[row] = value
    return out


def _number(cell: Any) -> float | None:
    if isinstance(cell, str) and "_" in cell:  # float("1_000") is 1000 to Python and to nobody else
        return None
    try:
        value = float(cell)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if value != value else value


def _share(cell: Any) -> float | None:
    if isinstance(cell, str) and cell.strip().endswith("%"):
        digits = cell.strip()[:-1].strip()
        value = _number(f"{digits}e-2")  # 99.9 / 100 is not 0.999
        return value if "e" not in digits.lower() else None
    return _number(cell)


def _truth(cell: Any) -> float | None:
    return TRUTH.get(str(cell).strip().lower())


def is_whole(t: str) -> bool:
    """Whether a text is a whole number as one would write it."""
    digits = t.removeprefix("-")
    return is_count(digits) and (digits[0] != "0" or t == "0")


def _documents(column: Column) -> list[Any]:
    """What the cells hold as JSON. A packed file may hold far more of it than its size lets one
    think.
    """
    path = column.contents.path
    if (budget := of_file(path)) is not None:
        size = sum(json_bytes(cell) for cell in column.cells if isinstance(cell, str))
        budget.spend(size, f"{path.name}, column {column.name[:60]!r}")
    return [_parsed(cell) for cell in column.cells]


def _parsed(cell: Any) -> Any:
    """The list that a cell of a delimited file holds as JSON."""
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


def _slow_lists(column: Column, cells: list[Any]) -> Array:
    """Find the rows that do not fit; the shape is that of the first row that is a list of numbers."""
    rows = [
        None if c is None or isinstance(c, int | float) else _quick(c) if len(c) else None
        for c in cells
    ]
    known = next((r.shape for r in rows if r is not None), None)
    shape = known or (1,)
    like = "" if known is None else f" of {' × '.join(map(str, shape))}"
    there = sum(row.nbytes for row in rows if row is not None)
    for row, a in enumerate(rows):
        if a is None or a.shape != shape:
            column.bad(
                row, f"a list{like} numbers, as in the other rows," if like else "a list of numbers"
            )
    Budget(f"{column.contents.path.name}, column {column.name[:60]!r}", there).spend(
        len(rows) * math.prod(shape) * 8
    )
    out = np.full((len(rows), *shape), np.nan)
    for row, a in enumerate(rows):
        if a is not None and a.shape == shape:
            out[row] = a
    return out
