"""Limits of differences on the same samples: two sets of answers → both ends, one recipe for each
metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from math import inf, isfinite, nan, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.checks import Bools, Floats
from howsure._core.frozen import frozen
from howsure.binning import Binning
from howsure.metrics.metric_facts import Metric, get_arguments, get_options, unwrap_metric
from howsure.metrics.proper_scores import mean_loss
from howsure.uncertainty.calibration_limits import subtract_noise
from howsure.uncertainty.influence import GAP_KINDS, compute_influence
from howsure.uncertainty.limits import compute_limits
from howsure.uncertainty.means import (
    Limits,
    Units,
    compute_group_design,
    cover_both_limits,
    estimate_freedom,
    student_quantile,
    sum_by_unit,
)
from howsure.uncertainty.sample_case import SampleCase

# ---- formulas


def limit_accuracy_difference(only_a: float, only_b: float, n: float, half: float) -> Limits:
    """Share right in A minus share right in B, from the samples that only one of them got right.

    Wald's limits after one imagined sample on either side. Bonett & Price 2012.

    >>> low, high = limit_accuracy_difference(30, 10, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.078, 0.315)
    """
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    reach = student_quantile(inf, half) * sqrt((a + b - (a - b) ** 2) / (n + 2))
    return max(-1.0, a - b - reach), min(1.0, a - b + reach)


def limit_student_difference(
    value: float,
    influence: Floats,
    units: Units,
    half: float,
    *,
    errors: float,
    unseen: float = 0.0,
    extra: float = 0.0,
) -> Limits:
    """Student's limits of a difference whose influence per sample is known.

    `errors` samples are wrong on either side; `unseen` is what one error that was not seen may add
    to the squares, `extra` to the variance. The degrees of freedom follow from the fourth powers,
    so that a few samples that decide everything count as few.
    """
    squares = sum_by_unit(influence, units) ** 2
    total = float(squares.sum())
    variance = (total * (1 + 4 / (errors + 1)) + unseen) / units.n**2 + extra
    freedom = 1.0
    if total > 0:
        most = inf if units.group is None else units.many - 1
        freedom = estimate_freedom(squares, most)
    reach = student_quantile(freedom, half) * sqrt(variance)
    return value - reach, value + reach


def correlate_influences(a: Floats, b: Floats, units: Units) -> float:
    """Correlation of the influences of both sides, over groups where there are some; 0 where
    undefined.
    """
    return _correlate(sum_by_unit(a, units), sum_by_unit(b, units))


def _correlate(one: Floats, two: Floats) -> float:
    size = sqrt(float(one @ one) * float(two @ two))
    if size <= 0:
        return 0.0
    return min(1.0, max(-1.0, float(one @ two) / size))


def combine_limits(a: float, a_limits: Limits, b: float, b_limits: Limits, rho: float) -> Limits:
    """Limits of a − b from those of either side, with correlation rho (MOVER; Zou & Donner 2008).

    >>> low, high = combine_limits(0.5, (0.4, 0.6), 0.3, (0.2, 0.4), rho=0.0)
    >>> round(low, 3), round(high, 3)
    (0.059, 0.341)
    """
    down, up = a - a_limits[0], a_limits[1] - a
    below, above = b - b_limits[0], b_limits[1] - b
    low = a - b - sqrt(max(0.0, down**2 + above**2 - 2 * rho * down * above))
    high = a - b + sqrt(max(0.0, up**2 + below**2 - 2 * rho * up * below))
    return low, high


def find_unseen_auroc_variance(errors: float) -> float:
    """What the variance of an AUROC lacks where errors are few: one more may stand anywhere."""
    return 1 / (12 * (errors + 1) ** 2)


# ---- both sides


@frozen(eq=False)
class MetricSide:
    """A metric on one side of a pair; `half` is the probability of missing at either end.

    What pairs ask of a side is made once, for a model may stand in many pairs.
    """

    case: SampleCase
    metric: Metric
    half: float

    @cached_property
    def value(self) -> float:
        """The number."""
        return self.metric(self.case.tally)

    @cached_property
    def limits(self) -> Limits | None:
        """Its limits, where it has some."""
        limits = compute_limits(self.metric, self.case, self.half, self.value)
        if limits is None or limits.why is not None:
            return None
        return limits.low, limits.high

    def require_limits(self) -> Limits:
        """The limits of a metric that always has some."""
        assert self.limits is not None
        return self.limits

    @cached_property
    def wrong(self) -> Bools:
        """Which samples are wrong."""
        return self.case.losses != 0

    @cached_property
    def influence(self) -> Floats | None:
        """The influence of each sample; None where it is not known."""
        if not self.case.tally.zero_one and unwrap_metric(self.metric) is metrics.correctness_brier:
            return self.case.square_gaps - self.value
        influence = compute_influence(self.metric, self.case, self.value, smooth=True)
        if influence is None:
            return None
        return self.case.spread_over_samples(influence)

    @cached_property
    def gap(self) -> tuple[float, Floats]:
        """A calibration error without its noise, within its limits, and its influence by unit."""
        kind = GAP_KINDS[unwrap_metric(self.metric)]
        bins: Binning = get_options(self.metric).get("bins", kind.bins)
        low, high = self.require_limits()
        counts = self.case.count_in_bins(bins, kind.sign, self.half)
        influence = self.case.spread_over_samples(self.case.compute_gap_influence(bins, kind.sign))
        fair = min(high, max(low, subtract_noise(counts, kind.part)))
        return fair, sum_by_unit(influence, self.case.units)


class SamplePair(NamedTuple):
    """The same metric on both sides of the same samples."""

    a: MetricSide
    b: MetricSide

    @property
    def half(self) -> float:
        """The probability of missing at either end."""
        return self.a.half

    @property
    def difference(self) -> float:
        """First minus second."""
        return self.a.value - self.b.value

    @property
    def units(self) -> Units:
        """Weights and groups, which both sides share."""
        return self.a.case.units

    def get_influences(self) -> tuple[Floats, Floats]:
        """Those of both sides, for a metric whose influence is known."""
        one, two = self.a.influence, self.b.influence
        assert one is not None
        assert two is not None
        return one, two

    def combine(self, rho: float) -> Limits:
        """The limits of both sides combined, with this correlation."""
        return combine_limits(
            self.a.value,
            self.a.require_limits(),
            b=self.b.value,
            b_limits=self.b.require_limits(),
            rho=rho,
        )


def compute_difference_limits(a: MetricSide, b: MetricSide) -> Limits | None:
    """Limits of the number of a minus that of b, the same metric on both sides; None where there is
    no recipe, nan twice where a side has no limits to combine.
    """
    recipe = PAIRED.get(unwrap_metric(a.metric))
    if recipe is None or get_arguments(a.metric):
        return None
    if not (isfinite(a.value) and isfinite(b.value)) or a.case.n < 2 or a.case.units.many < 2:
        return None
    # Only the influences of a ranking tell how a difference varies without the limits of a side.
    if recipe in (_limit_gaps, _limit_independent) and (a.limits is None or b.limits is None):
        return nan, nan
    return recipe(SamplePair(a=a, b=b))


# ---- recipes


def _limit_accuracy(pair: SamplePair) -> Limits:
    if not (pair.a.case.tally.zero_one and pair.b.case.tally.zero_one):
        return _limit_mean(pair)
    units = pair.units
    d = pair.b.case.losses - pair.a.case.losses
    design = 1.0
    if units.group is not None:
        design = compute_group_design(d - units.total(d) / units.n, units, pair.half)
    elif units.weight is not None:
        alone, heavy = np.dot(units.weight, d * d), np.dot(units.weight**2, d * d)
        design = float((units.weight**2).sum()) / units.n
        if alone > 0:
            design = max(1.0, float(heavy / alone))
    only_a = units.total((d == 1).astype(np.float64))
    only_b = units.total((d == -1).astype(np.float64))
    return limit_accuracy_difference(
        only_a / design, only_b / design, n=units.n / design, half=pair.half
    )


def _limit_ranking(pair: SamplePair, *, unseen: float = 0.0) -> Limits:
    """The limits that hold both Student's limits of the difference of influences and those combined
    from both sides.
    """
    one, two = pair.get_influences()
    errors = pair.units.total(pair.a.wrong | pair.b.wrong)
    extra = 0.0
    if pair.a.metric is metrics.auroc:
        extra = find_unseen_auroc_variance(min(pair.a.case.ranks.k, pair.b.case.ranks.k))
    limits = limit_student_difference(
        pair.difference,
        one - two,
        pair.units,
        half=pair.half,
        errors=errors,
        unseen=unseen,
        extra=extra,
    )
    if pair.a.limits is None or pair.b.limits is None:
        return limits
    return cover_both_limits(limits, pair.combine(correlate_influences(one, two, pair.units)))


def _limit_mean(pair: SamplePair) -> Limits:
    one, two = pair.get_influences()
    return limit_student_difference(
        pair.difference, one - two, pair.units, half=pair.half, errors=inf
    )


def _limit_independent(pair: SamplePair) -> Limits:
    """Limits of either side combined as if they were independent, for cuts whose influences are not
    comparable.
    """
    return pair.combine(rho=0.0)


def _limit_gaps(pair: SamplePair) -> Limits:
    """Differences of calibration errors: noise is taken off bin by bin, then the limits of both
    sides are combined.

    The limits of either side allow for a gap that is all noise, so honest claims are not worse than
    a constant one.
    """
    (fair, one), (other_fair, two) = pair.a.gap, pair.b.gap
    low, high = combine_limits(
        fair,
        pair.a.require_limits(),
        b=other_fair,
        b_limits=pair.b.require_limits(),
        rho=max(0.0, _correlate(one, two)),
    )
    return min(low, pair.difference), max(high, pair.difference)


PairRecipe: TypeAlias = Callable[[SamplePair], Limits]

PAIRED: Mapping[Metric, PairRecipe] = {
    metrics.aac: partial(_limit_ranking, unseen=0.4),
    metrics.accuracy: _limit_accuracy,
    metrics.aece: _limit_gaps,
    metrics.augrc: partial(_limit_ranking, unseen=1 / 15),
    metrics.aupr: _limit_ranking,
    metrics.aurc: partial(_limit_ranking, unseen=0.4),
    metrics.auroc: _limit_ranking,
    metrics.correctness_brier: _limit_mean,
    metrics.correctness_nll: _limit_mean,
    metrics.coverage_at_risk: _limit_independent,
    metrics.debiased_ece: _limit_independent,
    metrics.e_aurc: partial(_limit_ranking, unseen=0.4),
    metrics.ece: _limit_gaps,
    mean_loss: _limit_mean,
    metrics.over_confidence: _limit_gaps,
    metrics.risk_at_coverage: _limit_independent,
    metrics.rms_calibration_error: _limit_independent,
    metrics.signed_calibration_error: _limit_mean,
    metrics.under_confidence: _limit_gaps,
}
