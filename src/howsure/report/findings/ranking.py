"""The order of the score, and the bins made from it."""

from __future__ import annotations

import numpy as np

from howsure import metrics
from howsure.binning import equal_size
from howsure.curves.histograms import histogram
from howsure.report.findings.case import LEAST, Case
from howsure.report.findings.evidence import Finding, percent

HARDLY_ONE = 0.95  # share of bins; error-free ones at the top are thin in every good model


def thin_bins(case: Case) -> Finding | None:
    """Hardly one of the 100 bins of the expected odds ratio can be read; coarser ones are proposed."""
    share = _thin(case, 100)
    if share < HARDLY_ONE or case.tally.weighted:
        return None
    fewer = next((m for m in (50, 20, 10, 5, 3) if _thin(case, m) <= 0.2), None)
    instead = f"read {fewer} bins instead" if fewer else "no number of bins helps: there are too few errors"
    text = f"{percent(share, 0)} of the 100 bins behind the expected odds ratio are too thin to be read; {instead}."
    return Finding("thin_bins", text, {"share": share, "bins": fewer}, "Finlay & Oberman, section 2.1")


def _thin(case: Case, bins: int) -> float:
    """The share of bins whose accuracy cannot be told to within half of it."""
    return float((histogram(case.tally, equal_size(bins)).relative_variance > 0.5).mean())


def does_not_rank(case: Case) -> Finding | None:
    """Right answers do not score higher than wrong ones."""
    t = case.tally
    right = t.n - t.total
    if not min(right, t.total) >= LEAST:
        return None
    auroc = metrics.auroc(t)
    spread = float(np.sqrt(case.effect * (t.n + 1) / (12 * right * t.total)))
    if auroc - 2.33 * spread > 0.5:
        return None
    text = (
        f"The score does not tell right from wrong: a right answer outranks a wrong one in {percent(auroc)} of pairs."
    )
    return Finding("does_not_rank", text, {"auroc": auroc, "standard_error": spread}, "Ding et al. 2020, section 3")
