"""Packed tallies against rows made one by one: scores of both signs, pieces, running sums."""

from itertools import product

import numpy as np
import pytest

from howsure.tallies import packed_keys
from howsure.tallies.building import tally
from howsure.tallies.counted import count_scores
from howsure.tallies.packed_keys import PackedTally, pack_signed
from howsure.tallies.row_tally import RowTally, count_rows

SCORES = {
    "of both signs": lambda rng, n: rng.normal(size=n),
    "with ties": lambda rng, n: np.round(2 * rng.normal(size=n)),
    "negative": lambda rng, n: -rng.exponential(size=n),
    "of any size": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 280, n),
    "of single precision": lambda rng, n: rng.normal(size=n).astype(np.float32).astype(np.float64),
    "with zeros": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, 30 * rng.normal(size=n)),
    "tiny": lambda rng, n: rng.integers(-3, 4, n) * 5e-324,
}


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers of a test that do not depend on the tests before it."""
    return np.random.default_rng(5)


def both(kind: str, n: int, seed: int) -> tuple[PackedTally | None, RowTally]:
    rng = np.random.default_rng((seed, n))
    score, wrong = SCORES[kind](rng, n) + 0.0, rng.random(n) < 0.3
    score[0] = min(score[0], -5e-324)
    return pack_signed(score, wrong), count_rows(score, wrong)


@pytest.mark.parametrize("kind", SCORES)
def test_scores_of_both_signs_are_those_of_rows(kind: str) -> None:
    found = 0
    for n, seed in product((1, 2, 3, 20, 150, 300), range(5)):
        a, b = both(kind, n, seed)
        if a is None:
            continue
        found += 1
        pieces = [np.concatenate(column) for column in zip(*a.pieces(), strict=True)]
        for x, y, z in zip(
            (a.score, a.count, a.loss), (b.score, b.count, b.loss), pieces, strict=True
        ):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(z, y)
        assert (a.n, a.total, a.distinct, a.score_range()) == (
            b.n,
            b.total,
            b.distinct,
            b.score_range(),
        )
        for name in ("before", "after", "loss"):
            np.testing.assert_array_equal(getattr(a.blocks(), name), getattr(b.blocks(), name))
        near = [
            b.score,
            np.nextafter(b.score, 9),
            np.nextafter(b.score, -9),
            [-1e300, 1e300, 0.0, -0.0, -np.inf],
        ]
        np.testing.assert_array_equal(a.above(np.concatenate(near)), b.above(np.concatenate(near)))
        ranks = np.arange(n + 1)
        np.testing.assert_array_equal(a.cut_at(ranks), b.cut_at(ranks))
        assert [a.score_at(r) for r in range(n)] == [b.score_at(r) for r in range(n)]
        cuts = np.unique(b.cut_at(ranks[:: max(1, n // 7)]))
        cuts = np.union1d(cuts, [0, n])
        sums, rows = a.between(cuts), b.between(cuts)
        for name in ("count", "loss", "high", "low"):
            np.testing.assert_array_equal(getattr(sums, name), getattr(rows, name))
        np.testing.assert_allclose(
            sums.claim, rows.claim, rtol=1e-12, atol=1e-12 * np.abs(b.score).max()
        )
    assert found or kind == "of any size"


def test_scores_that_span_too_much_are_rows() -> None:
    wrong = np.array([True, False, False])
    assert pack_signed(np.array([-1e300, 0.0, 1e300]), wrong) is None
    assert pack_signed(np.array([-1.0, 2.0, np.inf]), wrong) is None
    assert pack_signed(np.array([-3.0, -5e-324, 0.0]), wrong) is not None
    assert isinstance(tally([-1e300, 0.0, 1e300], correct=~wrong), RowTally)
    assert isinstance(tally([-1.0, 0.0, 1.0], correct=~wrong), PackedTally)


def test_sums_of_tallies_with_signs_are_those_of_all_samples(rng: np.random.Generator) -> None:
    score, right = np.round(rng.normal(size=90), 1), rng.random(90) < 0.7
    whole = tally(score, correct=right)
    for parts in ((slice(0, 40), slice(40, 90)), (score >= 0, score < 0)):
        a, b = (tally(score[p], correct=right[p]) for p in parts)
        for t in (a + b, b + a):
            for name in ("score", "count", "loss"):
                np.testing.assert_array_equal(getattr(t, name), getattr(whole, name))


@pytest.mark.parametrize("digits", [0, 1, 2, 12])
def test_pieces_and_running_sums_do_without_rows(
    digits: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_keys, "PIECE_ROWS", 7)
    monkeypatch.setattr(packed_keys, "KEY_CHUNK", 16)
    for n, kind in ((1, np.float64), (5, np.float32), (200, np.float64), (300, np.float32)):
        score, wrong = np.round(rng.normal(size=n), digits).astype(kind), rng.random(n) < 0.4
        score = np.abs(score) if kind is np.float32 else score
        t, rows = tally(score, correct=~wrong), count_rows(score.astype(np.float64) + 0.0, wrong)
        pieces = list(t.pieces())
        assert all(len(piece[0]) == 7 for piece in pieces[:-1])
        assert "rows" not in vars(t)
        for column, name in zip(zip(*pieces, strict=True), ("score", "count", "loss"), strict=True):
            made = np.concatenate(column)
            np.testing.assert_array_equal(made, getattr(rows, name))
            assert made.dtype == getattr(rows, name).dtype
        some = np.unique(rng.integers(0, rows.distinct, 9))
        for bottom_up in (False, True):
            found = t.running(some, bottom_up=bottom_up)
            for x, y in zip(found, rows.running(some, bottom_up=bottom_up), strict=True):
                np.testing.assert_array_equal(x, y)
        assert t.distinct == rows.distinct
        assert "rows" not in vars(t)
        np.testing.assert_array_equal(t.ends, rows.ends)


@pytest.mark.parametrize("distinct", [1, 3, 40, 5000])
@pytest.mark.parametrize("chunk", [4, 1 << 16])
def test_tied_rows_are_those_of_more_than_one_sample(
    distinct: int, chunk: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_keys, "KEY_CHUNK", chunk)
    for n in (1, 2, 7, 100):
        score, wrong = rng.integers(0, distinct, n) / 8192, rng.random(n) < 0.3
        rows = count_rows(score, wrong)
        ends, many = np.cumsum(rows.count), rows.count > 1
        for found in (tally(score, correct=~wrong), rows, count_scores(score, wrong)):
            tie = found.tied()
            for x, y in zip(
                (tie.before, tie.after, tie.loss), (ends - rows.count, ends, rows.loss), strict=True
            ):
                np.testing.assert_array_equal(x, y[many])
