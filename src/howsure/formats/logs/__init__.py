"""Logs of evaluation tools → one typed value: questions, what came of them, and how sure the model
was.
"""

from howsure.formats.logs.log import Claim, Confidence, Kind, Log, Outcome
from howsure.formats.logs.read_logs import is_log, read_log

__all__ = ["Claim", "Confidence", "Kind", "Log", "Outcome", "is_log", "read_log"]
