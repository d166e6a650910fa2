"""Sums of a report: exact, and the same in whatever parts samples come."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import howsure as hs
from howsure._core.exact import MANY, UNIT
from howsure.predictions.columns import RawValues, rank_labels
from howsure.report.sums import Moments, keep_first_points, sample_points, sum_losses


def exactly(loss: np.ndarray, weight: np.ndarray | None = None) -> Moments:
    """With fractions."""
    w = np.ones(len(loss)) if weight is None else weight
    keep = w > 0
    x = loss[keep & np.isfinite(loss)]
    y = w[keep & np.isfinite(loss)] * x
    total = lambda a: int(sum(map(Fraction, a.tolist()), Fraction(0)) * 2**UNIT)
    return Moments(total(w[keep]), total(y), total(y * x), int((keep & ~np.isfinite(loss)).sum()))


@pytest.mark.parametrize("n", [0, 1, 1000, MANY + 3])
def test_moments_are_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    loss = np.where(rng.random(n) < 0.01, np.inf, rng.exponential(size=n) ** 5)
    assert sum_losses(loss) == exactly(loss)
    weight = rng.integers(0, 3, n) * 0.37
    assert sum_losses(loss, weight) == exactly(loss, weight)
    wrong = (rng.random(n) < 0.2).astype(np.float64)
    assert sum_losses(wrong) == exactly(wrong)
    assert sum_losses(wrong, weight) == exactly(wrong, weight)


def test_the_same_points_in_any_parts() -> None:
    rng = np.random.default_rng(0)
    n = 3 * MANY + 5
    score, loss, fate = rng.random(n).round(3), rng.random(n).round(2), rng.integers(0, 3, n)
    whole = sample_points(score, loss, fate)
    assert len(whole) == 1500
    assert len(np.unique(whole[:, 1:], axis=0)) == 1500
    order = rng.permutation(n)
    assert sample_points(score[order], loss[order], fate[order]).tolist() == whole.tolist()
    parts = np.array_split(np.arange(n), 7)
    joined = keep_first_points(
        np.concatenate([sample_points(score[i], loss[i], fate[i]) for i in parts])
    )
    assert joined.tolist() == whole.tolist()


@pytest.mark.parametrize("k", [2, 5, 63, 64, 130])
def test_ranks_of_labels(k: int) -> None:
    """Ties count where their class has a lower number."""
    rng = np.random.default_rng(k)
    v, y = rng.integers(0, 6, (400, k)).astype(np.float32), rng.integers(0, k, 400)
    slow = [
        sum(x > row[c] or (x == row[c] and j < c) for j, x in enumerate(row))
        for row, c in zip(v, y, strict=True)
    ]
    assert rank_labels(RawValues(v, True), y).tolist() == slow
    assert hs.losses.top_k(2)(hs.Predictions.from_logits(v, y)).tolist() == [
        float(r >= 2) for r in slow
    ]
