"""Lines of JSON or CSV → predictions, with the number of the line that is at fault where one is."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from howsure._core.check import Array, InputError
from howsure.predictions import Predictions

Row: TypeAlias = dict[str, Any]
Parse: TypeAlias = Callable[[bytes], Row]
Format: TypeAlias = Literal["jsonl", "csv"]
KINDS = ("logits", "probs", "confidence")
NUMBERED = re.compile(r"(logit|prob)_(\d+)$")


@dataclass(frozen=True)
class Line:
    """One input line: its number, the id it carries (None without one), and its fields."""

    number: int
    id: Any
    row: Row

    @property
    def kind(self) -> str:
        """Which numbers it holds."""
        for kind in KINDS:
            if kind in self.row:
                return kind
        raise InputError(f"it has none of {', '.join(KINDS)}, logit_0… or prob_0…; its fields are {list(self.row)}.")


def format_of_first(line: bytes) -> Format:
    """JSON lines start with a brace; everything else is a CSV header."""
    return "jsonl" if line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") else "csv"


def json_row(line: bytes) -> Row:
    """A JSON object as fields."""
    try:
        row = DECODE(line.decode("utf-8").strip())
    except (ValueError, RecursionError) as e:
        raise InputError(f"it is not JSON ({str(e).splitlines()[0]}).") from None
    if not isinstance(row, dict):
        raise InputError(f'it is a {type(row).__name__}, not an object such as {{"id": 7, "logits": [0.1, 2.3]}}.')
    return row if any(kind in row for kind in KINDS) else _gathered(row)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


DECODE = json.JSONDecoder(parse_constant=_no_constant).decode


def _gathered(row: Row) -> Row:
    """logit_0, logit_1, … as one list."""
    found = {m[1]: True for key in row if (m := NUMBERED.match(key))}
    for name in found:
        row[f"{name}s"] = [row.get(f"{name}_{i}") for i in range(sum(key.startswith(f"{name}_") for key in row))]
    return row


def csv_parser(header: bytes) -> Parse:
    """A parser for the rows below this header."""
    names = [name.strip() for name in _cells(header.removeprefix(b"\xef\xbb\xbf"))]
    vector = {"logits": _positions(names, "logit"), "probs": _positions(names, "prob")}
    single = {name: names.index(name) for name in ("id", "group", "prediction", "confidence") if name in names}
    if not any(vector.values()) and "confidence" not in single:
        raise InputError(
            f"line 1 names {', '.join(names[:8])}; a CSV header needs logit_0…, prob_0… or confidence. "
            'JSON lines start with "{".'
        )

    def parse(line: bytes) -> Row:
        cells = _cells(line)
        if len(cells) != len(names):
            raise InputError(f"it has {len(cells)} cells, the header has {len(names)}.")
        row: Row = {kind: [_number(cells[i]) for i in at] for kind, at in vector.items() if at}
        return row | {name: _number(cells[i]) if name == "confidence" else cells[i] for name, i in single.items()}

    return parse


def _cells(line: bytes) -> list[str]:
    try:
        text = line.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text.") from None
    return next(csv.reader([text]), []) if '"' in text else text.split(",")


def _positions(names: list[str], prefix: str) -> list[int]:
    """Where the columns prefix_0, prefix_1, … stand, by their number."""
    found = {int(m[2]): i for i, name in enumerate(names) if (m := NUMBERED.match(name)) and m[1] == prefix}
    if found and sorted(found) != list(range(len(found))):
        raise InputError(f"line 1 has columns {prefix}_ with gaps; they must run from {prefix}_0 up.")
    return [found[i] for i in range(len(found))]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{cell!r} is not a number.") from None


def parsed(lines: Sequence[tuple[int, bytes]], parse: Parse) -> Iterator[Line | tuple[int, InputError]]:
    """Each line with its fields, or with what is wrong with it."""
    for number, raw in lines:
        try:
            row = parse(raw)
            for name in ("id", "group", "prediction"):
                if isinstance(row.get(name), list | dict):
                    raise InputError(f"{name} is {row[name]!r}; text or a number is needed.")
            yield Line(number, row.get("id"), row)
        except InputError as e:
            yield number, e


def predictions(lines: Sequence[Line], renormalise: bool = False) -> Predictions:
    """Lines of one kind as predictions."""
    kind = lines[0].kind
    values = _values([line.row[kind] for line in lines], kind)
    group = [line.row["group"] for line in lines] if all("group" in line.row for line in lines) else None
    if kind == "confidence":
        said = [line.row["prediction"] for line in lines] if "prediction" in lines[0].row else None
        return Predictions.from_confidence(values, prediction=None if said is None else _kept(said), group=group)
    if values.ndim != 2:
        raise InputError(f"{kind} is not a list of numbers, one per class.")
    if kind == "logits":
        return Predictions.from_logits(values, group=group)
    return Predictions.from_probs(values, renormalise=renormalise, group=group)


def _values(cells: list[Any], kind: str) -> Array:
    """Numbers as float64; text is no number."""
    try:
        values = np.array(cells)
    except ValueError:
        raise InputError(f"{kind} is not a list of numbers, or not of the same length in every line.") from None
    if values.dtype.kind not in "biuf":
        raise InputError(f"{kind} holds something that is not a number.")
    return values.astype(np.float64)


def _kept(said: list[Any]) -> Array:
    """Answers as they were given: 1 beside "cat" stays 1."""
    out = np.empty(len(said), dtype=object)
    out[:] = said
    return out


def alike(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Runs of lines that can be computed together."""
    for _, run in groupby(lines, key=_shape):
        yield list(run)


def _shape(line: Line) -> tuple[Any, ...]:
    row = line.row
    kind = next((k for k in KINDS if k in row), None)
    values = row.get(kind or "")
    return kind, len(values) if isinstance(values, list) else -1, "prediction" in row, "group" in row
