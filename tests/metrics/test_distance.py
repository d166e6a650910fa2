"""How far a smooth calibration curve is from the diagonal, and limits of the clinic's numbers."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from benchmarks.against_r import make_cases
from scipy import stats

import howsure as hs
from howsure import Outcomes, Predictions
from howsure.metrics.class_calibration import fit_flexible
from howsure.uncertainty.class_limits import compute_net_benefit_limits

# What rms::val.prob prints (R 4.2, `python -m benchmarks.against_r`).
OF_R = {
    (200, 12): {"emax": 0.213851, "e90": 0.117137, "ici": 0.040350, "z": 0.370583},
    (1000, 2): {"emax": 0.047194, "e90": 0.045720, "ici": 0.023115, "z": 1.388668},
}


@pytest.mark.parametrize(("n", "digits"), OF_R)
def test_lowess_gives_what_r_gives(n: int, digits: int) -> None:
    preds = Predictions.from_probs(*make_cases(n, n, digits))
    found = hs.calibration_distance(preds, smoother="lowess")
    expected = OF_R[n, digits]
    assert (found.emax, found.e90, found.ici) == pytest.approx(
        (expected["emax"], expected["e90"], expected["ici"]), abs=1e-6
    )
    assert hs.spiegelhalter_z(preds) == pytest.approx(expected["z"], abs=1e-6)


def test_distances_are_those_of_the_curve_over_the_cases() -> None:
    p, y = make_cases(500, 3, 2)
    t = hs.positive_tally(Predictions.from_probs(p, y))
    fit = fit_flexible(t)
    assert fit is not None
    apart = np.abs(1 / (1 + np.exp(-fit.basis(p) @ fit.coefficients)) - p)
    found = hs.calibration_distance(t)
    expected = (apart.mean(), *np.quantile(apart, [0.5, 0.9]), apart.max())
    assert found == pytest.approx(expected)
    assert all(np.isnan(hs.calibration_distance(hs.tally([0.2, 0.4], correct=[1, 1]))))
    with pytest.raises(hs.InputError, match="knows 'spline' and 'lowess'"):
        hs.calibration_distance(t, smoother="loess")  # type: ignore[arg-type]


def test_the_floor_is_what_true_probabilities_show() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 400)
    seen = [
        hs.calibration_distance(Predictions.from_probs(p, (rng.random(400) < p).astype(int)))
        for _ in range(99)
    ]
    floor = hs.distance_floor(Predictions.from_probs(p, (rng.random(400) < p).astype(int)))
    assert floor == pytest.approx(np.median(seen, axis=0), rel=0.2)
    with pytest.raises(hs.InputError, match="distance_floor counts samples"):
        hs.distance_floor(hs.tally(p, correct=p > 0.3, weight=rng.random(400)))


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_limits_of_net_benefit_combine_two_shares(threshold: float) -> None:
    p, y = make_cases(300, 5, 2)
    called = p >= threshold
    hits, alarms = int((called & (y == 1)).sum()), int((called & (y == 0)).sum())
    a, b, o = hits / 300, alarms / 300, threshold / (1 - threshold)

    def exact(k: int) -> Any:
        return stats.beta.ppf([0.025, 0.975], [k, k + 1], [300 - k + 1, 300 - k])

    (la, ua), (lb, ub) = exact(hits), exact(alarms)
    rho = -sqrt(a * b / ((1 - a) * (1 - b)))
    low = a - o * b - sqrt((a - la) ** 2 + (o * (ub - b)) ** 2 - 2 * rho * o * (a - la) * (ub - b))
    high = a - o * b + sqrt((ua - a) ** 2 + (o * (b - lb)) ** 2 - 2 * rho * o * (ua - a) * (b - lb))
    source = hs.positive_outcomes(Predictions.from_probs(p, y))
    for given in (source, source.tally()):
        found = compute_net_benefit_limits(given, threshold, 0.95)
        assert (found.low, found.high) == pytest.approx((low, high))
    grouped = Outcomes(p, correct=y == 1, group=np.arange(300) // 10)
    wide = compute_net_benefit_limits(grouped, threshold, 0.95)
    assert wide.low < a - o * b < wide.high


@pytest.mark.parametrize("kind", ["plain", "groups", "few groups", "weights", "ties"])
def test_limits_in_a_report_are_those_of_interval(kind: str) -> None:
    """One recipe for each number of the positive class."""
    p, y = make_cases(300, 7, 1 if kind == "ties" else 12)
    extra: dict[str, Any] = {
        "groups": {"group": np.arange(300) // 10},
        "few groups": {"group": np.arange(300) % 4},
        "weights": {"weight": np.random.default_rng(0).uniform(0.5, 2, 300)},
    }.get(kind, {})
    preds = Predictions.from_probs(p, y, **extra)
    section = hs.evaluate(preds).data["binary"]
    assert section is not None
    shown = {
        hs.class_auroc: section["numbers"]["class_auroc"],
        hs.calibration_in_the_large: section["numbers"]["calibration_in_the_large"],
        hs.observed_expected: section["numbers"]["observed_expected"],
        hs.calibration_slope: section["calibration_slope"],
        hs.calibration_intercept: section["calibration_intercept"],
    }
    for metric, number in shown.items():
        limits = hs.interval(metric, preds)
        assert (number["low"], number["high"]) == pytest.approx(limits, rel=1e-12)
        assert number["value"] == pytest.approx(metric(preds), rel=1e-12)
