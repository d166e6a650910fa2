"""Where a policy turns: equal to a limit, one sample more, the first and the last of what is
allowed.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, log, log1p
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from howsure import InputError, Outcomes, Predictions, tally
from howsure.bounds import clopper_pearson, compute_proportion_limits, hoeffding_bentkus
from howsure.calibrators import Temperature
from howsure.policies import (
    Cascade,
    DriftMonitor,
    Evidence,
    OnlinePolicy,
    Policy,
    cascades,
    cost_outcomes,
    expected_on_new_data,
    guaranteed_threshold,
    label_budget,
    label_policy,
    reject_uncertain,
    threshold_at,
    threshold_for_cost,
    threshold_for_coverage,
)
from howsure.policies.deployment import plan
from howsure.policies.drift_monitor import STAKES, TAIL_BETS, compute_log_gains, draw_ties
from howsure.policies.guarantee import (
    RiskTest,
    compute_upper_bound,
    count_accepted,
    count_at_steps,
    count_enough_samples,
    find_sequence,
    find_step_rows,
)
from howsure.policies.online import AUDIT_BLOCK, draw_audits
from howsure.policies.policy import Basis, Guarantee

# Guarantees


@pytest.mark.parametrize("error", [0.0, 0.004, 0.02])
@pytest.mark.parametrize("risk", [0.03, 0.07, 0.2, 0.5, 0.8, 0.97])
def test_a_budget_is_the_first_number_of_labels_that_does(error: float, risk: float) -> None:
    first = next(n for n in range(1, 3000) if clopper_pearson(error * n, n, 0.05) < risk)
    assert label_budget(error, risk=risk, delta=0.05) == first


@pytest.mark.parametrize("method", ["fixed_sequence", "fallback", "sgr"])
def test_a_bound_that_equals_the_risk_is_not_below_it(method: Any) -> None:
    t = tally(np.ones(64), correct=np.ones(64))
    steps = 6 if method == "sgr" else 1
    bound = clopper_pearson(0, 64, 0.1 / steps)
    options: dict[str, Any] = {} if method == "sgr" else {"thresholds": [0.5]}
    assert not guaranteed_threshold(t, risk=bound, delta=0.1, method=method, **options).feasible
    found = guaranteed_threshold(
        t, risk=float(np.nextafter(bound, 1)), delta=0.1, method=method, **options
    )
    assert (found.feasible, found.bound) == (True, bound)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 64, 65, 256, 257, 300])
@pytest.mark.parametrize("wrong", [0.0, 0.15])
def test_bisection_is_algorithm_1(n: int, wrong: float) -> None:
    right = np.random.default_rng(n).random(n) >= wrong
    found = guaranteed_threshold(
        tally(np.arange(n) / n, correct=right), risk=0.3, delta=0.2, method="sgr"
    )
    steps = max(1, ceil(np.log2(n)))
    low, high, best = 1, n, None
    for _ in range(steps):
        z = ceil((low + high) / 2)
        upper = clopper_pearson(int((~right[z - 1 :]).sum()), n - z + 1, 0.2 / steps)
        if upper < 0.3:
            high, best = z, (n - z + 1, upper)
        else:
            low = z
    assert (found.feasible, found.kept) == (best is not None, best[0] if best else 0)
    if best:
        assert found.bound == best[1]


@pytest.mark.parametrize("n", [30, 47, 60, 200, 1001])
@pytest.mark.parametrize("risk", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("how", ["clopper_pearson", "hoeffding_bentkus", "groups"])
def test_the_sequence_begins_where_success_is_possible(n: int, risk: float, how: Any) -> None:
    group = np.arange(n) // 3
    kept = count_accepted(Outcomes(np.arange(n) / n, correct=np.ones(n), group=group))
    units = group[-1] + 1 if how == "groups" else n
    x = log(0.1) / log1p(-risk)  # so many right answers, all right, are the fewest that show it
    enough = count_enough_samples(risk, 0.1) if how == "hoeffding_bentkus" else ceil(2.5 * x)
    start = min(enough, ceil((ceil(x) + units) / 2)) * n / units
    steps = sorted({ceil(j * n / 50) for j in range(1, 51)})
    assert kept.kept[find_sequence(kept, RiskTest(risk=risk, delta=0.1, bound=how))].tolist() == [
        k for k in steps if k >= start
    ]


@pytest.mark.parametrize("n", [1, 7, 49, 50, 51, 1000, 1023])
@pytest.mark.parametrize("decimals", [1, 2, 9])
def test_a_sequence_needs_only_the_rows_that_it_can_stop_at(n: int, decimals: int) -> None:
    rng = np.random.default_rng(n)
    t = tally(rng.random(n).round(decimals), correct=rng.random(n) < 0.9)
    whole, few = count_accepted(t), count_at_steps(t, None)
    rows = find_step_rows(whole)
    for name in ("score", "kept", "loss"):
        assert getattr(few, name).tolist() == getattr(whole, name)[rows].tolist()
    assert few.zero_one


@pytest.mark.parametrize("delta", [0.05, 0.5])
@pytest.mark.parametrize("risk", [0.1, 0.5, 0.99])
def test_enough_samples_are_enough_and_not_a_tenth_too_many(risk: float, delta: float) -> None:
    n = count_enough_samples(risk, delta)
    assert hoeffding_bentkus(risk / 2, n, delta) < risk
    assert n == 8 or hoeffding_bentkus(risk / 2, int((n - 1) / 1.1), delta) >= risk


def test_a_risk_of_one_is_promised_by_one_right_answer() -> None:
    assert guaranteed_threshold(tally([0.9], correct=[1]), risk=1.0, delta=0.1).coverage == 1.0
    wrong = tally([0.9], correct=[0])
    assert guaranteed_threshold(wrong, risk=1.0, delta=0.1).coverage == 1.0  # nothing is worse
    assert not guaranteed_threshold(wrong, risk=1.0, delta=0.1, method="fixed_sequence").feasible


def test_shares_of_the_fallback_begin_at_their_coverage_and_not_a_sample_before() -> None:
    right = np.ones(400)
    right[300:] = 0  # the surest quarter is wrong: nothing is carried to the next
    t = tally(np.arange(400) / 400, correct=right)
    at = lambda kept: (400 - kept) / 400
    found = guaranteed_threshold(
        t, risk=0.6, delta=0.1, method="fallback", thresholds=[at(99), at(199), at(200)]
    )
    assert (found.kept, found.bound) == (
        200,
        pytest.approx(clopper_pearson(100, 200, 0.1 * (0.1 + 0.15))),
    )
    found = guaranteed_threshold(
        t, risk=0.6, delta=0.1, method="fallback", thresholds=[at(99), at(199)]
    )
    assert (found.kept, found.bound) == (199, pytest.approx(clopper_pearson(100, 199, 0.1 * 0.1)))


@pytest.mark.parametrize(("risk", "times"), [(0.02, True), (0.003, True), (0.002, False)])
def test_labels_are_counted_up_to_a_thousand_times_as_many(risk: float, times: bool) -> None:
    found = guaranteed_threshold(
        tally([0.9], correct=[1]), risk=risk, delta=0.05, method="fixed_sequence"
    )
    assert (found.labels_needed is not None) == times
    if found.labels_needed is not None:
        fewest = ceil(log(0.05) / log1p(-risk))
        assert fewest <= found.labels_needed <= 1.03 * fewest


def test_a_wrong_answer_on_top_does_not_make_labels_useless() -> None:
    t = tally(np.arange(40)[::-1], correct=np.arange(40) > 0)
    found = guaranteed_threshold(t, risk=0.1, delta=0.05, method="fallback")
    assert not found.feasible
    assert found.labels_needed is not None


@pytest.mark.parametrize("how", ["clopper_pearson", "hoeffding_bentkus", "betting", "groups"])
def test_each_bound_reads_the_accepted_rows(how: Any) -> None:
    wrong = np.zeros(300)
    wrong[:200:7] = 1  # of the 100 surest none is wrong
    o = Outcomes(np.arange(300) / 300, correct=1 - wrong, group=np.arange(300) // 2)
    kept = count_accepted(o)
    surest, all_rows = (compute_upper_bound(kept, row, 0.1, how) for row in (99, 299))
    assert surest < 0.06
    assert 29 / 300 < all_rows < 0.25


def test_bets_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(7)
    score, loss = rng.random(400).round(1), np.sort(rng.beta(1, 9, 400))
    order = rng.permutation(400)
    one, other = (
        guaranteed_threshold(
            Outcomes(score[rows], loss=loss[rows]), risk=0.2, delta=0.1, bound="betting"
        )
        for rows in (np.arange(400), order)
    )
    assert one.feasible
    assert (one.bound, one.threshold) == (other.bound, other.threshold)


def test_no_threshold_that_could_pass_is_an_answer() -> None:
    for method in ("fixed_sequence", "fallback"):
        found = guaranteed_threshold(
            tally([0.9], correct=[1]), risk=0.2, delta=0.1, method=method, thresholds=[2.0]
        )
        assert not found.feasible


def test_rules_in_words() -> None:
    o = Outcomes(np.arange(300) / 300, loss=np.full(300, 0.01))
    plain, bets = (
        guaranteed_threshold(o, risk=0.2, delta=0.1, bound=bound) for bound in (None, "betting")
    )
    assert (
        plain.rule
        == "risk of the accepted at most 0.2 with probability 0.9 (fixed-sequence testing)"
    )
    assert (
        bets.rule
        == "risk of the accepted at most 0.2 with probability 0.9 (fixed-sequence testing, betting)"
    )
    few = guaranteed_threshold(Outcomes([0.9, 0.8], [1, 1], group=[0, 1]), risk=0.2, delta=0.1)
    assert few.rule.endswith("(joint limits, 2 groups)")


def test_a_stated_group_may_be_as_large_as_the_largest() -> None:
    o = Outcomes(np.arange(900) / 900, correct=np.ones(900), group=np.arange(900) // 3)
    assert guaranteed_threshold(o, risk=0.05, delta=0.05, bound="groups", largest_group=3).feasible
    with pytest.raises(InputError, match="largest_group is 2, but a group has 3 samples"):
        guaranteed_threshold(o, risk=0.05, delta=0.05, bound="groups", largest_group=2)
    for rows in (o.tally(), replace(o, group=None)):
        with pytest.raises(InputError, match="largest_group is about groups"):
            guaranteed_threshold(rows, risk=0.05, delta=0.05, largest_group=3, thresholds=[0.5])
        with pytest.raises(InputError, match="bets on groups"):
            guaranteed_threshold(rows, risk=0.05, delta=0.05, bound="groups")


# Thresholds


def test_a_threshold_by_hand_keeps_what_reaches_it() -> None:
    t = tally([0.9, 0.8, 0.7], correct=[1, 0, 1])
    for value, kept in ((0.95, 0), (0.9, 1), (0.85, 1), (0.7, 3), (0.1, 3)):
        found = threshold_at(t, value)
        assert (found.threshold, found.kept, found.feasible) == (value, kept, kept > 0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9 / 7])
@pytest.mark.parametrize("deferral", [0.1, 0.3, 0.7, 1.1])
def test_equal_costs_are_equal_in_whatever_money(deferral: float, scale: float) -> None:
    """A wrong answer costs as much as two questions, so every second cut costs the same, but for
    rounding.
    """
    t = tally(np.arange(30)[::-1] / 30, correct=np.arange(30) % 2)
    found = threshold_for_cost(t, error=2 * deferral * scale, deferral=deferral * scale)
    assert found.coverage == 1.0
    assert found.cost == pytest.approx(deferral * scale)


@pytest.mark.parametrize(
    ("limit", "allowed"), [(-0.01, False), (0.0, True), (1.0, True), (1.01, False)]
)
def test_a_limit_of_uncertainty_lies_between_0_and_1(limit: float, allowed: bool) -> None:
    preds = Predictions.from_probs([[1.0, 0.0], [0.5, 0.5]], [0, 1])
    if allowed:
        assert reject_uncertain(preds, limit).kept.tolist() == [True, limit == 1.0]
    else:
        with pytest.raises(
            InputError, match=rf"limit is {limit:g}; a normalised entropy lies in \[0, 1\]"
        ):
            reject_uncertain(preds, limit)


# What to expect, plans, labels


def test_outcomes_that_are_even_in_each_group_have_the_noise_of_single_ones() -> None:
    o = Outcomes(np.full(80, 0.9), np.arange(80) % 2, group=np.arange(80) // 2)
    found = expected_on_new_data(o, lambda t: threshold_at(t, 0.5))
    wider = (student.ppf(0.975, 39) / norm.ppf(0.975)) ** 2
    low, high = compute_proportion_limits(20 / wider, 40 / wider, 0.025)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx((float(low), float(high)))


def test_a_choice_that_wavers_widens_the_coverage_and_not_the_accuracy() -> None:
    """Every answer is right, and the folds choose in turn a threshold that keeps much and one that
    keeps little.
    """
    turns = iter([0.2, 0.8] * 3)
    o = Outcomes(np.arange(400) / 400, np.ones(400))
    wavers = expected_on_new_data(o, lambda t: threshold_at(t, next(turns)))
    steady = expected_on_new_data(o, lambda t: threshold_at(t, 0.5))
    width = lambda share: share.high - share.low
    assert width(wavers.coverage) > 3 * width(steady.coverage)
    low, high = compute_proportion_limits(wavers.kept / 2, wavers.kept / 2, 0.025)
    assert (wavers.accuracy.low, wavers.accuracy.high) == pytest.approx((float(low), float(high)))


def test_needed_labels_are_said_only_where_no_label_can_be_decided() -> None:
    p = np.stack([np.full(100, 0.99), np.r_[np.full(10, 0.9), np.full(90, 0.6)]], axis=1)
    y = np.stack([np.ones(100), np.r_[np.ones(10), np.zeros(90)]], axis=1)
    policy = label_policy(
        Predictions.from_multilabel(p, y, label_names=["sure", "few"], sums_to_one=True),
        risk=0.05,
        delta=0.05,
    )
    assert policy.thresholds == (0.99, inf)
    assert policy.guarantee is not None
    assert (policy.guarantee.feasible, policy.guarantee.labels_needed) == (True, None)


def labelled(n: int = 40, **columns: Any) -> Predictions:
    return Predictions.from_confidence(np.linspace(0.5, 1, n), np.ones(n), **columns)


def test_what_a_plan_defers_by_label_and_class() -> None:
    choose = lambda t: threshold_at(t, 0.8)
    p, y = np.array([[0.9, 0.6], [0.3, 0.95], [0.85, 0.1]]), np.array([[1, 1], [0, 0], [0, 0]])
    labels = Predictions.from_multilabel(p, y, label_names=["cat", "dog"])
    found = plan(Policy.fit(labels, choose), choose, labels)["deferral"]
    assert set(found) == {"predicted class", "label"}
    rows = {row["name"]: row for row in found["label"]}
    assert (rows["cat"]["n"], rows["cat"]["deferred"]["value"]) == (3, pytest.approx(1 / 3))
    assert (
        rows["dog"]["accuracy_accepted"]["value"],
        rows["dog"]["accuracy_deferred"]["value"],
    ) == (0.5, 1.0)
    said = labelled(4, prediction=[0, 1, 1, 0])
    assert set(plan(Policy("max_prob", 0.8), choose, said)["deferral"]) == {"predicted class"}
    assert plan(Policy("max_prob", 0.8), choose, labelled(4))["deferral"] == {}


def test_a_plan_is_feasible_where_any_threshold_is() -> None:
    choose = lambda t: threshold_at(t, 0.8)
    made = lambda *own: Policy("max_prob", inf, by="group", keys=("a", "b"), thresholds=own)
    preds = labelled(4, group=["a", "a", "b", "b"])
    assert plan(made(inf, 0.9), choose, preds)["feasible"] is True
    assert plan(made(inf, inf), choose, preds)["feasible"] is False
    assert plan(Policy("max_prob", 0.9), choose, preds)["feasible"] is True


# Policies


def test_a_policy_in_words() -> None:
    made = Policy(
        "max_prob",
        0.75,
        Temperature(2.0),
        by="predicted",
        keys=("0", "2"),
        thresholds=(0.5, 0.9),
        guarantee=Guarantee("at most 5 % wrong", 0.05, 0.1, bound=0.04567),
        basis=Basis(1200, 0.4321, 0.98765),
    )
    assert made.to_text().splitlines() == [
        "Accept where max_prob >= 0.75, defer the rest.",
        "Own thresholds by predicted: 2; all others take this one.",
        "After Temperature.",
        "Rule: at most 5 % wrong.",
        "Bound of the risk: 4.57 %.",
        "On 1,200 labelled samples: 43.21 % accepted, 98.77 % of these right.",
    ]
    bare = Policy("max_prob", inf, guarantee=Guarantee("none"), basis=Basis(7, 0.0, float("nan")))
    assert bare.to_text().splitlines() == [
        "Defer everything.", "Rule: none.", "On 7 labelled samples: 0.00 % accepted."
    ]  # fmt: skip
    image = Policy("max_prob", 0.5, by="image", keys=("mean_confidence",), thresholds=(0.5,))
    assert image.to_text() == "Accept where mean_confidence of an image >= 0.5, defer the rest.\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"by": "image"}, "by='image' needs one key"),
        ({"by": "image", "keys": ("a", "b"), "thresholds": (0.1, 0.2)}, "by='image' needs one key"),
        ({"keys": ("a",), "thresholds": (0.5,)}, "1 keys have 1 thresholds with by=None"),
        ({"by": "class", "keys": ("a",)}, "1 keys have 0 thresholds with by='class'"),
        ({"k": 0}, "k is 0; a number from 1 to "),
        ({"k": 2**31 + 1}, "k is 2.14748e"),
        ({"k": 3, "class_names": ("a", "b")}, "class_names has 2 names for 3 classes"),
        ({"calibrator": 3}, "calibrator is a int; a calibrator is needed"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Policy(**{"score": "max_prob", "threshold": 0.5, **change})


def test_one_class_and_no_names_are_allowed() -> None:
    assert Policy("max_prob", 0.5, k=1).k == 1
    assert Policy("max_prob", 0.5, k=2**31).k == 2**31
    assert Policy("max_prob", 0.5, class_names=("a", "b")).k is None


def test_labels_that_a_policy_does_not_know_are_named() -> None:
    names = [f"label {i}" for i in range(25)]
    policy = Policy("max_prob", inf, by="label", keys=tuple(names), thresholds=(0.5,) * 25)
    others = Predictions.from_multilabel(
        np.full((2, 25), 0.9), label_names=[f"other {i}" for i in range(25)]
    )
    with pytest.raises(InputError) as error:
        policy.decide(others)
    assert ("label 19;" in str(error.value), "label 20" in str(error.value)) == (True, False)
    assert ("other 19." in str(error.value), "other 20" in str(error.value)) == (True, False)
    known = Predictions.from_multilabel(np.full((2, 2), 0.9), label_names=["label 3", "new"])
    assert policy.decide(known).accept.tolist() == [True, False, True, False]


def test_a_group_needs_as_many_samples_as_were_asked_for() -> None:
    preds = labelled(30, group=["a"] * 10 + ["b"] * 20)
    choose = lambda t: threshold_at(t, 0.6)
    assert Policy.fit(preds, choose, by="group", minimum=10).keys == ("a", "b")
    assert Policy.fit(preds, choose, by="group", minimum=11, rest="common").keys == ("b",)
    assert Policy.fit(preds, choose, by="group", minimum=1).keys == ("a", "b")
    with pytest.raises(InputError, match="minimum is 0; a whole number of at least 1 is needed"):
        Policy.fit(preds, choose, by="group", minimum=0)


def test_classes_are_compared_where_both_are_known() -> None:
    unknown = Predictions.from_confidence([0.9])
    assert Policy("max_prob", 0.5, k=3).decide(unknown).accept.tolist() == [True]
    two = Predictions.from_probs([[0.9, 0.1]])
    assert Policy("max_prob", 0.5).decide(two).class_names is None
    named = Policy("max_prob", 0.5, class_names=("cat", "dog")).decide(two)
    assert named.answers() == ["cat"]


def test_costs_are_a_square_of_the_classes() -> None:
    preds = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    for costs in ([[0, 1, 2], [1, 0, 1]], [[0, 1], [1, 0], [2, 2]], [0, 1], np.zeros((3, 3))):
        with pytest.raises(
            InputError, match="one row per true class and one column per answer is needed"
        ):
            cost_outcomes(preds, costs)
    policy = Policy.fit(
        preds,
        lambda t: threshold_for_cost(t, error=1, deferral=0.5),
        costs=[[0, 1], [1, 0]],
        by="predicted",
        minimum=1,
    )
    assert policy.keys == ("0", "1")


def test_images_are_calibrated_pixel_by_pixel_and_once() -> None:
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    pixels = Predictions.from_logits(logits, y, group=np.arange(60) // 6)
    softer = Temperature(2.0)
    policy = Policy.fit(
        pixels, lambda t: threshold_for_coverage(t, 0.5), calibrator=softer, by="image"
    )
    mean = softer(pixels).confidence.reshape(10, 6).mean(axis=1)
    assert policy.threshold == pytest.approx(np.sort(mean)[5])
    made = policy.decide(pixels)
    assert (made.score, made.accept.tolist()) == (
        pytest.approx(mean),
        (mean >= policy.threshold).tolist(),
    )
    images = Predictions.from_confidence(mean)  # whole images, whose pixels were calibrated before
    assert policy.decide(images).score == pytest.approx(mean)
    again = Policy.fit(
        Predictions.from_confidence(mean, np.ones(10)),
        lambda t: threshold_for_coverage(t, 0.5),
        by="image",
    )
    assert again.threshold == pytest.approx(policy.threshold)


# Online


@pytest.mark.parametrize("first", [0, 1, AUDIT_BLOCK - 1, AUDIT_BLOCK, 3 * AUDIT_BLOCK - 2])
@pytest.mark.parametrize("n", [0, 1, 2, AUDIT_BLOCK, AUDIT_BLOCK + 3])
def test_draws_belong_to_their_samples(first: int, n: int) -> None:
    blocks = [np.random.default_rng([5, AUDIT_BLOCK * i]).random(AUDIT_BLOCK) for i in range(6)]
    assert draw_audits(5, first, n).tolist() == np.concatenate(blocks)[first : first + n].tolist()


def online(**change: Any) -> OnlinePolicy:
    made = OnlinePolicy.start(
        Policy("max_prob", 0.5), np.linspace(0, 1, 1001), risk=0.1, audit=1.0, step=0.02
    )
    return replace(made, **change)


@pytest.mark.parametrize("name", ["seed", "seen", "accepted", "idle", "labels", "wrong", "read"])
def test_counts_of_an_online_policy_are_numbers_of_samples(name: str) -> None:
    for value in (-1, 2**62 + 2**11):
        with pytest.raises(InputError, match=f"{name} is "):
            online(**{name: value})
    most = {"seen": 2**62, "labels": 2**62, name: 2**62}
    assert getattr(online(**most), name) == 2**62


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"risk": 1.01}, "risk is 1.01"),
        ({"risk": -0.01}, "risk is -0.01"),
        ({"step": 1e6 + 0.5}, r"step is 1e\+06"),
        ({"audit": 1.01}, "audit is 1.01"),
        ({"top": 2.1}, "top is 2.1"),
        ({"top": -1.1}, "top is -1.1"),
        ({"level": 1e9 + 0.5}, r"level is 1e\+09"),
        ({"level": -1e9 - 0.5}, r"level is -1e\+09"),
        ({"grid": np.array([0.2, 0.1])}, "grid is not a rising list"),
        ({"grid": np.zeros((2, 2))}, "grid is not a rising list"),
        ({"grid": np.zeros(0)}, "grid is not a rising list"),
        ({"accepted": 3, "seen": 2}, "contradict each other"),
        ({"wrong": 3, "labels": 2}, "contradict each other"),
    ],
)
def test_what_is_wrong_with_an_online_policy_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        online(**change)


def test_the_ends_of_what_an_online_policy_holds_are_allowed() -> None:
    at = online(
        risk=1.0, step=1e6, audit=1.0, top=2.0, level=1e9, seen=2, accepted=2, labels=2, wrong=2
    )
    assert (at.threshold, at.audited_risk) == (inf, 1.0)
    assert (
        online(
            risk=0.0, step=0.0, audit=0.0, top=-1.0, level=-1e9, grid=np.array([0.5, 0.5])
        ).threshold
        == -inf
    )


def test_it_starts_below_the_scores_that_the_policy_accepts() -> None:
    score = [0.1, 0.5, 0.5, 0.9]
    made = OnlinePolicy.start(Policy("max_prob", 0.5), score, risk=0.1)
    assert made.level == 0.25  # a score that equals the threshold is accepted
    assert made.grid.tolist() == [0.1] * 51 + [0.5] * 100 + [0.9] * 50
    with pytest.raises(InputError, match="moves one threshold"):
        OnlinePolicy.start(Policy("max_prob", 0.5, by="predicted"), score, risk=0.1)


@pytest.mark.parametrize("accepted", [0, 1, 3])
def test_samples_since_the_last_accepted_one(accepted: int) -> None:
    score = np.full(4, 0.1)
    score[accepted] = 0.9
    state, _ = online(idle=7).decide(Predictions.from_confidence(score))
    assert (state.idle, state.seen, state.accepted) == (3 - accepted, 4, 1)


def test_a_level_is_reached_by_a_score_that_equals_it() -> None:
    ten = online(grid=np.arange(1, 11) / 10, top=0.5)
    state, _ = ten.decide(Predictions.from_confidence([0.5]))
    assert state.top == pytest.approx(0.5 + 0.01 * 0.9)
    state, _ = ten.decide(Predictions.from_confidence([0.49]))
    assert state.top == pytest.approx(0.5 - 0.01 * 0.1)
    closed = replace(ten, level=1.2, idle=200)
    _, made = closed.decide(Predictions.from_confidence([0.5, 0.49]))
    assert closed.learn(made, [1, 0]).level == pytest.approx(
        1.0 - 0.02 * 0.1
    )  # the second is below the top


def test_a_closed_door_is_neither_shut_beyond_all_nor_opened_beyond_nothing() -> None:
    closed = online(level=0.99, idle=200, top=0.0, step=0.5)
    _, made = closed.decide(Predictions.from_confidence([0.4, 0.4, 0.4]))
    assert closed.learn(made, [0, 0, 1]).level == pytest.approx(
        1.0 - 0.5 * 0.1
    )  # two wrong ones reach 1 and no more
    nearly = online(level=0.001, idle=200, top=0.0, step=1.0)
    made = replace(made, accept=np.zeros(3, dtype=bool), audit=np.zeros(3, dtype=bool))
    assert nearly.learn(made, [1, 1, 0]).level == pytest.approx(
        0.9
    )  # two right ones reach 0 and no less


# Alarms


def decisions(score: Any) -> Any:
    return Policy("max_prob", 0.8).decide(Predictions.from_confidence(score))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"false_alarms": 1.0}, "false_alarms is 1;"),
        ({"false_alarms": 0.0}, "false_alarms is 0;"),
        ({"seed": 2**62 + 2**11}, "seed is "),
        ({"seen": 2**62 + 2**11}, "seen is "),
        ({"seen": -1}, "seen is -1"),
        ({"written": -1}, "written is -1"),
        ({"written": 2**62 + 2**11}, "written is "),
        (
            {"coverage": Evidence(np.array([1, 2, 3]), np.zeros(16))},
            "counts do not belong to the edges",
        ),
        ({"edges": np.array([0.1, 0.2])}, "counts do not belong to the edges"),
    ],
)
def test_what_is_wrong_with_a_watch_is_said(change: dict[str, Any], words: str) -> None:
    watch = DriftMonitor.start(decisions(np.linspace(0, 1, 100)))
    with pytest.raises(InputError, match=words):
        replace(watch, **change)


def test_edges_of_a_watch_rise() -> None:
    watch = DriftMonitor.start(decisions(np.linspace(0, 1, 100)))
    level = np.where(np.arange(len(watch.edges)) == 3, watch.edges[2], watch.edges)
    for edges in (level, watch.edges[::-1], watch.edges[None]):
        with pytest.raises(InputError, match="edges do not rise"):
            replace(watch, edges=edges)
    assert replace(watch, seed=2**62, seen=2**62, written=2**62).seen == 2**62


@pytest.mark.parametrize(
    ("counts", "capital", "first", "words"),
    [
        ([-1, 2], [0.0], None, "counts are not numbers of samples"),
        ([2**53, 2], [0.0], None, "counts are not numbers of samples"),
        ([[1, 2]], [0.0], None, "counts are not numbers of samples"),
        ([], [0.0], None, "counts are not numbers of samples"),
        ([1, 2], [1.1e15], None, "capital is not a list of logs"),
        ([1, 2], [[0.0]], None, "capital is not a list of logs"),
        ([1, 2], [], None, "capital is not a list of logs"),
        ([1, 2], [0.0], 0, "first is 0"),
        ([1, 2], [0.0], 2**62 + 2**11, "first is "),
    ],
)
def test_what_is_wrong_with_evidence_is_said(
    counts: Any, capital: Any, first: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        Evidence(np.array(counts, dtype=np.int64), np.array(capital, dtype=float), first)


def test_the_ends_of_what_evidence_holds_are_allowed() -> None:
    at = Evidence(np.array([0, 2**53 - 1]), np.array([-np.inf, 1e15]), 1)
    assert (at.first, Evidence(at.counts, at.capital, 2**62).first) == (1, 2**62)


def test_an_alarm_is_raised_where_the_stakes_are_multiplied_as_often_as_stated() -> None:
    start = Evidence(np.array([10, 10]), np.full(21, -np.inf))
    category, u = np.array([0]), np.array([0.01])
    after = start.see(category, u, 0, inf)
    exactly = float(np.logaddexp.reduce(after.capital[None], axis=1)[0])
    assert after.first is None
    assert start.see(category, u, 0, exactly).first == 1
    assert start.see(category, u, 0, float(np.nextafter(exactly, inf))).first is None


@pytest.mark.parametrize("p", [0.0, 0.005, 0.01, 0.02, 0.0200001, 0.05, 0.5, 1.0])
def test_gains_of_all_gamblers_by_hand(p: float) -> None:
    gains = [1 + s * (2 * p - 1) for s in STAKES] + [
        1 + s * (2 * abs(2 * p - 1) - 1) for s in STAKES
    ]
    gains += [share / tail if p <= tail else (1 - share) / (1 - tail) for tail, share in TAIL_BETS]
    assert np.exp(compute_log_gains(np.array([p]))[0]) == pytest.approx(gains)


@pytest.mark.parametrize("seen", [0, 1, 999, 1000, 2998])
@pytest.mark.parametrize("n", [0, 1, 2, 1000, 1003])
def test_ties_are_broken_by_the_number_of_the_sample(seen: int, n: int) -> None:
    blocks = [np.random.default_rng([1000, 5, i]).random((2, 1000)) for i in range(6)]
    assert (
        draw_ties(5, seen, n).tolist()
        == np.concatenate(blocks, axis=1)[:, seen : seen + n].tolist()
    )


def test_two_bins_are_the_fewest() -> None:
    made = decisions(np.linspace(0, 1, 2000))
    assert len(DriftMonitor.start(made, bins=2).edges) == 4  # the middle and the low end
    with pytest.raises(InputError, match="bins is 1; a whole number of at least 2 is needed"):
        DriftMonitor.start(made, bins=1)


# Cascades


def test_costs_of_nothing_and_a_person_who_is_always_wrong_are_allowed() -> None:
    found = Cascade((0.5,), (0.0,), 0.0, human_error=1.0).evaluate([Outcomes([0.9, 0.1], [1, 0])])
    assert (found.cost, found.system_accuracy) == (0.0, 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"human_error": 1.5}, "human_error is 1.5"),
        ({"human_error": -0.5}, "human_error is -0.5"),
        ({"human_cost": -1.0}, "a cost is -1"),
        ({"error_cost": inf}, "a cost is inf"),
        ({"costs": (float("nan"),)}, "a cost is nan"),
        ({"thresholds": (float("nan"),)}, "a threshold is nan"),
        ({"thresholds": ()}, "0 thresholds for 1 costs"),
        ({"thresholds": (), "costs": ()}, "0 thresholds for 0 costs"),
    ],
)
def test_what_is_wrong_with_a_cascade_is_said(change: dict[str, Any], words: str) -> None:
    parts: dict[str, Any] = {"thresholds": (0.5,), "costs": (1.0,), "human_cost": 2.0, **change}
    with pytest.raises(InputError, match=words):
        Cascade(**parts)
    if "thresholds" not in change:
        del parts["thresholds"]
        with pytest.raises(InputError, match=words):
            Cascade.fit([Outcomes([0.9, 0.1], [1, 0])], **parts)


def test_a_cascade_is_fitted_on_right_and_wrong() -> None:
    with pytest.raises(InputError, match="needs right or wrong for each model"):
        Cascade.fit([Outcomes([0.9], loss=[0.5])], costs=(1.0,), human_cost=1.0)


def test_a_sample_that_a_model_did_not_answer_is_never_taken_as_answered() -> None:
    only = Outcomes([0.9, 0.8, -inf], correct=[1, 0, 0])
    found = Cascade.fit(
        [only], costs=(1.0,), human_cost=1000.0
    )  # an answer is far cheaper than the person
    assert found.thresholds == (0.8,)
    assert found.expected is not None
    assert found.expected.shares == pytest.approx((2 / 3, 1 / 3))


@pytest.mark.parametrize(
    ("most", "models", "each"), [(100, 2, 9), (1000, 3, 8), (1, 1, 2), (40, 1, 39), (50, 1, 40)]
)
def test_so_many_thresholds_are_tried(
    monkeypatch: pytest.MonkeyPatch, most: int, models: int, each: int
) -> None:
    """All scores where they are few enough, else quantiles with both ends; nobody first."""
    monkeypatch.setattr(cascades, "MAX_COMBINATIONS", most)
    tried: list[Any] = []
    find = cascades._find_candidates
    monkeypatch.setattr(
        cascades,
        "_find_candidates",
        lambda score, size: tried.append(find(score, size)) or tried[-1],
    )
    score = np.arange(1, 41) / 40
    stages = [Outcomes(score, np.arange(40) > 10)] * models
    Cascade.fit(stages, costs=(1.0,) * models, human_cost=3.0, error_cost=9.0)
    for grid in tried:
        assert (len(grid), grid[0], grid[1], grid[-1]) == (each + 1, inf, 1.0, 1 / 40)
        assert (np.diff(grid[1:]) < 0).all()
        assert set(grid[1:]) <= set(score)
    assert len(tried) == models
