"""A file → one JSON document, or one sentence that says why not."""

from __future__ import annotations

import json
from pathlib import Path

from howsure._core.budget import Budget, json_bytes
from howsure._core.check import InputError
from howsure._core.paths import existing
from howsure.formats.logs.tree import Json

LINES = (".jsonl", ".ndjson")


def document(path: Path) -> Json:
    """The JSON of a file; JSON lines become a list."""
    return parsed(existing(path).read_bytes(), path.name, lines=path.suffix.lower() in LINES)


def parsed(data: bytes, name: str, budget: Budget | None = None, *, lines: bool = False) -> Json:
    """The JSON of some bytes; `name` stands for them in messages, `budget` is that of the packed
    file they come from.

    >>> parsed(b'{"a": 1}\\n{"a": 2}\\n', "log.jsonl", lines=True)
    [{'a': 1}, {'a': 2}]
    """
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save the log as UTF-8.") from None
    if not content.strip():
        raise InputError(f"{name} is empty; a log with at least one answer is needed.")
    if budget is not None:
        budget.spend(json_bytes(content))
    return _lines(content, name) if lines else _whole(content, name)


def _whole(content: str, name: str) -> Json:
    try:
        return json.loads(content)
    except json.JSONDecodeError as e:
        if e.msg == "Extra data":  # several objects, one after the other
            return _lines(content, name)
        if e.pos >= len(content.rstrip()) or e.msg.startswith("Unterminated"):
            raise InputError(
                f"{name} ends in the middle, after {len(content):,} characters; copy it again."
            ) from None
        raise InputError(
            f"{name} is not JSON ({e.msg} at character {e.pos:,}); save the log again."
        ) from None
    except (ValueError, RecursionError) as e:
        raise InputError(f"{name} cannot be read ({_reason(e)}); save the log again.") from None


def _lines(content: str, name: str) -> Json:
    found: list[Json] = []
    numbered = [(i, line) for i, line in enumerate(content.split("\n"), start=1) if line.strip()]
    for i, line in numbered:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as e:
            last = i == numbered[-1][0] and not content.endswith("\n")
            what = "ends in the middle" if last else f"is not JSON ({e.msg} at character {e.pos:,})"
            raise InputError(
                f"{name}, line {i} {what}; copy the log again, one object per line."
            ) from None
        except (ValueError, RecursionError) as e:
            raise InputError(
                f"{name}, line {i} cannot be read ({_reason(e)}); save the log again."
            ) from None
    return found


def _reason(e: Exception) -> str:
    return "nested too deeply" if isinstance(e, RecursionError) else str(e).splitlines()[0]
