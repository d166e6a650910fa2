"""Which tool wrote a file, and its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from howsure._core.checks import InputError
from howsure.formats.column_names import VALUES
from howsure.formats.logs import (
    deepeval,
    helm,
    inspect_ai,
    lm_eval,
    openai,
    promptfoo,
    table_log,
    uqlm,
)
from howsure.formats.logs.json_tree import (
    JSON_LINE_SUFFIXES,
    Json,
    as_list,
    as_record,
    get_at,
    parse_document,
    read_document,
)
from howsure.formats.logs.log import Log
from howsure.predictions.class_labels import COLUMN_ALIASES

LOG_SUFFIXES = (".eval", ".json", ".txt")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
CONFIDENCE_NAMES = {alias for part in VALUES for alias in COLUMN_ALIASES[part]}
FIRST_LINE_BYTES = 1 << 24


class LogTool(NamedTuple):
    """What a module of this folder offers for the JSON of one tool."""

    recognise: Callable[[Json], bool]
    read: Callable[[Json, Path, str | None], Log]


TOOLS = {
    "lm-eval": LogTool(lm_eval.recognise_samples, lm_eval.read_samples),
    "lm-eval-write-out": LogTool(lm_eval.recognise_write_out, lm_eval.read_write_out),
    "inspect": LogTool(inspect_ai.recognise, inspect_ai.read),
    "promptfoo": LogTool(promptfoo.recognise, promptfoo.read),
    "deepeval": LogTool(deepeval.recognise, deepeval.read),
    "openai": LogTool(openai.recognise, openai.read),
    "uqlm": LogTool(uqlm.recognise, uqlm.read),
}


def is_log(path: Path, tool: str | None = None) -> bool:
    """Whether a file or folder is the log of a tool: by its suffix, or by how it begins."""
    try:
        return _looks_like_log(path, tool)
    except (OSError, ValueError):  # whoever opens the file says what is wrong with it
        return False


def _looks_like_log(path: Path, tool: str | None) -> bool:
    if path.exists() and not path.is_dir() and not path.is_file():  # a pipe or a device is no log
        return False
    suffix = path.suffix.lower()
    if tool is not None or suffix in LOG_SUFFIXES:
        return True
    if path.is_dir():
        return helm.find_run_folder(path) is not None
    if not path.is_file():
        return False
    if suffix in JSON_LINE_SUFFIXES:
        with path.open("rb") as file:
            first = parse_document(file.readline(FIRST_LINE_BYTES), path.name)
        return any(tool.recognise([first]) for tool in TOOLS.values())
    if suffix not in TABLE_SUFFIXES:
        return False
    header = table_log.read_header(path)
    # A column that is named by convention says what its numbers are: then it is a plain table.
    by_convention = any(name.strip().lower() in CONFIDENCE_NAMES for name in header)
    return table_log.recognise(header) and not by_convention


def read_log(
    path: str | os.PathLike[str], *, tool: str | None = None, metric: str | None = None
) -> Log:
    """The log in a file or a run folder; the tool that wrote it is found by the file's own
    structure unless named.
    """
    path = Path(path)
    folder = helm.find_run_folder(path)
    if tool == "helm" or (tool is None and folder is not None):
        if folder is None:
            raise InputError(
                f"{path} is no HELM run: {helm.STATE} is not there; name the run folder."
            )
        return helm.read(folder, metric)
    if tool == "table" or (tool is None and path.suffix.lower() in TABLE_SUFFIXES):
        header = table_log.read_header(path)
        if metric is None and not table_log.recognise(header):
            raise InputError(
                f"{path.name} has the columns {', '.join(header)[:120] or 'none'}; "
                "a column that says right or wrong (grade) and one with a confidence are needed."
            )
        return table_log.read(path, metric)
    if path.suffix.lower() == ".eval":
        document = inspect_ai.read_archive(path)
    else:
        document = read_document(path)
    if tool is not None:
        return _read_named(document, tool, path, metric)
    for candidate in TOOLS.values():
        if candidate.recognise(document):
            return candidate.read(document, path, metric)
    known = ", ".join([*TOOLS, "helm"])
    raise InputError(
        f"{path.name} is no log of a known tool ({known}), or one of another version; "
        f"{_describe_document(document)}."
    )


def _read_named(document: Json, tool: str, path: Path, metric: str | None) -> Log:
    if tool not in TOOLS:
        known = ", ".join([*TOOLS, "helm", "table"])
        raise InputError(f"{tool!r} is no known log; known are {known}.")
    if not TOOLS[tool].recognise(document):
        raise InputError(
            f"{path.name} is no log of {tool}, or one of another version; "
            f"{_describe_document(document)}."
        )
    return TOOLS[tool].read(document, path, metric)


def _describe_document(document: Json) -> str:
    first = as_record(get_at(document, 0)) if as_list(document) else as_record(document)
    shown = ", ".join(repr(name) for name in list(first)[:8])
    return f"it holds {shown}" if shown else "it holds no objects"
