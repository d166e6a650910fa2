"""Parts of the data: classes and groups that fare worse than the rest."""

from __future__ import annotations

import numpy as np

from howsure.report.findings.case import LEAST, Case, overall
from howsure.report.findings.evidence import ALPHA, Finding, more_than, percent


def worse_class(case: Case) -> Finding | None:
    """Answers of one class are wrong more often than they claim, beyond what holds for all."""
    answers = case.answers
    if answers is None:
        return None
    n, wrong, claim = answers
    seen = n >= LEAST
    q = np.where(seen, 1 - claim / np.maximum(n, 1), 0.0)
    chance = np.where(seen, more_than(wrong / case.effect, n / case.effect, q), 1.0)
    gap = np.where(seen, wrong / np.maximum(n, 1) - q, -1.0)
    c = int(np.argmax(np.where(chance < ALPHA / max(int(seen.sum()), 1), gap, -1.0)))
    if not chance[c] < ALPHA / max(int(seen.sum()), 1) or gap[c] < overall(case)[0] + 0.05:
        return None
    text = (
        f"Answers of class {case.names[c]} are right {percent(1 - wrong[c] / n[c])} of the time and claim "
        f"{percent(claim[c] / n[c])}: over-confident beyond the rest ({n[c]:,.0f} answers)."
    )
    evidence = {"class": case.names[c], "n": int(n[c]), "gap": float(gap[c]), "p_value": float(chance[c])}
    return Finding("worse_class", text, evidence, "Kull et al. 2019, class-wise calibration")


def worse_group(case: Case) -> Finding | None:
    """One group is answered wrongly far more often than the others; at most 100 groups, or they are clusters."""
    groups = case.groups
    if groups is None or not 2 <= len(groups.names) <= 100:
        return None
    names, n, k = groups
    others = (k.sum() - k) / np.maximum(n.sum() - n, 1)
    margin = np.sqrt(others * (1 - others) / np.maximum(n.sum() - n, 1))  # the others are a sample too
    p = np.where(n >= LEAST, more_than(k, n, others + margin), 1.0)
    g = int(np.argmin(p))
    if p[g] > ALPHA / len(names) or k[g] / n[g] < others[g] + 0.05:
        return None
    text = f"Group {names[g]} is answered wrongly {percent(k[g] / n[g])} of the time, the others {percent(others[g])}."
    evidence = {"group": str(names[g]), "n": int(n[g]), "error": float(k[g] / n[g]), "p_value": float(p[g])}
    return Finding("worse_group", text, evidence, "exact binomial test, corrected for the number of groups")
