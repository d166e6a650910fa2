"""Smooth ECE beside its authors' own library, and why the fourth digit differs."""

from typing import Any

import numpy as np
import pytest

import howsure as hs

relplot = pytest.importorskip("relplot", exc_type=ImportError)
SHAPES = [(1, 1, 1.0), (4, 1, 1.5), (5, 2, 0.7), (0.5, 0.5, 1.0)]


def data(n: int, a: float, b: float, power: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    score = rng.beta(a, b, n)
    return score, rng.random(n) < score**power


@pytest.mark.parametrize("n", [200, 2000, 20_000])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_smooth_ece(n: int, shape: tuple[float, float, float]) -> None:
    """Theirs integrates over 200 points and finds the bandwidth to 1/1024: off by up to 4e-4 from
    the definition, which ours meets to 1e-4 (tests/metrics/test_calibration.py sums it up
    directly)."""
    score, right = data(n, *shape)
    ours = hs.smooth_ece(hs.tally(score, correct=right))
    assert ours == pytest.approx(float(relplot.smECE(score, right.astype(float))), abs=5e-4)


@pytest.mark.parametrize("n", [200, 2000, 20_000])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_with_a_finer_mesh_and_the_same_bandwidth_theirs_is_ours(
    n: int, shape: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", 20_000)
    score, right = data(n, *shape)
    ours = hs.smooth_ece(hs.tally(score, correct=right))
    theirs = float(relplot.metrics.smECE_sigma(score, right.astype(float), ours))
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_relplot_counts_claims_on_the_boundary_half() -> None:
    """Its mirrored grid leaves out the last cell. All residuals have one sign, so smoothing must
    keep their mean.
    """
    f = np.r_[np.ones(500), np.full(500, 0.5)]
    y = np.r_[np.ones(700), np.zeros(300)]
    assert hs.smooth_ece(hs.tally(f, correct=y)) == pytest.approx(0.05, abs=1e-9)
    assert relplot.smECE(f, y) == pytest.approx(0.2 / 3, abs=2e-3)
