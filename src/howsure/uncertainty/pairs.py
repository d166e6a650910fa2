"""Limits of differences by metric: two sets of answers to the same samples → both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf, isfinite
from typing import NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.check import Floats
from howsure.binning import Binning, adaptive, equal_range
from howsure.metrics.facts import Metric, options, plain, positional
from howsure.metrics.mean_loss import mean_loss
from howsure.uncertainty.calibration import Part, without_noise
from howsure.uncertainty.case import Case, Loss
from howsure.uncertainty.clusters import group_design
from howsure.uncertainty.differences import (
    Limits,
    accuracy_difference,
    correlation,
    hull,
    mover,
    student_difference,
)
from howsure.uncertainty.limits import limits_of
from howsure.uncertainty.parts import over_sign, part_of, under_sign

__all__ = ["PAIRED", "difference_of", "single_influence"]


class Pair(NamedTuple):
    """A metric on both sides: the sets, the metric of either, its value there, and the limits of
    either.
    """

    a: Case
    b: Case
    metrics: tuple[Metric, Metric]
    values: tuple[float, float]
    limits: tuple[Limits | None, Limits | None]

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.values[0] - self.values[1]

    def influences(self) -> tuple[Floats, Floats]:
        """Of each sample, on either side."""
        one, two = (
            single_influence(m, c) for m, c in zip(self.metrics, (self.a, self.b), strict=True)
        )
        assert one is not None
        assert two is not None
        return one, two

    def both_limits(self) -> tuple[Limits, Limits]:
        """The limits of either side, where both have some."""
        one, two = self.limits
        assert one is not None
        assert two is not None
        return one, two

    def errors(self) -> float:
        """Samples that are wrong on either side."""
        return self.a.units.total(((self.a.losses != 0) | (self.b.losses != 0)).astype(np.float64))


Recipe: TypeAlias = Callable[..., Limits]


def difference_of(number: Metric, other: Metric, a: Case, b: Case, half: float) -> Limits | None:
    """Limits of number(a) − other(b), the same metric on both sides; None where there is no recipe."""
    recipe = PAIRED.get(plain(number))
    if recipe is None or positional(number):
        return None
    values = number(a.tally), other(b.tally)
    if not all(map(isfinite, values)) or a.n < 2 or a.units.many < 2:
        return None
    limits = _single(number, a, half), _single(other, b, half)
    return recipe(Pair(a, b, (number, other), values, limits), half, **options(number))


def _single(metric: Metric, case: Case, half: float) -> Limits | None:
    found = limits_of(metric, case, half)
    return None if found is None or found.why is not None else (found.low, found.high)


def _accuracy(pair: Pair, half: float) -> Limits:
    units, d = pair.a.units, pair.b.losses - pair.a.losses
    design = 1.0
    rest = d - units.total(d) / units.n
    if units.group is not None:
        design = group_design(rest, units, half)
    elif units.weight is not None:
        single, double = np.dot(units.weight, d * d), np.dot(units.weight**2, d * d)
        design = (
            max(1.0, float(double / single))
            if single > 0
            else float((units.weight**2).sum()) / units.n
        )
    only_a, only_b = (units.total((d == sign).astype(np.float64)) for sign in (1, -1))
    return accuracy_difference(only_a / design, only_b / design, units.n / design, half)


def single_influence(metric: Metric, case: Case) -> Floats | None:
    """The influence of each sample on a metric; None where it is not known."""
    part = part_of(metric, case, metric(case.tally), smooth=True)
    return None if part is None else case.single(part)


def few_errors(errors: float) -> float:
    """What the variance of an AUROC lacks where errors are few: one more may stand anywhere."""
    return 1 / (12 * (errors + 1) ** 2)


def _ranking(pair: Pair, half: float, *, unseen: float = 0.0, **options: object) -> Limits:
    """The hull of Student's limits of the difference of influences and of those combined from both
    sides.
    """
    del options
    one, two = pair.influences()
    extra = (
        few_errors(min(pair.a.ranks.k, pair.b.ranks.k)) if pair.metrics[0] is metrics.auroc else 0.0
    )
    found = student_difference(
        pair.difference,
        one - two,
        pair.a.units,
        half,
        errors=pair.errors(),
        unseen=unseen,
        extra=extra,
    )
    if pair.limits[0] is None or pair.limits[1] is None:
        return found
    rho = correlation(one, two, pair.a.units)
    return hull(found, mover(pair.values[0], pair.limits[0], pair.values[1], pair.limits[1], rho))


def _mean(pair: Pair, half: float, **options: object) -> Limits:
    del options
    one, two = pair.influences()
    return student_difference(pair.difference, one - two, pair.a.units, half, errors=inf)


def _apart(pair: Pair, half: float, **options: object) -> Limits:
    """Limits of either side combined as if they were independent, for cuts whose influences are not
    comparable.
    """
    del half, options
    one, two = pair.both_limits()
    return mover(pair.values[0], one, pair.values[1], two, 0.0)


def _gaps(pair: Pair, half: float, part: Part, bins: Binning, sign: Loss) -> Limits:
    """Differences of calibration errors: noise is taken off bin by bin, then the limits of both
    sides are combined.

    The limits of either side allow for a gap that is all noise, so honest claims are not worse than
    a constant one.
    """
    fair: list[float] = []
    for case, (low, high) in zip((pair.a, pair.b), pair.both_limits(), strict=True):
        fair.append(min(high, max(low, without_noise(case.binned(bins, sign, half), part))))
    one, two = (c.single(c.gaps(bins, sign)) for c in (pair.a, pair.b))
    rho = max(0.0, correlation(one, two, pair.a.units))
    one_limits, two_limits = pair.both_limits()
    low, high = mover(fair[0], one_limits, fair[1], two_limits, rho)
    return min(low, pair.difference), max(high, pair.difference)


def _ece(pair: Pair, half: float, bins: Binning = equal_range(15)) -> Limits:
    return _gaps(pair, half, "all", bins, np.sign)


def _aece(pair: Pair, half: float, bins: Binning = adaptive()) -> Limits:
    return _gaps(pair, half, "all", bins, np.sign)


def _over(pair: Pair, half: float, bins: Binning = equal_range(15)) -> Limits:
    return _gaps(pair, half, "over", bins, over_sign)


def _under(pair: Pair, half: float, bins: Binning = equal_range(15)) -> Limits:
    return _gaps(pair, half, "under", bins, under_sign)


PAIRED: Mapping[Metric, Recipe] = {
    metrics.aac: partial(_ranking, unseen=0.4),
    metrics.accuracy: _accuracy,
    metrics.aece: _aece,
    metrics.augrc: partial(_ranking, unseen=1 / 15),
    metrics.aupr: _ranking,
    metrics.aurc: partial(_ranking, unseen=0.4),
    metrics.auroc: _ranking,
    metrics.correctness_brier: _mean,
    metrics.correctness_nll: _mean,
    metrics.coverage_at_risk: _apart,
    metrics.debiased_ece: _apart,
    metrics.e_aurc: partial(_ranking, unseen=0.4),
    metrics.ece: _ece,
    mean_loss: _mean,
    metrics.over_confidence: _over,
    metrics.risk_at_coverage: _apart,
    metrics.rms_calibration_error: _apart,
    metrics.signed_calibration_error: _mean,
    metrics.under_confidence: _under,
}
