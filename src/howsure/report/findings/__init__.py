"""Findings: what the numbers say, in words; one small function each.

Each takes a `Case` and returns a `Finding` or None. A finding needs statistical evidence, so that a
calibrated model rarely earns one by chance, and an effect that is large enough to matter.
"""

from howsure.report.findings.changes import changes
from howsure.report.findings.evidence import Case, Finding, case_of
from howsure.report.findings.score import findings
from howsure.report.findings.verdict import guarantees, verdict

__all__ = ["Case", "Finding", "case_of", "changes", "findings", "guarantees", "verdict"]
