"""Compact tallies: what stays exact, what is said about the rest, and how they add up."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import howsure as hs
from howsure.tallies.buckets import make_grid
from howsure.tallies.row_tally import RowTally

N = 60_000


def scores(n: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Confidences that crowd below 1, as those of networks do."""
    rng = np.random.default_rng(seed)
    s = 1 / (1 + np.exp(-np.abs(rng.normal(3, 3, n))))
    return s, rng.random(n) < s


@pytest.fixture(scope="module")
def exact() -> hs.Tally:
    return hs.tally(*scores())


@pytest.fixture(scope="module")
def compact(exact: hs.Tally) -> hs.Tally:
    return exact.compact()


@pytest.mark.parametrize("m", [10, 12, 15, 20, 25, 30, 50, 60, 100])
@pytest.mark.parametrize("buckets", [400, 1000, 25_000])
def test_grid_holds_the_edges_of_the_usual_bins(m: int, buckets: int) -> None:
    assert np.isin(np.arange(m + 1) / m, make_grid(buckets)).all()


@pytest.mark.parametrize("buckets", [400, 1000, 25_000])
def test_grid_is_no_larger_than_asked_for(buckets: int) -> None:
    assert len(make_grid(buckets)) <= buckets


def test_exactly_one_and_exactly_zero_have_their_own_buckets() -> None:
    edges = make_grid(400)
    assert edges[0] == 0
    assert edges[-2] == np.nextafter(1, 0)
    assert edges[-1] == 1


def test_says_what_it_is(exact: hs.Tally, compact: hs.Tally) -> None:
    assert exact.approximate is None
    assert compact.approximate == f"compacted to {len(make_grid(25_000)):,} fixed buckets"
    assert compact.approximate in repr(compact)


def test_has_at_most_as_many_rows_as_buckets(exact: hs.Tally) -> None:
    assert len(exact.compact(1000).score) <= 1000


@pytest.mark.parametrize("m", [10, 15, 20, 100])
@pytest.mark.parametrize("metric", [hs.ece, hs.mce, hs.over_confidence])
def test_usual_bins_stay_exact(exact: hs.Tally, compact: hs.Tally, metric: object, m: int) -> None:
    of = partial(metric, bins=hs.equal_range(m))  # type: ignore[arg-type]
    assert of(compact) == pytest.approx(of(exact), abs=1e-13)


@pytest.mark.parametrize("metric", [hs.accuracy, hs.signed_calibration_error])
def test_sums_stay_exact(exact: hs.Tally, compact: hs.Tally, metric: object) -> None:
    assert metric(compact) == pytest.approx(metric(exact), abs=1e-13)  # type: ignore[operator]


@pytest.mark.parametrize(
    "metric", [hs.aurc, hs.e_aurc, hs.augrc, hs.auroc, hs.correctness_brier, hs.correctness_nll]
)
def test_others_are_close(exact: hs.Tally, compact: hs.Tally, metric: object) -> None:
    assert metric(compact) == pytest.approx(metric(exact), rel=1e-3)  # type: ignore[operator]
    assert metric(compact) != metric(exact)  # type: ignore[operator]


def test_few_distinct_scores_lose_nothing() -> None:
    s, c = scores()
    t = hs.tally(s.round(3), correct=c)
    small = t.compact()
    assert small.approximate is None
    assert np.array_equal(small.score, t.score)
    assert np.array_equal(small.loss, t.loss)
    assert hs.aurc(small) == hs.aurc(t)


def test_compact_tallies_of_parts_are_the_compact_tally_of_the_whole(compact: hs.Tally) -> None:
    s, c = scores()
    parts = [hs.tally(s[i::2], correct=c[i::2]).compact() for i in range(2)]
    both = parts[0] + parts[1]
    assert np.array_equal(both.count, compact.count)
    assert np.array_equal(both.loss, compact.loss)
    assert both.approximate == compact.approximate
    assert hs.ece(both) == pytest.approx(hs.ece(compact), abs=1e-13)


def test_an_exact_tally_joins_the_buckets_of_a_compact_one(compact: hs.Tally) -> None:
    extra = hs.tally([0.25, 0.9999999], correct=[1, 0])
    for both in (compact + extra, extra + compact):
        assert both.n == N + 2
        assert both.total == compact.total + 1
        assert len(both.score) <= 25_000
        assert both.approximate == compact.approximate


def test_different_buckets_do_not_add_up(exact: hs.Tally, compact: hs.Tally) -> None:
    with pytest.raises(
        hs.InputError, match=r"different buckets .* add them first, then compact the sum"
    ):
        compact + exact.compact(1000)


def test_scores_of_any_sign_get_equally_full_buckets() -> None:
    s, c = scores()
    t = hs.tally(np.log(s), correct=c)
    small = t.compact(1000)
    assert "equally full" in repr(small)
    assert small.count.max() <= 2 * N // 1000
    assert hs.aurc(small) == pytest.approx(hs.aurc(t), rel=1e-2)


def test_infinite_scores_rank_in_a_compact_tally() -> None:
    s, c = scores(3000)
    z = np.log(s / (1 - s))
    z[:900], z[900:1500] = np.inf, -np.inf
    small = hs.tally(z, correct=c).compact(400)
    assert small.n == 3000
    assert small.score[0] == np.inf
    assert small.score[-1] == -np.inf
    assert not np.isnan(small.score).any()


def test_losses_keep_their_sums_squares_and_optimum() -> None:
    s, _ = scores(5000)
    loss = np.random.default_rng(1).exponential(size=5000)
    t = hs.tally(s, loss=loss)
    small = t.compact(400)
    assert isinstance(small, RowTally)
    assert small.total == pytest.approx(loss.sum())
    assert small.square.sum() == pytest.approx((loss**2).sum())
    assert small.ideal is not None
    assert len(small.ideal.loss) <= 400
    assert hs.optimal_aurc(small) == pytest.approx(hs.optimal_aurc(t), rel=1e-2)


def test_weights_are_summed() -> None:
    s, c = scores(5000)
    w = np.random.default_rng(2).random(5000)
    small = hs.tally(s, correct=c, weight=w).compact(400)
    assert small.weighted
    assert small.n == pytest.approx(5000)  # weights of mean 1


def test_too_few_buckets_are_refused(exact: hs.Tally) -> None:
    with pytest.raises(
        hs.InputError, match="buckets is 10; a whole number of at least 400 is needed"
    ):
        exact.compact(10)


@pytest.mark.parametrize(
    "cuts", [[0, N], [0, 1, 2, N - 1, N], list(range(0, N + 1, 6)), [0, 65, N]]
)
def test_packed_sums_between_cuts_are_those_of_the_rows(exact: hs.Tally, cuts: list[int]) -> None:
    at = np.array(cuts)
    s, c = scores()
    order = np.argsort(-s)
    sums = exact.between(at)
    assert np.allclose(sums.claim, np.add.reduceat(s[order], at[:-1]), rtol=1e-12, atol=0)
    assert np.array_equal(sums.loss, np.add.reduceat(~c[order] * 1, at[:-1]))


def test_packed_sums_cross_the_chunks_they_are_made_in() -> None:
    n = 200_000
    s, c = scores(n)
    at = np.array([0, 10, 65_536, 65_537, 131_072, 190_000, n])
    claim = hs.tally(s, correct=c).between(at).claim
    assert np.allclose(claim, np.add.reduceat(np.sort(s)[::-1], at[:-1]), rtol=1e-12, atol=0)
