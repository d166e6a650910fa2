"""Changed class shares: how much likelier each class became, from answers and scores alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats, Ints
from howsure._core.frozen import frozen

LEAST = 20  # labels of a class in the reference, below which it gets no factor of its own
MOST = 200  # classes with a factor of their own
PRIOR = 1.0  # precision of the logarithm of a factor: shares rarely change more than e²-fold
STEPS, GOAL = 50, 1e-8


def summed(at: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each of `size` places."""
    return np.bincount(at, values, minlength=size).astype(np.float64)


class Cells(NamedTuple):
    """Rows by true class (of the reference only), answer and bin of the score, as numbers from 0."""

    label: Ints
    answer: Ints
    bin: Ints
    weight: Floats


@frozen(eq=False)
class Shares:
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
    covariance: Floats  # of log w of the free classes, from the new data and the prior
    answers: Floats  # (answer × bin, free): share of each free class among reference rows of that answer and bin
    bins: Floats  # (bin, free): the same of each bin
    per_answer: Floats  # new rows per weighted reference row, of each answer and bin
    per_bin: Floats
    k: int
    reference: Cells

    def through_reference(self, slope: Floats) -> Floats:
        """How much each row of the reference moves a number with this slope in log w of the free
        classes.
        """
        c, (toward, answers, bins) = self.reference, self._along(slope)
        cell, own = c.bin * self.k + c.answer, toward[c.label]
        moved = self.per_answer[cell] * (own - answers[cell]) - self.per_bin[c.bin] * (
            own - bins[c.bin]
        )
        return c.weight * self.factor[c.label] * moved

    def through_new(self, slope: Floats, new: Cells) -> Floats:
        """How much each new row moves it."""
        _, answers, bins = self._along(slope)
        return new.weight * (answers[new.bin * self.k + new.answer] - bins[new.bin])

    def prior_variance(self, slope: Floats) -> float:
        """What the prior leaves open of it."""
        return PRIOR * float(((self.covariance @ slope) ** 2).sum())

    def _along(self, slope: Floats) -> tuple[Floats, Floats, Floats]:
        step, toward = self.covariance @ slope, np.zeros(self.k)
        toward[self.free] = step
        return toward, self.answers @ step, self.bins @ step


def class_shares(reference: Cells, new: Cells, k: int) -> Shares:
    """The factors that explain the new answers best.

    >>> rng = np.random.default_rng(0)
    >>> label = np.repeat([0, 1], 1000)
    >>> answer = np.where(rng.random(2000) < 0.9, label, 1 - label)
    >>> one, zero = np.ones(2000), np.zeros(2000, dtype=np.int64)
    >>> later = np.repeat([0, 1], [500, 1500])  # class 1 became three times as common beside class 0
    >>> said = np.where(rng.random(2000) < 0.9, later, 1 - later)
    >>> w = class_shares(Cells(label, answer, zero, one), Cells(zero, said, zero, one), 2).factor
    >>> bool(2.5 < w[1] / w[0] < 3.6)
    True
    """
    bins = int(max(reference.bin.max(), new.bin.max())) + 1
    cell, size = reference.bin * k + reference.answer, bins * k
    counts = summed(reference.label, reference.weight, k)
    free = np.sort(np.argsort(-counts, kind="stable")[: min(MOST, k)])
    free = free[counts[free] >= LEAST]
    table = np.zeros((size, k))
    np.add.at(table, (cell, reference.label), reference.weight)
    table += _half_a_row(table.reshape(bins, k, k).sum(axis=0), bins)
    m = summed(new.bin * k + new.answer, new.weight, size)
    theta = np.zeros(len(free))
    found = _at(theta, table, m, free, bins, k)
    for _ in range(STEPS):
        step = found.covariance @ found.gradient
        step *= min(1.0, 1.0 / max(1e-12, float(np.abs(step).max(initial=0.0))))
        theta = theta + step
        found = _at(theta, table, m, free, bins, k)
        if np.abs(step).max(initial=0.0) < GOAL:
            break
    factor = np.ones(k)
    factor[free] = np.exp(theta)
    return Shares(
        factor,
        free,
        found.covariance,
        found.answers,
        found.bins,
        found.per_answer,
        found.per_bin,
        k,
        reference,
    )


def _half_a_row(table: Floats, bins: int) -> Floats:
    """Half a row for each answer and bin, spread over the classes as the answer's rows of all bins
    are.
    """
    total = table.sum(axis=1, keepdims=True)
    return np.tile(np.where(total > 0, 0.5 * table / np.maximum(total, 1e-300), 0.0), (bins, 1))


class _Point(NamedTuple):
    gradient: Floats
    covariance: Floats
    answers: Floats
    bins: Floats
    per_answer: Floats
    per_bin: Floats


def _at(theta: Floats, table: Floats, m: Floats, free: Ints, bins: int, k: int) -> _Point:
    """Gradient and inverse information of the penalised likelihood."""
    weight = np.ones(k)
    weight[free] = np.exp(theta)
    weighted = table * weight
    total = weighted.sum(axis=1)
    by_bin = weighted.reshape(bins, k, k).sum(axis=1)
    whole = by_bin.sum(axis=1)
    answers = weighted[:, free] / np.maximum(total, 1e-300)[:, None]
    of_bins = by_bin[:, free] / np.maximum(whole, 1e-300)[:, None]
    m = np.where(total > 0, m, 0.0)  # an answer that the reference never gave says nothing
    m_bin = m.reshape(bins, k).sum(axis=1)
    apart = answers - np.repeat(of_bins, k, axis=0)
    information: Floats = (apart * m[:, None]).T @ apart
    gradient = m @ answers - m_bin @ of_bins - PRIOR * theta
    covariance: Floats = np.linalg.inv(information + PRIOR * np.eye(len(free))).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_answer, per_bin = (
            np.where(total > 0, m / total, 0.0),
            np.where(whole > 0, m_bin / whole, 0.0),
        )
    return _Point(gradient, covariance, answers, of_bins, per_answer, per_bin)
