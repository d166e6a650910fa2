"""What changed between a reference and new data: tests of one column, and the class shares that
explain the new answers.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Array, Floats, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values
from howsure.report.report_types import DriftData, Moved
from howsure.report.sums import sum_at

LEAST_EXPECTED = 5.0  # rows of a value on each side for the test; rarer values are pooled
NAMED_VALUES = 5  # that moved most
FAR_DEVIATIONS = 50  # standard deviations beyond which a probability is 0
LEAST_CLASS_LABELS = 20  # in the reference; with fewer a class gets no factor of its own
MOST_FREE_CLASSES = 200  # classes with a factor of their own
PRIOR_PRECISION = 1.0  # of the logarithm of a factor: shares rarely change more than e²-fold
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-8


@frozen
class Drift:
    """A column beside the reference: effect size with its name, p-value, and the values that moved
    most.

    `moved` are (value, share in the reference, share now).
    """

    column: str
    effect: float
    measure: str
    p: float
    moved: tuple[tuple[str, float, float], ...] = ()

    def judge(self, level: float) -> DriftData:
        """As report JSON; it drifted where the p-value is below `level`."""
        return DriftData(
            column=self.column,
            effect=self.effect,
            measure=self.measure,
            p=self.p,
            drifted=self.p < level,
            moved=[Moved(name=value, reference=old, new=now) for value, old, now in self.moved],
        )


def measure_number_drift(
    column: str,
    reference: Floats,
    new: Floats,
    *,
    reference_times: Floats | None = None,
    times: Floats | None = None,
) -> Drift:
    r"""Kolmogorov and Smirnov's test: the largest difference D of the shares below any value, with
    its p-value.

    The p-value is the asymptotic one at :math:`D\sqrt{nm/(n+m)}`, on the safe side where values are
    tied. `times` and `reference_times` say how often each value is there.

    >>> measure_number_drift("score", np.linspace(0, 1, 200), np.linspace(0, 0.5, 200)).effect
    0.5
    """
    from scipy.special import kolmogorov

    values = np.unique(np.concatenate((reference, new)))
    sizes: list[float] = []
    below: list[Floats] = []
    for side, often in ((reference, reference_times), (new, times)):
        order = np.argsort(side)
        counts = np.ones(len(side)) if often is None else often[order]
        ends = np.concatenate(([0.0], np.cumsum(counts)))
        sizes.append(float(ends[-1]))
        below.append(ends[np.searchsorted(side[order], values, side="right")] / ends[-1])
    n, m = sizes
    # Both distribution functions jump at these values only, so the largest gap is at one of them.
    d = float(np.abs(below[0] - below[1]).max())
    return Drift(
        column=column,
        effect=d,
        measure="largest difference of shares below a value",
        p=float(kolmogorov(d * sqrt(n * m / (n + m)))),
    )


def measure_value_drift(column: str, reference: Array, new: Array) -> Drift:
    """Chi-squared test of equal shares; the effect is the share of rows that would have to change
    (total variation).

    Values with fewer than 5 expected rows are pooled.

    >>> round(measure_value_drift("answer", np.repeat([0, 1], 50), np.repeat([0, 1], [80, 20])).effect, 1)
    0.3
    """
    from scipy.special import chdtrc

    names, number = np.unique(np.concatenate((reference, new)), return_inverse=True)
    sides: list[Array] = np.split(number.reshape(-1), [len(reference)])
    counts = np.stack([count_values(side, minlength=len(names)) for side in sides])
    counts = counts.astype(np.float64)
    before, now = counts / counts.sum(axis=1, keepdims=True)
    change = np.abs(now - before)
    most: Ints = np.argsort(-change, kind="stable")[:NAMED_VALUES]
    moved = [(str(names[i]), float(before[i]), float(now[i])) for i in most if change[i]]
    # Rare values are pooled into one, because the test is an approximation for large counts.
    smaller_side = counts.sum(axis=1).min() / counts.sum()
    rare = counts.sum(axis=0) * smaller_side < LEAST_EXPECTED
    if rare.any():
        pool = counts[:, rare].sum(axis=1, keepdims=True)
        counts = np.concatenate((counts[:, ~rare], pool), axis=1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum())
    freedom = len(counts[0]) - 1
    return Drift(
        column=column,
        effect=float(change.sum() / 2),
        measure="share of rows that changed",
        p=float(chdtrc(freedom, statistic)) if freedom else 1.0,
        moved=tuple(moved),
    )


def measure_share_drift(column: str, some: int, n: int, later: int, m: int) -> Drift:
    """A share, `later` of `m` rows beside `some` of `n`: the change, with Fisher's exact p-value,
    right for rare ones.

    >>> round(measure_share_drift("no answer", 0, 3000, 4, 1000).p, 4)  # (1/4)^4: all four in the later quarter
    0.0039
    """
    before, now = some / n, later / m
    return Drift(
        column=column,
        effect=abs(now - before),
        measure="change of the share",
        p=compute_fisher_p(some, n, some + later, m),
        moved=((column, before, now),),
    )


def compute_fisher_p(some: int, n: int, total: int, m: int) -> float:
    """The probability that `total` of n + m rows fall among the n as unevenly as `some` did, or
    more so.
    """
    from scipy.special import betaln

    middle = n * total / (n + m)
    spread = sqrt(n * m * total * (n + m - total) / (n + m) ** 3)
    # Only counts near the middle are summed: all of millions would take long and add nothing.
    low, high = middle - FAR_DEVIATIONS * (spread + 1), middle + FAR_DEVIATIONS * (spread + 1)
    if not low <= some <= high:
        return 0.0
    first, last = max(0, total - m, int(low)), min(n, total, int(high))
    x = np.arange(first, last + 1, dtype=np.float64)
    log = -betaln(x + 1, n - x + 1) - betaln(total - x + 1, m - total + x + 1)
    chance = np.exp(log - log.max())
    # Equal chances may differ in the last bits.
    as_uneven = chance <= chance[some - first] * (1 + 1e-6)
    return float(chance[as_uneven].sum() / chance.sum())


class ShareCells(NamedTuple):
    """Rows by true class (of the reference only), answer and bin of the score, as numbers from 0."""

    label: Ints
    answer: Ints
    bin: Ints
    weight: Floats


@frozen(eq=False)
class ClassShares:
    r"""By which factor each class became likelier, with what its estimate rests on.

    In the new data class y is :math:`w_y` times and bin b of the score :math:`v_b` times as common
    as in the reference, and nothing else changed: answer ŷ in bin b then has the share :math:`v_b
    \sum_y w_y N_{y\hat yb}`, N the counts of the reference. The bins' factors drop out of the
    likelihood of the answers given their bins,

    .. math:: \ell(w) = \sum_{\hat y b} M_{\hat yb} \log \frac{\sum_y w_y N_{y\hat yb}}{\sum_y w_y N_{yb}},

    M the new counts, so that harder cases do not pass for other classes. log w has a normal prior of standard deviation
    1, which is carried into the variance. Saerens, Latinne & Decaestecker 2002 estimate w by EM where no bin changed;
    this is the maximum of the conditional likelihood, by Newton's method.
    """

    factor: Floats  # w of each class; 1 where there are too few labels
    free: Ints  # classes that have a factor of their own
    fit: LikelihoodPoint
    k: int
    reference: ShareCells

    def through_reference(self, slope: Floats) -> Floats:
        """How much each row of the reference moves a number with this slope in log w of the free
        classes.
        """
        rows, fit = self.reference, self.fit
        toward = np.zeros(self.k)
        step = fit.covariance @ slope
        toward[self.free] = step
        own, cell = toward[rows.label], rows.bin * self.k + rows.answer
        by_answer = fit.per_answer[cell] * (own - (fit.answers @ step)[cell])
        by_bin = fit.per_bin[rows.bin] * (own - (fit.bins @ step)[rows.bin])
        return rows.weight * self.factor[rows.label] * (by_answer - by_bin)

    def through_new(self, slope: Floats, new: ShareCells) -> Floats:
        """How much each new row moves it."""
        step = self.fit.covariance @ slope
        cell = new.bin * self.k + new.answer
        return new.weight * ((self.fit.answers @ step)[cell] - (self.fit.bins @ step)[new.bin])

    def prior_variance(self, slope: Floats) -> float:
        """What the prior leaves open of it."""
        return PRIOR_PRECISION * float(((self.fit.covariance @ slope) ** 2).sum())


class LikelihoodPoint(NamedTuple):
    """The penalised likelihood at some log w of the free classes: its gradient and inverse
    information, with the shares that they are made of.
    """

    gradient: Floats
    covariance: Floats  # of log w, from the new data and the prior
    answers: Floats  # (answer × bin, free): share of each free class among reference rows there
    bins: Floats  # (bin, free): the same of each bin
    per_answer: Floats  # new rows per weighted reference row, of each answer and bin
    per_bin: Floats


def estimate_class_shares(reference: ShareCells, new: ShareCells, k: int) -> ClassShares:
    """The factors that explain the new answers best.

    >>> rng = np.random.default_rng(0)
    >>> label = np.repeat([0, 1], 1000)
    >>> answer = np.where(rng.random(2000) < 0.9, label, 1 - label)
    >>> one, zero = np.ones(2000), np.zeros(2000, dtype=np.int64)
    >>> later = np.repeat([0, 1], [500, 1500])  # class 1 became three times as common beside class 0
    >>> said = np.where(rng.random(2000) < 0.9, later, 1 - later)
    >>> past, now = ShareCells(label, answer, zero, one), ShareCells(zero, said, zero, one)
    >>> w = estimate_class_shares(past, now, 2).factor
    >>> bool(2.5 < w[1] / w[0] < 3.6)
    True
    """
    bins = int(max(reference.bin.max(), new.bin.max())) + 1
    labels = sum_at(reference.label, reference.weight, k)
    # The commonest classes are free, of the others the factor stays 1.
    free = np.sort(np.argsort(-labels, kind="stable")[: min(MOST_FREE_CLASSES, k)])
    free = free[labels[free] >= LEAST_CLASS_LABELS]
    table = np.zeros((bins * k, k))
    np.add.at(table, (reference.bin * k + reference.answer, reference.label), reference.weight)
    # Half a row is added to each answer and bin, spread over the classes as the answer's rows of
    # all bins are, so that no cell is empty by chance.
    by_answer = table.reshape(bins, k, k).sum(axis=0)
    total = by_answer.sum(axis=1, keepdims=True)
    half_row = np.where(total > 0, 0.5 * by_answer / np.maximum(total, 1e-300), 0.0)
    table += np.tile(half_row, (bins, 1))
    counts = sum_at(new.bin * k + new.answer, new.weight, bins * k)
    theta = np.zeros(len(free))
    point = _evaluate_likelihood(theta, table, counts, free, bins)
    for _ in range(NEWTON_STEPS):
        step = point.covariance @ point.gradient
        # A step changes no factor more than e-fold, or Newton's method may run away.
        step *= min(1.0, 1.0 / max(1e-12, float(np.abs(step).max(initial=0.0))))
        theta = theta + step
        point = _evaluate_likelihood(theta, table, counts, free, bins)
        if np.abs(step).max(initial=0.0) < NEWTON_TOLERANCE:
            break
    factor = np.ones(k)
    factor[free] = np.exp(theta)
    return ClassShares(factor=factor, free=free, fit=point, k=k, reference=reference)


def _evaluate_likelihood(
    theta: Floats, table: Floats, counts: Floats, free: Ints, bins: int
) -> LikelihoodPoint:
    k = table.shape[1]
    weight = np.ones(k)
    weight[free] = np.exp(theta)
    weighted = table * weight
    total = weighted.sum(axis=1)
    by_bin = weighted.reshape(bins, k, k).sum(axis=1)
    bin_total = by_bin.sum(axis=1)
    answers = weighted[:, free] / np.maximum(total, 1e-300)[:, None]
    of_bins = by_bin[:, free] / np.maximum(bin_total, 1e-300)[:, None]
    counts = np.where(
        total > 0, counts, 0.0
    )  # an answer that the reference never gave says nothing
    bin_counts = counts.reshape(bins, k).sum(axis=1)
    apart = answers - repeat_values(of_bins, k, axis=0)
    information: Floats = (apart * counts[:, None]).T @ apart
    penalised = information + PRIOR_PRECISION * np.eye(len(free))
    with np.errstate(divide="ignore", invalid="ignore"):
        per_answer = np.where(total > 0, counts / total, 0.0)
        per_bin = np.where(bin_total > 0, bin_counts / bin_total, 0.0)
    return LikelihoodPoint(
        gradient=counts @ answers - bin_counts @ of_bins - PRIOR_PRECISION * theta,
        covariance=np.linalg.inv(penalised).astype(np.float64),
        answers=answers,
        bins=of_bins,
        per_answer=per_answer,
        per_bin=per_bin,
    )
