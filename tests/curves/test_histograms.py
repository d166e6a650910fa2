"""Histograms: weights, counts, crossing and refinement."""

import numpy as np
import pytest

import howsure as hs


def test_weights_are_shares_and_empty_bins_go() -> None:
    h = hs.Histogram([2, 0, 6], [0.5, 0.1, 1.0])
    assert h.weight.tolist() == [0.25, 0.75]
    assert h.p.tolist() == [0.5, 1.0]
    assert hs.Histogram.from_counts([4, 0, 2], [1, 0, 2]).count.tolist() == [4, 2]


def test_from_bins_of_words_numbers_and_pairs() -> None:
    correct = [1, 0, 1, 1]
    assert hs.Histogram.from_bins(["b", "a", "b", "a"], correct).p.tolist() == [0.5, 1.0]
    assert hs.Histogram.from_bins([3, 3, -1, 3], correct).count.tolist() == [1, 3]
    crossed = hs.Histogram.from_bins([[0, 1], [0, 1], [0, 2], [1, 1]], correct)
    assert crossed.count.tolist() == [2, 1, 1]
    assert crossed.p.tolist() == [0.5, 1.0, 1.0]


def test_most_trusted_bin_comes_first() -> None:
    h = hs.histogram(hs.tally([4, 3, 2, 1], correct=[1, 1, 0, 0]), hs.equal_size(2))
    assert h.p.tolist() == [1, 0]
    assert h.reversed().p.tolist() == [0, 1]
    assert hs.histogram_auroc(h.reversed()) == 1


def test_relative_variance() -> None:
    """sqrt(p (1 − p) / n) / min(p, 1 − p); infinite where certain."""
    h = hs.Histogram.from_counts([100, 100, 4], [90, 100, 2])
    np.testing.assert_allclose(
        h.relative_variance, [np.sqrt(0.09 / 100) / 0.1, np.inf, np.sqrt(0.25 / 4) / 0.5]
    )


def test_base_is_decided_in_counts() -> None:
    """Three bins that are exactly 1/3 right: p = 1/3 and the base agree although 0.1 + 0.2 does
    not.
    """
    h = hs.Histogram.from_counts([3, 30, 300], [1, 10, 100])
    assert h.at_base.all()
    assert hs.eor(h) == pytest.approx(1.0)


def test_base_of_given_weights_lies_between_the_bins() -> None:
    assert hs.Histogram([0.1, 0.2, 0.7, 0.3], [1.0] * 4).base == 1.0


def test_refine_any_bin_counting_from_either_end() -> None:
    h = hs.Histogram([1, 1], [0.5, 0.8])
    finer = hs.refine(h, -1, [0.5, 0.5], [0.7, 0.9])
    assert finer.weight.tolist() == [0.5, 0.25, 0.25]
    assert finer.p.tolist() == [0.5, 0.7, 0.9]


def test_expected_score_passes_base_rate() -> None:
    h = hs.Histogram([1, 3], [0.2, 0.6])
    assert hs.expected_score(h, lambda p, a: (p - a) ** 2) == pytest.approx(
        0.25 * 0.09 + 0.75 * 0.01
    )
    assert hs.expected_score(h, hs.odds_ratio) == pytest.approx(hs.eor(h))


def test_odds_by_quantile_average_to_the_eor() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    t = hs.tally(score, correct=rng.random(20_000) < 0.5 + 0.3 * score)
    c = hs.odds_by_quantile(t)
    assert len(c) == 100
    assert np.dot(c.weight, c.y) / t.n == pytest.approx(hs.eor(t))


def test_odds_by_quantile_of_weighted_rows() -> None:
    t = hs.tally([2, 1], correct=[1, 1], weight=[0.1, 0.2])
    assert hs.odds_by_quantile(t).y.tolist() == [1, 1]
