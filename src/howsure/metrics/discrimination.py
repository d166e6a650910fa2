"""Telling right from wrong: areas under the ROC and the precision–recall curve."""

from __future__ import annotations

from math import nan
from typing import Literal

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.curves import precision_recall
from howsure.metrics.extremes import Pair, of_order, precision_area, retrieved
from howsure.metrics.facts import metric
from howsure.metrics.harmonic import harmonic_rise, mean_rank_share, risk_sum
from howsure.tallies.tally import Blocks, Counts, Tally, needs_zero_one

MANY = 1 << 14  # samples that are not looked at one by one
TIED = 8  # up to one sample in so many may share its score with another before rows are looked at one by one


def _right_before_wrong(block: Blocks, n: Counts) -> Floats:
    """The share of pairs in the right order; blocks along the last axis, so that many drawn tables
    go at once.
    """
    wrong = np.asarray(block.loss.sum(axis=-1), dtype=np.float64)
    right = n - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (block.middle_sum - wrong * wrong / 2) / (
            wrong * right
        )  # what stands before a wrong answer, without the wrong
    some = right > 1e-12 * n  # sums of weights are rounded: what remains of nothing is not a sample
    return np.where(
        some, np.clip(share, 0.0, 1.0), nan
    )  # for the same reason a share may leave the range


def _certified_order(t: Tally) -> Pair:
    return of_order(t, _right_before_wrong)


def _certified_precision(t: Tally, positive: str = "error", method: str = "step") -> Pair:
    return precision_area(retrieved(t, positive), method)


@metric(
    better="higher",
    bounds=(0, 1),
    rank_only=True,
    of_blocks=_right_before_wrong,
    certify=_certified_order,
)
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
    return float(_right_before_wrong(t.blocks(), np.array(t.n)))


@metric(better="higher", bounds=(0, 1), rank_only=True, certify=_certified_precision)
def aupr(
    t: Tally,
    positive: Literal["error", "success"] = "error",
    method: Literal["step", "trapezoid", "davis_goadrich"] = "step",
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
    if method == "step" and positive in _PRECISIONS:
        return _PRECISIONS[positive](t)
    curve = precision_recall(t, positive)
    if np.isnan(curve.x[-1]):
        return nan
    area = _AREAS.get(method)
    if area is None:
        raise InputError(f"method={method!r}; aupr knows {', '.join(map(repr, _AREAS))}.")
    assert curve.weight is not None
    return area(curve.x, curve.y, curve.weight)


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
    right, wrong = np.cumsum(t.count - t.loss), np.cumsum(t.loss)
    if right[-1] <= 0 or wrong[-1] <= 0:
        return nan
    row = int(np.argmax(right / right[-1] >= tpr - 1e-12))
    return float(wrong[row] / wrong[-1])


def _error_precision(t: Tally) -> float:
    """Average precision from the ranks of the errors alone, found from the bottom up."""
    block, wrong = t.blocks(), float(t.total)
    if wrong <= 0:
        return nan
    found = np.cumsum(block.loss, dtype=np.float64)
    found -= block.loss
    np.subtract(wrong, found, out=found)  # in place: these columns are as long as the errors
    found *= block.loss
    found /= float(t.n) - block.before
    return float(found.sum() / wrong)


def _success_precision(t: Tally) -> float:
    """Average precision of finding right answers: of few ties from the risks that the AURC sums,
    else row by row.
    """
    few = not t.weighted and t.n >= MANY and TIED * (t.n - t.distinct) < t.n
    return _precision_by_risks(t) if few else _precision_by_rows(t)


def _precision_by_risks(t: Tally) -> float:
    """1 - the risk up to a right answer, on average: all risks less those at wrong answers and
    inside ties.

    A tie block of c samples, l of them wrong, from rank B to A adds e (H(A) - H(B)) + l share to
    the sum of risks, with e errors before it, and should add (c - l)(e + l)/A.
    """
    right, block, tie = float(t.n - t.total), t.blocks(), t.tied()
    if right <= 0:
        return nan
    errors = np.concatenate(([0.0], np.cumsum(block.loss, dtype=np.float64)))
    at_wrong = ((errors[1:] / block.after)[block.after - block.before == 1]).sum()
    before, after, loss = (
        np.asarray(c, dtype=np.float64) for c in (tie.before, tie.after, tie.loss)
    )
    e = errors[np.searchsorted(block.after, tie.before, side="right")]
    summed = e * harmonic_rise(before, after) + loss * mean_rank_share(before, after)
    inside = (summed - (after - before - loss) * (e + loss) / after).sum()
    return 1.0 - (float(risk_sum(block, np.array(t.n))) - float(at_wrong) - float(inside)) / right


def _precision_by_rows(t: Tally) -> float:
    """The same from the top down, some rows at a time."""
    found = kept = area = 0.0
    for _, count, wrong in t.pieces():
        right = count - wrong
        hits, shown = found + np.cumsum(right), kept + np.cumsum(count)
        area += float((right * (hits / shown)).sum())
        found, kept = float(hits[-1]), float(shown[-1])
    return area / found if found > 0 else nan


def _step(recall: Floats, precision: Floats, kept: Floats) -> float:  # noqa: ARG001
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def _trapezoid(recall: Floats, precision: Floats, kept: Floats) -> float:  # noqa: ARG001
    left = np.concatenate(([1.0], precision[:-1]))
    return float((np.diff(recall, prepend=0.0) * (left + precision)).sum() / 2)


def _davis_goadrich(recall: Floats, precision: Floats, kept: Floats) -> float:  # noqa: ARG001
    """Integrate tp / (tp + fp) with fp linear in tp between neighbouring points, in counts."""
    tp = precision * kept
    a, b = np.concatenate(([0.0], tp[:-1])), tp
    before = np.concatenate(([0.0], kept[:-1]))
    step = np.flatnonzero(b - a > 0.5 * np.finfo(float).eps * tp[-1])
    a, b, before, after = a[step], b[step], before[step], kept[step]
    per_hit = (after - before) / (b - a)  # samples kept per true positive
    offset = before - per_hit * a
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # before = 0 is the flat start, chosen below
        curved = offset / per_hit**2 * np.log1p((after - before) / before)
    area = (b - a) / per_hit - np.where(before > 0, curved, 0.0)
    return float(area.sum() / tp[-1])


_PRECISIONS = {"error": _error_precision, "success": _success_precision}
_AREAS = {"step": _step, "trapezoid": _trapezoid, "davis_goadrich": _davis_goadrich}

__all__ = ["aupr", "auroc", "fpr_at_tpr"]
