"""The counted tally answers every question as the packed one does: integers exactly, sums of floats to 1e-12."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.tallies import counted as module
from howsure.tallies.counted import count_scores, merge_tallies


def drawn(n: int, decimals: int | None) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    score = rng.beta(5, 1, n).astype(np.float32)
    score = score if decimals is None else np.round(score, decimals)
    return score, rng.random(n) < score


@pytest.fixture(params=[(1, None), (2, 1), (1_000, 2), (200_000, None), (200_000, 3)], ids=str)
def both(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[hs.Tally, hs.Tally, Any]:
    """A packed tally of everything, and the sum of seven counted ones."""
    monkeypatch.setattr(module, "MERGE_ROWS", 3_000)
    score, correct = drawn(*request.param)
    parts = [rows for rows in np.array_split(np.arange(len(score)), 7) if len(rows)]
    return (
        hs.tally(score.astype(np.float64), correct=correct),
        merge_tallies([count_scores(score[rows], ~correct[rows]) for rows in parts]),
        score,
    )


def test_rows_and_blocks(both: Any) -> None:
    a, b, _ = both
    assert (a.n, a.total, a.score_range()) == (b.n, b.total, b.score_range())
    for name in ("score", "count", "loss"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("before", "after", "loss"):
        assert np.array_equal(getattr(a.blocks(), name), getattr(b.blocks(), name)), name
    for one, two in zip(a.pieces(), b.pieces(), strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))


def test_ranks_and_scores(both: Any) -> None:
    a, b, score = both
    rng = np.random.default_rng(0)
    asked = np.concatenate((np.arange(-1, 17) / 15, score[:50].astype(float), rng.random(100)))
    assert np.array_equal(a.above(asked), b.above(asked))
    ranks = rng.integers(0, a.n + 1, 100)
    assert np.array_equal(a.cut_at(ranks), b.cut_at(ranks))
    assert all(a.score_at(int(i)) == b.score_at(int(i)) for i in ranks if i < a.n)


@pytest.mark.parametrize(
    "bins", [hs.equal_range(15), hs.equal_size(15), hs.adaptive(), hs.unique()], ids=repr
)
def test_sums_in_bins(both: Any, bins: Any) -> None:
    a, b, _ = both
    cuts = bins.cuts(a)
    assert np.array_equal(cuts, bins.cuts(b))
    x, y = a.between(cuts), b.between(cuts)
    for name in ("count", "loss", "high", "low"):
        assert np.array_equal(getattr(x, name), getattr(y, name)), name
    np.testing.assert_allclose(x.claim, y.claim, rtol=1e-12)


def test_float32_and_float64_parts_add_up() -> None:
    score, correct = drawn(500, None)
    wide = score.astype(np.float64) / 3
    t = count_scores(score, ~correct) + count_scores(wide, ~correct)
    u = hs.tally(np.concatenate((score.astype(np.float64), wide)), correct=np.tile(correct, 2))
    assert all(
        np.array_equal(getattr(t, name), getattr(u, name)) for name in ("score", "count", "loss")
    )


def test_counts_beyond_32_bits() -> None:
    t = module.CountedTally(*(np.array([x], np.uint32) for x in (0x3F000000, 4_000_000_000, 1)))
    both = t + t
    assert (both.n, both.total, both.count.tolist()) == (8_000_000_000, 2, [8_000_000_000])


def test_twelve_bytes_per_distinct_float32_score() -> None:
    score, correct = drawn(200_000, None)
    t = count_scores(score, ~correct)
    assert t.bits.nbytes + t.times.nbytes + t.missed.nbytes == 12 * len(np.unique(score))


def test_zero_of_either_sign_is_one_score() -> None:
    assert count_scores(
        np.array([0.0, -0.0], np.float32), np.array([True, False])
    ).count.tolist() == [2]
