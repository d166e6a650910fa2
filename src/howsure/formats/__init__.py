"""Files of predictions: read whole, streamed, written, or examined."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from howsure.formats.contents import FileProblem
from howsure.formats.files import read, read_column, scan, suffixes, write
from howsure.predictions.read_options import ReadOptions

__all__ = [
    "Description",
    "EntryDescription",
    "FileProblem",
    "ReadOptions",
    "describe",
    "problems",
    "read",
    "read_column",
    "read_log",
    "scan",
    "suffixes",
    "write",
]

if TYPE_CHECKING:
    from howsure.formats.diagnosis import Description, EntryDescription, describe, problems
    from howsure.formats.logs import read_log
else:
    # Reading a file needs neither the doctor nor the logs of tools.
    _MODULES = {
        "Description": "diagnosis",
        "EntryDescription": "diagnosis",
        "describe": "diagnosis",
        "problems": "diagnosis",
        "read_log": "logs",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'howsure.formats' has no attribute {name!r}")
        value = getattr(import_module(f"howsure.formats.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
