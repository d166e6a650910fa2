"""Findings: what the numbers say, in words.

Each is one function that takes a `FindingCase` and returns a `Finding` or None. A finding needs
statistical evidence, so that a calibrated model rarely earns one by chance, and an effect that is
large enough to matter.
"""

from howsure.report.findings.evidence import Finding, FindingCase, build_case
from howsure.report.findings.score_findings import find_all
from howsure.report.findings.verdict import compute_guarantees, find_changes, write_verdict

__all__ = [
    "Finding",
    "FindingCase",
    "build_case",
    "compute_guarantees",
    "find_all",
    "find_changes",
    "write_verdict",
]
