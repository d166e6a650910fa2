"""Each metric of the same samples before and after calibration, and the paired difference."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from scipy.special import ndtri

from howsure import losses, metrics
from howsure._core.frozen import frozen
from howsure.calibrators.choice import is_real, value_of
from howsure.predictions import Predictions
from howsure.uncertainty.intervals import each_interval, each_paired_difference
from howsure.uncertainty.means import standard_error

__all__ = ["Change", "Number", "changes_of"]

Number = tuple[float, float, float]  # a value and its limits, nan where it has none
OF_CLASSES = ("ece", "aece", "mce", "nll", "brier", "uce", "aurc", "accuracy")
MEANS = {metrics.nll: losses.nll, metrics.brier: losses.brier}
MANY = 100_000  # samples beyond which a mean of differences is normal
OF_TOP_LABEL = ("ece", "aece", "mce", "correctness_nll", "correctness_brier", "aurc", "accuracy")


@frozen
class Change:
    """One metric on the test set before and after, each with its limits, and the paired difference
    after − before.

    Limits are nan where a number has none. `verdict` is "better" or "worse" where the limits of the
    difference exclude 0, "same" where it is exactly 0, else "unclear".
    """

    metric: str
    before: Number
    after: Number
    difference: Number
    verdict: str


def changes_of(
    before: Predictions, after: Predictions, level: float = 0.95, seed: int = 0
) -> tuple[Change, ...]:
    """What became of each metric; both hold the same samples in the same order.

    >>> p = Predictions.from_confidence([0.9, 0.9, 0.6], [1, 0, 1])
    >>> changes_of(p, p)[-1].verdict
    'same'
    """
    names = OF_TOP_LABEL if "confidence" in (before.kind, after.kind) else OF_CLASSES
    chosen = [getattr(metrics, name) for name in names]
    one, two = (_measured(chosen, preds, level, seed) for preds in (before, after))
    finite = [m for m, a, b in zip(chosen, one, two, strict=True) if isfinite(b[0] - a[0])]
    means = [m for m in finite if m in MEANS and before.n > MANY and before.weight is None]
    drawn = [m for m in finite if m not in means]
    paired = dict(
        zip(drawn, each_paired_difference(drawn, after, before, level, seed), strict=True)
    )
    paired |= {m: _mean_difference(MEANS[m], after, before, level) for m in means}
    return tuple(
        _change(m, a, b, paired.get(m, (b[0] - a[0], nan, nan)))
        for m, a, b in zip(chosen, one, two, strict=True)
    )


def _mean_difference(loss: Any, a: Predictions, b: Predictions, level: float) -> Number:
    """The mean of paired differences with normal limits: so many samples need no resampling."""
    d = loss(a) - loss(b)
    mean, reach = float(d.mean()), float(ndtri((1 + level) / 2)) * standard_error(d, a.group)
    return mean, mean - reach, mean + reach


def _measured(chosen: list[Any], preds: Predictions, level: float, seed: int) -> list[Number]:
    """Each metric with its limits, nan where it has none."""
    limits = each_interval(chosen, preds, level, seed)
    return [
        (value_of(m, preds), low, high) for m, (low, high, *_) in zip(chosen, limits, strict=True)
    ]


def _change(metric: Any, before: Number, after: Number, difference: Number) -> Change:
    lower = metric.better == "lower"
    better, worse = is_real(difference, lower), is_real(difference, not lower)
    verdict = (
        "same" if difference[0] == 0 else "better" if better else "worse" if worse else "unclear"
    )
    return Change(metric.__name__, before, after, difference, verdict)
