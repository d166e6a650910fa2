"""What one sample changes: the influence of single answers on every metric that has one.

The variance of a number is the sum of squared influences over n², whatever the number is. Ranking
numbers see only the rows that hold wrong answers: right answers between two of them have the same
influence. Other numbers have an influence on every row of a tally that is linear in the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.checks import Floats
from howsure._core.frozen import frozen
from howsure.binning import Binning, adaptive, equal_range, equal_size
from howsure.metrics.metric_facts import Metric, get_options, unwrap_metric
from howsure.metrics.proper_scores import mean_loss
from howsure.uncertainty.calibration_limits import GapPart

if TYPE_CHECKING:
    from howsure.uncertainty.sample_case import SampleCase

LossOfClaim: TypeAlias = Callable[[Floats], Floats]  # claims → the loss of each
GapSign: TypeAlias = Callable[[Floats], Floats]  # gaps of bins → the sign that each counts with


@frozen(eq=False)
class Ranks:
    """Rows that hold wrong answers, most trusted first: samples before the row, at its end, and the
    wrong ones in it.

    Counts are samples, or weights of mean 1. `n` is the size of the whole. The samples fall into
    cells: right answers in the gaps before, between and after these rows, right answers tied with
    wrong ones, and wrong answers.
    """

    before: Floats
    after: Floats
    wrong: Floats
    n: float

    @cached_property
    def k(self) -> float:
        """Wrong answers in all."""
        return float(self.wrong.sum())

    @property
    def m(self) -> float:
        """Right answers in all."""
        return max(0.0, self.n - self.k)

    @cached_property
    def free(self) -> Floats:
        """Right answers in the gaps; one gap more than there are rows."""
        return np.append(self.before, self.n) - np.concatenate(([0.0], self.after))

    @cached_property
    def tied(self) -> Floats:
        """Right answers in the rows themselves."""
        return self.after - self.before - self.wrong

    @cached_property
    def upto(self) -> Floats:
        """Wrong answers up to and including each row."""
        return np.cumsum(self.wrong)


class Influence(NamedTuple):
    """What one sample of each cell adds to n times a number, around a mean of 0."""

    free: Floats
    tied: Floats
    wrong: Floats

    def sum_squares(self, r: Ranks) -> float:
        """The sum of squared influences over all samples."""
        return float(
            np.dot(r.free, self.free**2)
            + np.dot(r.tied, self.tied**2)
            + np.dot(r.wrong, self.wrong**2)
        )


class RowInfluence(NamedTuple):
    """The influence of a sample of each row of a tally: start + slope · its loss."""

    start: Floats
    slope: Floats


# ---- ranking numbers


def compute_aurc_influence(r: Ranks) -> Influence:
    r"""An error counts in all risks below it, and whoever joins dilutes the risks below:
    :math:`\lambda x - G`.

    :math:`x = 1 + \ln(n/A) - (B/c) \ln(A/B)`. G sums :math:`\ell \ln(A/B)/c` over the rows below and the own row's
    :math:`(\ell/c) (1 - (B/c) \ln(A/B))`, which is half of that where the row is narrow.
    """
    size = r.after - r.before
    some = r.before > 0  # ln(A/B)/c is not read at B = 0
    rise = np.where(some, np.log1p(size / np.where(some, r.before, 1.0)) / size, 0.0)
    within = 1.0 - r.before * rise
    free = _sum_below(r.wrong * rise)
    tied = free[1:] + r.wrong / size * within
    return _centre(r, free=-free, tied=-tied, wrong=np.log(r.n / r.after) + within - tied)


def compute_e_aurc_influence(r: Ranks) -> Influence:
    """That of the AURC minus that of the best order, which is a function of the error rate alone."""
    area = compute_aurc_influence(r)
    error_rate = r.k / r.n
    if error_rate >= 1:
        return area
    return _centre(r, free=area.free, tied=area.tied, wrong=area.wrong + np.log1p(-error_rate))


def compute_augrc_influence(r: Ranks) -> Influence:
    """An error counts in every coverage beyond its rank; whoever joins moves the errors below down
    by one.
    """
    free = _sum_below(r.wrong / r.n)
    tied = free[:-1] - r.wrong / r.n / 2
    return _centre(r, free=-free, tied=-tied, wrong=1.0 - (r.after + r.before) / (2 * r.n) - tied)


def placements(r: Ranks) -> tuple[Floats, Floats, Floats]:
    """Share of right answers below each row, ties half; share of wrong ones above each gap, and
    above each row.

    Their means over the wrong and over the right answers are both 1 − AUROC.
    """
    rights_below = r.m - (r.after - r.upto) + r.tied / 2
    above = np.concatenate(([0.0], r.upto))
    return rights_below / r.m, above / r.k, (r.upto - r.wrong / 2) / r.k


def compute_auroc_influence(r: Ranks) -> Influence:
    """One minus the share of pairs that stand the wrong way round (DeLong et al. 1988)."""
    missed, free, tied = placements(r)
    share = float(np.dot(r.wrong, missed)) / r.k
    return _centre(
        r,
        free=(share - free) * r.n / r.m,
        tied=(share - tied) * r.n / r.m,
        wrong=(share - missed) * r.n / r.k,
    )


def compute_aupr_error_influence(r: Ranks) -> Influence:
    """Average precision of finding errors from the least trusted up."""
    shown = r.n - r.before  # samples from the bottom up to and including the row
    precision = (r.k - r.upto + r.wrong) / shown
    gain = np.cumsum(r.wrong * (1 - precision) / shown)
    loss = np.cumsum(r.wrong * precision / shown)
    mean = float(np.dot(r.wrong, precision) / r.wrong.sum())
    scale = r.n / r.k
    return _centre(
        r,
        free=-scale * np.concatenate(([0.0], loss)),
        tied=-scale * loss,
        wrong=scale * (precision + gain - mean),
    )


def compute_own_precision(r: Ranks) -> float:
    """How much average precision of errors gains because every error is among those that its
    precision counts.
    """
    shown = r.n - r.before
    return float((r.wrong * (1 - (r.k - r.upto + r.wrong) / shown) / shown).sum()) / r.k


def compute_aupr_success_influence(r: Ranks) -> Influence:
    """Average precision of finding right answers from the most trusted down; gaps are taken as free
    of ties.
    """
    start = np.concatenate(([0.0], r.after))
    end = np.append(r.before, r.n)
    wrong = np.concatenate(([0.0], r.upto))
    precision = 1.0 - r.upto / r.after
    # In a gap the precisions run through wrong/rank, whose sums are differences of harmonic
    # numbers; no wrong answer stands above the first gap.
    rise = np.log((end + 0.5) / (start + 0.5))
    squared = wrong * (1 / (start + 0.5) - 1 / (end + 0.5))
    gain = r.tied * (1 - precision) / r.after
    loss = r.tied * precision / r.after
    # Gaps and rows alternate: below a gap follow its row and the gap after that.
    gain_below_gap = _sum_below(squared[1:] + gain)
    loss_below_gap = _sum_below((rise - squared)[1:] + loss)
    gain_below_row = gain_below_gap[:-1] - gain
    loss_below_row = loss_below_gap[:-1] - loss
    mean = 1.0 - float(np.dot(wrong, rise) + np.dot(r.tied, 1 - precision)) / r.m
    scale = r.n / r.m
    return _centre(
        r,
        free=scale * (1.0 - wrong / (end + 0.5) + gain_below_gap - mean),
        tied=scale * (precision + gain_below_row + gain - mean),
        wrong=-scale * (loss_below_row + loss),
    )


def _centre(r: Ranks, free: Floats, tied: Floats, wrong: Floats) -> Influence:
    """The influence minus its mean over all samples."""
    mean = float(np.dot(r.free, free) + np.dot(r.tied, tied) + np.dot(r.wrong, wrong)) / r.n
    return Influence(free=free - mean, tied=tied - mean, wrong=wrong - mean)


def _sum_below(column: Floats) -> Floats:
    """Sums over the rows below each gap, of which there is one more than of rows."""
    return np.append(np.cumsum(column[::-1])[::-1], 0.0)


# ---- by metric


def weigh_over(gap: Floats) -> Floats:
    """Only gaps above 0 count."""
    return np.where(gap > 0, 1.0, 0.0)


def weigh_under(gap: Floats) -> Floats:
    """Only gaps below 0 count."""
    return np.where(gap < 0, -1.0, 0.0)


class GapKind(NamedTuple):
    """Which gaps a calibration error sums, the sign of each, and its usual bins."""

    part: GapPart
    sign: GapSign
    bins: Binning


@frozen(eq=False)
class ClaimLoss:
    """The loss of a right and of a wrong answer at a claim."""

    right: LossOfClaim
    wrong: LossOfClaim


RANKING_INFLUENCES: Mapping[Metric, Callable[[Ranks], Influence]] = {
    metrics.aac: compute_aurc_influence,
    metrics.augrc: compute_augrc_influence,
    metrics.aurc: compute_aurc_influence,
    metrics.auroc: compute_auroc_influence,
    metrics.e_aurc: compute_e_aurc_influence,
}
CLAIM_LOSSES: Mapping[Metric, ClaimLoss] = {
    metrics.correctness_brier: ClaimLoss(right=lambda r: (1 - r) ** 2, wrong=lambda r: r**2),
    metrics.correctness_nll: ClaimLoss(right=lambda r: -np.log(r), wrong=lambda r: -np.log1p(-r)),
    metrics.signed_calibration_error: ClaimLoss(right=lambda r: r - 1, wrong=lambda r: r),
}
GAP_KINDS: Mapping[Metric, GapKind] = {
    metrics.aece: GapKind(part="all", sign=np.sign, bins=adaptive()),
    metrics.ece: GapKind(part="all", sign=np.sign, bins=equal_range(15)),
    metrics.over_confidence: GapKind(part="over", sign=weigh_over, bins=equal_range(15)),
    metrics.under_confidence: GapKind(part="under", sign=weigh_under, bins=equal_range(15)),
}


def choose_aupr_influence(positive: str) -> Callable[[Ranks], Influence]:
    """The influence on the AUPR of finding errors, or of finding right answers."""
    if positive == "error":
        return compute_aupr_error_influence
    return compute_aupr_success_influence


def compute_influence(
    metric: Metric, case: SampleCase, value: float, *, smooth: bool = False
) -> RowInfluence | None:
    """The influence on a metric with this value; None where it is not known.

    Signs of gaps and cuts are taken as those seen, which is enough for an upper end; `smooth`
    leaves such metrics out.
    """
    name, chosen = unwrap_metric(metric), get_options(metric)
    if name in RANKING_INFLUENCES:
        return case.spread_over_rows(RANKING_INFLUENCES[name](case.ranks))
    if name is metrics.aupr:
        of_ranks = choose_aupr_influence(chosen.get("positive", "error"))
        return case.spread_over_rows(of_ranks(case.ranks))
    if name is metrics.accuracy:
        start, slope = compute_error_influence(case, 1 - value)
        return RowInfluence(start=-start, slope=-slope)
    if name is mean_loss:
        return compute_error_influence(case, value)
    if name is metrics.correctness_brier and not case.tally.zero_one:
        return None  # the square of a grade is not between those of right and wrong
    if name in CLAIM_LOSSES:
        return case.compute_loss_influence(CLAIM_LOSSES[name], value)
    if smooth:
        return None
    if name in GAP_KINDS:
        kind = GAP_KINDS[name]
        return case.compute_gap_influence(chosen.get("bins", kind.bins), kind.sign)
    if name in (metrics.debiased_ece, metrics.rms_calibration_error):
        return case.compute_root_gap_influence(chosen.get("bins", equal_size(15)))
    if name is metrics.risk_at_coverage:
        coverage: float = chosen["coverage"]
        end = float(case.find_cuts(np.array([coverage * case.n]))[0])
        kept = case.mark_accepted(end) / coverage
        return case.centre(-value * kept, kept)
    return None


def compute_error_influence(case: SampleCase, value: float) -> RowInfluence:
    """Being wrong, around its share; or the loss, around its mean."""
    rows = len(case.rows.score)
    return RowInfluence(start=np.full(rows, -value), slope=np.ones(rows))
