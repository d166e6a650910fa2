"""JSON documents of logs as typed values, and short ways to reach into them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from howsure._core.checks import InputError
from howsure._core.file_access import Budget, check_readable, estimate_json_bytes

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record: TypeAlias = "dict[str, Json]"
JSON_LINE_SUFFIXES = (".jsonl", ".ndjson")
TRUTH_WORDS = {"true": 1.0, "false": 0.0}


def read_document(path: Path) -> Json:
    """The JSON of a file; JSON lines become a list."""
    lines = path.suffix.lower() in JSON_LINE_SUFFIXES
    return parse_document(check_readable(path).read_bytes(), path.name, lines=lines)


def parse_document(
    data: bytes, name: str, budget: Budget | None = None, *, lines: bool = False
) -> Json:
    """The JSON of some bytes; `name` stands for them in messages, `budget` is that of the packed
    file they come from.

    >>> parse_document(b'{"a": 1}\\n{"a": 2}\\n', "log.jsonl", lines=True)
    [{'a': 1}, {'a': 2}]
    """
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save the log as UTF-8.") from None
    if not content.strip():
        raise InputError(f"{name} is empty; a log with at least one answer is needed.")
    if budget is not None:
        budget.spend(estimate_json_bytes(content))
    if lines:
        return _parse_lines(content, name)
    try:
        return json.loads(content)
    except json.JSONDecodeError as e:
        if e.msg == "Extra data":  # several objects, one after the other
            return _parse_lines(content, name)
        if e.pos >= len(content.rstrip()) or e.msg.startswith("Unterminated"):
            raise InputError(
                f"{name} ends in the middle, after {len(content):,} characters; copy it again."
            ) from None
        raise InputError(
            f"{name} is not JSON ({e.msg} at character {e.pos:,}); save the log again."
        ) from None
    except (ValueError, RecursionError) as e:
        why = _describe_error(e)
        raise InputError(f"{name} cannot be read ({why}); save the log again.") from None


def _parse_lines(content: str, name: str) -> list[Json]:
    documents: list[Json] = []
    numbered = [(i, line) for i, line in enumerate(content.split("\n"), start=1) if line.strip()]
    for i, line in numbered:
        try:
            documents.append(json.loads(line))
        except json.JSONDecodeError as e:
            what = f"is not JSON ({e.msg} at character {e.pos:,})"
            # A last line without its line break was cut off while it was written or copied.
            if i == numbered[-1][0] and not content.endswith("\n"):
                what = "ends in the middle"
            raise InputError(
                f"{name}, line {i} {what}; copy the log again, one object per line."
            ) from None
        except (ValueError, RecursionError) as e:
            why = _describe_error(e)
            raise InputError(
                f"{name}, line {i} cannot be read ({why}); save the log again."
            ) from None
    return documents


def _describe_error(e: Exception) -> str:
    if isinstance(e, RecursionError):
        return "nested too deeply"
    return str(e).splitlines()[0]


def get_at(value: Json, *path: str | int) -> Json:
    """What stands at a path of keys and positions; None where there is nothing.

    >>> get_at({"output": [{"text": "yes"}]}, "output", 0, "text"), get_at({}, "output", 0)
    ('yes', None)
    """
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def as_record(value: Json) -> Record:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def as_records(value: Json) -> list[Record]:
    """The objects of a list of objects; empty where it is anything else or holds anything else."""
    entries = as_list(value)
    objects = [entry for entry in entries if isinstance(entry, dict)]
    return objects if len(objects) == len(entries) else []


def require_records(value: Json, where: str) -> list[Record]:
    """The objects of a list; raise where it is empty or holds anything else."""
    objects = as_records(value)
    if objects:
        return objects
    for i, entry in enumerate(as_list(value)):
        if not isinstance(entry, dict):
            raise InputError(f"{where} has an entry {i} that is no object; save the log again.")
    raise InputError(f"{where} has no entries; save the log again.")


def as_number(value: Json) -> float | None:
    """A number, a truth value, or the text of one ("-0.98", "True"); None for nan and the rest.

    >>> as_number("-0.98"), as_number(True), as_number("N/A")
    (-0.98, 1.0, None)
    """
    if isinstance(value, str):
        value = TRUTH_WORDS.get(value.strip().lower(), value)
    if value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, str) and "_" in value:  # Python reads "1_000" as a number, logs do not
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(result) else result


def as_numbers(values: Sequence[Json]) -> list[float] | None:
    """All values as numbers; None where one of them is none.

    >>> as_numbers([1, "0.5"]), as_numbers([1, None])
    ([1.0, 0.5], None)
    """
    numbers: list[float] = []
    for value in values:
        number = as_number(value)
        if number is None:
            return None
        numbers.append(number)
    return numbers


def as_text(value: Json) -> str:
    """A text or a number as a text; "" for anything else."""
    return str(value) if isinstance(value, str | int | float) else ""
