"""Calibration errors against loops over single samples, and by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import UNIT, Rows, predictions, rows
from reference import answers
from reference import calibration as slow

Z80 = 1.2815515655446004
CASES = {
    "range15": (hs.equal_range(15), lambda s: slow.equal_range(s, 15)),
    "range10": (hs.equal_range(10), lambda s: slow.equal_range(s, 10)),
    "size15": (hs.equal_size(15), lambda s: slow.equal_size(s, 15)),
    "adaptive": (hs.adaptive(), lambda s: slow.adaptive(s, Z80)),
    "adaptive_released": (hs.adaptive(z=1.645), lambda s: slow.adaptive(s, 1.645)),
    "unique": (hs.unique(), slow.unique),
}
close = {"abs": 1e-12}


@pytest.mark.parametrize("case", CASES)
@given(r=rows(UNIT, max_rows=150))
def test_binned_errors_are_the_definition(case: str, r: Rows) -> None:
    bins, number = CASES[case]
    t, score = r.tally(), r.score.astype(np.float64) + 0.0
    bin_of = number(score)
    assert hs.ece(t, bins) == pytest.approx(slow.ece(bin_of, score, r.correct), **close)
    assert hs.mce(t, bins) == pytest.approx(slow.mce(bin_of, score, r.correct), **close)
    assert hs.over_confidence(t, bins) == pytest.approx(
        slow.over(bin_of, score, r.correct), **close
    )
    assert hs.debiased_ece(t, bins) == pytest.approx(
        slow.debiased(bin_of, score, r.correct), abs=1e-7, nan_ok=True
    )


@given(rows(UNIT))
def test_adaptive_errors_use_the_80_percent_bins(r: Rows) -> None:
    t = r.tally()
    assert hs.aece(t) == hs.ece(t, hs.adaptive(level=0.8))
    assert hs.amce(t) == hs.mce(t, hs.adaptive(level=0.8))


@given(rows(UNIT))
def test_signed_error_is_mean_confidence_minus_accuracy(r: Rows) -> None:
    expected = r.score.astype(np.float64).mean() - r.correct.mean()
    assert hs.signed_calibration_error(r.tally()) == pytest.approx(expected, **close)


@given(rows(UNIT))
def test_proper_scores_of_the_confidence(r: Rows) -> None:
    score = r.score.astype(np.float64)
    claimed = np.where(r.correct, score, 1 - score)
    with np.errstate(divide="ignore"):
        nll = np.mean(
            -np.log(np.where(r.correct, score, 1.0)) - np.log1p(-np.where(r.correct, 0.0, score))
        )
    assert hs.correctness_brier(r.tally()) == pytest.approx(np.mean((1 - claimed) ** 2), **close)
    assert hs.correctness_nll(r.tally()) == pytest.approx(nll, rel=1e-12, abs=1e-12)


def test_certain_and_wrong_costs_infinity() -> None:
    assert hs.correctness_nll(hs.tally([1.0, 0.5], correct=[0, 1])) == np.inf
    assert hs.correctness_nll(hs.tally([0.0, 0.5], correct=[1, 1])) == np.inf
    assert hs.correctness_nll(hs.tally([0.0, 1.0], correct=[0, 1])) == 0.0


@given(predictions(max_rows=25), st.sampled_from([1, 10, 15]))
def test_uncertainty_errors_are_the_definition(preds: hs.Predictions, m: int) -> None:
    entropy = [answers.normalised_entropy(p) for p in preds.probs]
    near_edge = any(
        0 < abs(h * m - round(h * m)) < 1e-9 for h in entropy
    )  # the last digit would choose the bin
    if not near_edge:
        gaps = slow.uncertainty(entropy, preds.correct, m)
        assert hs.uce(preds, m) == pytest.approx(
            sum(n * gap for n, gap in gaps) / preds.n, abs=1e-9
        )
        assert hs.muce(preds, m) == pytest.approx(max(gap for _, gap in gaps), abs=1e-9)


@given(predictions(max_rows=25), st.sampled_from([1, 10, 15]))
def test_classwise_error_is_the_definition(preds: hs.Predictions, m: int) -> None:
    p = preds.probs.tolist()
    assert hs.classwise_ece(preds, m) == pytest.approx(
        slow.classwise(p, preds.labels, m), abs=1e-12
    )


def test_ece_by_hand() -> None:
    """Bins (.8, .87]: gap .85 − .5 of 2; (.93, 1]: gap .95 − 1 of 2."""
    t = hs.tally([0.85, 0.85, 0.95, 0.95], correct=[1, 0, 1, 1])
    assert hs.ece(t) == pytest.approx((0.35 + 0.05) / 2)
    assert hs.mce(t) == pytest.approx(0.35)
    assert hs.over_confidence(t) == pytest.approx(0.175)
    assert hs.under_confidence(t) == pytest.approx(0.025)


def test_confidence_0_and_1_are_in_bins() -> None:
    t = hs.tally([0.0, 1.0], correct=[1, 0])
    assert hs.ece(t) == 1.0
    assert hs.bin_table(t).count.tolist() == [1, 1]


def test_debiased_by_hand() -> None:
    """One bin of 4: gap .25, accuracy .5: .0625 − .25 / 3 is negative; with 100 samples it is not."""
    assert hs.debiased_ece(hs.tally([0.75] * 4, correct=[1, 1, 0, 0])) == 0.0
    many = hs.debiased_ece(hs.tally([0.75] * 100, correct=[1, 0] * 50))
    assert many == pytest.approx(np.sqrt(0.0625 - 0.25 / 99))


def test_debiased_without_a_bin_of_two_is_nan() -> None:
    assert np.isnan(hs.debiased_ece(hs.tally([0.1, 0.9], correct=[0, 1]), hs.unique()))


def test_debiased_is_near_0_for_a_calibrated_score() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(5000)
    t = hs.tally(score, correct=rng.random(5000) < score)
    assert hs.debiased_ece(t) < 0.01 < hs.ece(t, hs.equal_size(100))


@pytest.mark.parametrize("metric", [hs.debiased_ece, hs.aece, hs.amce], ids=lambda f: f.__name__)
def test_fractions_of_samples_are_refused_where_samples_count(metric: Any) -> None:
    halves = hs.tally([0.1, 0.9], correct=[0, 1], weight=[0.5, 1.5])
    with pytest.raises(hs.InputError, match=r"counts samples; these weights are not equal\. Use"):
        metric(halves)


class TestSmooth:
    """Smooth ECE."""

    def test_constant_gap(self) -> None:
        """A residual of one sign is only moved by smoothing, so its integral is the gap itself."""
        assert hs.smooth_ece(hs.tally([0.7] * 10, correct=[1] * 10)) == pytest.approx(0.3, abs=1e-9)

    def test_direct_sum_over_the_kernel(self) -> None:
        """The definition by brute force: reflected Gaussian kernel, integral by the midpoint rule,
        bisection.
        """
        rng = np.random.default_rng(5)
        r = rng.beta(4, 2, 80)
        residual = (rng.random(80) < r**2) - r
        u = (np.arange(1000) + 0.5) / 1000

        def smoothed(sigma: float) -> float:
            images = [s * r + shift for shift in (-4, -2, 0, 2, 4) for s in (1, -1)]
            kernel = (
                sum(np.exp(-((u[:, None] - x) ** 2) / (2 * sigma**2)) for x in images)
                / sigma
                / np.sqrt(2 * np.pi)
            )
            return float(np.abs(kernel @ residual / len(r)).mean())

        low, high = 1e-3, 1.0
        for _ in range(16):
            middle = (low + high) / 2
            low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
        assert hs.smooth_ece(hs.tally(r, correct=residual > 0)) == pytest.approx(high, abs=1e-4)
