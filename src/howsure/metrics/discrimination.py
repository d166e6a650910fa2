"""Telling right from wrong: areas under the ROC and the precision–recall curve."""

from __future__ import annotations

from math import nan
from typing import Literal

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.curves import precision_recall
from howsure.metrics.metric_facts import metric
from howsure.metrics.risk_coverage import harmonic_rise, mean_rank_share, risk_sum
from howsure.tallies.tally import Blocks, Counts, Tally, needs_zero_one

__all__ = ["aupr", "auroc", "fpr_at_tpr"]

PrecisionMethod = Literal["step", "trapezoid", "davis_goadrich"]
RISK_SUM_SAMPLES = 1 << 14  # above this n the precision of successes comes from sums of risks,
TIED_SHARE = 8  # if at most one sample in so many shares its score with another


def _compute_auroc(block: Blocks, n: Counts) -> Floats:
    """The share of pairs in the right order.

    Blocks stand along the last axis, so that many resampled tables are computed at once.
    """
    wrong = np.asarray(block.loss.sum(axis=-1), dtype=np.float64)
    right = n - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        # The samples before each wrong answer, less the wrong ones among them.
        share = (block.middle_sum - wrong * wrong / 2) / (wrong * right)
    # Sums of weights are rounded: what remains of nothing is no sample, and a share may leave
    # its range by a rounding.
    known = right > 1e-12 * n
    return np.where(known, np.clip(share, 0.0, 1.0), nan)


@metric(better="higher", bounds=(0, 1), rank_only=True, of_blocks=_compute_auroc)
def auroc(t: Tally) -> float:
    r"""The probability that a right answer is trusted more than a wrong one, ties counting one
    half.

    .. math:: P(r_+ > r_-) + \tfrac12 P(r_+ = r_-)

    The same whether errors or successes are called positive. nan where all are right or all are wrong.
    Range [0, 1]; 1/2 is a coin. It assumes one fixed model: across models of different accuracy it can
    rise while the selective risk gets worse (Ding et al. 2020, section 4.1); compare those by `aurc`.

    >>> from howsure import tally
    >>> auroc(tally([0.9, 0.8, 0.7], correct=[1, 0, 1]))
    0.5
    """
    needs_zero_one(t, "auroc")
    return float(_compute_auroc(t.blocks(), np.array(t.n)))


@metric(better="higher", bounds=(0, 1), rank_only=True)
def aupr(
    t: Tally,
    positive: Literal["error", "success"] = "error",
    method: PrecisionMethod = "step",
) -> float:
    r"""Area under the precision–recall curve of finding errors (or successes).

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    over distinct thresholds (`step`, average precision). `trapezoid` joins the points by lines from (0, 1), which
    flatters; `davis_goadrich` interpolates false positives linearly in true positives, flat to recall 0.
    nan without positives. Range [0, 1]; a random score earns the share of positives. Like `auroc` it must not
    compare models of different accuracy. Davis & Goadrich 2006; Ding et al. 2020, table 1.

    >>> from howsure import tally
    >>> aupr(tally([0.9, 0.8, 0.7], correct=[1, 0, 1]))
    0.5
    """
    needs_zero_one(t, "aupr")
    if method == "step" and positive == "error":
        # From the bottom up, by the ranks of the errors alone. In place, because the column is as
        # long as the errors: first the errors before each block, then those from it to the bottom,
        # then their precision times the errors of the block.
        block, wrong = t.blocks(), float(t.total)
        if wrong <= 0:
            return nan
        column = np.cumsum(block.loss, dtype=np.float64)
        column -= block.loss
        np.subtract(wrong, column, out=column)
        column *= block.loss
        column /= float(t.n) - block.before
        return float(column.sum() / wrong)
    if method == "step" and positive == "success":
        few_ties = TIED_SHARE * (t.n - t.distinct) < t.n
        if not t.weighted and t.n >= RISK_SUM_SAMPLES and few_ties:
            return average_success_precision(t)
        return sum_success_precision(t)
    curve = precision_recall(t, positive)
    recall, precision, kept = curve.x, curve.y, curve.weight
    if np.isnan(recall[-1]):
        return nan
    if method == "trapezoid":
        left = np.concatenate(([1.0], precision[:-1]))
        return float((np.diff(recall, prepend=0.0) * (left + precision)).sum() / 2)
    if method != "davis_goadrich":
        raise InputError(f"method={method!r}; aupr knows 'step', 'trapezoid', 'davis_goadrich'.")
    assert kept is not None
    return _integrate_davis_goadrich(precision, kept)


