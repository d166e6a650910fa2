"""The numbers printed by Finlay & Oberman, except where the print is wrong."""

import numpy as np
import pytest

import howsure as hs

COINS = hs.Histogram(weight=[1, 1, 1, 1], p=[1 / 2, 1 / 2, 15 / 16, 1 / 16])
P, Q = hs.Histogram([1, 1, 1], [0.15, 0.4, 0.8]), hs.Histogram([1, 1, 1], [0.4, 0.5, 0.99])


def test_example_1_two_agents() -> None:
    """3,000 images in easy, typical and hard bins of 1,000; both see 120 errors, the second sorts
    them better.
    """
    first = hs.Histogram.from_counts([1000] * 3, [1000 - 38, 1000 - 40, 1000 - 42])
    second = hs.Histogram.from_counts([1000] * 3, [1000 - 3, 1000 - 41, 1000 - 76])
    assert first.base == second.base == 0.96
    odds = 0.96 / 0.04
    by_hand = [997 / 3 / odds, odds / (959 / 41), odds / (924 / 76)]
    assert hs.eor(second) == pytest.approx(sum(by_hand) / 3)
    assert hs.eor(first) == pytest.approx(((962 / 38) / odds + 1 + odds / (958 / 42)) / 3)
    assert hs.eor(second) > 5 * hs.eor(first)


def test_example_1_from_labels_of_people() -> None:
    words = np.repeat(["easy", "typical", "hard"], 1000)
    correct = np.concatenate([np.arange(1000) >= wrong for wrong in (3, 41, 76)])
    h = hs.Histogram.from_bins(words, correct)
    assert h.p.tolist() == [0.997, 0.924, 0.959]  # bins in sorted order: easy, hard, typical
    assert hs.eor(h) == pytest.approx(5.616, abs=5e-4)


def test_example_3_coins() -> None:
    assert COINS.base == 0.5
    assert hs.odds_ratio(15 / 16, 0.5) == hs.odds_ratio(1 / 16, 0.5) == pytest.approx(15)
    assert hs.eor(COINS) == pytest.approx(8)


def test_example_4_three_bins() -> None:
    """6.3, 1.2, 3.9 and 4.4 with a = .94 as given; the bins themselves average .951."""
    h = hs.Histogram([0.55, 0.31, 0.14], [0.99, 0.95, 0.8])
    assert [round(float(s), 1) for s in hs.odds_ratio(h.p, 0.94)] == [6.3, 1.2, 3.9]
    assert round(hs.eor(h, base=0.94), 1) == 4.4
    assert h.base == pytest.approx(0.951)
    assert round(hs.eor(h), 1) != 4.4
    assert round(0.94 / 0.06, 2) == 15.67  # printed as 15.6


def test_example_5_auroc_depends_on_the_order_of_bins() -> None:
    order = np.argsort(COINS.p)
    assert round(hs.histogram_auroc(COINS.select(order)), 2) == 0.83
    assert round(hs.histogram_auroc(COINS.select(order[::-1])), 2) == 0.17
    assert 0.17 < hs.histogram_auroc(COINS) < 0.83
    assert hs.eor(COINS.select(order)) == hs.eor(COINS.reversed()) == pytest.approx(8)


def test_example_6_same_auroc_very_different_odds() -> None:
    assert round(P.base, 2) == 0.45
    assert round(Q.base, 2) == 0.63
    assert round(hs.histogram_auroc(P), 2) == 0.79
    assert round(hs.histogram_auroc(Q), 2) == 0.78
    assert round(hs.eor(P), 1) == 3.6
    assert round(hs.eor(Q)) == 21


def test_example_7_entropy_has_a_minus_sign() -> None:
    assert hs.conditional_entropy(hs.Histogram([1], [0.25])) == pytest.approx(
        0.25 * 2 + 0.75 * np.log2(4 / 3)
    )


def test_example_8_same_entropy_very_different_odds() -> None:
    p, q = hs.Histogram([1, 1], [0.94, 0.999]), hs.Histogram([1, 1], [0.95, 0.99])
    assert p.base == pytest.approx(0.9695)  # printed .969
    assert round(q.base, 2) == 0.97
    assert round(hs.conditional_entropy(p), 2) == 0.17
    assert round(hs.conditional_entropy(q), 2) == 0.18
    assert round(hs.eor(p), 1) == 16.7
    assert round(hs.eor(q), 1) == 2.4


def test_trivial_histogram_scores_1() -> None:
    assert hs.eor(hs.Histogram([3], [0.7])) == 1


def test_more_value_from_99_to_999_than_from_80_to_809() -> None:
    s = hs.odds_ratio
    assert s(0.999, 0.5) - s(0.99, 0.5) > s(0.809, 0.5) - s(0.8, 0.5)


def test_two_scores_crossed_refine_each_alone() -> None:
    """Section 8: uncertainty methods can be combined; crossing bins can only raise the score."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 4000), rng.integers(0, 3, 4000)
    correct = rng.random(4000) < 0.3 + 0.15 * a + 0.15 * b
    crossed = hs.Histogram.from_bins(np.stack((a, b), axis=1), correct)
    assert len(crossed) == 9
    assert hs.eor(crossed) > max(hs.eor(hs.Histogram.from_bins(x, correct)) for x in (a, b))


def test_brier_of_a_histogram_is_the_single_component_form() -> None:
    """Table 2 prints .033–.076 at accuracies of .92–.95: Σ w p (1 − p), not its double."""
    assert hs.histogram_brier(hs.Histogram([1], [0.95])) == pytest.approx(0.0475)


def test_variance_is_summed_over_classes() -> None:
    """Table 3's threshold of .014 at 1,000 classes is impossible for a mean over classes."""
    q = np.zeros((2, 1, 1000))
    q[0, 0, 0] = q[1, 0, 1] = 1.0
    preds = hs.Predictions.from_samples(probs=q)
    assert -hs.scores.variance(preds) == pytest.approx(0.5)
    assert -hs.scores.variance(preds, over="mean") == pytest.approx(0.0005)
