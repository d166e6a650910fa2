"""Two classes: recalibration, Brier parts, net benefit."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs


def test_recalibration_finds_the_line_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    z = 2 * rng.standard_normal(40_000)
    y = rng.random(40_000) < 1 / (1 + np.exp(-(0.3 + 0.6 * z)))
    fit = hs.recalibration(hs.Predictions.from_logits(z, y.astype(int)))
    assert abs(fit.slope - 0.6) < 4 * fit.slope_error
    assert abs(fit.intercept - 0.3) < 4 * fit.intercept_error
    assert fit.slope_error < 0.02


def test_recalibration_agrees_with_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    z = rng.standard_normal(500)
    y = (rng.random(500) < 1 / (1 + np.exp(-z))).astype(int)
    fit = hs.recalibration(hs.Predictions.from_logits(z, y))
    peer = linear_model.LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(z[:, None], y)
    assert fit.slope == pytest.approx(peer.coef_[0, 0], abs=1e-5)
    assert fit.intercept == pytest.approx(peer.intercept_[0], abs=1e-5)


@pytest.mark.parametrize(
    ("p", "y"),
    [([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]), ([0.3, 0.6], [1, 1]), ([0.5, 0.5, 0.5], [0, 1, 1])],
    ids=["separable", "one class", "constant"],
)
def test_recalibration_that_does_not_exist_is_nan(p: list[float], y: list[int]) -> None:
    assert np.isnan(hs.recalibration(hs.Predictions.from_probs(p, y)).slope)


def test_brier_parts_add_up() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    parts = hs.brier_decomposition(hs.Predictions.from_probs(p, y))
    assert parts.reliability - parts.resolution + parts.uncertainty + parts.within == pytest.approx(
        ((p - y) ** 2).mean()
    )


def test_net_benefit_by_hand() -> None:
    # at 0.5: one true and one false positive of four; odds 1
    preds = hs.Predictions.from_probs([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0])
    curve = hs.net_benefit(preds, thresholds=np.array([0.2, 0.5]))
    assert curve.y == pytest.approx([2 / 4 - 1 / 4 * 0.25, 1 / 4 - 1 / 4])
    assert curve.low == pytest.approx([2 / 4 - 2 / 4 * 0.25, 0.0])


def test_three_classes_have_no_positive_one() -> None:
    with pytest.raises(hs.InputError, match="3 classes"):
        hs.positive_tally(hs.Predictions.from_probs([[0.2, 0.3, 0.5]], [0]))
