"""Numbers worked out a second way: integrals, sums over all cases, and general solvers instead of
closed forms.
"""

from __future__ import annotations

from functools import partial
from math import fsum, isnan, nan
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import howsure as hs
from howsure.metrics.binary import compute_pseudo_aucs
from howsure.metrics.calibration_error import sum_classes
from howsure.metrics.class_calibration import fit_log_odds, spline_basis
from howsure.metrics.risk_coverage import harmonic_rise, mean_rank_share
from reference import selective


def cases(seed: int, n: int, ties: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.02, 0.99, n).round(ties)
    return score, (rng.random(n) < score).astype(int)


def reflected(sigma: float, r: Any, residual: Any) -> float:
    """The integral of the smoothed residuals, the kernel mirrored at 0 and 1."""
    u = (np.arange(4000) + 0.5) / 4000
    field = np.zeros(len(u))
    for image in (r, -r, 2 - r, r + 2, -2 - r, 4 - r, r - 2, r + 4):
        field += (np.exp(-((u[:, None] - image) ** 2) / (2 * sigma**2)) * residual).sum(axis=1)
    return float(np.abs(field).mean() / (np.sqrt(2 * np.pi) * sigma * len(r)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tilt", [0.0, 0.15, 1.0])
def test_smooth_ece_is_the_fixed_point_of_its_integral(seed: int, tilt: float) -> None:
    score, right = cases(seed, 80)
    score = np.clip(score + tilt, 0, 1)
    if tilt == 1.0:
        right = 0 * right
    value = hs.smooth_ece(hs.tally(score, correct=right))
    if tilt == 1.0:
        assert value == pytest.approx(1.0, abs=1e-3)  # all sure, all wrong
    else:
        assert reflected(value, score, right - score) == pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize("tpr", [0.0, 0.3, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_fpr_at_tpr_tries_every_threshold(tpr: float, seed: int) -> None:
    score, right = cases(seed, 40, ties=1)
    for at in sorted(set(score), reverse=True):
        if (score[right == 1] >= at).mean() >= tpr:
            break
    assert hs.fpr_at_tpr(hs.tally(score, correct=right), tpr) == pytest.approx(
        (score[right == 0] >= at).mean()
    )


@pytest.mark.parametrize("right", [0, 1])
def test_one_kind_of_answer_has_no_ranking(right: int) -> None:
    t = hs.tally([0.9, 0.8, 0.8], correct=[right] * 3)
    assert isnan(hs.fpr_at_tpr(t))
    assert isnan(hs.auroc(t))


@pytest.mark.parametrize(
    "other", [([0.9, 0.1, 0.2], [1, 0, 1]), ([0.9, 0.1], [0, 0])], ids=["samples", "errors"]
)
def test_dominance_needs_as_many_samples_and_errors(other: tuple[list[float], list[int]]) -> None:
    t = hs.tally([0.9, 0.1], correct=[1, 0])
    with pytest.raises(hs.InputError, match="equal numbers of samples and errors"):
        hs.dominates(t, hs.tally(other[0], correct=other[1]))


def test_equal_orders_dominate_each_other() -> None:
    a, b = hs.tally([0.9, 0.1], correct=[1, 0]), hs.tally([0.7, 0.6], correct=[1, 0])
    assert hs.dominates(a, b)
    assert hs.dominates(b, a)
    assert not hs.dominates(hs.tally([0.1, 0.9], correct=[1, 0]), a)


@pytest.mark.parametrize("before", [0, 1, 2, 5, 30, 400, 1_000, 5_100, 20_100, 3_000_000])
@pytest.mark.parametrize("m", [1, 2, 3, 10, 40, 500])
def test_mean_rank_share_is_the_mean_over_the_block(before: int, m: int) -> None:
    found = float(mean_rank_share(np.array([before]), np.array([before + m]))[0])
    assert found == pytest.approx(
        fsum(j / (before + j) for j in range(1, m + 1)) / m, rel=2e-12, abs=0
    )
    rise = float(harmonic_rise(np.array([float(before)]), np.array([float(before + m)]))[0])
    assert rise == pytest.approx(fsum(1 / (before + j) for j in range(1, m + 1)), rel=2e-13, abs=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_case_parts_of_a_labels_auc(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    p, y = rng.random((30, 2)).round(1), (rng.random((30, 2)) < 0.4).astype(int)
    y[:2] = [[0, 1], [1, 0]]
    w = rng.integers(1, 4, 30).astype(float) if weighted else np.ones(30)
    found = compute_pseudo_aucs(
        hs.Predictions.from_multilabel(p, y, weight=w if weighted else None)
    )
    for i in range(2):
        area = auc(p[:, i], y[:, i], w)
        assert np.average(found[:, i], weights=w) == pytest.approx(area)
        factors: list[float] = []
        for case in (
            0,
            5,
            17,
        ):  # the part of a case goes with the slope of the area in its share of the weight
            step = np.where(np.arange(30) == case, 1e-6 * w.sum(), 0.0)
            moved = (w + step) / (w + step).sum()
            slope = (auc(p[:, i], y[:, i], moved) - area) / 1e-6
            factors.append(float(found[case, i] - area) / slope)
        assert factors == pytest.approx([factors[0]] * 3, abs=1e-3)
        assert 1 < factors[0] < 1.5  # widened for what few cases cannot show


def auc(p: Any, y: Any, w: Any) -> float:
    pairs = np.where(
        p[y == 1][:, None] > p[y == 0], 1.0, np.where(p[y == 1][:, None] == p[y == 0], 0.5, 0.0)
    )
    mass = w[y == 1][:, None] * w[y == 0]
    return float((pairs * mass).sum() / mass.sum())


@pytest.mark.parametrize("knots", [(), (-1.0, 0.2, 1.5), (-2.0, -0.5, 0.4, 2.0)])
def test_log_odds_maximise_the_likelihood(knots: tuple[float, ...]) -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(0.03, 0.97, 300)
    y = (rng.random(300) < p**1.5).astype(int)
    z = np.log(p / (1 - p))
    x = spline_basis(z, knots)
    cost = lambda beta: np.logaddexp(0.0, x @ beta).sum() - y @ (x @ beta)
    slope = lambda beta: x.T @ (1 / (1 + np.exp(-x @ beta)) - y)
    best = minimize(cost, np.zeros(x.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9})
    found = fit_log_odds(hs.tally(p, correct=y), knots)
    assert found is not None
    assert found.coefficients == pytest.approx(best.x, abs=2e-5)
    q = 1 / (1 + np.exp(-(x @ found.coefficients)))
    assert found.covariance == pytest.approx(
        np.linalg.inv((x * (q * (1 - q))[:, None]).T @ x), rel=1e-6
    )
    assert found.basis(p) == pytest.approx(x)


def test_the_spline_is_linear_outside_and_smooth_at_its_knots() -> None:
    knots = (-2.0, -0.5, 0.4, 2.0)
    at = lambda z: spline_basis(np.array(z, dtype=float), knots)
    assert at([0.0])[0, :2].tolist() == [1.0, 0.0]
    for far in ([-9.0, -6.0, -3.0], [3.0, 5.0, 7.0]):
        low, middle, high = at(far)
        assert low + high == pytest.approx(2 * middle)
    for knot in knots:
        h = 1e-3
        a, b, c, d = at([knot - 2 * h, knot - h, knot + h, knot + 2 * h])
        assert (d - c) / h == pytest.approx((b - a) / h, abs=2e-2)
    # Harrell 2015, equation 2.26, divided by the squared distance of the outer knots
    bent = (0.5 + 2.0) ** 3 - (0.5 - 0.4) ** 3 * (2.0 + 2.0) / (2.0 - 0.4)
    assert at([0.5])[0, 2] == pytest.approx(bent / 16)


@pytest.mark.parametrize(
    ("p", "y"), [([0.2, 0.4, 0.6], [1, 1, 1]), ([0.2, 0.4], [0, 0]), ([0.3, 0.3], [0, 1])]
)
def test_no_line_where_there_is_none(p: list[float], y: list[int]) -> None:
    assert fit_log_odds(hs.tally(p, correct=y)) is None


def test_claims_of_0_and_1_have_finite_log_odds() -> None:
    p, y = [0.0, 1.0, 1.0, 0.3, 0.7, 0.6], [0, 1, 0, 1, 1, 0]
    found = fit_log_odds(hs.tally(p, correct=y))
    assert found is not None
    near = fit_log_odds(hs.tally(np.clip(p, 1e-12, 1 - 1e-12), correct=y))
    assert near is not None
    assert found.coefficients == pytest.approx(near.coefficients)


@pytest.mark.parametrize("bins", [1, 7, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_classwise_ece_bin_by_bin(bins: int, weighted: bool) -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(5) / 2, 3000)
    y = rng.integers(0, 5, 3000)
    w = rng.uniform(0.5, 3, 3000) if weighted else np.ones(3000)
    gap = 0.0
    for c in range(5):
        where = np.clip(np.ceil(p[:, c] * bins).astype(int) - 1, 0, bins - 1)
        for b in range(bins):
            inside = where == b
            gap += abs((w * (p[:, c] - (y == c)))[inside].sum())
    preds = hs.Predictions.from_probs(p, y, weight=w if weighted else None)
    assert hs.classwise_ece(preds, hs.equal_range(bins)) == pytest.approx(
        gap / w.sum() / 5, abs=1e-12
    )
    assert sum_classes(preds, bins).mean_gap() == pytest.approx(gap / w.sum() / 5, abs=1e-9)


def test_skill_top_k_and_weights() -> None:
    p, y, w = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]], [1, 0, 2], [3.0, 1.0, 1.0]
    preds = hs.Predictions.from_probs(p, y, weight=w)
    shares = np.array([1, 3, 1]) / 5
    base = -(3 * np.log(shares[1]) + np.log(shares[0]) + np.log(shares[2])) / 5
    value = -(3 * np.log(0.3) + np.log(0.1) + np.log(0.6)) / 5
    assert hs.skill(hs.nll, preds) == pytest.approx(1 - value / base)
    assert hs.top_k_accuracy(preds, 2) == pytest.approx(4 / 5)
    assert hs.top_k_accuracy(preds, 1) == pytest.approx(1 / 5)
    alone = hs.Predictions.from_probs([[0.4, 0.6], [1.0, 0.0]], [1, 1])
    assert hs.skill(hs.nll, alone) == -np.inf
    assert isnan(hs.skill(hs.nll, hs.Predictions.from_probs([[0.0, 1.0]], [1])))


def test_net_benefit_at_every_threshold_of_its_own() -> None:
    p, y = cases(8, 60, ties=1)
    p = p * 0.8  # no case is called at 0.9
    curve = hs.net_benefit(hs.Predictions.from_probs(p, y))
    assert curve.x == pytest.approx(np.linspace(0.01, 0.99, 99))
    for q, benefit, everyone, count in zip(curve.x, curve.y, curve.low, curve.weight, strict=True):
        called = p >= q
        assert benefit == pytest.approx(
            (called & (y == 1)).mean() - (called & (y == 0)).mean() * q / (1 - q)
        )
        assert count == called.sum()
        assert everyone == pytest.approx((y == 1).mean() - (y == 0).mean() * q / (1 - q))


def test_brier_parts_bin_by_bin() -> None:
    p, y = cases(9, 200)
    parts = hs.brier_decomposition(hs.Predictions.from_probs(p, y), hs.equal_range(10))
    where = np.clip(np.ceil(p * 10).astype(int) - 1, 0, 9)
    n = np.bincount(where, minlength=10)
    claim, share = (np.bincount(where, v, minlength=10)[n > 0] / n[n > 0] for v in (p, y))
    weight, base = n[n > 0] / 200, y.mean()
    assert parts.reliability == pytest.approx((weight * (claim - share) ** 2).sum())
    assert parts.resolution == pytest.approx((weight * (share - base) ** 2).sum())
    assert parts.uncertainty == pytest.approx(base * (1 - base))
    assert parts.within == pytest.approx(((p - y) ** 2).mean() - parts[0] + parts[1] - parts[2])


@pytest.mark.parametrize("loss", [[0, 1, 1, 0, 0], [0, 0], [1, 1, 1], [0.2, 0.7, 0.1]])
def test_the_best_order_by_sorting(loss: list[float]) -> None:
    score = np.linspace(0.9, 0.1, len(loss))
    best = hs.tally(score, loss=sorted(loss))
    t = hs.tally(score, loss=loss)
    assert hs.optimal_aurc(t) == pytest.approx(selective.optimal_aurc(loss))
    for variant in ("expected", "step", "trapezoid"):
        assert hs.optimal_aurc(t, variant) == pytest.approx(hs.aurc(best, variant)), variant
        assert hs.e_aurc(t, variant) == pytest.approx(
            hs.aurc(t, variant) - hs.aurc(best, variant)
        ), variant


@pytest.mark.parametrize("cap", [None, 0.5, nan])
def test_a_cap_below_one_is_no_cap(cap: float | None) -> None:
    with pytest.raises(hs.InputError, match="needs cap="):
        hs.eor(hs.tally([0.9, 0.2], correct=[1, 0]), degenerate="cap", cap=cap)


def test_an_unknown_treatment_is_named() -> None:
    with pytest.raises(
        hs.InputError, match="eor knows 'inf', 'smooth', 'drop', 'cap', 'merge' and 'pool'"
    ):
        hs.eor(hs.tally([0.9, 0.2], correct=[1, 0]), degenerate="none")  # type: ignore[arg-type]
    assert partial(hs.eor, degenerate="cap", cap=1.0)(
        hs.tally([0.9, 0.2], correct=[1, 0])
    ) == pytest.approx(1.0)
