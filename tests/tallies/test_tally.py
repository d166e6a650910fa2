"""The table: rows, ties, merging, and the primitives that metrics are written against."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import ANY, Rows, rows
from howsure.tallies.counted import count_scores
from howsure.tallies.row_tally import as_rows
from howsure.tallies.tally import is_tally
from reference.selective import blocks


@given(rows(ANY))
def test_rows_are_the_tie_blocks(r: Rows) -> None:
    t, expected = r.tally(), blocks(r.score + 0.0, r.correct)
    assert t.score.tolist() == [s for s, _ in expected]
    assert t.count.tolist() == [len(hits) for _, hits in expected]
    assert t.loss.tolist() == [sum(1 for c in hits if not c) for _, hits in expected]
    assert t.count.dtype == t.loss.dtype == np.int64
    assert (t.n, t.total) == (len(r), int((~r.correct).sum()))


@given(rows(ANY))
def test_blocks_are_the_rows_with_errors(r: Rows) -> None:
    t = r.tally()
    b, ends, bad = t.blocks(), np.cumsum(t.count), t.loss > 0
    assert b.after.tolist() == ends[bad].tolist()
    assert b.before.tolist() == (ends - t.count)[bad].tolist()
    assert b.loss.tolist() == t.loss[bad].tolist()


@given(rows(ANY), st.lists(st.floats(-2, 2), min_size=1, max_size=5))
def test_above_counts_strictly_more(r: Rows, more: list[float]) -> None:
    asked = np.concatenate(
        (np.asarray(more), np.arange(16) / 15, np.unique(r.score).astype(np.float64))
    )
    asked = asked[np.isfinite(asked)]
    wide = r.score.astype(np.float64)
    assert r.tally().above(asked).tolist() == [int((wide > x).sum()) for x in asked]


@given(rows(ANY))
def test_cut_at_is_the_end_of_the_tie_block(r: Rows) -> None:
    t = r.tally()
    ends = [0, *np.cumsum(t.count).tolist()]
    ranks = np.arange(len(r) + 1)
    assert t.cut_at(ranks).tolist() == [min(e for e in ends if e >= k) for k in ranks]


@given(rows(ANY))
def test_score_at_and_range(r: Rows) -> None:
    t, ordered = r.tally(), np.sort(r.score.astype(np.float64))[::-1]
    assert [t.score_at(i) for i in range(len(r))] == ordered.tolist()
    assert t.score_range() == (ordered[-1], ordered[0])


@given(rows(), st.integers(1, 6))
def test_sums_between_cuts(r: Rows, parts: int) -> None:
    t = r.tally()
    cuts = np.unique([0, *t.cut_at(np.arange(1, parts) * len(r) // parts).tolist(), len(r)])
    order = np.argsort(-r.score, kind="stable")
    score, wrong = r.score[order].astype(np.float64), ~r.correct[order]
    sums = t.between(cuts)
    slices = [slice(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    assert sums.count.tolist() == np.diff(cuts).tolist()
    assert sums.loss.tolist() == [int(wrong[s].sum()) for s in slices]
    np.testing.assert_allclose(
        sums.claim, [score[s].sum() for s in slices], rtol=1e-12, atol=1e-300
    )
    assert sums.high.tolist() == [score[s][0] for s in slices]
    assert sums.low.tolist() == [score[s][-1] for s in slices]


@given(rows(ANY))
def test_weighted_and_exact_rows_agree(r: Rows) -> None:
    exact, weighted = r.tally(), hs.tally(r.score, correct=r.correct, weight=np.ones(len(r)))
    for name in ("score", "count", "loss"):
        assert getattr(exact, name).tolist() == getattr(weighted, name).tolist()
    assert (exact.weighted, weighted.weighted) == (False, True)


@given(rows(ANY), st.integers(0, 240))
def test_merging_losses_and_weights(r: Rows, cut: int) -> None:
    loss = np.random.default_rng(cut).normal(size=len(r))
    weight = np.random.default_rng(cut).random(len(r)) + 0.5
    make = lambda s: hs.tally(r.score[s], loss=loss[s], weight=weight[s])
    cut %= len(r)
    parts = [make(s) for s in (slice(None, cut), slice(cut, None)) if len(r.score[s])]
    merged, whole = sum(parts[1:], parts[0]), make(slice(None))
    assert merged.score.tolist() == whole.score.tolist()
    np.testing.assert_allclose(merged.loss, whole.loss, atol=1e-12)
    np.testing.assert_allclose(merged.count, whole.count, atol=1e-12)
    for metric in (hs.aurc, hs.e_aurc, hs.optimal_aurc, hs.augrc):
        assert metric(merged) == pytest.approx(metric(whole), abs=1e-12)


@given(rows(ANY))
def test_order_of_weighted_rows_does_not_matter(r: Rows) -> None:
    """Bit for bit: rows are sorted by loss and weight too before they are summed."""
    rng = np.random.default_rng(len(r))
    loss, weight, order = rng.normal(size=len(r)), rng.random(len(r)) + 0.1, rng.permutation(len(r))
    a, b = (hs.tally(r.score[s], loss=loss[s], weight=weight[s]) for s in (slice(None), order))
    for metric in (hs.aurc, hs.e_aurc, hs.augrc):
        assert metric(a) == metric(b)


def test_negative_zero_is_zero() -> None:
    for score in ([-0.0, 0.0, 1.0], [-0.0, 0.0, -1.0], np.float32([-0.0, 0.0, 1.0])):
        t = hs.tally(score, correct=[1, 0, 1])
        assert len(t.score) == 2
        assert not np.signbit(t.score[t.score == 0]).any()


def test_neighbouring_floats_are_not_tied() -> None:
    score = [0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0)]
    assert len(hs.tally(score, correct=[1, 1, 0]).score) == 3


def test_infinite_scores_rank() -> None:
    t = hs.tally([-np.inf, np.inf, 0.0, np.inf], correct=[0, 1, 1, 1])
    assert hs.auroc(t) == 1.0
    assert t.score.tolist() == [np.inf, 0.0, -np.inf]


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_]
)
def test_any_number_is_a_score(dtype: Any) -> None:
    t = hs.tally(np.array([0, 1, 1], dtype=dtype), correct=np.array([0, 1, 0], dtype=dtype))
    assert t.score.tolist() == [1, 0]
    assert t.loss.tolist() == [1, 1]


def test_big_integers_stay_apart_as_far_as_float64_can() -> None:
    assert hs.tally([2**53, 2**53 - 1], correct=[1, 0]).score.tolist() == [2.0**53, 2.0**53 - 1]


def test_inputs_are_not_modified() -> None:
    score, correct = np.array([0.3, -0.0, 0.9]), np.array([True, False, True])
    before = score.copy(), correct.copy()
    t = hs.tally(score, correct=correct)
    hs.ece(t), hs.aurc(t), t + t
    assert score.tobytes() == before[0].tobytes()
    assert correct.tobytes() == before[1].tobytes()


def test_zero_weight_is_no_sample() -> None:
    t = hs.tally([3, 2, 1], correct=[0, 1, 1], weight=[0, 1, 2])
    assert (t.n, t.total, t.score.tolist()) == (2, 0, [2, 1])  # two samples, weights of mean 1
    assert t.count == pytest.approx([2 / 3, 4 / 3])


def test_merged_weights_keep_their_ratios() -> None:
    score, correct = [0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 0, 1]
    weight = np.array([10.0, 30.0, 1.0, 2.0, 3.0])
    whole = hs.tally(score, correct=correct, weight=weight)
    parts = [
        hs.tally(score[s], correct=correct[s], weight=weight[s])
        for s in (slice(0, 2), slice(2, None))
    ]
    merged = parts[0] + parts[1]
    assert merged.count == pytest.approx(whole.count)
    for metric in (hs.aurc, hs.e_aurc, hs.ece, hs.auroc):
        assert metric(merged) == pytest.approx(metric(whole), abs=1e-12)
        assert hs.interval(metric, merged) == pytest.approx(hs.interval(metric, whole), abs=1e-9)


def test_count_is_whole() -> None:
    with pytest.raises(hs.InputError, match=r"count\[1\] is 1.5; counts are whole numbers"):
        hs.tally([0.9, 0.8], correct=[1, 0], count=[1, 1.5])
    with pytest.raises(hs.InputError, match="count is 0 everywhere"):
        hs.tally([0.9, 0.8], correct=[1, 0], count=[0, 0])
    assert len(hs.Outcomes([0.9, 0.8], correct=[1, 0], count=[2, 3])) == 5


def test_sum_of_tallies() -> None:
    assert (
        repr(sum(hs.tally([s], correct=[1]) for s in (0.1, 0.2)))
        == "<Tally: n=2, wrong=0, 2 distinct scores>"
    )


def test_different_kinds_do_not_add_up() -> None:
    with pytest.raises(hs.InputError, match="only tallies of one kind add up"):
        hs.tally([1], correct=[1]) + hs.tally([1], loss=[0.5])


def test_float32_sums_are_made_in_float64() -> None:
    """200,000 float32 scores near 1: float32 running sums would drift in the fourth digit."""
    score = np.full(200_000, np.float32(0.9))
    t = hs.tally(score, correct=np.zeros(200_000))
    assert hs.ece(t) == pytest.approx(float(np.float32(0.9)), abs=1e-12)
    assert hs.signed_calibration_error(t) == pytest.approx(float(np.float32(0.9)), abs=1e-12)


def test_bins_across_chunks() -> None:
    """More samples than are decoded at a time, with bins that end inside and between chunks."""
    rng = np.random.default_rng(0)
    score, n = rng.random(150_000), 150_000
    t = hs.tally(score, correct=rng.random(n) < score)
    table = hs.bin_table(t, hs.equal_range(15))
    where = np.ceil(score * 15).astype(int)
    np.testing.assert_allclose(
        table.confidence * table.count, np.bincount(where, score)[1:], rtol=1e-12
    )


def test_every_kind_is_a_tally_and_a_set_tally_is_none() -> None:
    score, wrong = np.array([0.5, 0.25, 0.5]), np.array([True, False, False])
    packed = hs.tally(score, correct=~wrong)
    weighted = hs.tally(score, correct=~wrong, weight=[1, 2, 3])
    for t in (packed, count_scores(score, wrong), as_rows(packed), weighted):
        assert isinstance(t, hs.Tally)
        assert is_tally(t)
    assert not is_tally(hs.dice_tally(score, [1, 1, 0], [1, 0, 1]))


def test_a_kind_that_has_only_rows_answers_everything() -> None:
    class OnlyRows(hs.Tally):
        def __init__(self, of: hs.Tally):
            self.n, self.total, self.score, self.count = of.n, of.total, of.score, of.count
            self.loss = of.loss

    rng = np.random.default_rng(0)
    score, right = rng.random(200).round(2), rng.random(200) < 0.7
    whole = hs.tally(score, correct=right)
    bare = OnlyRows(whole)
    assert hs.aurc(bare) == hs.aurc(whole)
    assert hs.ece(bare) == pytest.approx(hs.ece(whole), rel=1e-12)
    assert hs.aurc(bare + whole) == hs.aurc(whole + whole)
    assert bare.compact().count.tolist() == whole.count.tolist()
