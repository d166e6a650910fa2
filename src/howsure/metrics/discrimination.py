"""Telling right from wrong: areas under the ROC and the precision–recall curve, what a histogram of
correctness is worth (Finlay & Oberman), and bands of promised accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Literal

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure.curves import precision_recall
from howsure.curves.curve import Histogram, histogram, odds_ratio
from howsure.metrics.metric_facts import metric
from howsure.metrics.risk_coverage import (
    find_last_reaching,
    harmonic_rise,
    list_error_cuts,
    mean_rank_share,
    risk_sum,
)
from howsure.tallies.tally import (
    WEIGHT_SUM_ROUNDING,
    Blocks,
    Counts,
    Tally,
    is_tally,
    needs_zero_one,
)

__all__ = [
    "Bands",
    "aupr",
    "auroc",
    "bands",
    "conditional_entropy",
    "eor",
    "expected_score",
    "fpr_at_tpr",
    "histogram_auroc",
    "histogram_brier",
]

PrecisionMethod = Literal["step", "trapezoid", "davis_goadrich"]
Degenerate = Literal["inf", "smooth", "drop", "cap", "merge", "pool"]
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


# ---- histograms of correctness


@metric(better="higher", bounds=(1, inf), rank_only=True, smooth=False)
def eor(
    h: Histogram | Tally,
    degenerate: Degenerate = "inf",
    cap: float | None = None,
    base: float | None = None,
) -> float:
    r"""Expected odds ratio: what knowing the bin of a sample is worth to a bettor.

    .. math:: \mathrm{EOR} = \sum_i w_i\, S_\mathrm{OR}(p_i, a), \quad a = \sum_i w_i p_i

    A tally means 100 bins of equal size. A bin without errors (or without successes) makes it inf, honestly;
    `degenerate` may instead `smooth` p to (k + 1/2) / (n + 1), `drop` such bins, `cap` each score at `cap`, or
    `merge` such a bin with its smaller neighbour, or `pool` those at the ends: the accuracies from the first bin to the
    one after the last without an error become their mean, and those from the first bin without a success on their sum
    over one more than their number, a staying what it was (still inf where all of these have no success). `base` replaces
    a. Range [1, inf], 1 says nothing is learnt.
    Finlay & Oberman, definition 2. See also: `bands`, `odds_by_quantile`.

    >>> eor(Histogram(weight=[1, 1, 1, 1], p=[1/2, 1/2, 15/16, 1/16]))
    8.0
    """
    if is_tally(h):
        h = histogram(h)
    if degenerate == "cap":
        if cap is None or not cap >= 1:
            raise InputError("degenerate='cap' needs cap=, a number of at least 1.")
        return float(np.dot(h.weight, np.minimum(_score_bins(h, base), cap)))
    if degenerate == "smooth":
        count, right = _need_counts(h, "smooth")
        h = Histogram(h.weight, (right + 0.5) / (count + 1))
    elif degenerate == "drop":
        keep = (h.p > 0) & (h.p < 1)
        if not keep.any():
            return nan
        h = h.select(keep)
    elif degenerate == "merge":
        h = _merge_degenerate(h)
    elif degenerate == "pool":
        if base is None:
            base = h.base
        h = Histogram(h.weight, pool_accuracies(h.p))
    elif degenerate != "inf":
        raise InputError(
            f"degenerate={degenerate!r}; eor knows 'inf', 'smooth', 'drop', 'cap', 'merge' and 'pool'."
        )
    return float(np.dot(h.weight, _score_bins(h, base)))


def _score_bins(h: Histogram, base: float | None) -> Floats:
    """The odds ratio of each bin against `base`, or against the whole."""
    if base is not None:
        return np.atleast_1d(odds_ratio(h.p, base))
    return np.where(h.at_base, 1.0, np.atleast_1d(odds_ratio(h.p, h.base)))


def _need_counts(h: Histogram, why: str) -> tuple[Counts, Counts]:
    if h.count is None or h.right is None:
        raise InputError(f"degenerate={why!r} needs counts; make the histogram from data.")
    return h.count, h.right


def pool_accuracies(p: Floats) -> Floats:
    """The accuracies of bins, most trusted first, without 0 and 1 at their ends.

    The rule of Finlay & Oberman's released code, but for a last bin without an error, where that
    divides by one more.

    >>> pool_accuracies(np.array([1.0, 0.9, 1.0, 0.7, 0.0, 0.4])).round(2)
    array([0.9 , 0.9 , 0.9 , 0.9 , 0.13, 0.13])
    """
    pooled = np.array(p, dtype=np.float64)
    perfect = np.flatnonzero(pooled >= 1)
    if len(perfect):
        end = min(int(perfect[-1]) + 2, len(pooled))
        pooled[:end] = pooled[:end].mean()
    hopeless = np.flatnonzero(pooled <= 0)
    if len(hopeless):
        first = int(hopeless[0])
        pooled[first:] = pooled[first:].sum() / (len(pooled) - first + 1)
    return pooled


def _merge_degenerate(h: Histogram) -> Histogram:
    """Each bin without errors or without successes joins its smaller neighbour."""
    count, right = (column.tolist() for column in _need_counts(h, "merge"))
    while len(count) > 1:
        i = next((i for i in range(len(count)) if right[i] in (0, count[i])), None)
        if i is None:
            break
        neighbours = [j for j in (i - 1, i + 1) if 0 <= j < len(count)]
        j = min(neighbours, key=lambda j: (count[j], j))
        count[j] += count[i]
        right[j] += right[i]
        del count[i], right[i]
    return Histogram.from_counts(count, right)


def expected_score(h: Histogram, score: Callable[[Floats, float], Floats]) -> float:
    r"""The mean of any bin score, :math:`\sum_i w_i S(p_i, a)`; with `odds_ratio` it is `eor`.

    Finlay & Oberman, section 4.

    >>> round(expected_score(Histogram([1, 1], [0.4, 0.6]), lambda p, a: abs(p - a)), 1)
    0.1
    """
    return float(np.dot(h.weight, score(h.p, h.base)))


def conditional_entropy(h: Histogram) -> float:
    r"""What is still unknown about being right once the bin is known, in bits: :math:`\sum_i w_i
    H_2(p_i)`.

    Range [0, 1], 0 is perfect. Finlay & Oberman, section 3.3 (the printed H lost its minus sign).

    >>> conditional_entropy(Histogram([1], [0.5]))
    1.0
    """
    p = np.stack((h.p, 1 - h.p))
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = -np.where(p > 0, p * np.log2(p), 0.0).sum(axis=0)
    return float(np.dot(h.weight, bits))


def histogram_auroc(h: Histogram) -> float:
    r"""AUROC of spotting errors with the bins in the given order, later bins claiming more; ties in
    a bin count 1/2.

    It depends on the order, the odds ratio does not. nan where all are right or all wrong. Range
    [0, 1]. A histogram of a tally has its most trusted bin first: pass `h.reversed()`. Finlay &
    Oberman, examples 5 and 6.

    >>> round(histogram_auroc(Histogram([1, 1, 1, 1], [1/16, 1/2, 1/2, 15/16])), 2)
    0.83
    """
    right, wrong = h.weight * h.p, h.weight * (1 - h.p)
    if right.sum() <= 0 or wrong.sum() <= 0:
        return nan
    later = right.sum() - np.cumsum(right)
    return float(np.dot(wrong, later + right / 2) / right.sum() / wrong.sum())


def histogram_brier(h: Histogram) -> float:
    r"""The Brier score left once the bin is known, :math:`\sum_i w_i p_i (1 - p_i)`.

    The mean squared distance between a bin's accuracy and the outcomes in it. Range [0, 1/4], 0 is
    perfect. Finlay & Oberman, table 2.

    >>> histogram_brier(Histogram([1], [0.5]))
    0.25
    """
    return float(np.dot(h.weight, h.p * (1 - h.p)))


@frozen(eq=False)
class Bands:
    """Shares of samples in bands of promised accuracy, most trusted first; the last band is the
    rest.

    `threshold[i]` is the lowest score that belongs to band i: accept it where score >= threshold.
    An empty band has the threshold of the one before it, inf for the first, and accuracy nan.

    >>> from howsure import tally
    >>> bands(tally([0.9, 0.8], correct=[1, 0]), levels=(0.99,)).accuracy
    array([1., 0.])
    """

    levels: tuple[float, ...]
    weight: Floats
    accuracy: Floats
    threshold: Floats


def bands(t: Tally, levels: Sequence[float] = (0.99, 0.95)) -> Bands:
    """The widest band that keeps the first level of accuracy, then the next one below it, then the
    rest.

    Each band is as wide as it can be given those before it. Counts are compared, so 99 of 100 reach
    0.99. Finlay & Oberman, tables 3 to 5.

    >>> from howsure import tally
    >>> bands(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]), levels=(1.0, 0.5)).weight
    array([0.25, 0.5 , 0.25])
    """
    needs_zero_one(t, "bands")
    for level in levels:
        checks.fraction(level, "a level of bands")
    kept, right = list_error_cuts(t)
    kept = np.concatenate(([0.0], kept))
    right = np.concatenate(([0.0], right))
    ends = [0]
    for level in levels:
        last = find_last_reaching(right, kept, level, after=ends[-1])
        ends.append(ends[-1] if last is None else last)
    cut = np.array([*ends, len(kept) - 1])
    count, hits = np.diff(kept[cut]), np.diff(right[cut])
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = hits / count  # nan of nothing
    # The lowest score before each cut; inf before the first sample.
    threshold: list[float] = []
    for at in kept[cut[1:-1]].tolist():
        if at <= 0:
            threshold.append(inf)
        elif not t.weighted:
            threshold.append(t.score_at(int(at) - 1))
        else:
            # Sums of weights are rounded: the cut may miss the end of its row by a rounding.
            cuts = np.cumsum(t.count)
            threshold.append(float(t.score[np.searchsorted(cuts, at - WEIGHT_SUM_ROUNDING * t.n)]))
    return Bands(
        levels=tuple(levels),
        weight=count / kept[-1],
        accuracy=accuracy,
        threshold=np.array(threshold),
    )
