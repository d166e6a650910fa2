"""Influence of single answers on the ranking numbers: rows of a tally → what one right or wrong
answer there changes.

Right answers between two rows with errors have the same influence, so the rows with errors suffice.
The variance of a number is the sum of squared influences over n², whatever the number is.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats
from howsure._core.frozen import frozen

__all__ = ["Influence", "Ranks", "augrc", "aupr_error", "aupr_success", "aurc", "auroc", "e_aurc"]


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

    def squares(self, r: Ranks) -> float:
        """The sum of squares over all samples."""
        return float(
            np.dot(r.free, self.free**2)
            + np.dot(r.tied, self.tied**2)
            + np.dot(r.wrong, self.wrong**2)
        )


def centred(r: Ranks, free: Floats, tied: Floats, wrong: Floats) -> Influence:
    """The influence minus its mean over all samples."""
    mean = float(np.dot(r.free, free) + np.dot(r.tied, tied) + np.dot(r.wrong, wrong)) / r.n
    return Influence(free - mean, tied - mean, wrong - mean)


def aurc(r: Ranks) -> Influence:
    r"""An error counts in all risks below it, and whoever joins dilutes the risks below:
    :math:`\lambda x - G`.

    :math:`x = 1 + \ln(n/A) - (B/c) \ln(A/B)`. G sums :math:`\ell \ln(A/B)/c` over the rows below and the own row's
    :math:`(\ell/c) (1 - (B/c) \ln(A/B))`, which is half of that where the row is narrow.
    """
    rise, size = _log_rise(r), r.after - r.before
    within = 1.0 - r.before * rise
    free, _ = _below(r.wrong * rise)
    tied = free[1:] + r.wrong / size * within
    return centred(r, -free, -tied, np.log(r.n / r.after) + within - tied)


def e_aurc(r: Ranks) -> Influence:
    """That of `aurc` minus that of the best order, which is a function of the error rate alone."""
    part, e = aurc(r), r.k / r.n
    if e >= 1:
        return part
    return centred(r, part.free, part.tied, part.wrong + np.log1p(-e))


def augrc(r: Ranks) -> Influence:
    """An error counts in every coverage beyond its rank; whoever joins moves the errors below down
    by one.
    """
    free, tied = _below(r.wrong / r.n)
    return centred(r, -free, -tied, 1.0 - (r.after + r.before) / (2 * r.n) - tied)


def placements(r: Ranks) -> tuple[Floats, Floats, Floats]:
    """Share of right answers below each row, ties half; share of wrong ones above each gap, and
    above each row.

    Their means over the wrong and over the right answers are both 1 − AUROC.
    """
    rights_below = r.m - (r.after - r.upto) + r.tied / 2
    above = np.concatenate(([0.0], r.upto))
    return rights_below / r.m, above / r.k, (r.upto - r.wrong / 2) / r.k


def auroc(r: Ranks) -> Influence:
    """One minus the share of pairs that stand the wrong way round (DeLong et al. 1988)."""
    missed, free, tied = placements(r)
    share = float(np.dot(r.wrong, missed)) / r.k
    return centred(
        r, (share - free) * r.n / r.m, (share - tied) * r.n / r.m, (share - missed) * r.n / r.k
    )


def aupr_error(r: Ranks) -> Influence:
    """Average precision of finding errors from the least trusted up."""
    shown = r.n - r.before  # samples from the bottom up to and including the row
    precision = (r.k - r.upto + r.wrong) / shown
    gain, loss = (
        np.cumsum(r.wrong * (1 - precision) / shown),
        np.cumsum(r.wrong * precision / shown),
    )
    scale = r.n / r.k
    wrong = scale * (precision + gain - _mean_precision(r.wrong, precision))
    return centred(r, -scale * np.concatenate(([0.0], loss)), -scale * loss, wrong)


def own_precision(r: Ranks) -> float:
    """How much average precision of errors gains because every error is among those that its
    precision counts.
    """
    shown = r.n - r.before
    return float((r.wrong * (1 - (r.k - r.upto + r.wrong) / shown) / shown).sum()) / r.k


def aupr_success(r: Ranks) -> Influence:
    """Average precision of finding right answers from the most trusted down; gaps are taken as free
    of ties.
    """
    start, end = np.concatenate(([0.0], r.after)), np.append(r.before, r.n)
    wrong = np.concatenate(([0.0], r.upto))
    precision = 1.0 - r.upto / r.after
    squared = wrong * (1 / (start + 0.5) - 1 / (end + 0.5))
    rise = np.log(
        (end + 0.5) / (start + 0.5)
    )  # of the harmonic numbers; no wrong answer stands above the first gap
    gain, loss = r.tied * (1 - precision) / r.after, r.tied * precision / r.after
    gain_below, loss_below = _after(squared, gain), _after(rise - squared, loss)
    scale = r.n / r.m
    mean = 1.0 - float(np.dot(wrong, rise) + np.dot(r.tied, 1 - precision)) / r.m
    free = scale * (1.0 - wrong / (end + 0.5) + gain_below[0] - mean)
    tied = scale * (precision + gain_below[1] + gain - mean)
    return centred(r, free, tied, -scale * (loss_below[1] + loss))


def _after(free: Floats, tied: Floats) -> tuple[Floats, Floats]:
    """Sums over what follows each gap, and over what follows each row; both kinds alternate, gaps
    first.
    """
    step = free[1:] + tied  # a row and the gap after it
    below = np.append(np.cumsum(step[::-1])[::-1], 0.0)
    return below, below[:-1] - tied


def _log_rise(r: Ranks) -> Floats:
    """ln(A/B)/c of each row; 0 at B = 0, where it is not read."""
    some, size = r.before > 0, r.after - r.before
    return np.where(some, np.log1p(size / np.where(some, r.before, 1.0)) / size, 0.0)


def _below(column: Floats) -> tuple[Floats, Floats]:
    """Sums over the rows below each gap; over the rows below each row and half of its own."""
    below = np.append(np.cumsum(column[::-1])[::-1], 0.0)
    return below, below[:-1] - column / 2


def _mean_precision(positives: Floats, precision: Floats) -> float:
    return float(np.dot(positives, precision) / positives.sum())
