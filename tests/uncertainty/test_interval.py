"""Intervals: against the plain bootstrap where that is right, their laws, and the reasons for
giving none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import isnan
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty.bootstrap import draw_rows
from howsure.uncertainty.influence import ClaimLoss
from howsure.uncertainty.intervals import evaluate_draws
from howsure.uncertainty.means import compute_mean_limits
from howsure.uncertainty.sample_case import SampleCase


def data(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 1, n)
    return p, rng.random(n) < p


def plain_bootstrap(
    metric: object, score: np.ndarray, correct: np.ndarray, draws: int = 500
) -> tuple[float, float]:
    """Resample rows with replacement and measure again: what the fast way must agree with."""
    rng = np.random.default_rng(1)
    n = len(score)
    found = []
    for _ in range(draws):
        rows = rng.integers(0, n, n)
        found.append(metric(hs.tally(score[rows], correct=correct[rows])))  # type: ignore[operator]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


METRICS = [
    hs.accuracy,
    hs.aurc,
    hs.e_aurc,
    hs.augrc,
    hs.auroc,
    hs.aupr,
    hs.signed_calibration_error,
    hs.correctness_brier,
    partial(hs.coverage_at_risk, risk=0.1),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: getattr(m, "__name__", "partial"))
def test_limits_are_near_those_of_the_plain_bootstrap_where_much_was_seen(metric: object) -> None:
    s, c = data(2000)
    low, high = hs.interval(metric, hs.tally(s, correct=c))  # type: ignore[arg-type]
    plain_low, plain_high = plain_bootstrap(metric, s, c)
    width = plain_high - plain_low
    near = (
        0.3 if isinstance(metric, partial) else 0.15
    )  # a share is sure by the whole tail over several cuts, and jumps
    assert (
        abs(low - plain_low) < near * width
    )  # both ends are noisy by some hundredths of the width
    assert abs(high - plain_high) < 0.15 * width


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: getattr(m, "__name__", "partial"))
def test_a_metric_of_ones_own_is_drawn(metric: object) -> None:
    s, c = data(2000)  # more than the rows that are kept
    low, high = hs.interval(lambda t: metric(t), hs.tally(s, correct=c))  # type: ignore[operator,arg-type]
    plain_low, plain_high = plain_bootstrap(metric, s, c)
    width = plain_high - plain_low
    assert abs(low - plain_low) < 0.12 * width
    assert abs(high - plain_high) < 0.12 * width


FAST = [
    hs.aurc,
    hs.aac,
    hs.e_aurc,
    hs.augrc,
    hs.auroc,
    hs.accuracy,
    hs.ece,
    hs.over_confidence,
    hs.under_confidence,
]


@pytest.mark.parametrize("metric", FAST, ids=lambda m: m.__name__)
@pytest.mark.parametrize("decimals", [1, 9])
def test_draws_all_at_once_are_draws_one_by_one(metric: Any, decimals: int) -> None:
    s, c = data(150)
    stack = draw_rows(hs.tally(s.round(decimals), correct=c), 0)
    assert evaluate_draws(metric, stack) == pytest.approx(
        evaluate_draws(lambda t: metric(t), stack), abs=1e-12
    )


def test_debiased_all_at_once_is_one_by_one_in_the_same_bins() -> None:
    s, c = data(300)
    bins = hs.equal_range(10)
    stack = draw_rows(hs.tally(s, correct=c), 0)
    fast = evaluate_draws(partial(hs.debiased_ece, bins=bins), stack)
    assert fast == pytest.approx(
        evaluate_draws(lambda t: hs.debiased_ece(t, bins=bins), stack), abs=1e-12
    )


def test_the_seed_decides_the_draws_of_ones_own_metric() -> None:
    t = hs.tally(*data())
    assert hs.interval(of_our_own, t, seed=3) == hs.interval(of_our_own, t, seed=3)
    assert hs.interval(of_our_own, t, seed=3) != hs.interval(of_our_own, t, seed=4)
    assert hs.interval(hs.aurc, t, seed=3) == hs.interval(hs.aurc, t, seed=4)  # nothing is drawn


def test_a_higher_level_is_wider() -> None:
    t = hs.tally(*data())
    low, high = hs.interval(hs.aurc, t, level=0.5)
    lower, higher = hs.interval(hs.aurc, t, level=0.99)
    assert lower < low < hs.aurc(t) < high < higher


def test_row_order_does_not_matter() -> None:
    s, c = data()
    mixed = np.random.default_rng(5).permutation(len(s))
    assert hs.interval(hs.aurc, hs.tally(s, correct=c)) == hs.interval(
        hs.aurc, hs.tally(s[mixed], correct=c[mixed])
    )


def test_several_at_once_are_each_alone() -> None:
    t = hs.tally(*data())
    assert [found[:2] for found in hs.each_interval([hs.aurc, hs.ece], t)] == [
        hs.interval(hs.aurc, t),
        hs.interval(hs.ece, t),
    ]


def test_outcomes_and_compact_tallies_give_what_the_tally_gives() -> None:
    s, c = data()
    t = hs.tally(s, correct=c)
    assert hs.interval(hs.auroc, hs.Outcomes(s, correct=c)) == hs.interval(hs.auroc, t)
    assert hs.interval(hs.auroc, t.compact()) == hs.interval(hs.auroc, t)


def test_many_samples_narrow_the_limits_by_their_root() -> None:
    s, c = data(500)
    wide = np.diff(hs.interval(hs.augrc, hs.tally(s, correct=c)))[0]
    narrow = np.diff(hs.interval(hs.augrc, hs.tally(np.tile(s, 100), correct=np.tile(c, 100))))[0]
    assert narrow == pytest.approx(wide / 10, rel=0.15)


def test_groups_are_drawn_whole() -> None:
    s, c = data(200)
    rows = np.repeat(np.arange(200), 25)  # every sample 25 times: as uncertain as 200 samples
    alone = hs.interval(hs.accuracy, hs.Outcomes(s[rows], correct=c[rows]))
    together = hs.interval(hs.accuracy, hs.Outcomes(s[rows], correct=c[rows], group=rows))
    once = hs.interval(hs.accuracy, hs.Outcomes(s, correct=c))
    assert np.diff(together)[0] == pytest.approx(np.diff(once)[0], rel=0.12)
    assert np.diff(alone)[0] == pytest.approx(np.diff(once)[0] / 5, rel=0.12)


@pytest.mark.parametrize("metric", [*METRICS, hs.ece, hs.debiased_ece, hs.over_confidence])
def test_equal_weights_change_nothing(metric: Any) -> None:
    s, c = data(600)
    plain = hs.interval(metric, hs.Outcomes(s, correct=c))
    assert hs.interval(
        metric, hs.Outcomes(s, correct=c, weight=np.full(600, 2.0))
    ) == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("metric", [*METRICS, hs.ece, hs.over_confidence])
@pytest.mark.parametrize("unit", [1e-12, 0.3, 1e12])
def test_the_unit_of_weights_does_not_matter(metric: Any, unit: float) -> None:
    s, c = data(500)
    weight = np.random.default_rng(2).lognormal(0, 1, 500)
    once, again = (
        hs.interval(metric, hs.Outcomes(s, correct=c, weight=w)) for w in (weight, unit * weight)
    )
    assert again == pytest.approx(once, rel=1e-12, abs=1e-12)
    assert hs.interval(metric, hs.tally(s, correct=c, weight=unit * weight)) == pytest.approx(
        once, rel=1e-12
    )


def test_uneven_weights_make_it_less_sure() -> None:
    s, c = data(600)
    weight = np.where(np.arange(600) < 60, 50.0, 1.0)
    even = hs.interval(hs.accuracy, hs.Outcomes(s, correct=c))
    uneven = hs.interval(hs.accuracy, hs.Outcomes(s, correct=c, weight=weight))
    assert np.diff(uneven)[0] > 1.5 * np.diff(even)[0]


def test_a_mean_loss_has_the_limits_of_its_standard_error() -> None:
    loss = np.random.default_rng(0).exponential(size=4000)
    t = hs.tally(np.random.default_rng(1).random(4000), loss=loss)
    low, high = hs.interval(lambda x: x.total / x.n, t)
    error = loss.std() / np.sqrt(len(loss))
    assert (low, high) == pytest.approx(
        (loss.mean() - 1.96 * error, loss.mean() + 1.96 * error), abs=0.2 * error
    )


def test_aurc_of_losses() -> None:
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    loss = rng.exponential(size=2000) * (1.5 - s)
    low, high = hs.interval(hs.aurc, hs.tally(s, loss=loss))
    assert low < hs.aurc(hs.tally(s, loss=loss)) < high


class TestPredictions:
    """Metrics of whole predictions are measured on the outcomes that give the same number."""

    @staticmethod
    def made(n: int = 800, **columns: object) -> hs.Predictions:
        rng = np.random.default_rng(0)
        z = rng.normal(0, 1.5, (n, 7))
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = np.array([rng.choice(7, p=row) for row in p])
        return hs.Predictions.from_logits(z, y, **columns)

    MEANS = (
        hs.accuracy,
        hs.nll,
        hs.brier,
        hs.uce,
        partial(hs.top_k_accuracy, k=3),
        partial(hs.nll, eps=0.01),
    )

    @pytest.mark.parametrize("metric", MEANS)
    def test_the_value_is_inside(self, metric: object) -> None:
        preds = self.made()
        low, high = hs.interval(metric, preds)  # type: ignore[arg-type]
        assert low < metric(preds) + (0.02 if metric is hs.uce else 0.0)  # type: ignore[operator]
        assert metric(preds) < high  # type: ignore[operator]

    @pytest.mark.parametrize("metric", MEANS)
    @pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2, 800)])
    def test_the_way_through_outcomes_gives_the_same_number(
        self, metric: object, weight: object
    ) -> None:
        preds = self.made(weight=weight)
        plain, options = (
            (metric.func, metric.keywords) if isinstance(metric, partial) else (metric, {})
        )
        outcomes, number = plain.through(preds, **options)  # type: ignore[union-attr]
        assert number(outcomes.tally()) == pytest.approx(metric(preds), abs=1e-12)  # type: ignore[operator]

    def test_nll_has_the_limits_of_its_standard_error(self) -> None:
        preds = self.made()
        loss = hs.losses.nll(preds)
        error = loss.std() / np.sqrt(len(loss))
        low, high = hs.interval(hs.nll, preds)
        assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)

    def test_a_metric_of_tallies_reads_the_confidence(self) -> None:
        preds = self.made()
        t = hs.tally(preds.confidence, correct=preds.correct)
        assert hs.interval(hs.aurc, preds) == hs.interval(hs.aurc, t)

    def test_their_group_is_used(self) -> None:
        group = np.arange(800) // 40
        free = hs.interval(hs.brier, self.made())
        held = hs.interval(hs.brier, self.made(group=group))
        assert free != held

    def test_an_infinite_value_has_no_limits(self) -> None:
        preds = hs.Predictions.from_probs([[1.0, 0.0], [0.5, 0.5]] * 30, [1, 0] * 30)
        (found,) = hs.each_interval([hs.nll], preds)
        assert isnan(found.low)
        assert found.why == "its value is infinite"

    def test_classwise_ece_has_none(self) -> None:
        (found,) = hs.each_interval([hs.classwise_ece], self.made(50))
        assert isnan(found.high)
        assert found.why is not None
        assert found.why == "no interval is known for this number"


class TestNone:
    """Where there are no limits, and why."""

    @staticmethod
    def why(metric: object, data: object) -> str:
        (found,) = hs.each_interval([metric], data)  # type: ignore[list-item,arg-type]
        assert isnan(found.low)
        assert isnan(found.high)
        assert found.why is not None
        return found.why

    @pytest.mark.parametrize("metric", [hs.mce, hs.amce, hs.smooth_ece])
    def test_a_metric_that_jumps(self, metric: object) -> None:
        assert self.why(metric, hs.tally(*data())) == "no interval is known for this number"

    def test_interval_gives_nan_twice(self) -> None:
        low, high = hs.interval(hs.mce, hs.tally(*data()))
        assert isnan(low)
        assert isnan(high)

    def test_an_infinite_value(self) -> None:
        t = hs.tally([1.0, 0.5, 0.6], correct=[0, 1, 1])
        assert self.why(hs.correctness_nll, t) == "its value is infinite"

    def test_an_undefined_value(self) -> None:
        t = hs.tally([0.9, 0.5, 0.6], correct=[1, 1, 1])
        assert self.why(hs.auroc, t) == "its value is undefined"

    def test_no_errors_seen_by_a_metric_of_ones_own(self) -> None:
        t = hs.tally(np.linspace(0.5, 1, 50), correct=np.ones(50))
        assert "cannot tell how uncertain" in self.why(of_our_own, t)

    def test_all_errors_found_first(self) -> None:
        t = hs.tally(np.linspace(0.5, 1, 50), correct=np.arange(50) > 2)
        assert "nothing tells how far the truth is" in self.why(hs.aupr, t)

    def test_a_metric_of_ones_own_and_a_weighted_tally(self) -> None:
        s, c = data()
        t = hs.tally(s, correct=c, weight=np.linspace(1, 2, len(s)))
        assert "forgotten the single weights" in self.why(of_our_own, t)

    def test_a_set_loss(self) -> None:
        t = hs.dice_tally([0.9, 0.8, 0.7], [1, 1, 0], [1, 0, 1])
        assert "whole images" in self.why(hs.aurc, t)

    def test_the_optimum_of_single_losses(self) -> None:
        s, _ = data()
        t = hs.tally(s, loss=np.random.default_rng(0).exponential(size=len(s)))
        assert self.why(hs.e_aurc, t)

    def test_the_mean_of_one_sample(self) -> None:
        assert "one sample" in self.why(hs.correctness_brier, hs.tally([0.9], correct=[1]))


class TestFew:
    """Little was seen: what the closed forms say at the ends."""

    def test_no_error(self) -> None:
        t = hs.tally(np.linspace(0.5, 1, 1000), correct=np.ones(1000))
        assert hs.interval(hs.accuracy, t) == pytest.approx((1 - 3.689 / 1000, 1), abs=2e-5)
        assert hs.interval(hs.aurc, t) == pytest.approx((0, 5.024 / 1000), abs=1e-6)
        assert hs.interval(hs.e_aurc, t) == pytest.approx((0, 5.024 / 1000), abs=1e-6)
        assert hs.interval(hs.augrc, t) == pytest.approx((0, 2.09 / 1000), abs=1e-5)

    def test_no_right_answer(self) -> None:
        t = hs.tally(np.linspace(0.5, 1, 1000), correct=np.zeros(1000))
        low, high = hs.interval(hs.aurc, t)
        assert (low, high) == pytest.approx((1 - 5.024 / 1000, 1), abs=1e-3)

    def test_one_error_has_an_auroc_with_wide_limits(self) -> None:
        t = hs.tally(np.linspace(0.5, 1, 50), correct=np.arange(50) != 7)
        low, high = hs.interval(hs.auroc, t)
        assert 0 <= low < 0.4
        assert hs.auroc(t) < high <= 1

    def test_one_sample(self) -> None:
        assert hs.interval(hs.accuracy, hs.tally([0.9], correct=[1])) == pytest.approx((0.025, 1))

    def test_limits_of_two_groups_are_those_of_their_rows(self) -> None:
        """The accuracy of two hospitals had the limits (-1.4, 1)."""
        right = np.concatenate((np.arange(50) < 28, np.arange(50) < 49))
        o = hs.Outcomes(np.linspace(0.5, 1, 100), correct=right, group=np.arange(100) // 50)
        assert hs.interval(hs.accuracy, o) == hs.interval(hs.accuracy, o.tally())
        own = lambda t: float(t.total)
        assert hs.interval(own, o) == hs.interval(own, o.tally())
        one = hs.each_interval([hs.accuracy], replace(o, group=np.zeros(100)))[0]
        assert one.note == "for this one group; rows inside a group taken as independent"
        other = replace(o, correct=right[::-1])
        apart = replace(o, group=None), replace(other, group=None)
        for metric in (hs.accuracy, hs.aurc, own):
            assert hs.paired_difference(metric, o, other) == hs.paired_difference(metric, *apart)

    def test_few_groups_are_marked(self) -> None:
        s, c = data(90)
        few, many = (
            hs.each_interval([hs.aurc], hs.Outcomes(s, correct=c, group=np.arange(90) % g))[0]
            for g in (9, 10)
        )
        assert (
            few.note == "for these 9 groups in this mix; rows inside a group taken as independent"
        )
        assert few[:2] == hs.interval(hs.aurc, hs.tally(s, correct=c))
        assert many.note is None


@pytest.mark.parametrize("level", [0, 1, 95, -0.5])
def test_a_level_is_a_fraction(level: float) -> None:
    with pytest.raises(hs.InputError, match=r"level is .*; a number between 0 and 1 is needed"):
        hs.interval(hs.aurc, hs.tally(*data()), level=level)


def test_a_metric_that_refuses_the_tally_says_so() -> None:
    with pytest.raises(hs.InputError, match=r"scores in \[0, 1\]"):
        hs.interval(hs.ece, hs.tally([2.0, 3.0, 4.0], correct=[1, 0, 1]))


def test_a_metric_of_predictions_needs_them() -> None:
    with pytest.raises(hs.InputError, match="nll needs Predictions"):
        hs.interval(hs.nll, hs.tally(*data()))
    with pytest.raises(hs.InputError, match="uce needs Predictions"):
        hs.paired_difference(hs.uce, data(), data())


def test_losses_of_both_signs() -> None:
    loss = np.tile([-1.0, 1.0], 500)
    low, high = hs.interval(lambda t: t.total / t.n, hs.tally(np.zeros(1000), loss=loss))
    assert (low, high) == pytest.approx((-1.96 / 1000**0.5, 1.96 / 1000**0.5), rel=0.15)


def of_our_own(t: hs.Tally) -> float:
    """Error rate of the more trusted half, asked draw by draw."""
    return float(t.loss[: len(t.loss) // 2].sum() / t.n)


def backwards(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """What a cluster may do: any order."""
    yield from map(f, reversed(list(items)))


def test_limits_are_the_same_wherever_draws_are_worked_on() -> None:
    score, correct = data()
    t = hs.tally(score, correct=correct)
    here = hs.interval(of_our_own, t)
    assert here[0] < of_our_own(t) < here[1]
    assert hs.interval(of_our_own, t, map=hs.workers.threads(2)) == here
    assert hs.interval(of_our_own, t, map=backwards) == here


def test_draws_on_worker_processes() -> None:
    pytest.importorskip("distributed")
    t = hs.tally([0.9, 0.8, 0.7, 0.6] * 20, correct=[1, 1, 0, 1] * 20)
    covered = partial(hs.coverage_at_risk, risk=0.2)
    with hs.workers.processes(1) as mapped:
        assert hs.interval(covered, t, map=mapped) == hs.interval(covered, t)


@pytest.mark.parametrize(
    "metric", [hs.signed_calibration_error, hs.correctness_brier, hs.correctness_nll]
)
def test_an_error_that_was_not_seen_counts_in_means(metric: Any) -> None:
    """200 answers with 1 % errors: Student's limits of these means held in 83 to 85 %."""
    rng = np.random.default_rng(0)
    claim = 1 - rng.beta(0.3, 6, 20_000) * 0.5
    chance = np.where(rng.random(20_000) < 0.5, 0.0, 0.02)
    true = np.mean(
        [metric(hs.tally(claim, correct=rng.random(20_000) >= chance)) for _ in range(200)]
    )
    hits = 0
    for _ in range(200):
        i = rng.integers(0, 20_000, 200)
        low, high = hs.interval(metric, hs.tally(claim[i], correct=rng.random(200) >= chance[i]))
        hits += low <= true <= high
    assert hits >= 186


