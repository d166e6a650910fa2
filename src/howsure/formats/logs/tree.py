"""JSON as typed values, and short ways to reach into it; what is not there is None."""

from __future__ import annotations

import math
from typing import TypeAlias

from howsure._core.check import InputError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record: TypeAlias = "dict[str, Json]"


def at(value: Json, *path: str | int) -> Json:
    """What stands at a path of keys and positions.

    >>> at({"output": [{"text": "yes"}]}, "output", 0, "text"), at({}, "output", 0)
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


def record(value: Json) -> Record:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def records(value: Json) -> list[Record]:
    """The objects of a list of objects; empty where it is anything else or holds anything else."""
    found = [one for one in items(value) if isinstance(one, dict)]
    return found if len(found) == len(items(value)) else []


def rows_of(value: Json, where: str) -> list[Record]:
    """The objects of a list; refuses a list that is empty or holds anything else."""
    found = records(value)
    if not found:
        odd = next((i for i, one in enumerate(items(value)) if not isinstance(one, dict)), None)
        what = "has no entries" if odd is None else f"has an entry {odd} that is no object"
        raise InputError(f"{where} {what}; save the log again.")
    return found


def number(value: Json) -> float | None:
    """A number, a truth value, or the text of one ("-0.98", "True"); nan is none.

    >>> number("-0.98"), number(True), number("N/A")
    (-0.98, 1.0, None)
    """
    if isinstance(value, str):
        value = {"true": 1.0, "false": 0.0}.get(value.strip().lower(), value)
    if isinstance(value, list | dict) or value is None or (isinstance(value, str) and "_" in value):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(found) else found


def text(value: Json) -> str:
    """A text or a number as a text; "" for anything else."""
    return str(value) if isinstance(value, str | int | float) else ""
