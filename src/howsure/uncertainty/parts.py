"""Which sample moves which number: a case → the influence of a sample of each row, by metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import nan
from typing import TypeAlias

import numpy as np

from howsure import metrics
from howsure._core.check import Floats
from howsure.binning import Binning, adaptive, equal_range, equal_size
from howsure.metrics.facts import Metric, options, plain
from howsure.metrics.mean_loss import mean_loss
from howsure.uncertainty import influence
from howsure.uncertainty.case import Case, Linear, Loss
from howsure.uncertainty.influence import Influence, Ranks

__all__ = ["LOSSES", "over_sign", "part_of", "under_sign", "wrong_share"]

Part: TypeAlias = Callable[..., Linear]  # of a case, the value of the metric there, and its options
Whose: TypeAlias = Callable[[Ranks], Influence]


def part_of(metric: Metric, case: Case, value: float, *, smooth: bool = False) -> Linear | None:
    """The influence on a metric with this value; None where it is not known.

    Signs of gaps and cuts are taken as those seen, which is enough for an upper end; `smooth`
    leaves such metrics out.
    """
    found = SMOOTH.get(plain(metric)) or (None if smooth else AS_SEEN.get(plain(metric)))
    return None if found is None else found(case, value, **options(metric))


def wrong_share(case: Case, value: float) -> Linear:
    """Being wrong, around its share."""
    return Linear(np.full(len(case.rows.score), -value), np.ones(len(case.rows.score)))


def over_sign(gap: Floats) -> Floats:
    """Only gaps above 0 count."""
    return np.where(gap > 0, 1.0, 0.0)


def under_sign(gap: Floats) -> Floats:
    """Only gaps below 0 count."""
    return np.where(gap < 0, -1.0, 0.0)


def _ranked(whose: Whose, case: Case, value: float, **options: object) -> Linear:
    del value, options
    return case.spread(whose(case.ranks))


def _precision(case: Case, value: float, positive: str = "error", method: str = "step") -> Linear:
    del method
    return _ranked(
        influence.aupr_error if positive == "error" else influence.aupr_success, case, value
    )


def _right_share(case: Case, value: float) -> Linear:
    start, slope = wrong_share(case, 1 - value)
    return Linear(-start, -slope)


def _mean_loss(case: Case, value: float, other: object = None) -> Linear:
    del other
    return wrong_share(case, value)


def _mean(losses: tuple[Loss, Loss], case: Case, value: float) -> Linear:
    return case.mean(*losses, value)


def _gaps(
    sign: Loss, usual: Binning, case: Case, value: float, bins: Binning | None = None
) -> Linear:
    del value
    return case.gaps(usual if bins is None else bins, sign)


def _root_gaps(case: Case, value: float, bins: Binning = equal_size(15)) -> Linear:
    del value
    return case.root_gaps(bins)


def _risk(case: Case, value: float, coverage: float = nan) -> Linear:
    kept = case.accepted(float(case.cut_at(np.array([coverage * case.n]))[0])) / coverage
    return case.centred(-value * kept, kept)


LOSSES: Mapping[Metric, tuple[Loss, Loss]] = {  # of a right and of a wrong answer at a claim
    metrics.correctness_brier: (lambda r: (1 - r) ** 2, lambda r: r**2),
    metrics.correctness_nll: (lambda r: -np.log(r), lambda r: -np.log1p(-r)),
    metrics.signed_calibration_error: (lambda r: r - 1, lambda r: r),
}
SMOOTH: Mapping[Metric, Part] = {
    metrics.aac: partial(_ranked, influence.aurc),
    metrics.accuracy: _right_share,
    metrics.augrc: partial(_ranked, influence.augrc),
    metrics.aupr: _precision,
    metrics.aurc: partial(_ranked, influence.aurc),
    metrics.auroc: partial(_ranked, influence.auroc),
    metrics.e_aurc: partial(_ranked, influence.e_aurc),
    mean_loss: _mean_loss,
    **{metric: partial(_mean, losses) for metric, losses in LOSSES.items()},
}
AS_SEEN: Mapping[Metric, Part] = {
    metrics.aece: partial(_gaps, np.sign, adaptive()),
    metrics.debiased_ece: _root_gaps,
    metrics.ece: partial(_gaps, np.sign, equal_range(15)),
    metrics.over_confidence: partial(_gaps, over_sign, equal_range(15)),
    metrics.risk_at_coverage: _risk,
    metrics.rms_calibration_error: _root_gaps,
    metrics.under_confidence: partial(_gaps, under_sign, equal_range(15)),
}
