"""Sums of a report: right, and the same in whatever parts samples come."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

import howsure as hs
from howsure.predictions.columns import RawValues, rank_labels
from howsure.report.sums import (
    POINT_CHUNK_ROWS,
    AnswerColumns,
    Moments,
    keep_first_points,
    merge_class_sums,
    sample_points,
    sum_by_class,
    sum_losses,
)


def summed(loss: np.ndarray, weight: np.ndarray | None = None) -> Moments:
    """Rounded once, at the end."""
    w = np.ones(len(loss)) if weight is None else weight
    keep = w > 0
    x = loss[keep & np.isfinite(loss)]
    y = w[keep & np.isfinite(loss)] * x
    return Moments(fsum(w[keep]), fsum(y), fsum(y * x), int((keep & ~np.isfinite(loss)).sum()))


@pytest.mark.parametrize("n", [0, 1, 1000, 100_003])
def test_moments_are_right(n: int) -> None:
    rng = np.random.default_rng(n)
    loss = np.where(rng.random(n) < 0.01, np.inf, rng.exponential(size=n) ** 5)
    assert sum_losses(loss) == pytest.approx(summed(loss), rel=1e-12)
    weight = rng.integers(0, 3, n) * 0.37
    assert sum_losses(loss, weight) == pytest.approx(summed(loss, weight), rel=1e-12)
    wrong = (rng.random(n) < 0.2).astype(np.float64)
    assert sum_losses(wrong) == summed(wrong)
    assert sum_losses(wrong, weight) == pytest.approx(summed(wrong, weight), rel=1e-12)


def test_weights_of_wrong_answers_are_not_cut_to_whole_numbers() -> None:
    """Two weights of a half are one sample, of which half is wrong."""
    half = sum_losses(np.array([1.0, 0.0]), np.array([0.5, 0.5])).tally(zero_one=True)
    assert (half.n, half.total) == (1.0, 0.5)
    whole = sum_losses(np.array([1.0, 0.0]), np.array([1.0, 2.0])).tally(zero_one=True)
    assert (repr(whole.n), repr(whole.total)) == ("3", "1")


@pytest.mark.parametrize("k", [4, None])
def test_classes_of_parts_in_any_order(k: int | None) -> None:
    rng = np.random.default_rng(3)
    label, said = rng.integers(0, 4, (2, 500))
    confidence, score = rng.random((2, 500))

    def build(rows: np.ndarray) -> AnswerColumns:
        correct = label[rows] == said[rows]
        return AnswerColumns(label[rows], said[rows], correct, confidence[rows], score[rows])

    whole = sum_by_class(build(np.arange(500)), k)
    parts = [sum_by_class(build(rows), k) for rows in np.array_split(rng.permutation(500), 7)]
    for order in (parts, parts[::-1]):
        merged = merge_class_sums(order)
        for name in ("keys", "count", "given", "hits", "pairs"):
            found = getattr(merged, name)
            assert found.dtype == np.int64
            assert found.tolist() == getattr(whole, name).tolist()
        for name in ("claim", "scored", "pair_claim"):
            assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    assert whole.claim.sum() == pytest.approx(fsum(confidence), rel=1e-12)
    assert whole.scored.sum() == pytest.approx(fsum(score), rel=1e-12)


def test_the_same_points_in_any_parts() -> None:
    rng = np.random.default_rng(0)
    n = 3 * POINT_CHUNK_ROWS + 5
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
