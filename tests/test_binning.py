"""Binnings against loops over single samples; no tie is ever split."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import UNIT, Rows, draw_scores, rows
from howsure import binning
from reference import calibration as slow

Z80 = 1.2815515655446004


def same_bins(bins: Any, t: hs.Tally, bin_of: list[Any], score: Any) -> None:
    """The fast cuts make the same groups of scores as the slow bin numbers."""
    cuts = bins.cuts(t)
    ends = np.cumsum(t.count)
    fast = np.searchsorted(cuts, ends)  # bin of each row, most trusted first
    expected = [bin_of[list(score).index(s)] for s in t.score]
    assert cuts[0] == 0
    assert cuts[-1] == t.n
    assert (np.diff(cuts) > 0).all()
    assert np.isin(cuts[1:], ends).all()
    assert (np.diff(fast) != 0).tolist() == [
        a != b for a, b in zip(expected[:-1], expected[1:], strict=True)
    ]


@given(rows(UNIT), st.sampled_from([1, 2, 3, 7, 10, 15, 20, 100]))
def test_equal_range_is_the_definition(r: Rows, m: int) -> None:
    same_bins(hs.equal_range(m), r.tally(), slow.equal_range(r.score, m), r.score)


@given(rows(UNIT), st.sampled_from([1, 2, 3, 7, 15, 100, 1000]))
def test_equal_size_is_the_definition(r: Rows, m: int) -> None:
    same_bins(hs.equal_size(m), r.tally(), slow.equal_size(r.score, m), r.score)


@given(rows(UNIT))
def test_unique_is_the_definition(r: Rows) -> None:
    same_bins(hs.unique(), r.tally(), slow.unique(r.score), r.score)


@pytest.mark.parametrize("z", [Z80, 1.645])
@pytest.mark.parametrize("kind", [*UNIT, "mixture"])
@pytest.mark.parametrize("n", [41, 300, 1500])
def test_adaptive_is_the_literal_loop(kind: str, n: int, z: float) -> None:
    rng = np.random.default_rng(n)
    score = np.where(rng.random(n) < 0.7, 1.0 - 1e-3 * rng.random(n), rng.random(n).round(2))
    if kind != "mixture":
        score = draw_scores(kind, n, rng)
    t = hs.tally(score, correct=rng.random(n) < score)
    same_bins(hs.adaptive(z=z), t, slow.adaptive(score + 0.0, z), score + 0.0)


@pytest.mark.parametrize("seed", [0, 9, 63])
@pytest.mark.parametrize("decimals", [2, 3, 16])
def test_adaptive_tops_up_the_last_bin(seed: int, decimals: int) -> None:
    score = np.random.default_rng(seed).beta(50, 1, 1500)
    ends, target = slow.grow(sorted(score, reverse=True), 1.645, 40, 0.05)
    topped = slow.top_up(ends, target, 1500)
    assert topped != ends, "this data should need a top-up"
    t = hs.tally(score, correct=np.ones(1500))
    assert hs.adaptive(z=1.645).cuts(t).tolist() == topped
    tied = score.round(decimals)
    same_bins(
        hs.adaptive(z=1.645),
        hs.tally(tied, correct=np.ones(1500)),
        slow.adaptive(tied, 1.645),
        tied,
    )


@given(rows(UNIT), st.floats(0.3, 20.0), st.integers(0, 60), st.floats(0.0, 0.5))
def test_adaptive_parameters(r: Rows, z: float, tail: int, margin: float) -> None:
    score = r.score.astype(np.float64) + 0.0
    bin_of = slow.adaptive(score, z, tail, margin)
    same_bins(hs.adaptive(z=z, tail=tail, margin=margin), r.tally(), bin_of, score)


def test_level_80_is_z_1_2816() -> None:
    t = hs.tally(np.random.default_rng(0).random(2000), correct=np.ones(2000))
    assert hs.adaptive().cuts(t).tolist() == hs.adaptive(z=Z80).cuts(t).tolist()
    assert (
        hs.adaptive(level=0.9).cuts(t).tolist()
        == hs.adaptive(z=1.6448536269514722).cuts(t).tolist()
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [3, 7, 10, 15, 20, 49])
def test_edges_belong_to_the_bin_below(m: int, dtype: Any) -> None:
    """j/M closes bin j; a float32 that rounds above j/M is above it."""
    score = np.arange(m + 1) / m
    held = score.astype(dtype)
    t = hs.tally(held, correct=np.ones(m + 1))
    counts = np.diff(hs.equal_range(m).cuts(t))
    expected = np.bincount(slow.equal_range(held, m))[1:]
    assert counts.tolist() == expected[expected > 0][::-1].tolist()
    if dtype is np.float64:
        assert counts.tolist() == [1] * (m - 1) + [2]  # 0 and 1/M share the first bin


def test_three_tenths_is_in_the_third_of_ten_bins() -> None:
    """int(0.3 / 0.1) is 2, and a cumulative edge would be 0.30000000000000004."""
    t = hs.tally([0.3, 0.30000000000000004], correct=[1, 0])
    assert hs.bin_table(t, hs.equal_range(10)).high.tolist() == [0.3, 0.30000000000000004]


def test_sizes_differ_by_at_most_one_without_ties() -> None:
    t = hs.tally(np.arange(103) / 103, correct=np.ones(103))
    assert set(np.diff(hs.equal_size(15).cuts(t))) == {6, 7}


@pytest.mark.parametrize(
    "bins", [hs.equal_range(), hs.equal_size(), hs.adaptive(), hs.unique()], ids=repr
)
def test_one_sample_or_one_value_is_one_bin(bins: Any) -> None:
    assert bins.cuts(hs.tally([0.4], correct=[1])).tolist() == [0, 1]
    assert bins.cuts(hs.tally([0.4] * 99, correct=[1] * 99)).tolist() == [0, 99]


def test_binnings_are_values() -> None:
    assert hs.equal_range(10) == hs.equal_range(10) != hs.equal_range(15)
    assert repr(hs.adaptive()) == "adaptive(level=0.8, z=None, tail=40, margin=0.05)"


class TestReference:
    """What the authors' released code gives."""

    def test_agrees_with_adaptive_without_ties(self) -> None:
        rng = np.random.default_rng(3)
        score = rng.beta(5, 1, 1500)
        correct = rng.random(1500) < score
        t, released = hs.tally(score, correct=correct), hs.adaptive_reference(score, correct)
        assert len(released.count) > 3
        assert released.ece == pytest.approx(hs.aece(t, hs.adaptive(z=1.645)), abs=1e-12)
        assert released.mce == pytest.approx(hs.amce(t, hs.adaptive(z=1.645)), abs=1e-12)

    def test_takes_ties_in_input_order(self) -> None:
        rng = np.random.default_rng(0)
        score, correct = np.round(rng.beta(5, 1, 1500), 2), rng.random(1500) < 0.7
        order = np.argsort(correct, kind="stable")
        assert (
            hs.adaptive_reference(score, correct).mce
            != hs.adaptive_reference(score[order], correct[order]).mce
        )

    @pytest.mark.parametrize("score", [[0.5], [0.5] * 3, [0.9] * 100])
    def test_raises_where_theirs_breaks(self, score: list[float]) -> None:
        with pytest.raises(hs.InputError, match=r"released code breaks .* use adaptive\(\)"):
            hs.adaptive_reference(score, [1] * len(score))


def test_the_usual_level_has_the_quantile_of_the_normal_distribution() -> None:
    from statistics import NormalDist

    assert NormalDist().inv_cdf(0.5 + binning.USUAL_LEVEL / 2) == binning.USUAL_Z
