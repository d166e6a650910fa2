"""Expected odds ratio and its relatives against exact arithmetic, bin by bin."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import ANY, Rows, rows
from reference import calibration as binned
from reference import odds as slow


@pytest.mark.parametrize("treatment", ["inf", "smooth", "drop", "cap", "merge"])
@given(r=rows(ANY, max_rows=120), m=st.sampled_from([1, 2, 5, 20, 100]))
def test_eor_is_the_definition(treatment: Any, r: Rows, m: int) -> None:
    bins = slow.counts(binned.equal_size(r.score, m), r.correct)
    cap = {"cap": 30.0} if treatment == "cap" else {}
    fast = hs.eor(hs.histogram(r.tally(), hs.equal_size(m)), treatment, **cap)
    assert fast == pytest.approx(slow.eor(bins, treatment, **cap), rel=1e-10, nan_ok=True)


@given(rows(ANY, max_rows=120), st.sampled_from([1, 2, 5, 20, 100]))
def test_other_scores_of_a_histogram_are_the_definition(r: Rows, m: int) -> None:
    h, bins = (
        hs.histogram(r.tally(), hs.equal_size(m)),
        slow.counts(binned.equal_size(r.score, m), r.correct),
    )
    assert hs.conditional_entropy(h) == pytest.approx(slow.conditional_entropy(bins), abs=1e-12)
    assert hs.histogram_brier(h) == pytest.approx(slow.brier(bins), abs=1e-12)
    assert hs.histogram_auroc(h.reversed()) == pytest.approx(
        slow.auroc(bins[::-1]), abs=1e-12, nan_ok=True
    )


@given(
    rows(ANY, max_rows=60),
    st.sampled_from([(0.99, 0.95), (0.9, 0.7), (1.0,), (0.975,), (0.9, 0.9, 0.5)]),
)
def test_bands_are_the_definition(r: Rows, levels: tuple[float, ...]) -> None:
    weight, accuracy, threshold = slow.bands(r.score + 0.0, r.correct, levels)
    found = hs.bands(r.tally(), levels)
    np.testing.assert_allclose(found.weight, weight, atol=1e-12)
    np.testing.assert_allclose(found.accuracy, accuracy, atol=1e-12)
    np.testing.assert_array_equal(found.threshold, threshold)
    assert found.levels == levels


def test_a_tally_means_100_bins_of_equal_size() -> None:
    rng = np.random.default_rng(0)
    t = hs.tally(rng.random(3000), correct=rng.random(3000) < 0.6)
    assert hs.eor(t) == hs.eor(hs.histogram(t, hs.equal_size(100)))


def test_99_of_100_reach_99_percent() -> None:
    """0.99 · 100 is 99.00000000000001 in floats; counts are compared with room for that."""
    b = hs.bands(hs.tally(np.zeros(100), correct=[0] + [1] * 99), levels=(0.99,))
    assert b.weight.tolist() == [1.0, 0.0]


def test_bands_by_hand() -> None:
    """Three right, then wrong, right, wrong: 1.0 keeps 3 of 6, 0.5 then all of wrong, right; the
    rest is wrong.
    """
    b = hs.bands(hs.tally([6, 5, 4, 3, 2, 1], correct=[1, 1, 1, 0, 1, 0]), levels=(1.0, 0.5))
    np.testing.assert_allclose(b.weight, [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(b.accuracy, [1, 0.5, 0])
    assert b.threshold.tolist() == [4, 2]


def test_an_empty_band_keeps_the_threshold_before_it() -> None:
    b = hs.bands(hs.tally([2, 1], correct=[0, 0]))
    assert b.threshold.tolist() == [np.inf, np.inf]
    assert b.weight.tolist() == [0, 0, 1]
    assert np.isnan(b.accuracy[:2]).all()


class TestTreatments:
    """Bins without errors or without successes."""

    h = hs.Histogram.from_counts([10, 10, 10], [10, 5, 0])

    def test_infinite_by_default(self) -> None:
        assert hs.eor(self.h) == np.inf

    def test_drop(self) -> None:
        assert hs.eor(self.h, "drop") == 1.0

    def test_cap(self) -> None:
        assert hs.eor(self.h, "cap", cap=7.0) == pytest.approx((7 + 1 + 7) / 3)

    def test_smooth(self) -> None:
        """p = 10.5 / 11 and 0.5 / 11 around a = 1/2: odds 21."""
        assert hs.eor(self.h, "smooth") == pytest.approx((21 + 1 + 21) / 3)

    def test_merge(self) -> None:
        """The first joins the second (15 of 20), the last joins that: one bin is left."""
        assert hs.eor(self.h, "merge") == 1.0

    def test_merge_takes_the_smaller_neighbour(self) -> None:
        h = hs.Histogram.from_counts([30, 10, 20], [15, 10, 5])
        left = slow.merged([(30, 15), (10, 10), (20, 5)])
        assert left == [(30, 15), (30, 15)]
        assert hs.eor(h, "merge") == 1.0

    def test_drop_with_nothing_left_is_nan(self) -> None:
        assert np.isnan(hs.eor(hs.Histogram.from_counts([5, 5], [5, 0]), "drop"))

    @pytest.mark.parametrize("right", [[10, 20, 30], [0, 0, 0]])
    def test_nothing_is_learnt_where_all_are_alike(self, right: list[int]) -> None:
        assert hs.eor(hs.Histogram.from_counts([10, 20, 30], right)) == 1.0

    @pytest.mark.parametrize("p", [0.0, 1.0])
    def test_nor_with_weights_that_round(self, p: float) -> None:
        assert hs.eor(hs.Histogram([0.1, 0.2, 0.7, 0.3], [p] * 4)) == pytest.approx(1.0)
        t = hs.tally([4, 3, 2, 1], correct=[p] * 4, weight=[0.1, 0.2, 0.7, 0.3])
        assert hs.eor(t) == pytest.approx(1.0)

    def test_merge_counts_weights_in_full(self) -> None:
        t = hs.tally([2, 1, 1, 0, 0], correct=[1, 1, 0, 1, 0], weight=[0.5, 1.5, 0.5, 1.0, 2.0])
        h = hs.histogram(t, hs.unique())
        a = 3.0 / 5.5
        expected = (2.5 * hs.odds_ratio(2.0 / 2.5, a) + 3.0 * hs.odds_ratio(1 / 3, a)) / 5.5
        assert hs.eor(h, "merge") == pytest.approx(expected)


def test_odds_ratio_takes_arrays() -> None:
    np.testing.assert_allclose(hs.odds_ratio([0.5, 0.75, 1.0], 0.5), [1, 3, np.inf])


def test_odds_ratio_at_certainty() -> None:
    assert hs.odds_ratio(1.0, 1.0) == hs.odds_ratio(0.0, 0.0) == 1.0
    assert hs.odds_ratio(0.5, 1.0) == hs.odds_ratio(0.5, 0.0) == hs.odds_ratio(0.0, 1.0) == np.inf


def test_bands_of_weights_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    score, correct, times = rng.random(300).round(2), rng.random(300) < 0.9, rng.integers(1, 5, 300)
    a = hs.bands(hs.tally(score, correct=correct, weight=times / 7), levels=(0.95, 0.9))
    b = hs.bands(
        hs.tally(np.repeat(score, times), correct=np.repeat(correct, times)), levels=(0.95, 0.9)
    )
    assert a.threshold.tolist() == b.threshold.tolist()
    assert a.weight == pytest.approx(b.weight, abs=1e-12)
    assert a.accuracy == pytest.approx(b.accuracy, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("p", "pooled"),
    [
        ([0.9, 0.5, 0.2], [0.9, 0.5, 0.2]),
        ([1.0, 0.5, 0.2], [0.75, 0.75, 0.2]),  # the first bin and the one after it
        ([0.8, 1.0, 0.6, 0.2], [0.8, 0.8, 0.8, 0.2]),  # all before the last without an error
        ([0.8, 0.6, 1.0], [0.8, 0.8, 0.8]),  # to the last bin at most
        ([0.9, 0.0, 0.3], [0.9, 0.1, 0.1]),  # a sum over one more than their number
        ([1.0, 0.0, 0.4], [0.5, 0.5, 0.4]),  # on the result: no bin without a success is left
        ([0.9, 0.3, 0.0], [0.9, 0.3, 0.0]),  # nothing to pool it with
    ],
)
def test_pooled_bins_by_hand(p: list[float], pooled: list[float]) -> None:
    h = hs.Histogram(np.ones(len(p)), p)
    base = float(np.mean(p))
    expected = np.mean([hs.odds_ratio(q, base) for q in pooled])
    assert hs.eor(h, degenerate="pool") == pytest.approx(expected)


def test_pooling_keeps_what_is_infinite_and_what_says_nothing() -> None:
    assert hs.eor(hs.Histogram([1, 1, 1], [0.9, 0.0, 0.0]), degenerate="pool") == np.inf
    assert hs.eor(hs.Histogram([1, 1], [1.0, 1.0]), degenerate="pool") == hs.eor(
        hs.Histogram([1, 1], [1.0, 1.0])
    )
