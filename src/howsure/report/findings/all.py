"""All findings about one score, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable

from howsure.render.model import FindingData
from howsure.report.findings.case import Case
from howsure.report.findings.claims import (
    label_errors,
    mce_from_few,
    over_confident,
    over_confident_at_the_top,
    saturated,
    under_confident,
)
from howsure.report.findings.evidence import Finding
from howsure.report.findings.pieces import hidden_error, internal_compensation
from howsure.report.findings.ranking import does_not_rank, thin_bins
from howsure.report.findings.slices import worse_class, worse_group

Look = Callable[[Case], Finding | None]
ABOUT_CLAIMS: tuple[Look, ...] = (
    over_confident_at_the_top,
    over_confident,
    under_confident,
    hidden_error,
    internal_compensation,
    label_errors,
    worse_class,
    mce_from_few,
    saturated,
)
ABOUT_ANY_SCORE: tuple[Look, ...] = (worse_group, does_not_rank, thin_bins)


def findings(case: Case) -> list[FindingData]:
    """All findings about one score, as they stand in a report.

    >>> from howsure import Predictions
    >>> from howsure.report.findings import case_of
    >>> from howsure.report.summary import Summary
    >>> p = Predictions.from_confidence([0.99] * 200, [1, 0] * 100)
    >>> [f["name"] for f in findings(case_of(Summary.of(p)))]
    ['over_confident_above_0.9', 'does_not_rank']
    """
    found = [look(case) for look in (*(ABOUT_CLAIMS if case.claims else ()), *ABOUT_ANY_SCORE)]
    return [finding.json() for finding in found if finding is not None]
