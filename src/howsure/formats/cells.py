"""Text cells → typed columns. A cell that does not fit is reported with its line and column.

Every parser first tries all cells at once with NumPy, which takes the same texts as Python for
numbers, and looks at single cells only where that fails.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from howsure._core.checks import Array, Floats
from howsure._core.file_access import Budget, estimate_json_bytes, open_budget
from howsure._core.frozen import frozen
from howsure._core.text import is_count, make_text_array
from howsure.formats.contents import Cells, Contents, FileProblem, Report, as_list, as_record

TRUTH_WORDS = {
    "1": 1.0,
    "0": 0.0,
    "true": 1.0,
    "false": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "1.0": 1.0,
    "0.0": 0.0,
    "t": 1.0,
    "f": 0.0,
    "y": 1.0,
    "n": 0.0,
    "right": 1.0,
    "wrong": 0.0,
    "correct": 1.0,
    "incorrect": 0.0,
}
# A number without a point, perhaps with a decimal comma or a percent sign.
NUMBER_WITHOUT_POINT = re.compile(r"\s*[+-]?\d+(?:,\d+)?(?:[eE][+-]?\d+)?\s*(?:%\s*)?", re.ASCII)
FRACTION = re.compile(r"\.(\d+)")
PRINTED_NUMBER = re.compile(r"np\.(?:float|int)\d+\(([^()]*)\)")  # of a list of NumPy's numbers
DOUBLE_DIGITS = 15  # so many digits are not rounded
NO_ANSWER_WORDS = ("", "unparseable", "refused", "missing")


@frozen
class TextColumn:
    """The cells of one column, with where they stand and how to report one that does not fit."""

    cells: Cells
    name: str
    contents: Contents
    report: Report

    def report_cell(self, row: int, need: str) -> None:
        """Report the cell of a row."""
        cell = self.cells[row]
        shown = "empty" if cell is None or cell == "" else repr(cell)[:60]
        place = self.contents.describe_place(row)
        problem = FileProblem(
            where=f"{self.contents.path.name}, {place}, column {self.name!r}",
            what=f"the value is {shown}",
            fix=f"{need} is needed",
            anyway="the other rows",
            line=self.contents.get_line(row),
        )
        self.report(problem)


def find_decimal_mark(cell: str) -> str:
    """What stands before the fraction of a number; nothing where it has none, or where this is no
    number.

    >>> [find_decimal_mark(cell) for cell in ("0,5", "0.5", "12", "[0.5, 0.5]")]
    [',', '.', '', '']
    """
    if "," in cell:
        return "," if NUMBER_WITHOUT_POINT.fullmatch(cell) else ""
    return "." if "." in cell else ""


def replace_commas(cells: Cells) -> Cells:
    """Each number with a decimal comma as one with a point; everything else as it is.

    >>> replace_commas(("0,5", "0.5", "1,2,3", " 85,5 % "))
    ('0.5', '0.5', '1,2,3', ' 85.5 % ')
    """
    out: list[Any] = []
    for cell in cells:
        if "," in cell and NUMBER_WITHOUT_POINT.fullmatch(cell):
            cell = cell.replace(",", ".")
        out.append(cell)
    return tuple(out)


def replace_commas_of_numbers(cells: Cells) -> Cells:
    """The same where every cell is a number: the column may hold numbers or names.

    >>> replace_commas_of_numbers(("0,5", "1", "")), replace_commas_of_numbers(("0,5", "a"))
    (('0.5', '1', ''), ('0,5', 'a'))
    """
    if all(NUMBER_WITHOUT_POINT.fullmatch(cell) for cell in cells if cell):
        return replace_commas(cells)
    return cells


def parse_numbers(column: TextColumn) -> Floats:
    """Numbers; nan is not one."""
    quick = _parse_at_once(column.cells)
    if quick is not None and quick.ndim == 1:
        return quick
    return _parse_each(column, _parse_number, "a number")


def parse_confidences(column: TextColumn) -> Floats:
    """Numbers in [0, 1], or percentages with their sign, as "85%"."""
    if not any(isinstance(cell, str) and "%" in cell for cell in column.cells):
        return parse_numbers(column)

    def parse_share(cell: Any) -> float | None:
        if not isinstance(cell, str) or not cell.strip().endswith("%"):
            return _parse_number(cell)
        digits = cell.strip()[:-1].strip()
        if "e" in digits.lower():
            return None
        return _parse_number(f"{digits}e-2")  # 99.9 / 100 is not 0.999

    need = 'a number from 0 to 1, or a percentage such as "85%",'
    return _parse_each(column, parse_share, need)


def parse_truths(column: TextColumn) -> Floats:
    """Right or wrong: 0, 1, true, false, yes or no."""
    quick = _parse_at_once(column.cells)
    if quick is not None and quick.ndim == 1 and ((quick == 0) | (quick == 1)).all():
        return quick

    def parse_truth(cell: Any) -> float | None:
        return TRUTH_WORDS.get(str(cell).strip().lower())

    return _parse_each(column, parse_truth, "0, 1, true, false, yes or no")


def parse_reasons(column: TextColumn) -> Array:
    """Why there is no answer: unparseable, refused, missing; empty where there is one."""
    words = [word.lower() for word in _strip_cells(column.cells)]
    need = "unparseable, refused, missing, or nothing where there is an answer,"
    for row, word in enumerate(words):
        if word not in NO_ANSWER_WORDS:
            column.report_cell(row, need)
    return make_text_array(words)


def parse_names(column: TextColumn) -> Array:
    """Whole numbers where all cells are, else text. "007" is text: as a number it would lose its
    zeros.
    """
    kinds = set(map(type, column.cells))
    if kinds in ({str}, {int}):
        try:
            quick = np.array(column.cells, dtype=np.int64)
        except (ValueError, OverflowError):
            quick = None
        # Texts such as "007" or "1 " do not come back as they were.
        if quick is not None and (
            kinds == {int} or quick.astype(np.str_).tolist() == list(column.cells)
        ):
            return quick
    for row, cell in enumerate(column.cells):
        if cell is None or cell == "" or not isinstance(cell, str | int):
            column.report_cell(row, "a whole number or a text")
    texts = _strip_cells(column.cells)
    return _parse_whole(texts) if all(map(is_whole, texts)) else make_text_array(texts)


def parse_attribute(column: TextColumn) -> Array:
    """Whole numbers or numbers where all cells are (nan for missing ones), else text (empty for
    missing ones).
    """
    texts = _strip_cells(column.cells)
    known = [text for text in texts if text]
    if known and len(known) == len(texts) and all(map(is_whole, known)):
        return _parse_whole(texts)
    # "007" is a name.
    if any(text[:1] == "0" and text[1:2].isdigit() for text in known):
        return make_text_array(texts)
    try:
        return np.array([float(text or "nan") for text in texts], dtype=np.float64)
    except ValueError:
        return make_text_array(texts)


def _strip_cells(cells: Cells) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in cells]


def _parse_whole(texts: list[str]) -> Array:
    return np.array(list(map(int, texts)), dtype=np.int64)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as one would write it."""
    digits = text.removeprefix("-")
    return is_count(digits) and (digits[0] != "0" or text == "0")


