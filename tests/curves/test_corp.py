"""CORP against scikit-learn's isotonic regression, and its band against truth that is known."""

import numpy as np
import pytest

from howsure import Predictions, corp, correctness_brier, tally
from howsure.report.summary import Summary
from howsure.report.views import build_deciding


def drawn(n: int, seed: int, *, bend: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    claim = rng.beta(4, 1.5, n)
    return claim, rng.random(n) < claim**bend


@pytest.mark.parametrize(("n", "digits"), [(40, 1), (700, 2), (3000, 9)])
def test_it_is_the_isotonic_regression_of_another_library(n: int, digits: int) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    claim, right = drawn(n, 3, bend=2.0)
    claim = claim.round(digits)
    found = corp(tally(claim, correct=right))
    fit = isotonic().fit(claim, right).predict(claim)
    assert np.interp(claim, found.curve.x, found.curve.y) == pytest.approx(fit, abs=1e-9)
    brier, best, flat = ((x - right) ** 2 for x in (claim, fit, np.full(n, right.mean())))
    assert found.score == pytest.approx(brier.mean())
    assert found.miscalibration == pytest.approx((brier - best).mean())
    assert found.discrimination == pytest.approx((flat - best).mean())
    assert found.uncertainty == pytest.approx(flat.mean())


def test_weights_are_repetition() -> None:
    claim, right = drawn(60, 1)
    times = np.random.default_rng(0).integers(1, 4, 60)
    a = corp(tally(claim, correct=right, weight=times.astype(float)))
    b = corp(tally(np.repeat(claim, times), correct=np.repeat(right, times)), band=False)
    assert a.curve.y == pytest.approx(b.curve.y)
    assert a.miscalibration == pytest.approx(b.miscalibration)
    assert a.curve.low is None


def test_the_parts_add_up_and_are_not_negative() -> None:
    for seed in range(20):
        claim, right = drawn(50, seed)
        t = tally(claim.round(1), correct=right)
        found = corp(t, band=False)
        assert found.miscalibration - found.discrimination + found.uncertainty == pytest.approx(
            correctness_brier(t)
        )
        assert found.miscalibration >= -1e-12
        assert found.discrimination >= -1e-12


def test_the_band_holds_nine_in_ten_curves_of_honest_claims_and_few_of_others() -> None:
    """Point by point, between the 5 % and the 95 % quantile of the claims."""
    inside: dict[float, list[float]] = {1.0: [], 3.0: []}
    for seed in range(60):
        for bend in inside:
            claim, right = drawn(1500, seed, bend=bend)
            c = corp(tally(claim, correct=right), seed=seed).curve
            middle = (c.x > np.quantile(claim, 0.05)) & (c.x < np.quantile(claim, 0.95))
            inside[bend].append(float(((c.y >= c.low) & (c.y <= c.high))[middle].mean()))
    assert 0.84 <= np.mean(inside[1.0]) <= 0.96
    assert np.mean(inside[3.0]) < 0.15


@pytest.mark.parametrize("values", [[0.7], [0.5, 0.5, 0.5], [0.0, 1.0]])
def test_few_and_tied_claims(values: list[float]) -> None:
    found = corp(tally(values, correct=[True] * len(values)))
    assert np.isfinite(found.curve.low).all()
    assert (found.curve.low <= found.curve.high).all()


def test_corners_are_those_of_the_hull_of_another_library() -> None:
    hull = pytest.importorskip("scipy.spatial").ConvexHull
    claim, right = drawn(400, 5)
    corners = build_deciding(Summary.of(Predictions.from_confidence(claim, right)), 0.95)["corners"]
    order = np.argsort(-claim, kind="stable")
    every = np.column_stack((np.arange(401), np.concatenate(([0], np.cumsum(~right[order])))))
    lower = hull(every).vertices
    line = every[:, 0] * every[-1, 1] / 400
    below = sorted(every[v, 0] for v in lower if every[v, 1] < line[v] - 1e-9 or v in (0, 400))
    assert corners["kept"] == below