def average_success_precision(t: Tally) -> float:
    """Average precision of finding right answers, from the risks that the AURC sums; for few ties.

    It is 1 - the mean risk up to a right answer: all risks less those at wrong answers and inside
    ties. A tie block of c samples, l of them wrong, from rank B to A adds e (H(A) - H(B)) + l share
    to the sum of risks, with e errors before it, and should add (c - l)(e + l)/A.
    """
    right = float(t.n - t.total)
    if right <= 0:
        return nan
    block, tie = t.blocks(), t.tied()
    errors = np.concatenate(([0.0], np.cumsum(block.loss, dtype=np.float64)))
    single = block.after - block.before == 1
    at_wrong = (errors[1:] / block.after)[single].sum()
    before = np.asarray(tie.before, dtype=np.float64)
    after = np.asarray(tie.after, dtype=np.float64)
    loss = np.asarray(tie.loss, dtype=np.float64)
    e = errors[np.searchsorted(block.after, tie.before, side="right")]
    summed = e * harmonic_rise(before, after) + loss * mean_rank_share(before, after)
    inside = (summed - (after - before - loss) * (e + loss) / after).sum()
    risks = float(risk_sum(block, np.array(t.n)))
    return 1.0 - (risks - float(at_wrong) - float(inside)) / right


def sum_success_precision(t: Tally) -> float:
    """Average precision of finding right answers from the top down, some rows at a time."""
    found = kept = area = 0.0
    for _, count, wrong in t.pieces():
        right = count - wrong
        hits = found + np.cumsum(right)
        shown = kept + np.cumsum(count)
        area += float((right * (hits / shown)).sum())
        found, kept = float(hits[-1]), float(shown[-1])
    if found <= 0:
        return nan
    return area / found


def _integrate_davis_goadrich(precision: Floats, kept: Floats) -> float:
    """Integrate tp / (tp + fp) with fp linear in tp between neighbouring points, in counts."""
    tp = precision * kept
    tp_before = np.concatenate(([0.0], tp[:-1]))
    kept_before = np.concatenate(([0.0], kept[:-1]))
    step = np.flatnonzero(tp - tp_before > 0.5 * np.finfo(float).eps * tp[-1])
    a, b = tp_before[step], tp[step]
    before, after = kept_before[step], kept[step]
    per_hit = (after - before) / (b - a)  # samples kept per true positive
    offset = before - per_hit * a
    with np.errstate(divide="ignore", invalid="ignore"):
        curved = offset / per_hit**2 * np.log1p((after - before) / before)
    # Before the first point the curve is flat, and nothing is kept there to divide by.
    area = (b - a) / per_hit - np.where(before > 0, curved, 0.0)
    return float(area.sum() / tp[-1])


@metric(better="lower", bounds=(0, 1), rank_only=True)
def fpr_at_tpr(t: Tally, tpr: float = 0.95) -> float:
    r"""The share of wrong answers that are kept where at least `tpr` of the right ones are.

    .. math:: P(r_- \ge \tau), \quad \tau = \max \{ \tau : P(r_+ \ge \tau) \ge \mathrm{tpr} \}

    Right answers are the positives; the first tie-closed threshold that keeps enough of them counts. nan where all are
    right or all are wrong. Range [0, 1], 0 is perfect. Liang et al. 2018 (FPR at 95 % TPR).

    >>> from howsure import tally
    >>> fpr_at_tpr(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]))
    0.5
    """
    needs_zero_one(t, "fpr_at_tpr")
    if not 0 <= tpr <= 1:
        raise InputError(f"tpr is {tpr:g}; a share between 0 and 1 is needed.")
    right = np.cumsum(t.count - t.loss)
    wrong = np.cumsum(t.loss)
    if right[-1] <= 0 or wrong[-1] <= 0:
        return nan
    row = int(np.argmax(right / right[-1] >= tpr - 1e-12))
    return float(wrong[row] / wrong[-1])
