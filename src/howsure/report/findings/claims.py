"""The confidence against the accuracy: what is claimed, what happens."""

from __future__ import annotations

import numpy as np

from howsure.curves import bin_table
from howsure.report.findings.case import LEAST, Case, above, overall
from howsure.report.findings.evidence import ALPHA, Finding, fewer_than, more_than, percent

HIGH = 0.9
SURE = 0.999
DING = "Ding et al. 2020"


def over_confident_at_the_top(case: Case) -> Finding | None:
    """Answers with a confidence of 0.9 and more are wrong more often than they claim."""
    if case.tally.score_range()[1] < HIGH:
        return None
    top = above(case.tally, HIGH)
    n, claim, wrong = top.count[0], top.claim[0], top.loss[0]
    p = float(more_than(wrong / case.effect, n / case.effect, 1 - claim / n))
    if p > ALPHA or wrong < 1.2 * (n - claim):
        return None
    text = (
        f"Over-confident above 0.9: {wrong:,.0f} of {n:,.0f} such answers are wrong where the confidences promise "
        f"{n - claim:,.0f}. They are right {percent(1 - wrong / n)} of the time and claim {percent(claim / n)}."
    )
    evidence = {"n": n.item(), "wrong": wrong.item(), "promised": float(n - claim), "p_value": p}
    return Finding("over_confident_above_0.9", text, evidence, f"{DING}, section 4.2")


def over_confident(case: Case) -> Finding | None:
    """All in all the confidence is above the accuracy; said where the top is not to blame."""
    t, gap, mean = case.tally, *overall(case)
    p = float(more_than(t.total / case.effect, t.n / case.effect, 1 - mean))
    if p > ALPHA or gap < 0.01 or over_confident_at_the_top(case):
        return None
    text = f"Over-confident: it claims to be right {percent(mean)} of the time and is right {percent(mean - gap)}."
    return Finding("over_confident", text, {"gap": gap, "p_value": p}, f"{DING}, figure 2")


def under_confident(case: Case) -> Finding | None:
    """All in all the confidence is below the accuracy."""
    t, gap, mean = case.tally, *overall(case)
    p = float(fewer_than(t.total / case.effect, t.n / case.effect, 1 - mean))
    if p > ALPHA or gap > -0.01:
        return None
    text = f"Under-confident: it claims to be right {percent(mean)} of the time and is right {percent(mean - gap)}."
    return Finding("under_confident", text, {"gap": gap, "p_value": p}, f"{DING}, figure 2")


def mce_from_few(case: Case) -> Finding | None:
    """The largest gap stems from a handful of samples, more than chance gives so few, and is far from all others."""
    table = bin_table(case.tally)
    gap = np.abs(table.gap)
    i = int(np.argmax(gap))
    solid = gap[table.count >= LEAST].max(initial=0.0)
    p = _chance(case, table.count[i], table.confidence[i], table.accuracy[i])
    if table.count[i] >= LEAST or gap[i] < 2 * solid + 0.05 or p > ALPHA / len(gap):
        return None
    few = f"{table.count[i]:,.0f} sample{'' if table.count[i] == 1 else 's'}"
    text = (
        f"The MCE of {gap[i]:.3g} comes from {few} around {table.confidence[i]:.3g}; among bins of {LEAST} samples "
        f"and more the largest gap is {solid:.3g}. Look at these few, and judge the model by the others."
    )
    evidence = {"mce": float(gap[i]), "samples": float(table.count[i]), "largest_solid_gap": float(solid), "p_value": p}
    return Finding("mce_from_few", text, evidence, f"{DING}, section 4.2, inaccurate accuracy estimation")


def _chance(case: Case, n: float, claim: float, right: float) -> float:
    """How often honest claims would be this far off, in the direction that is seen."""
    tail = more_than if claim > right else fewer_than
    return float(tail(n * (1 - right) / case.effect, n / case.effect, 1 - claim))


def label_errors(case: Case) -> Finding | None:
    """More answers are wrong although the model is very sure than its confidence allows."""
    if case.tally.score_range()[1] < SURE:
        return None
    top = above(case.tally, SURE)
    n, promised, wrong = top.count[0], top.count[0] - top.claim[0], top.loss[0]
    p = float(more_than(wrong / case.effect, n / case.effect, promised / n))
    if p > ALPHA or wrong < 3:
        return None
    text = (
        f"Sure and wrong: {wrong:,.0f} answers are wrong although the model is at least {percent(SURE)} sure, where "
        f"{promised:.1f} would be expected. Their labels may be wrong, or the confidence is: look at these first."
    )
    evidence = {"n": n.item(), "wrong": wrong.item(), "promised": float(promised), "p_value": p}
    return Finding("label_errors", text, evidence, "Finlay & Oberman, section 7.2")


def saturated(case: Case) -> Finding | None:
    """Many confidences are exactly 1, wrong answers among them, so these cannot be told apart."""
    t = case.tally
    share = float(t.count[0] / t.n)
    if t.score[0] != 1 or share < 0.05 or t.loss[0] == 0:
        return None
    text = (
        f"{percent(share)} of the confidences are exactly 1, {t.loss[0]:,.0f} of these answers are wrong. Rounding has "
        "erased their order; keep logits, or rank by log_max_prob."
    )
    return Finding("saturated", text, {"share": share, "wrong": t.loss[0].item()}, f"{DING}, figure 2")