def is_number_column(column: TextColumn) -> bool:
    """Whether the first cell that holds something holds a number: the column is no column of lists."""
    filled = (cell for cell in column.cells if cell is not None and cell != "")
    return _parse_number(next(filled, None)) is not None


def parse_lists(column: TextColumn) -> tuple[Array, tuple[str, ...] | None]:
    """Lists of equal shape, one per row, or one object {class: number} per row; with the class
    names of the latter.
    """
    cells = _parse_json_cells(column)
    for row, text in enumerate(column.cells):
        if cells[row] is None and isinstance(text, str):
            cells[row] = _parse_printed_list(text)
    names: tuple[str, ...] | None = None
    first = as_record(cells[0])
    if first is not None:
        names = tuple(first)
        for row, cell in enumerate(cells):
            record = as_record(cell)
            # The values in the order of the first object, which must have the same keys.
            if record is None or record.keys() != first.keys():
                cells[row] = None
            else:
                cells[row] = [record[key] for key in names]
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells):
        return parse_numbers(column), None  # one number per row: P(y=1), or the logit of class 1
    quick = _parse_at_once(cells)
    if quick is not None and quick.ndim > 1 and quick.size:
        return quick, names
    return _parse_uneven_lists(column, cells), names


def parse_matrix(columns: list[TextColumn]) -> Floats:
    """Columns of numbers side by side."""
    every: list[Any] = []
    for column in columns:
        every.extend(column.cells)
    quick = _parse_at_once(every)
    if quick is not None and quick.ndim == 1:
        return np.ascontiguousarray(quick.reshape(len(columns), -1).T)
    return np.stack([parse_numbers(column) for column in columns], axis=1)


def parse_text_lists(column: TextColumn) -> list[list[str]]:
    """Lists of texts, one list per row."""
    out: list[list[str]] = []
    for row, cell in enumerate(_parse_json_cells(column)):
        texts = as_list(cell)
        if not texts or not all(isinstance(text, str | int | float) for text in texts):
            column.report_cell(row, "a list of at least one text")
            texts = [""]
        out.append(list(map(str, texts)))
    return out


def narrow_floats(a: Floats, *, half: bool) -> Array:
    """The same numbers in half the bytes where none changes: a text file of float32 numbers is read
    as float32.
    """
    for dtype in (np.float16, np.float32) if half else (np.float32,):
        with np.errstate(over="ignore"):
            small = a.astype(dtype)
        if np.array_equal(small, a):
            return small
    return a


