"""Findings about one score, one small function each: what it claims, what bins hide, classes and
groups, its order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from scipy.special import betaincc

from howsure import metrics
from howsure._core.check import Array, Bools, Floats
from howsure._core.frozen import frozen
from howsure.binning import equal_range, equal_size
from howsure.curves import bin_table
from howsure.curves.histograms import histogram
from howsure.render.model import FindingData
from howsure.report.findings.evidence import (
    ALPHA,
    LEAST,
    Case,
    Finding,
    above,
    fewer_than,
    more_than,
    overall,
    percent,
)
from howsure.tallies.tally import Counts, Sums, Tally
from howsure.uncertainty.means import student

HIGH = 0.9
SURE = 0.999
LOOKS_WELL = 0.06  # a gap that a reader of the diagram would let pass
PIECES = 8  # of a bin, looked at one by one
TELLING = 5  # groups that tell how much groups differ
USEFUL = 0.6  # share of pairs in the right order below which a score is of no use
HARDLY_ONE = 0.95  # share of bins; error-free ones at the top are thin in every good model
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
    """The largest gap stems from a handful of samples, more than chance gives so few, and is far
    from all others.
    """
    table = bin_table(case.tally)
    gap = np.abs(table.gap)
    i = int(np.argmax(gap))
    full = table.count >= LEAST
    if full[i] or not full.any():
        return None
    solid = gap[full].max()
    p = _chance(case, table.count[i], table.confidence[i], table.accuracy[i])
    if gap[i] < 2 * solid + 0.05 or p > ALPHA / len(gap):
        return None
    few = f"{table.count[i]:,.0f} sample{'' if table.count[i] == 1 else 's'}"
    text = (
        f"The MCE of {gap[i]:.3g} comes from {few} around {table.confidence[i]:.3g}; among bins of {LEAST} samples "
        f"and more the largest gap is {solid:.3g}. Look at these few, and judge the model by the others."
    )
    evidence = {
        "mce": float(gap[i]),
        "samples": float(table.count[i]),
        "largest_solid_gap": float(solid),
        "p_value": p,
    }
    return Finding(
        "mce_from_few", text, evidence, f"{DING}, section 4.2, inaccurate accuracy estimation"
    )


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
    return Finding(
        "saturated", text, {"share": share, "wrong": t.loss[0].item()}, f"{DING}, figure 2"
    )


@frozen(eq=False)
class Parts:
    """Pieces of one equal-range bin, most trusted first, with which of them are off beyond chance."""

    gap: float  # of the whole bin
    low: float
    high: float
    gaps: Floats
    ends: list[tuple[float, float]]
    p: Floats
    off: Bools


def _parts(case: Case) -> list[Parts]:
    """The bins of the ECE, each cut into pieces of equally many samples; ties stay together."""
    t = case.tally
    cuts = equal_range(15).cuts(t)
    inner = [_pieces(t, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    tests = 2 * sum(len(c) - 1 for c in inner if len(c) > 2)
    wide = [c for c in inner if len(c) > 2]
    every = np.unique(np.concatenate(([0], *wide, [t.n])))
    sums = t.between(every)
    return [_measured(case, _inside(sums, every, c), ALPHA / max(tests, 1)) for c in wide]


def _inside(s: Sums, every: Counts, cuts: Counts) -> Sums:
    """The sums between these cuts, which are neighbours among all cuts."""
    a, b = np.searchsorted(every, cuts[[0, -1]])
    return Sums(*(column[a:b] for column in (s.count, s.claim, s.loss, s.high, s.low)))


def _pieces(t: Tally, a: float, b: float) -> Counts:
    m = int(min(PIECES, (b - a) // LEAST))
    return (
        np.unique([a, b]) if m < 2 else np.unique(np.clip(t.cut_at(np.linspace(a, b, m + 1)), a, b))
    )


def _measured(case: Case, s: Sums, alpha: float) -> Parts:
    n, claim, wrong, high, low = s.count, s.claim, s.loss, s.high, s.low
    k, m, q = wrong / case.effect, n / case.effect, 1 - claim / n
    gaps = claim / n - (1 - wrong / n)
    p = np.where(gaps > 0, more_than(k, m, q), fewer_than(k, m, q))
    off = (p < alpha) & (np.abs(gaps) >= 0.03)
    whole = float(claim.sum() / n.sum() - (1 - wrong.sum() / n.sum()))
    return Parts(
        whole, float(low[-1]), float(high[0]), gaps, list(zip(low, high, strict=True)), p, off
    )


def internal_compensation(case: Case) -> Finding | None:
    """One bin claims too much in one place and too little in another, and the two cancel."""
    for part in _parts(case):
        over, under = part.off & (part.gaps > 0), part.off & (part.gaps < 0)
        if over.any() and under.any():
            i, j = int(np.argmax(part.gaps)), int(np.argmin(part.gaps))
            text = (
                f"Errors cancel inside a bin: between {part.low:.3g} and {part.high:.3g} the gap is only "
                f"{part.gap:+.3f}, but {_where(part, i)} and {_where(part, j)}. The ECE does not see this."
            )
            evidence = {
                "bin": [part.low, part.high],
                "gap": part.gap,
                "gaps": [float(g) for g in part.gaps],
            }
            return Finding(
                "internal_compensation", text, evidence, f"{DING}, section 4.2 and proposition 1"
            )
    return None


def _where(part: Parts, i: int) -> str:
    low, high = part.ends[i]
    return f"{part.gaps[i]:+.3f} from {low:.4g} to {high:.4g}"


def hidden_error(case: Case) -> Finding | None:
    """A wide bin looks well while a piece of it is far off."""
    worst: tuple[float, Parts, int] | None = None
    for part in _parts(case):
        mixed = (part.off & (part.gaps > 0)).any() and (part.off & (part.gaps < 0)).any()
        hidden = part.off & (np.abs(part.gaps) >= max(2 * abs(part.gap), abs(part.gap) + 0.05))
        if hidden.any() and not mixed and abs(part.gap) <= LOOKS_WELL:
            i = int(np.argmax(np.where(hidden, np.abs(part.gaps), 0)))
            if worst is None or abs(part.gaps[i]) > worst[0]:
                worst = (float(abs(part.gaps[i])), part, i)
    if worst is None:
        return None
    _, part, i = worst
    text = (
        f"An error hides in a wide bin: between {part.low:.3g} and {part.high:.3g} confidence and accuracy differ by "
        f"{part.gap:+.3f} on the whole, but by {_where(part, i)}. Adaptive bins show it."
    )
    evidence = {
        "bin": [part.low, part.high],
        "gap": part.gap,
        "piece": list(part.ends[i]),
        "p_value": float(part.p[i]),
    }
    return Finding("hidden_error", text, evidence, f"{DING}, section 4.2, undetectable error")


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
    evidence = {
        "class": case.names[c],
        "n": int(n[c]),
        "gap": float(gap[c]),
        "p_value": float(chance[c]),
    }
    return Finding("worse_class", text, evidence, "Kull et al. 2019, class-wise calibration")


def worse_group(case: Case) -> Finding | None:
    """One group is answered wrongly far more often than the others; at most 100 groups, or they are
    clusters.

    Of five groups and more it must also stand out from how much the other groups differ among
    themselves: clusters differ by chance. Fewer are taken as parts that somebody named.
    """
    groups = case.groups
    if groups is None or not 2 <= len(groups.names) <= 100:
        return None
    names, n, k = groups
    others = (k.sum() - k) / np.maximum(n.sum() - n, 1)
    margin = np.sqrt(
        others * (1 - others) / np.maximum(n.sum() - n, 1)
    )  # the others are a sample too
    p = np.where(n >= LEAST, more_than(k, n, others + margin), 1.0)
    if len(names) >= TELLING:
        p = np.maximum(p, [_stands_out(n, k, g) for g in range(len(names))])
    g = int(np.argmin(p))
    if p[g] > ALPHA / len(names) or k[g] / n[g] < others[g] + 0.05:
        return None
    text = f"Group {names[g]} is answered wrongly {percent(k[g] / n[g])} of the time, the others {percent(others[g])}."
    evidence = {
        "group": str(names[g]),
        "n": int(n[g]),
        "error": float(k[g] / n[g]),
        "p_value": float(p[g]),
    }
    return Finding(
        "worse_group", text, evidence, "binomial test and the spread of groups, for so many groups"
    )


def _stands_out(n: Array, k: Array, g: int) -> float:
    """P-value of a group's errors among groups that differ as much as the others do (beta-binomial
    moments).

    Error rates of groups are skewed, and their spread is known from few groups: the tail is that of
    the beta distribution with the spread widened by Student's t of so many groups.
    """
    rest, wrong = np.delete(n, g).astype(np.float64), np.delete(k, g).astype(np.float64)
    mean = float(wrong.sum() / rest.sum())
    if not 0 < mean < 1:
        return 1.0
    many, unit, size = len(rest), mean * (1 - mean), float(n[g])
    square = float(((wrong - rest * mean) ** 2).sum()) / unit * many / (many - 1)
    alike = max(0.0, (square - float(rest.sum())) / max(float((rest * (rest - 1)).sum()), 1.0))
    own = unit * (1 + (size - 1) * alike) / size
    of_mean = unit * float((rest * (1 + (rest - 1) * alike)).sum()) / float(rest.sum()) ** 2
    wider = student(many - 1, ALPHA / len(n)) / student(inf, ALPHA / len(n))
    like = unit / ((own + of_mean) * wider**2) - 1
    if like <= 0:
        return 1.0
    return float(betaincc(mean * like, (1 - mean) * like, max(0.0, (float(k[g]) - 0.5) / size)))


def thin_bins(case: Case) -> Finding | None:
    """Hardly one of the 100 bins of the expected odds ratio can be read; coarser ones are proposed."""
    share = _thin(case, 100)
    if share < HARDLY_ONE or case.tally.weighted:
        return None
    fewer = next((m for m in (50, 20, 10, 5, 3) if _thin(case, m) <= 0.2), None)
    text = (
        f"{percent(share, 0)} of the bins behind the expected odds ratio are too thin to be read; "
    )
    text = f"{text}read {fewer} bins instead." if fewer else _no_odds(case)
    return Finding(
        "thin_bins", text, {"share": share, "bins": fewer}, "Finlay & Oberman, section 2.1"
    )


def _no_odds(case: Case) -> str:
    t = case.tally
    which = "errors" if 2 * t.total <= t.n else "right answers"
    many = "too few" if 0 < t.total < t.n else "no"
    return f"The expected odds ratio cannot be read in however few bins: there are {many} {which}."


def _thin(case: Case, bins: int) -> float:
    """The share of bins whose accuracy is not known to within half of it."""
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
    text = f"{_ranks(auroc, 2.33 * spread)}: a right answer outranks a wrong one in {percent(auroc)} of pairs."
    return Finding(
        "does_not_rank",
        text,
        {"auroc": auroc, "standard_error": spread},
        "Ding et al. 2020, section 3",
    )


def _ranks(auroc: float, margin: float) -> str:
    """What can be said of a score that is not seen to rank."""
    if auroc + margin < 0.5:
        return "The score ranks the wrong way round"
    if auroc + margin < USEFUL:
        return "The score does not tell right from wrong"
    return "These answers are too few, or too much alike, to see whether the score tells right from wrong"


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
    """All findings about one score, as report JSON.

    >>> from howsure import Predictions
    >>> from howsure.report.findings import case_of
    >>> from howsure.report.summary import Summary
    >>> p = Predictions.from_confidence([0.99] * 200, [1, 0] * 100)
    >>> [f["name"] for f in findings(case_of(Summary.of(p)))]
    ['over_confident_above_0.9', 'does_not_rank']
    """
    found = [look(case) for look in (*(ABOUT_CLAIMS if case.claims else ()), *ABOUT_ANY_SCORE)]
    return [finding.json() for finding in found if finding is not None]
