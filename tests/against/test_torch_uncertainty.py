"""AURC and AUGRC of torch-uncertainty: the same without ties, dependent on row order with them."""

import numpy as np
import pytest

import howsure as hs

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch_uncertainty.metrics.classification", exc_type=ImportError)


def area(metric: object, score: np.ndarray, right: np.ndarray) -> float:
    p = np.stack((1 - score, score), axis=1)
    metric.update(torch.tensor(p), torch.tensor(right.astype(int)))  # pyright: ignore
    return float(metric.compute())  # pyright: ignore


def test_ties_depend_on_the_order_of_rows() -> None:
    score, right = np.full(100, 0.75), np.arange(100) < 50
    ordered, reversed_ = (area(theirs.AURC(), score, r) for r in (right, right[::-1].copy()))
    assert ordered != pytest.approx(reversed_, abs=0.1)
    assert hs.aurc(hs.tally(score, correct=right)) == pytest.approx(0.5)