def _parse_at_once(cells: Cells) -> Floats | None:
    """All cells as numbers, or None if one of them may not be a number."""
    try:
        a = np.array(cells, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    if np.isnan(a).any():
        return None
    # float("1_000") is 1000 to Python and to nobody else.
    if isinstance(cells[0], str):
        try:
            underscored = "_" in "".join(cells)
        except TypeError:  # not all of them are texts
            underscored = any("_" in cell for cell in cells if isinstance(cell, str))
        if underscored:
            return None
    return a


def _parse_each(column: TextColumn, parse: Callable[[Any], float | None], need: str) -> Floats:
    """Cell by cell; one that is no number is reported and becomes nan."""
    out = np.full(len(column.cells), np.nan)
    for row, cell in enumerate(column.cells):
        value = parse(cell)
        if value is None:
            column.report_cell(row, need)
        else:
            out[row] = value
    return out


def _parse_number(cell: Any) -> float | None:
    if isinstance(cell, str) and "_" in cell:
        return None
    try:
        value = float(cell)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if math.isnan(value) else value


def is_number(cell: object) -> bool:
    """Whether a cell is a number."""
    return _parse_number(cell) is not None


def _parse_json_cells(column: TextColumn) -> list[Any]:
    """What the cells hold as JSON; None where they hold none."""
    path = column.contents.path
    # Little text may become many objects, and a packed file may hold far more text than its size.
    if (budget := open_budget(path)) is not None:
        size = sum(estimate_json_bytes(cell) for cell in column.cells if isinstance(cell, str))
        budget.spend(size, f"{path.name}, column {column.name[:60]!r}")
    out: list[Any] = []
    for cell in column.cells:
        value = cell
        if isinstance(cell, str):
            try:
                value = json.loads(cell)
            except (ValueError, RecursionError):
                value = None
        out.append(value)
    return out


def _parse_printed_list(text: str) -> Floats | None:
    """A list as NumPy or Python prints it, with blanks, lines or commas between its numbers.

    >>> _parse_printed_list("[0.9 0.\\n 1.e-01]")
    array([0.9, 0. , 0.1])
    >>> _parse_printed_list("[np.float64(0.9), np.float64(0.1)]")
    array([0.9, 0.1])
    """
    text = PRINTED_NUMBER.sub(r"\1", text).strip()
    if text[:1] != "[" or text[-1:] != "]":
        return None
    inside = text[1:-1]
    words = inside.split(",") if "," in inside else inside.split()
    return _parse_at_once(words) if words else None


def count_digits(cells: Cells) -> int | None:
    """The most digits after the point that numbers were written with; None where one has an
    exponent, or all digits of a double.

    >>> count_digits(["0.33", "1"]), count_digits([[0.5, 0.125]]), count_digits(["1e-7"])
    (2, 3, None)
    """
    most = 0
    for cell in cells:
        text = cell if isinstance(cell, str) else repr(cell)
        if "e" in text.lower():
            return None
        for digits in FRACTION.findall(text):
            most = max(most, len(digits))
    if most >= DOUBLE_DIGITS:
        return None
    return most


def describe_list(name: str, shape: tuple[int, ...]) -> str:
    """What a row of a column of lists must be, where other rows have this shape."""
    if name.strip().lower() == "logprobs":
        return (
            "one log-probability for each class, as many as in the other rows (where these are "
            "log-probabilities of tokens: the exponential of their sum as confidence)"
        )
    return f"a list of {' × '.join(map(str, shape))} numbers, as in the other rows,"


def _parse_uneven_lists(column: TextColumn, cells: list[Any]) -> Array:
    """Report the rows that do not fit; the shape is that of the first row that is a list of
    numbers.
    """
    rows: list[Floats | None] = []
    for cell in cells:
        if cell is None or isinstance(cell, int | float) or not len(cell):
            rows.append(None)
        else:
            rows.append(_parse_at_once(cell))
    lists = [a for a in rows if a is not None]
    shape: tuple[int, ...] = (1,)
    need = "a list of numbers"
    if lists:
        shape = lists[0].shape
        need = describe_list(column.name, shape)
    whole = (
        f"a list of all its numbers, as df[{column.name[:60]!r}].map(list), df.to_parquet or one "
        "column for each class would write it,"
    )
    for row, a in enumerate(rows):
        if a is None or a.shape != shape:
            shortened = "..." in str(column.cells[row])  # so NumPy prints long lists
            column.report_cell(row, whole if shortened else need)
    # One long list must not make as much room for each of many short ones.
    where = f"{column.contents.path.name}, column {column.name[:60]!r}"
    budget = Budget(where, sum(a.nbytes for a in lists))
    budget.spend(len(rows) * math.prod(shape) * 8)
    out = np.full((len(rows), *shape), np.nan)
    for row, a in enumerate(rows):
        if a is not None and a.shape == shape:
            out[row] = a
    return out
