"""The same numbers as netcal, and why where it differs."""

import numpy as np
import pytest

import howsure as hs

pytest.importorskip("torch")  # netcal's import needs it
theirs = pytest.importorskip("netcal.metrics", exc_type=ImportError)


def data(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    score = rng.beta(4, 1, n)
    return score, (rng.random(n) < score**1.5).astype(int)


@pytest.mark.parametrize("m", [10, 15, 20])
def test_ece_and_mce(m: int) -> None:
    score, right = data()
    t = hs.tally(score, correct=right)
    assert hs.ece(t, hs.equal_range(m)) == pytest.approx(
        claimed(theirs.ECE(m), score, right), abs=1e-10
    )
    assert hs.mce(t, hs.equal_range(m)) == pytest.approx(
        claimed(theirs.MCE(m), score, right), abs=1e-10
    )


def claimed(metric: object, score: np.ndarray, right: np.ndarray) -> float:
    """netcal reads a vector of confidences as P(y = 1), and the labels as y."""
    return float(metric.measure(score, right))  # pyright: ignore


def test_edges_differ() -> None:
    """Bins there are closed on the left: 0.5 of two bins joins 0.75; here it ends the first bin, as
    in the papers.
    """
    score, right = np.array([0.5, 0.5, 0.75]), np.array([1, 1, 1])
    t = hs.tally(score, correct=right)
    assert hs.mce(t, hs.equal_range(2)) == pytest.approx(0.5)
    assert claimed(theirs.MCE(2), score, right) == pytest.approx(1 - 1.75 / 3)
