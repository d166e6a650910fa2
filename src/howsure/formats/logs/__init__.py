"""Logs of evaluation tools → one typed value: questions, what came of them, and how sure the model
was.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from howsure.formats.logs.read_logs import is_log, read_log

__all__ = ["Claim", "Confidence", "Kind", "Log", "Outcome", "is_log", "read_log"]

if TYPE_CHECKING:
    from howsure.formats.logs.log import Claim, Confidence, Kind, Log, Outcome
else:
    # Most files are no logs: whether one is needs only `read_logs`.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'howsure.formats.logs' has no attribute {name!r}")
        return getattr(import_module("howsure.formats.logs.log"), name)
