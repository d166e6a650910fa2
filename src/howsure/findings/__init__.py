"""Findings: what the numbers say, in words; one small function each.

Each takes a `Case` and returns a `Finding` or None. A finding needs statistical evidence, so that a calibrated model
rarely earns one by chance, and an effect that is large enough to matter.
"""

from howsure.findings._evidence import Finding
from howsure.findings.case import Case, case_of
from howsure.findings.changes import changes, standard_error
from howsure.findings.told import findings
from howsure.findings.verdict import verdict

__all__ = ["Case", "Finding", "case_of", "changes", "findings", "standard_error", "verdict"]