@pytest.mark.parametrize("metric", [hs.aurc, hs.e_aurc])
def test_errors_among_the_trusted_that_are_rarely_seen_do_not_pass(
    metric: Callable[..., float],
) -> None:
    """1 % of the surest 60 % are wrong and weigh most: where none was seen, the upper end still
    reaches the truth.
    """
    rng = np.random.default_rng(0)
    score = rng.random(40_000)
    correct = rng.random(40_000) >= np.where(score > 0.4, 0.01, 0.35)
    true = metric(hs.tally(score, correct=correct))
    drawn = (np.random.default_rng(i).integers(0, 40_000, 300) for i in range(400))
    missed = sum(
        true > hs.interval(metric, hs.tally(score[i], correct=correct[i]))[1] for i in drawn
    )
    assert missed <= 5  # 10 are allowed


def test_few_heavy_weights_count_as_few() -> None:
    score = np.linspace(0.99, 0.5, 200)
    correct = np.arange(200) % 7 != 0
    heavy = np.where(np.arange(200) % 70 == 0, 30.0, 1.0)  # three of the errors decide
    case = SampleCase.of(hs.Outcomes(score, correct=correct, weight=heavy))
    part = case.compute_loss_influence(
        ClaimLoss(right=lambda r: 0 * r, wrong=lambda r: 0 * r + 1), 1 - hs.accuracy(case.tally)
    )
    w = case.rows.weights
    assert w is not None
    kish = float(
        (
            part.start**2 * w.square
            + 2 * part.start * part.slope * w.lost
            + part.slope**2 * w.lost_square
        ).sum()
    )
    assert case.compute_design(lambda: part, 0.025) > 1.2 * kish / case.sum_squares(part)
    alike = hs.Outcomes(score, correct=correct, weight=np.full(200, 3.0))
    assert hs.interval(hs.aupr, alike) == pytest.approx(
        hs.interval(hs.aupr, hs.tally(score, correct=correct))
    )


def test_a_few_claims_that_cost_most_make_a_mean_less_sure() -> None:
    score = np.concatenate((np.full(400, 0.7), np.full(200, 1 - 1e-6)))
    correct = np.concatenate((np.arange(400) % 4 != 0, np.arange(200) != 0))
    t = hs.tally(score, correct=correct)
    loss = -np.log(np.where(correct, score, 1 - score))
    off = loss - loss.mean()
    student = compute_mean_limits(
        loss.mean(), float((off**2).sum()), float((off**3).sum()), 600, 0.025
    )
    low, high = hs.interval(hs.correctness_nll, t)
    assert low < student[0] - 0.005
    assert high >= student[1] - 1e-12


def test_among_many_cuts_a_share_is_sure_only_by_the_whole_tail() -> None:
    """Of 300 answers at a risk of 1 % none is wrong in 4.9 % of the cases: half of that does not
    make them sure.
    """
    t = hs.tally(np.linspace(1, 0.5, 400), correct=np.arange(400) < 300)
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.01), t)[0] == 0
    surer = hs.tally(np.linspace(1, 0.5, 500), correct=np.arange(500) < 400)  # 1.8 %
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.01), surer)[0] > 0.7
