"""The fit of log odds, of few rows and of many, beside its own equations."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import howsure as hs
from howsure.metrics.class_calibration import (
    fit_flexible,
    fit_in_the_large,
    fit_log_odds,
    logit,
    spline_basis,
)


def draw_claims(n: int, seed: int, slope: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 2.0, n)
    return 1 / (1 + np.exp(-z)), rng.random(n) < 1 / (1 + np.exp(-slope * z - 0.2))


@pytest.mark.parametrize("n", [300, 8_000, 30_000])
def test_a_fit_leaves_no_gradient_and_its_covariance_is_the_inverse_information(n: int):
    p, y = draw_claims(n, seed=n)
    fit = fit_flexible(hs.tally(p, correct=y))
    assert fit is not None
    assert len(fit.knots) == 5
    x = spline_basis(logit(p), fit.knots)
    q = 1 / (1 + np.exp(-x @ fit.coefficients))
    # One more step of Newton's, from single samples, goes nowhere.
    information = (x * (q * (1 - q))[:, None]).T @ x
    step = np.linalg.solve(information, x.T @ (y - q))
    assert np.abs(step).max() < 1e-10
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(information), rtol=1e-8)


def test_the_intercept_in_the_large_balances_many_rows():
    p, y = draw_claims(30_000, seed=1)
    fit = fit_in_the_large(hs.tally(p, correct=y))
    assert fit is not None
    assert np.sum(1 / (1 + np.exp(-fit.coefficients[0] - logit(p)))) == pytest.approx(
        y.sum(), rel=1e-12
    )


def test_a_spline_has_the_cubes_of_its_textbook():
    z, knots = np.linspace(-4, 4, 33), (-2.0, -1.0, 0.5, 1.0, 2.0)
    x = spline_basis(z, knots)
    for j, at in enumerate(knots[:3]):
        cube = [np.clip(z - t, 0, None) ** 3 for t in (at, 1.0, 2.0)]
        expected = (cube[0] - cube[1] * (2 - at) + cube[2] * (1 - at)) / 16
        np.testing.assert_allclose(x[:, j + 2], expected, atol=1e-13)


def test_a_steep_fit_of_many_rows_is_found_where_runs_of_neighbours_separate():
    """All overlap lies in few of 30,000 rows, so few runs of them have no fit to start from."""
    z = np.linspace(-10, 10, 30_000)
    y = z > 0
    near = np.abs(z) < 0.002
    y[near] = ~y[near]
    fit = fit_log_odds(hs.tally(1 / (1 + np.exp(-z)), correct=y))
    assert fit is not None
    q = 1 / (1 + np.exp(-np.clip(fit.coefficients[0] + fit.coefficients[1] * z, -700, 700)))
    assert fit.coefficients[1] > 100
    assert abs(np.dot(y - q, z)) < 1e-6


@pytest.mark.parametrize("n", [50, 20_000])
def test_outcomes_that_one_logit_divides_have_no_fit(n: int):
    p = (np.arange(n) + 0.5) / n
    assert fit_log_odds(hs.tally(p, correct=p > 0.3)) is None
    assert fit_log_odds(hs.tally(p, correct=p < 0.3)) is None


def test_claims_of_0_and_1_have_a_fit():
    p = np.repeat([0.0, 1.0], 5_000)
    y = p == 1
    y[:50] = True
    y[-10:] = False
    fit = fit_log_odds(hs.tally(p, correct=y))
    assert fit is not None
    low, high = 1 / (1 + np.exp(-spline_basis(logit(np.array([0.0, 1.0])), ()) @ fit.coefficients))
    assert (low, high) == pytest.approx((0.01, 0.998), abs=1e-9)


def test_weights_of_one_outcome_only_leave_nothing_in_the_large():
    rng = np.random.default_rng(4)
    weight, p = rng.random(10), rng.random(10)
    assert fit_in_the_large(hs.tally(p, correct=np.zeros(10), weight=weight)) is None


def test_a_fit_is_kept_as_long_as_its_tally():
    t = hs.tally([0.2, 0.4, 0.6, 0.8] * 9, correct=[0, 1, 0, 1] * 9)
    fit = fit_log_odds(t)
    assert fit_log_odds(t) is fit
    kept = weakref.ref(t)
    del t
    gc.collect()
    assert kept() is None
