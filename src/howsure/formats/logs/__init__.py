"""Logs of evaluation tools → one typed value: questions, what came of them, and how sure the model
was. Here: which tool wrote a file.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.formats.column_names import VALUES
from howsure.formats.logs.json_tree import (
    JSON_LINE_SUFFIXES,
    Json,
    as_list,
    as_number,
    as_record,
    get_at,
    parse_document,
    read_document,
)
from howsure.predictions.class_labels import COLUMN_ALIASES

__all__ = ["Claim", "Confidence", "Kind", "Log", "Outcome", "is_log", "read_log"]

DECISIONS_SUFFIXES = (*JSON_LINE_SUFFIXES, ".json", ".csv", ".tsv")
# How an answer of a decision model begins, also inside the text of a cell.
DECISIONS_PATTERN = re.compile(rb"answers[\\\"']+\s*:\s*[\[{]|noul_raw|\"choice\"\s*:")
DECISIONS_BYTES = 1 << 20  # in which one is looked for

if TYPE_CHECKING:
    from howsure.formats.logs.log import Claim, Confidence, Kind, Log, Outcome
else:
    # Most files are no logs: whether one is needs only this module.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'howsure.formats.logs' has no attribute {name!r}")
        return getattr(import_module("howsure.formats.logs.log"), name)


LOG_SUFFIXES = (".eval", ".json", ".txt")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
CONFIDENCE_NAMES = {alias for part in VALUES for alias in COLUMN_ALIASES[part]}
FIRST_LINE_BYTES = 1 << 24
FIRST_BYTES = 64  # in which a JSON list begins


@frozen
class LogTool:
    """A tool that writes JSON: its module in this folder, and which layout where the module
    reads several.

    Where its logs are JSON lines, each line has one of `line_keys`: other lines need not be shown to
    the module, which is imported when it is asked.
    """

    module: str
    layout: str = ""
    line_keys: tuple[str, ...] = ()

    def recognise(self, document: Json) -> bool:
        """Whether the tool wrote this."""
        module = import_module(f"howsure.formats.logs.{self.module}")
        return getattr(module, f"recognise{self.layout}")(document)

    def read(self, document: Json, path: Path, metric: str | None) -> Log:
        """Its log."""
        module = import_module(f"howsure.formats.logs.{self.module}")
        return getattr(module, f"read{self.layout}")(document, path, metric)


TOOLS = {
    "lm-eval": LogTool("lm_eval", "_samples", line_keys=("doc_id",)),
    "lm-eval-write-out": LogTool("lm_eval", "_write_out", line_keys=("doc_id",)),
    "inspect": LogTool("inspect_ai"),
    "promptfoo": LogTool("run_documents", "_promptfoo", line_keys=("promptIdx",)),
    "deepeval": LogTool("run_documents", "_deepeval"),
    "openai": LogTool("openai", line_keys=("spec", "object", "response")),
    "uqlm": LogTool("run_documents", "_uqlm"),
}


def is_decision_log(path: Path, tool: str | None = None) -> bool:
    """Whether a file holds answers of a decision model, by its beginning."""
    if tool is not None:
        return tool == "decisions"
    try:
        if path.suffix.lower() not in DECISIONS_SUFFIXES or not path.is_file():
            return False
        with path.open("rb") as file:
            beginning = file.read(DECISIONS_BYTES)
        if DECISIONS_PATTERN.search(beginning) is None:
            return False
        from howsure.formats.logs.decisions import holds_bodies

        return holds_bodies(path)
    except (OSError, ValueError):  # whoever opens the file says what is wrong with it
        return False


def is_log(path: Path, tool: str | None = None) -> bool:
    """Whether a file or folder is the log of a tool: by its suffix, or by how it begins."""
    suffix = path.suffix.lower()
    if is_decision_log(path, tool):
        return True
    try:
        if path.exists() and not path.is_dir() and not path.is_file():
            return False  # a pipe or a device is no log
        if tool is None and suffix == ".json":
            # A list of objects that no tool wrote is a table of predictions.
            with path.open("rb") as file:
                begins = file.read(FIRST_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
            if begins != b"[":
                return True
            document = read_document(path)
            known = any(one.recognise(document) for one in TOOLS.values())
            return known or not as_record(get_at(document, 0))
        if tool is not None or suffix in LOG_SUFFIXES:
            return True
        if path.is_dir():
            from howsure.formats.logs import helm

            return helm.find_run_folder(path) is not None
        if not path.is_file():
            return False
        if suffix in JSON_LINE_SUFFIXES:
            with path.open("rb") as file:
                first = as_record(parse_document(file.readline(FIRST_LINE_BYTES), path.name))
            tools = [one for one in TOOLS.values() if not first.keys().isdisjoint(one.line_keys)]
            return any(one.recognise([first]) for one in tools)
        if suffix not in TABLE_SUFFIXES:
            return False
        from howsure.formats.logs import table_log

        header = table_log.read_header(path)
        # A column that is named by convention says what its numbers are: then it is a plain table.
        by_convention = any(name.strip().lower() in CONFIDENCE_NAMES for name in header)
        return table_log.recognise(header) and not by_convention
    except (OSError, ValueError):  # whoever opens the file says what is wrong with it
        return False


def read_log(
    path: str | os.PathLike[str], *, tool: str | None = None, metric: str | None = None
) -> Log:
    """The log in a file or a run folder; the tool that wrote it is found by the file's own
    structure unless named.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if tool == "helm" or (tool is None and (suffix == ".json" or path.is_dir())):
        from howsure.formats.logs import helm

        folder = helm.find_run_folder(path)
        if folder is not None:
            return helm.read(folder, metric)
        if tool == "helm":
            raise InputError(
                f"{path} is no HELM run: {helm.STATE} is not there; name the run folder."
            )
    if tool == "table" or (tool is None and suffix in TABLE_SUFFIXES):
        from howsure.formats.logs import table_log

        header = table_log.read_header(path)
        if header and (header[0] == "#" or as_number(header[0]) is not None):
            raise InputError(
                f"{path.name} looks like np.savetxt's; save it as a table with names: "
                f"np.savetxt('{path.stem}.csv', …, delimiter=',', header='prob_0,prob_1,label')."
            )
        if metric is None and not table_log.recognise(header):
            raise InputError(
                f"{path.name} has the columns {', '.join(header)[:120] or 'none'}; "
                "a column that says right or wrong (grade) and one with a confidence are needed."
            )
        return table_log.read(path, metric)
    if suffix == ".eval":
        from howsure.formats.logs import inspect_ai

        document = inspect_ai.read_archive(path)
    else:
        document = read_document(path)
    if tool is not None and tool not in TOOLS:
        known = ", ".join([*TOOLS, "helm", "table"])
        raise InputError(f"{tool!r} is no known log; known are {known}.")
    candidates = TOOLS if tool is None else {tool: TOOLS[tool]}
    for candidate in candidates.values():
        if candidate.recognise(document):
            return candidate.read(document, path, metric)
    what = tool or f"a known tool ({', '.join([*TOOLS, 'helm'])})"
    first = as_record(get_at(document, 0)) if as_list(document) else as_record(document)
    shown = ", ".join(map(repr, list(first)[:8])) or "no objects"
    if {"howsure", "schema"} <= set(first):
        raise InputError(
            path.name,
            got="was written by howsure",
            need="it holds results, not predictions; give the file that they were made of",
        )
    hint = ""
    if first and all(as_record(column) or as_list(column) for column in first.values()):
        hint = " If pandas wrote it: save it with to_json(orient='records')."
    raise InputError(
        f"{path.name} is no log of {what}, or one of another version; it holds {shown}.{hint}"
    )
