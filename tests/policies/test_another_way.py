"""Policies worked out a second way: by hand, by a slow loop, and at the edges of what they accept."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, isnan, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import howsure as hs
from howsure import InputError, Outcomes, Predictions, tally
from howsure.bounds import clopper_pearson, compute_proportion_limits, hoeffding_bentkus
from howsure.calibrators import Temperature
from howsure.policies import (
    Cascade,
    DriftMonitor,
    Evidence,
    Guarantee,
    OnlinePolicy,
    Policy,
    deferral_table,
    expected_on_new_data,
    guaranteed_threshold,
    label_budget,
    label_policy,
    threshold_at,
    threshold_for_cost,
    threshold_for_coverage,
)
from howsure.policies.cascades import join_stages
from howsure.policies.deployment import assign_folds, compute_fold_variance, plan
from howsure.policies.drift_monitor import STAKES, TAIL_BETS, conformal_p
from howsure.policies.guarantee import (
    RiskTest,
    count_accepted,
    draw_one_per_group,
    find_given_rows,
    find_step_rows,
    scale_counts,
    search_thresholds,
)
from howsure.policies.thresholds import rows_or_tally
from howsure.predictions.input_shapes import Unanswered

HALF = 0.025


# What to expect of a threshold


def expected(score: Any, right: Any, at: float, **options: Any) -> Any:
    return expected_on_new_data(Outcomes(score, right, **options), lambda t: threshold_at(t, at))


def limits(count: float, n: float) -> tuple[float, float]:
    low, high = compute_proportion_limits(count, n, HALF)
    return float(low), float(high)


def test_a_fixed_threshold_has_the_noise_of_two_samples() -> None:
    score, right = np.arange(400) / 400, np.arange(400) % 5 > 0
    found = expected(score, right, 0.25)
    assert (found.kept, found.n, found.coverage.value, found.accuracy.value) == (
        300,
        400,
        0.75,
        0.8,
    )
    wider = (student.ppf(1 - HALF, 399) / norm.ppf(1 - HALF)) ** 2
    assert (found.coverage.low, found.coverage.high) == pytest.approx(
        limits(0.75 * 200 / wider, 200 / wider), abs=2e-3
    )
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(
        limits(0.8 * 150 / wider, 150 / wider), abs=3e-3
    )


def test_where_all_are_kept_half_the_samples_or_groups_count() -> None:
    score, right = np.full(60, 0.9), np.ones(60)
    alone = expected(score, right, 0.5)
    assert [alone.coverage.low, alone.coverage.high] == pytest.approx(
        [float(x) for x in compute_proportion_limits(30, 30, HALF)]
    )
    grouped = expected(score, right, 0.5, group=np.arange(60) // 6)
    assert [grouped.accuracy.low, grouped.accuracy.high] == pytest.approx(
        [float(x) for x in compute_proportion_limits(5, 5, HALF)]
    )


def test_nothing_kept_says_nothing() -> None:
    found = expected(np.full(40, 0.3), np.ones(40), 0.5)
    assert (found.kept, found.coverage.value, found.accuracy.low, found.accuracy.high) == (
        0,
        0.0,
        0.0,
        1.0,
    )
    assert isnan(found.accuracy.value)


def test_shared_fate_widens_and_so_does_a_choice() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(600) // 20
    score = rng.random(30)[group]
    right = (rng.random(30) < 0.8)[group]
    width = lambda e: e.accuracy.high - e.accuracy.low
    assert width(expected(score, right, 0.3, group=group)) > 2 * width(expected(score, right, 0.3))
    choose = lambda t: hs.policies.threshold_for_accuracy(t, 0.85)
    chosen = expected_on_new_data(Outcomes(score, right), choose)
    assert chosen.coverage.high - chosen.coverage.low > 0.1


def test_folds_keep_groups_whole_and_are_even() -> None:
    alone = assign_folds(23, None, 5, 0)
    assert sorted(np.bincount(alone)) == [4, 4, 5, 5, 5]
    group = np.arange(40) // 4
    fold = assign_folds(40, group, 5, 0)
    assert all(len(set(fold[group == g])) == 1 for g in range(10))
    assert sorted(np.bincount(fold)) == [8] * 5


@pytest.mark.parametrize("wrong", [{"weight": np.ones(4)}, {"loss": np.ones(4)}])
def test_only_counts_can_be_expected(wrong: dict[str, Any]) -> None:
    o = Outcomes(
        [0.9, 0.8, 0.7, 0.6], **({"correct": [1, 1, 0, 1]} if "weight" in wrong else {}), **wrong
    )
    with pytest.raises(InputError, match="counts right and wrong answers"):
        expected_on_new_data(o, lambda t: threshold_at(t, 0.5))


def test_a_table_of_deferrals_by_hand() -> None:
    accept, right = [1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 1]
    rows = {r.name: r for r in deferral_table(accept, right, ["a", "a", "a", "b", "b", "b"])}
    assert list(rows) == ["all", "b", "a"]
    assert (
        rows["b"].deferred.value,
        rows["b"].accuracy_accepted.value,
        rows["b"].accuracy_deferred.value,
    ) == (
        pytest.approx(2 / 3),
        1.0,
        0.0,
    )
    assert (rows["all"].n, rows["all"].accuracy_accepted.value) == (6, pytest.approx(2 / 3))


def test_few_unequal_groups_widen_by_student() -> None:
    group = np.repeat([0, 1, 2, 3, 4], [10, 20, 30, 25, 15])
    right = np.concatenate(
        [np.arange(m) < k for m, k in ((10, 9), (20, 11), (30, 28), (25, 20), (15, 15))]
    )
    found = expected(np.full(100, 0.9), right, 0.5, group=group)
    value = right.mean()
    without = np.array(
        [(right - value)[group == g].sum() / (1 - (group == g).mean()) for g in range(5)]
    )
    squares = without**2 * (1 - 1 / 5)  # the jackknife over groups
    spread = (squares**2).sum() - squares.sum() ** 2 / 5
    freedom = max(1.0, min(4.0, 2 * squares.sum() ** 2 / spread))
    wider = (student.ppf(1 - HALF, freedom) / norm.ppf(1 - HALF)) ** 2
    own = max(squares.sum(), value * (1 - value) * 100) / 100**2
    size = value * (1 - value) / (2 * own * wider)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(
        limits(value * size, size), abs=1e-6
    )


def test_the_noise_of_a_choice_by_hand() -> None:
    found = np.array([0.5, 0.6, np.nan, 0.55, 0.7])
    known = found[np.isfinite(found)]
    wider = (student.ppf(0.975, 3) / norm.ppf(0.975)) ** 2
    assert compute_fold_variance(found) == pytest.approx(
        ((known - known.mean()) ** 2).sum() * 3 / 4 * wider
    )
    two = (student.ppf(0.975, 1) / norm.ppf(0.975)) ** 2
    assert compute_fold_variance(np.array([0.5, 0.7])) == pytest.approx(0.02 / 2 * two)
    assert compute_fold_variance(np.array([0.5, np.nan])) == 0.0


# Thresholds


def test_thresholds_at_the_edges() -> None:
    t = tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0])
    for coverage, kept in ((0.25, 1), (0.2500001, 2), (0.5, 2), (1.0, 4)):
        assert threshold_for_coverage(t, coverage).kept == kept
    tied = tally([0.9, 0.9, 0.9], correct=[1, 0, 1])
    assert threshold_for_coverage(tied, 0.01).coverage == 1.0
    for expert in (-0.1, 1.1):
        with pytest.raises(InputError, match="an error rate lies in"):
            threshold_for_cost(t, error=1, deferral=0.1, expert_error=expert)
    for wrong in ({"error": -1, "deferral": 1}, {"error": 1, "deferral": inf}):
        with pytest.raises(InputError, match="finite and not negative"):
            threshold_for_cost(t, **wrong)
    assert threshold_for_cost(t, error=1, deferral=0.1, expert_error=1.0).coverage == 1.0
    free = threshold_for_cost(t, error=0, deferral=0)
    assert (free.coverage, free.cost) == (1.0, 0.0)  # of equal costs the larger coverage


@pytest.mark.parametrize(("error", "deferral"), [(10, 1), (2, 1), (1, 2), (10, 9), (3, 0)])
def test_the_least_cost_by_trying(error: float, deferral: float) -> None:
    score, right = np.array([0.9, 0.8, 0.8, 0.6, 0.5]), np.array([1, 1, 0, 0, 1])
    costs = {
        at: error * ((score >= at) & (right == 0)).mean() + deferral * (score < at).mean()
        for at in (inf, 0.9, 0.8, 0.6, 0.5)
    }
    found = threshold_for_cost(tally(score, correct=right), error=error, deferral=deferral)
    assert found.cost == pytest.approx(min(costs.values()))
    assert costs[found.threshold] == pytest.approx(found.cost)


def test_rows_keep_their_groups_and_others_become_a_table() -> None:
    o = Outcomes([0.9, 0.8], [1, 0])
    assert isinstance(rows_or_tally(o), hs.Tally)
    grouped = Outcomes([0.9, 0.8], [1, 0], group=[0, 1])
    assert rows_or_tally(grouped) is grouped


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": float("nan")},
        {"score": "cost"},
        {"costs": ((0.0, 1.0), (1.0, 0.0))},
        {"score": "no such score"},
        {"by": "age:60,40"},
        {"by": "hospital,"},
        {
            "by": "hospital",
            "keys": ("a",),
            "thresholds": (0.5,),
            "guarantees": (Guarantee("x"),) * 2,
        },
        {"keys": ("a",), "thresholds": (0.5,)},
        {"by": "predicted", "keys": ("a",), "thresholds": ()},
        {"by": "predicted", "keys": ("a",), "thresholds": (float("nan"),)},
        {"k": 0},
        {"k": 3, "class_names": ("a", "b")},
        {"calibrator": 3},
    ],
)
def test_a_policy_with_impossible_parts_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Policy(**{"score": "max_prob", "threshold": 0.5, **change})


# Guarantees


def test_one_sample_and_the_bisection() -> None:
    t = tally([0.9], correct=[1])
    assert guaranteed_threshold(
        t, risk=0.93, delta=0.1, method="sgr"
    ).feasible  # the bound is 1 − delta
    assert not guaranteed_threshold(t, risk=0.89, delta=0.1, method="sgr").feasible


def test_bisection_by_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    score = np.arange(300) / 300
    right = rng.random(300) < 0.7 + 0.3 * score
    found = guaranteed_threshold(tally(score, correct=right), risk=0.15, delta=0.1, method="sgr")
    steps, low, high, best = 9, 1, 300, (0, inf)
    for _ in range(steps):
        z = ceil((low + high) / 2)
        kept = 300 - z + 1
        upper = clopper_pearson(int((~right[300 - kept :]).sum()), kept, 0.1 / steps)
        if upper < 0.15:
            high, best = z, max(best, (kept, upper))
        else:
            low = z
    assert (found.kept, found.bound) == (best[0], pytest.approx(best[1]))


def test_the_sequence_tests_fiftieths_and_begins_where_it_can_succeed() -> None:
    kept = count_accepted(tally(np.arange(1000) / 1000, correct=np.ones(1000)))
    assert kept.kept[find_step_rows(kept)].tolist() == list(range(20, 1001, 20))
    # 22 right answers are the fewest that show a risk below 0.1; two and a half times as many are
    # asked for
    wrong_on_top = np.ones(1000)
    wrong_on_top[1000 - 60 : 1000 - 40] = 0  # of the 60 surest the last 20 are wrong
    t = tally(np.arange(1000) / 1000, correct=wrong_on_top)
    assert not guaranteed_threshold(t, risk=0.1, delta=0.1, method="fixed_sequence").feasible
    wrong_on_top = np.ones(1000)
    wrong_on_top[1000 - 80 : 1000 - 60] = 0
    t = tally(np.arange(1000) / 1000, correct=wrong_on_top)
    assert guaranteed_threshold(t, risk=0.1, delta=0.1, method="fixed_sequence").kept == 60


def test_shares_of_coverages_that_are_not_reached_go_to_the_first() -> None:
    t = tally(np.arange(400) / 400, correct=np.ones(400))
    one = guaranteed_threshold(t, risk=0.2, delta=0.1, method="fallback", thresholds=[0.9])
    assert (one.kept, one.bound) == (40, pytest.approx(clopper_pearson(0, 40, 0.1)))
    both = guaranteed_threshold(t, risk=0.2, delta=0.1, method="fallback", thresholds=[0.9, 0.7])
    assert (both.kept, both.bound) == (120, pytest.approx(clopper_pearson(0, 120, 0.1)))


def test_given_thresholds_that_keep_nothing_are_left_out() -> None:
    kept = count_accepted(tally([0.9, 0.8, 0.7], correct=[1, 1, 1]))
    assert find_given_rows(kept, [0.95, 0.9, 0.75], "fixed_sequence") == [0, 1]
    assert kept.at_score(0.8) == (2.0, 0.0)
    assert (kept.at_rank(2), kept.at_rank(2.5), kept.at_rank(9)) == (1, 2, 2)


@pytest.mark.parametrize("losses", [[0.0, 0.5, 2.0], [-0.1, 0.5, 1.0]])
def test_losses_outside_the_unit_interval_are_refused(losses: list[float]) -> None:
    with pytest.raises(InputError, match="a guarantee needs them in"):
        guaranteed_threshold(tally([0.9, 0.8, 0.7], loss=losses), risk=0.5, delta=0.1)


def test_losses_up_to_one_are_bounded_by_their_mean() -> None:
    loss = np.tile([0.0, 0.05, 0.1, 1.0 / 64], 250)
    found = guaranteed_threshold(tally(np.arange(1000) / 1000, loss=loss), risk=0.2, delta=0.1)
    assert found.bound == pytest.approx(hoeffding_bentkus(float(loss.mean()), 1000, 0.1), rel=1e-6)
    assert (found.kept, isnan(found.accuracy)) == (1000, True)
    assert found.observed == pytest.approx(loss.mean())


@pytest.mark.parametrize(("error", "said"), [(1.0, None), (0.1, None), (0.0, 29)])
def test_a_budget_of_labels(error: float, said: int | None) -> None:
    assert label_budget(error, risk=0.1, delta=0.05) == said


@pytest.mark.parametrize("error", [-0.01, 1.01, 1.5])
def test_an_error_rate_lies_between_0_and_1(error: float) -> None:
    with pytest.raises(InputError, match="an error rate lies in"):
        label_budget(error, risk=0.1, delta=0.05)


@pytest.mark.parametrize("error", [0.02, 0.05, 0.08])
def test_a_budget_is_the_fewest_labels(error: float) -> None:
    n = label_budget(error, risk=0.1, delta=0.05)
    assert n is not None
    assert (
        clopper_pearson(error * n, n, 0.05) < 0.1 <= clopper_pearson(error * (n - 1), n - 1, 0.05)
    )
    assert label_budget(error, risk=0.1, delta=0.05, coverage=0.5) == 2 * n


@pytest.mark.parametrize("method", ["fixed_sequence", "fallback", "sgr"])
@pytest.mark.parametrize("n", [25, 40])
def test_labels_needed_are_enough_and_few(method: Any, n: int) -> None:
    right = np.ones(n)
    right[[3, n // 2]] = 0
    t = tally(np.arange(n) / n, correct=right)
    found = guaranteed_threshold(t, risk=0.1, delta=0.05, method=method)
    assert not found.feasible
    assert found.labels_needed is not None
    passes = lambda m: (
        search_thresholds(
            scale_counts(count_accepted(t), m / n),
            RiskTest(risk=0.1, delta=0.05, bound="clopper_pearson"),
            method,
        )[0]
        is not None
    )
    assert any(passes(m) for m in np.linspace(found.labels_needed - 1, found.labels_needed, 50))
    assert not any(passes(m) for m in np.linspace(n, found.labels_needed / 1.03, 7))


def test_a_curve_above_the_risk_needs_another_model_and_not_labels() -> None:
    t = tally(np.arange(20) / 20, correct=np.arange(20) % 2 == 0)
    assert guaranteed_threshold(t, risk=0.1, delta=0.05).labels_needed is None


def test_one_row_of_each_group_whatever_the_order() -> None:
    o = Outcomes([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 0, 1], group=[3, 1, 3, 1, 2])
    seen = {seed: draw_one_per_group(o, seed) for seed in range(40)}
    for drawn in seen.values():
        assert (len(drawn), drawn.group) == (3, None)
        assert 0.5 in drawn.score
    assert {tuple(sorted(np.asarray(d.score).tolist())) for d in seen.values()} == {
        tuple(sorted((0.5, a, b))) for a in (0.6, 0.8) for b in (0.7, 0.9)
    }
    back = o[np.array([4, 2, 0, 3, 1])]
    assert sorted(draw_one_per_group(back, 7).score) == sorted(seen[7].score)


def test_a_guarantee_for_groups_is_about_the_whole_sample() -> None:
    rng = np.random.default_rng(1)
    o = Outcomes(np.repeat(rng.random(300), 3), np.ones(900), group=np.repeat(np.arange(300), 3))
    found = guaranteed_threshold(o, risk=0.1, delta=0.1)
    assert (found.n, found.groups, found.coverage, found.kept) == (
        900,
        300,
        found.kept / 900,
        found.kept,
    )
    assert found.accuracy == 1.0


# Labels and plans


def labels() -> Predictions:
    p = np.stack([np.repeat([0.99, 0.55], 200), np.repeat([0.7, 0.6], 200)], axis=1)
    y = np.stack([np.repeat([1, 0], 200), np.arange(400) % 2], axis=1)
    return Predictions.from_multilabel(p, y, label_names=["cat", "dog"])


def test_the_policy_of_labels_says_what_it_accepts() -> None:
    policy = label_policy(labels(), risk=0.05, delta=0.05)
    assert policy.thresholds == (0.99, inf)
    assert policy.basis is not None
    assert (policy.basis.n, policy.basis.coverage, policy.basis.accuracy) == (800, 0.25, 1.0)
    assert policy.guarantee is not None
    assert (policy.guarantee.feasible, policy.guarantee.labels_needed) == (True, None)
    assert policy.guarantee.bound == pytest.approx(clopper_pearson(0, 200, 0.025))


def test_a_policy_of_labels_that_can_promise_nothing() -> None:
    few = Predictions.from_multilabel(
        np.full((50, 2), 0.9), np.ones((50, 2)), label_names=["a", "b"]
    )
    policy = label_policy(few, risk=0.05, delta=0.05)
    assert policy.thresholds == (inf, inf)
    assert policy.guarantee is not None
    assert policy.basis is not None
    assert not policy.guarantee.feasible
    assert policy.guarantee.labels_needed is not None
    assert 72 <= policy.guarantee.labels_needed <= 400
    assert isnan(policy.basis.accuracy)
    warm = label_policy(labels(), risk=0.05, delta=0.05, calibrator=Temperature(2.0))
    assert warm.thresholds[0] < 0.99


def graded() -> Predictions:
    rng = np.random.default_rng(5)
    p = rng.uniform(0.5, 1, 600)
    return Predictions.from_probs(np.stack([p, 1 - p], axis=1), (rng.random(600) > p).astype(int))


def test_a_plan_counts_a_test() -> None:
    preds = graded()
    fit, test = preds[:300], preds[300:]
    choose = lambda t: guaranteed_threshold(t, risk=0.2, delta=0.1)
    policy = Policy.fit(fit, choose)
    found = plan(policy, choose, fit, test=test)
    kept = test.confidence >= policy.threshold
    trial = found["test"]
    assert trial is not None
    assert (trial["kept"], trial["n"], trial["risk_guaranteed"]) == (int(kept.sum()), 300, 0.2)
    assert trial["accuracy"]["value"] == pytest.approx(test.correct[kept].mean())
    observed = 1 - test.correct[kept].mean()
    assert trial["observed_below"] == (observed <= 0.2)
    assert trial["compatible"] == (1 - trial["accuracy"]["high"] <= 0.2)
    assert found["expected"] is not None
    assert set(found["deferral"]) == {"predicted class"}
    assert found["deferral"]["predicted class"][0]["name"] == "all"


@pytest.mark.parametrize(
    ("loss", "below", "compatible"), [(0.05, True, True), (0.25, False, True), (0.6, False, False)]
)
def test_a_plan_judges_graded_answers(loss: float, below: bool, compatible: bool) -> None:
    rng = np.random.default_rng(1)

    def grade(n: int, mean: float, **beside: Any) -> Predictions:
        losses = rng.permutation((np.arange(n) < mean * n) * 0.9)
        return Predictions.from_confidence(np.full(n, 0.9), loss=losses, **beside)

    choose = lambda t: guaranteed_threshold(t, risk=0.2, delta=0.1, bound="betting")
    fit = grade(400, 0.05)
    policy = Policy.fit(fit, choose)
    test = grade(100, loss)
    found = plan(policy, choose, fit, test=test)["test"]
    assert found is not None
    assert (found["observed_below"], found["compatible"]) == (below, compatible)
    assert found["graded"] is True
    assert found["deferral"] == {}
    accuracy = found["accuracy"]
    assert accuracy["value"] == pytest.approx(1 - test.loss.mean())
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    # Answers that belong together have no limits here, so they contradict nothing.
    pairs = grade(100, loss, group=np.arange(100) // 2)
    grouped = plan(policy, choose, fit, test=pairs)["test"]
    assert grouped is not None
    assert (grouped["accuracy"]["low"], grouped["accuracy"]["high"]) == (0, 1)
    nothing = Predictions.from_confidence(np.full(9, 0.2), loss=np.ones(9))
    empty = plan(policy, choose, fit, test=nothing)["test"]
    assert empty is not None
    assert empty["compatible"] is None


@pytest.mark.parametrize(
    ("right", "below", "compatible"), [(100, True, True), (78, False, True), (40, False, False)]
)
def test_what_a_test_says_about_a_promise(right: int, below: bool, compatible: bool) -> None:
    good = Predictions.from_confidence(np.full(300, 0.9), np.ones(300))
    choose = lambda t: guaranteed_threshold(t, risk=0.2, delta=0.1)
    test = Predictions.from_confidence(np.full(100, 0.9), np.arange(100) < right)
    found = plan(Policy.fit(good, choose), choose, good, test=test)["test"]
    assert found is not None
    assert (found["observed_below"], found["compatible"]) == (below, compatible)
    quarter = lambda t: guaranteed_threshold(t, risk=0.25, delta=0.1)
    exact = Predictions.from_confidence(np.full(100, 0.9), np.arange(100) < 75)
    just = plan(Policy.fit(good, quarter), quarter, good, test=exact)["test"]
    assert just is not None
    assert just["observed_below"] is True
    nothing = Predictions.from_confidence(np.full(9, 0.2), np.ones(9))
    empty = plan(Policy.fit(good, choose), choose, good, test=nothing)["test"]
    assert empty is not None
    assert (empty["observed_below"], empty["compatible"], empty["kept"]) == (None, None, 0)


def test_groups_and_weights_in_a_plan() -> None:
    preds = Predictions.from_confidence(np.full(40, 0.9), np.ones(40), group=np.arange(40) // 4)
    choose = lambda t: threshold_at(t, 0.5)
    found = plan(Policy.fit(preds, choose), choose, preds)
    assert set(found["deferral"]) == {"group"}
    assert found["expected"] is not None
    weighted = Predictions.from_confidence(np.full(40, 0.9), np.ones(40), weight=np.ones(40))
    assert plan(Policy("max_prob", 0.5), choose, weighted)["expected"] is None
    assert (
        Policy("max_prob", 0.5).decide(preds).prediction.tolist() == [-1] * 40
    )  # the class is not known


# Alarms


def decisions(score: Any) -> Any:
    return Policy("max_prob", 0.8).decide(Predictions.from_confidence(score))


def slow_bets(
    counts: Any, category: Any, u: Any, level: float, gamblers: int
) -> tuple[int | None, Any]:
    """Every gambler sample by sample, with fresh ones every hundred: the alarm, and the log of what
    each has.
    """
    capital, first = np.zeros(gamblers), None
    for i in range(len(category)):
        if i % 100 == 0:
            w = i // 100
            capital = capital + 1 / ((w + 1) * (w + 2)) / gamblers
        p = float(conformal_p(counts, category[i : i + 1], u[i : i + 1])[0])
        gains = [1 + s * (2 * p - 1) for s in STAKES] + [
            1 + s * (2 * abs(2 * p - 1) - 1) for s in STAKES
        ]
        gains += [
            share / tail if p <= tail else (1 - share) / (1 - tail) for tail, share in TAIL_BETS
        ]
        capital = capital * np.array(gains[:gamblers])
        counts = counts + np.bincount(category[i : i + 1], minlength=len(counts))
        if first is None and log(capital.sum()) >= level:
            first = i + 1
    return first, np.log(capital)


@pytest.mark.parametrize("false_alarms", [0.05, 0.2])
@pytest.mark.parametrize("change", [0.0, 0.8, 1.5])
@pytest.mark.parametrize("calls", [(350,), (130, 220), (30, 100, 1, 219)])
def test_the_alarm_comes_when_the_gamblers_are_rich(
    change: float, false_alarms: float, calls: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(4)
    watch = DriftMonitor.start(decisions(rng.beta(5, 1.2, 500)), false_alarms=false_alarms, seed=3)
    new = decisions(rng.beta(5 - change, 1.2 + change, 350))
    after, at = watch, 0
    for size in calls:
        after = after.see(new[at : at + size])
        at += size
    u, level = np.random.default_rng([1000, 3, 0]).random((2, 1000)), log(2 / false_alarms)
    score, purse = slow_bets(
        watch.score.counts, np.searchsorted(watch.edges, new.score), u[0], level, 21
    )
    accept, other = slow_bets(watch.coverage.counts, new.accept.astype(int), u[1], level, 16)
    assert after.alarms == {
        name: at for name, at in (("score", score), ("coverage", accept)) if at is not None
    }
    assert after.score.capital == pytest.approx(purse)
    assert after.coverage.capital == pytest.approx(other)
    assert after.seen == 350
    assert (change > 0) == bool(after.alarms)


def test_of_a_burst_the_first_row_is_looked_at() -> None:
    rng = np.random.default_rng(4)
    watch = DriftMonitor.start(decisions(rng.beta(5, 1.2, 500)), seed=3)
    new = decisions(rng.beta(5, 1.2, 6))
    after = watch.see(new, bursts=["a", "a", "b", "a", "c", "b"])
    alone = watch.see(new[[0, 2, 4]])
    assert (after.seen, after.bursts) == (3, ("a", "b", "c"))
    assert after.score.capital == pytest.approx(alone.score.capital)
    assert after.see(new, bursts=["a", "b", "c", "c", "b", "a"]).seen == 3


def test_a_watch_needs_twenty_samples_and_cuts_them_finely_at_the_low_end() -> None:
    with pytest.raises(InputError, match="at least 20 are needed"):
        DriftMonitor.start(decisions(np.linspace(0, 1, 19)))
    assert DriftMonitor.start(decisions(np.linspace(0, 1, 20))).seen == 0
    watch = DriftMonitor.start(decisions(np.linspace(0, 1, 4000)))
    assert len(watch.edges) == 19 + 3
    assert watch.edges == pytest.approx([0.005, 0.01, 0.02, *np.arange(1, 20) / 20], abs=0.03)
    assert watch.score.counts.sum() == 2000
    assert watch.coverage.counts.tolist() == [3200, 800]


def test_a_reset_begins_again_from_the_reference() -> None:
    rng = np.random.default_rng(4)
    watch = DriftMonitor.start(decisions(rng.beta(5, 1.2, 500)), seed=3)
    alarmed = watch.see(decisions(rng.beta(2, 2, 500)))
    assert alarmed.alarms
    again = alarmed.reset("new model")
    assert (again.alarms, again.seen, again.seed, again.resets) == ({}, 0, 4, ("new model",))
    assert again.score.counts.tolist() == watch.score.counts.tolist()
    assert again.coverage.counts.tolist() == watch.coverage.counts.tolist()
    new = decisions(rng.beta(5, 1.2, 250))
    same = replace(watch, seed=4).see(new)
    assert again.see(new).score.capital == pytest.approx(same.score.capital)


@pytest.mark.parametrize(
    "change",
    [
        {"false_alarms": 1.5},
        {"false_alarms": -0.1},
        {"seen": -1},
        {"seed": 2**62 + 1},
        {"edges": np.array([0.2, 0.2])},
        {"edges": np.array([[0.2, 0.3]])},
        {"edges": np.array([0.1, 0.2])},
        {"coverage": Evidence(np.array([1, 2, 3]), np.zeros(16))},
    ],
)
def test_a_watch_with_impossible_parts_is_refused(change: dict[str, Any]) -> None:
    watch = DriftMonitor.start(decisions(np.linspace(0, 1, 100)))
    with pytest.raises(InputError):
        replace(watch, **change)


@pytest.mark.parametrize(
    ("counts", "capital", "first"),
    [
        (np.array([-1, 2]), np.zeros(2), None),
        (np.array([2**53, 2]), np.zeros(2), None),
        (np.array([], dtype=int), np.zeros(2), None),
        (np.array([1, 2]), np.array([2e15]), None),
        (np.array([1, 2]), np.zeros((2, 2)), None),
        (np.array([1, 2]), np.zeros(2), -1),
    ],
)
def test_evidence_with_impossible_parts_is_refused(
    counts: Any, capital: Any, first: int | None
) -> None:
    with pytest.raises(InputError):
        Evidence(counts, capital, first)


# The online policy and the cascade


def online(**change: Any) -> OnlinePolicy:
    made = OnlinePolicy.start(
        Policy("max_prob", 0.5), np.linspace(0, 1, 1001), risk=0.1, audit=1.0, step=0.02
    )
    return replace(made, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"risk": 1.1},
        {"step": -1.0},
        {"top": 2.5},
        {"level": 1e10},
        {"labels": -1},
        {"accepted": 3, "seen": 2},
        {"wrong": 3, "labels": 2},
        {"grid": np.array([0.5, 0.4])},
        {"grid": np.array([])},
        {"grid": np.array([[0.1, 0.2]])},
        {"learnt": ("12-0123456789ab", "no ticket")},
    ],
)
def test_an_online_policy_with_impossible_parts_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        online(**change)


def test_the_threshold_follows_the_level_and_ends_at_all_or_nothing() -> None:
    assert online(level=0.25).threshold == pytest.approx(0.25, abs=1e-3)
    assert (online(level=0.0).threshold, online(level=-1.0).threshold) == (-inf, -inf)
    assert (online(level=1.0).threshold, online(level=1.5).threshold) == (inf, inf)


def test_deferred_labels_count_only_after_so_many_without_an_accepted_one() -> None:
    for idle, listened in ((199, False), (200, True)):
        closed = online(level=1.2, idle=idle)
        _, made = closed.decide(Predictions.from_confidence([0.99, 0.98, 0.2]))
        after = closed.learn(made, [1, 1, 0])
        assert not made.accept.any()
        assert (after.level < 1.0) == listened
        if listened:  # two surest, both right, the third is not listened to
            assert after.level == pytest.approx(1.0 - 2 * 0.02 * 0.1)


def test_the_top_tenth_is_followed() -> None:
    state, _ = online().decide(Predictions.from_confidence(np.full(100, 0.2)))
    assert state.top == pytest.approx(
        0.9 - 100 * 0.01 * 0.1
    )  # each that does not reach it lowers it a little
    state, _ = online().decide(Predictions.from_confidence([0.99, 0.2]))
    assert state.top == pytest.approx(0.9 + 0.01 * (1 - 2 * 0.1))
    state, _ = online(top=1.0).decide(Predictions.from_confidence(np.full(100, 1.0)))
    assert state.top == 1.0
    state, _ = online(level=0.5, idle=7).decide(Predictions.from_confidence([0.9, 0.1, 0.2]))
    assert (state.idle, state.seen, state.accepted) == (2, 3, 1)
    assert online(idle=7).decide(Predictions.from_confidence([0.1, 0.2]))[0].idle == 9


def test_questions_without_an_answer_are_counted() -> None:
    choose = lambda t: threshold_at(t, 0.5)
    preds = Predictions.from_confidence([0.9, 0.4], [1, 0])
    assert "questions" not in plan(Policy.fit(preds, choose), choose, preds)
    some = replace(preds, unanswered=Unanswered(refused=1, unstated=1, unstated_right=1.0))
    found = plan(Policy.fit(some, choose), choose, some)
    assert found["questions"] == {
        "asked": 4, "answered": 0.5, "coverage": 0.25, "unparseable": 0, "refused": 1, "missing": 0, "unstated": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("thresholds", "costs", "rest"),
    [((), (), (1.0, 0.0, 0.0)), ((0.5,), (1.0, 2.0), (1.0, 0.0, 0.0)), ((0.5,), (1.0,), (1.0, 1.5, 0.0)),
     ((0.5,), (-1.0,), (1.0, 0.0, 0.0)), ((0.5,), (1.0,), (1.0, 0.0, -1.0))],
)  # fmt: skip
def test_a_cascade_with_impossible_parts_is_refused(thresholds: Any, costs: Any, rest: Any) -> None:
    with pytest.raises(InputError):
        Cascade(thresholds, costs, *rest)


@pytest.mark.parametrize(
    ("stages", "costs", "human_error"),
    [(0, (), 0.0), (1, (1.0, 2.0), 0.0), (1, (1.0,), 1.5), (1, (inf,), 0.0), (2, (1.0, 2.0), 0.0)],
)
def test_a_cascade_is_fitted_on_whole_data(stages: int, costs: Any, human_error: float) -> None:
    models = [Outcomes([0.9, 0.8][: 2 - i], [1, 0][: 2 - i]) for i in range(stages)]
    with pytest.raises(InputError):
        Cascade.fit(models, costs=costs, human_cost=1.0, human_error=human_error)


def test_models_without_ids_are_joined_by_place_only_where_that_is_safe() -> None:
    a, b = Predictions.from_confidence([0.9, 0.8], [1, 0]), Predictions.from_confidence([0.7], [1])
    named = Predictions.from_confidence([0.9, 0.8], [1, 0], ids=["x", "y"])
    assert len(join_stages([a, a])) == 2
    for wrong in ([a, b], [a, named]):
        with pytest.raises(InputError, match="cannot be joined"):
            join_stages(wrong)


@pytest.mark.parametrize("accuracy", [None, 0.75, 1.0])
def test_the_cheapest_cascade_by_trying_all(accuracy: float | None) -> None:
    rng = np.random.default_rng(1)
    cheap = Outcomes(rng.random(12).round(1), rng.random(12) < 0.6)
    dear = Outcomes(rng.random(12).round(1), rng.random(12) < 0.85)
    found = Cascade.fit(
        [cheap, dear],
        costs=(1, 3),
        human_cost=10,
        human_error=0.1,
        error_cost=15,
        accuracy=accuracy,
    )
    grids = [[inf, *sorted(set(np.asarray(o.score).tolist()))] for o in (cheap, dear)]
    tried = [
        Cascade((a, b), (1, 3), 10, human_error=0.1, error_cost=15).evaluate([cheap, dear])
        for a in grids[0]
        for b in grids[1]
    ]
    good = [
        r for r in tried if accuracy is None or isnan(r.accuracy) or r.accuracy >= accuracy - 1e-9
    ]
    assert found.expected is not None
    assert found.expected.cost == pytest.approx(min(r.cost for r in good))


def test_a_cascade_by_hand() -> None:
    cheap = Outcomes([0.9, 0.8, 0.4, 0.3], correct=[1, 0, 0, 0])
    dear = Outcomes([0.9, 0.9, 0.9, 0.2], correct=[1, 1, 1, 0])
    cascade = Cascade((0.85, 0.5), (1.0, 5.0), 20.0, human_error=0.1, error_cost=100.0)
    found = cascade.evaluate([cheap, dear])
    assert found.shares == (0.25, 0.5, 0.25)
    assert found.cost == pytest.approx(1 + 5 * 0.75 + 20 * 0.25 + 100 * 0.1 * 0.25)
    assert (found.accuracy, found.system_accuracy) == (1.0, pytest.approx(1 - 0.025))
    nobody = Cascade((inf, inf), (1.0, 5.0), 20.0).evaluate([cheap, dear])
    assert nobody.shares == (0.0, 0.0, 1.0)
    assert isnan(nobody.accuracy)
