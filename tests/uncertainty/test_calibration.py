"""Limits of calibration errors, the noise floor, and the test of claims."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty import calibration_testing
from howsure.uncertainty.calibration_limits import (
    BinCounts,
    compute_error_limits,
    compute_noise_floor,
    compute_rms_limits,
    shifted_gamma_quantile,
)
from howsure.uncertainty.calibration_testing import ClaimRows, run_sign_test
from howsure.uncertainty.sample_case import SampleCase


def honest(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 1, n)
    return p, rng.random(n) < p


def test_honest_claims_may_have_no_error_at_all() -> None:
    t = hs.tally(*honest(2000))
    for metric in (hs.ece, hs.over_confidence, hs.under_confidence, hs.debiased_ece):
        low, high = hs.interval(metric, t)
        assert low == 0
        assert high > 0


def test_a_clear_error_has_limits_around_it() -> None:
    p, c = honest(5000)
    t = hs.tally(np.sqrt(p), correct=c)  # claims too much everywhere
    low, high = hs.interval(hs.ece, t)
    assert 0 < low < hs.ece(t) < high
    assert hs.interval(hs.under_confidence, t)[0] == 0


def test_noise_floor_is_what_honest_models_show() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1, 300)
    shown = [hs.ece(hs.tally(p, correct=rng.random(300) < p)) for _ in range(400)]
    b = SampleCase.of(hs.tally(p, correct=rng.random(300) < p)).count_in_bins(
        hs.equal_range(15), np.sign, 0.025
    )
    assert compute_noise_floor(b) == pytest.approx(np.mean(shown), rel=0.05)


def test_three_moments_of_a_half_normal() -> None:
    z = np.abs(np.random.default_rng(0).normal(size=400_000))
    assert z.mean() + shifted_gamma_quantile(
        z.var(), ((z - z.mean()) ** 3).mean(), 0.975
    ) == pytest.approx(np.quantile(z, 0.975), abs=0.02)


def test_claims_that_differ_within_a_bin_are_noise_of_its_gap() -> None:
    columns = np.array([300.0, 300.0]), np.array([200.0, 290.0]), np.array([290.0, 299.0])
    known = BinCounts(*columns), BinCounts(*columns, squares=np.array([60.0, 2.0]))
    alone, together = (compute_rms_limits(b, 0.025) for b in known)
    assert together[1] > alone[1]
    assert together[0] < alone[0]
    assert compute_error_limits(known[1], 0.025)[1] > compute_error_limits(known[0], 0.025)[1]


def test_one_bin_with_three_errors_is_held_against_as_few() -> None:
    columns = np.array([100.0]), np.array([95.0]), np.array([97.0])
    plain = compute_error_limits(BinCounts(*columns), 0.025)[1] - 0.02
    squares = np.array([97 * 0.05**2 + 3 * 0.95**2])  # every claim is 0.95
    assert compute_error_limits(BinCounts(*columns, squares=squares), 0.025)[1] - 0.02 > 1.5 * plain


def test_limits_of_the_debiased_error_hold_where_errors_are_rare() -> None:
    rng = np.random.default_rng(0)
    claim = np.clip(rng.beta(2, 0.2, 60_000), 0.2, 1 - 1e-9)
    correct = rng.random(60_000) < 0.9995 - 0.1 * (1 - claim)
    order = np.argsort(claim, kind="stable")
    ascending, upto = claim[order], np.concatenate(([0.0], np.cumsum((claim - correct)[order])))
    missed = 0
    for seed in range(200):
        i = np.random.default_rng(seed).integers(0, 60_000, 1000)
        t = hs.tally(claim[i], correct=correct[i])
        low = np.sort(t.between(hs.equal_size(15).cuts(t)).low)
        cut = np.concatenate(([0], np.searchsorted(ascending, low[1:]), [60_000]))
        true = np.sqrt((np.diff(upto[cut]) ** 2 / np.diff(cut)).sum() / 60_000)
        found = hs.interval(hs.debiased_ece, t)
        missed += not found[0] <= true <= found[1]
    assert missed <= 10


def test_fewer_effective_samples_are_less_sure() -> None:
    columns = np.array([500.0, 300.0]), np.array([450.0, 200.0]), np.array([400.0, 190.0])
    once, twice = (
        compute_error_limits(BinCounts(*columns), 0.025),
        compute_error_limits(BinCounts(*columns, design=2.0), 0.025),
    )
    assert twice[0] < once[0]
    assert once[1] < twice[1]


class TestClaims:
    """`calibration_test`: its level, its power, what it refuses."""

    @pytest.fixture
    def few_redraws(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A tenth of them: the level does not depend on their number."""
        monkeypatch.setattr(calibration_testing, "MANY_REDRAWS", 999)

    @pytest.mark.usefixtures("few_redraws")
    def test_the_p_value_of_honest_claims_is_uniform(self) -> None:
        p = np.array(
            [hs.calibration_test(hs.tally(*honest(200, seed)), seed).p for seed in range(150)]
        )
        assert (p <= 0.05).mean() <= 0.12  # P(more) < 0.1 % at a level of 5 %
        assert 0.4 < p.mean() < 0.6

    @pytest.mark.parametrize("what", ["smooth", "local", "shift"])
    def test_defects_are_found(self, what: str) -> None:
        rng = np.random.default_rng(0)
        p = rng.beta(4, 1, 5000)
        true = {
            "smooth": p**1.3,
            "local": np.where((p > 0.8) & (p < 0.85), p - 0.2, p),
            "shift": p - 0.04,
        }[what]
        found = hs.calibration_test(hs.tally(p, correct=rng.random(5000) < true))
        assert found.p <= 0.002
        assert found.statistic > 3

    def test_outcomes_and_predictions(self) -> None:
        p, c = honest(300)
        by_tally = hs.calibration_test(hs.tally(p, correct=c))
        assert hs.calibration_test(hs.Outcomes(p, correct=c)) == by_tally
        assert hs.calibration_test(hs.Predictions.from_confidence(p, c)) == by_tally

    @pytest.mark.usefixtures("few_redraws")
    def test_few_skewed_groups_are_no_defect(self) -> None:
        """15 groups, mostly a little too good and rarely far too bad: the sum of their signs alone
        refused 9 %.
        """
        refused = 0
        rows = ClaimRows(np.array([0.5]), np.array([30.0]), np.array([15.0]))
        for seed in range(300):
            residual = 1 - np.random.default_rng(seed).exponential(size=15)
            each, nothing = np.arange(15), np.zeros(15, dtype=int)
            found = run_sign_test(rows, group=each, row=nothing, residual=residual, seed=0)
            refused += found.p <= 0.05
        assert refused <= 21

    @pytest.mark.usefixtures("few_redraws")
    def test_groups_that_are_right_or_wrong_together_are_no_defect(self) -> None:
        def once(seed: int, group: bool) -> float:
            rng = np.random.default_rng(seed)
            where = np.repeat(np.arange(60), 10)
            p = np.repeat(rng.beta(4, 1, 60), 10)
            c = np.repeat(rng.random(60) < p[::10], 10)
            return hs.calibration_test(
                hs.Outcomes(p, correct=c, group=where if group else None), seed
            ).p

        with_group = np.array([once(seed, True) for seed in range(100)])
        without = np.array([once(seed, False) for seed in range(20)])
        assert (with_group <= 0.05).mean() <= 0.12
        assert (without <= 0.05).mean() > 0.5

    def test_very_many_groups_are_pooled_at_random(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calibration_testing, "MAX_SIGN_GROUPS", 40)
        rng = np.random.default_rng(3)
        p, c = honest(3000, 3)
        off = rng.random(3000) < np.clip(p - 0.08, 0, 1)
        group, few = (
            np.arange(3000) // 2,
            np.arange(3000) // 75,
        )  # 1,500 groups, and 40 that stay as they are
        assert (
            np.bincount(calibration_testing.pool_groups(group, 0)).tolist() == [76] * 20 + [74] * 20
        )
        assert hs.calibration_test(hs.Outcomes(p, correct=c, group=group)).p > 0.05
        assert hs.calibration_test(hs.Outcomes(p, correct=off, group=group)).p <= 0.01
        np.testing.assert_array_equal(calibration_testing.pool_groups(few, 0), few)

    def test_claims_of_certainty_that_fail(self) -> None:
        found = hs.calibration_test(
            hs.tally([1.0] * 20 + [0.5] * 20, correct=[1] * 19 + [0] + [1, 0] * 10)
        )
        assert found.p == pytest.approx(0.0001)

    def test_weights_and_scores_are_refused(self) -> None:
        with pytest.raises(
            hs.InputError, match="calibration_test redraws the outcomes of single samples"
        ):
            hs.calibration_test(hs.tally([0.9, 0.8], correct=[1, 0], weight=[1.0, 2.0]))
        with pytest.raises(hs.InputError, match=r"scores in \[0, 1\]"):
            hs.calibration_test(hs.tally([9.0, 0.8], correct=[1, 0]))
