"""Which tool wrote a file, and its log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from howsure._core.check import InputError
from howsure.formats.logs import (
    deepeval,
    harness,
    helm,
    inspect_ai,
    openai,
    promptfoo,
    tables,
    uqlm,
    write_out,
)
from howsure.formats.logs.document import LINES, document, parsed
from howsure.formats.logs.log import Log
from howsure.formats.logs.tree import Json, at, items, record
from howsure.formats.names import ALIASES, VALUES

TABLES = (".csv", ".tsv", ".txt")
CONFIDENCES = {alias for part in VALUES for alias in ALIASES[part]}


SUFFIXES = (".eval", ".json", ".txt")
LONGEST = 1 << 24  # characters of a first line that are looked at


def is_log(path: Path, tool: str | None = None) -> bool:
    """Whether a file or folder is the log of a tool: by its suffix, or by how it begins."""
    try:
        return _looks_like_a_log(path, tool)
    except (OSError, ValueError):  # whoever opens the file says what is wrong with it
        return False


def _looks_like_a_log(path: Path, tool: str | None) -> bool:
    if path.exists() and not path.is_dir() and not path.is_file():  # a pipe or a device is no log
        return False
    if (
        tool is not None
        or path.suffix.lower() in SUFFIXES
        or (path.is_dir() and helm.folder_of(path) is not None)
    ):
        return True
    if not path.is_file():
        return False
    if path.suffix.lower() in LINES:
        return _begins_like_a_log(path)
    return (
        path.suffix.lower() in TABLES
        and tables.recognised(tables.header(path))
        and not _by_convention(path)
    )


def _begins_like_a_log(path: Path) -> bool:
    """Whether the first object of JSON lines is that of a tool."""
    with path.open("rb") as file:
        first = file.readline(LONGEST)
    record = parsed(first, path.name)
    return any(tool.recognised([record]) for tool in TOOLS.values())


def _by_convention(path: Path) -> bool:
    """Whether a column has a name that says what its numbers are."""
    return any(name.strip().lower() in CONFIDENCES for name in tables.header(path))


class Tool(Protocol):
    """What a module of this folder offers for JSON."""

    def recognised(self, document: Json) -> bool:
        """Whether the tool wrote this."""
        ...

    def log(self, document: Json, path: Path, *, metric: str | None = None) -> Log:
        """What it says."""
        ...


TOOLS: dict[str, Tool] = {
    "lm-eval": harness,
    "lm-eval-write-out": write_out,
    "inspect": inspect_ai,
    "promptfoo": promptfoo,
    "deepeval": deepeval,
    "openai": openai,
    "uqlm": uqlm,
}


def read_log(
    path: str | os.PathLike[str], *, tool: str | None = None, metric: str | None = None
) -> Log:
    """The log in a file or a run folder; the tool that wrote it is found by the file's own
    structure unless named.
    """
    path = Path(path)
    folder = helm.folder_of(path)
    if tool == "helm" or (tool is None and folder is not None):
        if folder is None:
            raise InputError(
                f"{path} is no HELM run: {helm.STATE} is not there; name the run folder."
            )
        return helm.log(folder, metric=metric)
    if tool == "table" or (tool is None and path.suffix.lower() in TABLES):
        return _table(path, metric)
    content = inspect_ai.document(path) if path.suffix.lower() == ".eval" else document(path)
    if tool is not None:
        return _named(content, tool, path, metric)
    found = next((module for module in TOOLS.values() if module.recognised(content)), None)
    if found is None:
        raise InputError(_unknown(content, path))
    return found.log(content, path, metric=metric)


def _table(path: Path, metric: str | None) -> Log:
    header = tables.header(path)
    if metric is None and not tables.recognised(header):
        raise InputError(
            f"{path.name} has the columns {', '.join(header)[:120] or 'none'}; a column that says right or wrong "
            "(grade) and one with a confidence are needed."
        )
    return tables.log(path, metric=metric)


def _named(content: Json, tool: str, path: Path, metric: str | None) -> Log:
    if tool not in TOOLS:
        raise InputError(
            f"{tool!r} is no known log; known are {', '.join([*TOOLS, 'helm', 'table'])}."
        )
    if not TOOLS[tool].recognised(content):
        raise InputError(
            f"{path.name} is no log of {tool}, or one of another version; {_holds(content)}."
        )
    return TOOLS[tool].log(content, path, metric=metric)


def _unknown(content: Json, path: Path) -> str:
    known = ", ".join([*TOOLS, "helm"])
    return f"{path.name} is no log of a known tool ({known}), or one of another version; {_holds(content)}."


def _holds(content: Json) -> str:
    first = record(at(content, 0)) if items(content) else record(content)
    shown = ", ".join(repr(name) for name in list(first)[:8])
    return f"it holds {shown}" if shown else "it holds no objects"
