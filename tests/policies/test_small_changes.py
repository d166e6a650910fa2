"""What one small change in a rule would change for a user: cases of logs, checks of guarantees,
segments, single rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

import numpy as np
import pytest
from scipy.special import betaincinv, ndtri, stdtrit

import howsure as hs
from howsure import InputError, Predictions, bounds, policies
from howsure.calibrators import VectorScaling
from howsure.policies import Guarantee, Policy, Suggestions, fit_suggestions
from howsure.policies.cases import guaranteed_cases
from howsure.policies.deployment import (
    describe_top_tie,
    estimate_coverage,
    expected_of_counts,
    plan,
)
from howsure.policies.guarantee import RiskTest, count_accepted, find_sequence
from howsure.policies.policy_check import GuaranteeCheck, check_guarantees, derive_bounds
from howsure.policies.thresholds import few_missed_policy, share_delta
from howsure.predictions.read_options import Asked

# Logs of decision models.

TWO = Asked(("m",), {"late": ("noul",), "team": ("enum",)})
KEPT = Guarantee("", risk=0.05, delta=0.05, feasible=True)


def at(threshold: float):
    return lambda t: policies.threshold_at(t, threshold)


def make_log(**more: object) -> Predictions:
    """Four cases of two questions: `late` is sometimes sure, `team` never and often wrong."""
    question = np.tile(["late", "team"], 4)
    confidence = np.array([0.9, 0.5, 0.9, 0.5, 0.6, 0.5, 0.4, 0.3])
    correct = np.array([1, 0, 0, 1, 1, 0, 1, 1])
    probability = np.array(["0.8", "0.7", "0.95", "0.7", "0.1", "0.7", "0.2", "0.7"])
    given = {"question": question, "probability": probability, **more}
    given = {name: values for name, values in given.items() if values is not None}
    group = np.repeat(["a", "b", "c", "d"], 2)
    return Predictions.from_confidence(confidence, correct, group=group, attributes=given or None)


def describe(policy: Policy, preds: Predictions) -> dict:
    return plan(policy, at(policy.threshold), preds)["asked"]


def test_what_a_policy_does_to_the_cases_of_a_log() -> None:
    found = describe(Policy("max_prob", 0.8, asked=TWO, guarantee=KEPT), make_log())
    assert (found["cases"], found["automatic"]) == (4, 0)
    assert (found["answers"], found["automatic_answers"]) == (8, 2)
    assert found["sent_by"] == {"team": 4}
    assert found["probability"] == {"late": 0.8}
    # One answer to `late` is wrong among those that are surest, but some of them are accepted.
    said = [text.partition(":")[0] for text in found["sentences"]]
    assert said[1:] == [
        "3 of 4 answers to 'team' stand at confidence 0.50, 2 of them wrong (66.7 %)"
    ]
    assert said[0].startswith("Each guarantee is about one question")


def test_a_log_without_a_column_of_questions() -> None:
    preds = make_log(question=None, probability=None)
    one = Asked(("m",), {"late": ("noul",)})
    assert describe(Policy("max_prob", 0.8, asked=one), preds)["sent_by"] == {"late": 4}
    assert describe(Policy("max_prob", 0.8, asked=TWO), preds)["sent_by"] == {"": 4}
    assert describe(Policy("max_prob", 0.8, asked=TWO), preds)["probability"] == {}


def test_whole_cases_are_told_as_products_and_in_percent() -> None:
    preds = make_log(site=np.repeat(["x", "y"], 4))
    policy = Policy("case", log(0.4), asked=TWO, guarantee=KEPT)
    found = plan(policy, at(policy.threshold), preds)
    assert found["case_confidence"] == pytest.approx(0.4)
    assert found["asked"]["automatic"] == 2
    assert found["asked"]["sentences"] == [
        "Automate 2 of 4 cases (50.0 %) as a whole: guaranteed at most 5 % of such cases contain a "
        "wrong answer (95 % confidence)."
    ]
    by = replace(policy, by="site", keys=("x", "y"), thresholds=(log(0.4), inf))
    assert plan(by, at(inf), preds)["thresholds"] == {"x": pytest.approx(0.4), "y": None}
    plain = Policy("max_prob", 0.8, by="site", keys=("x", "y"), thresholds=(0.4, 0.5))
    assert plan(plain, at(inf), preds)["thresholds"] == {"x": 0.4, "y": 0.5}


def test_a_refusal_is_never_accepted() -> None:
    preds = Predictions.from_confidence([0.9, 0.9, 0.9], prediction=["yes", "", "no"])
    assert Policy("max_prob", 0.5, asked=TWO).decide(preds).accept.tolist() == [True, False, True]
    assert Policy("max_prob", 0.5).decide(preds).accept.all()


def test_few_answers_at_the_top_are_no_tie() -> None:
    score, wrong = np.linspace(0, 0.9, 100), np.zeros(100, bool)
    score[-20:] = 1.0
    assert describe_top_tie(score, wrong, 0.05, "team") == ""
    score[-25:] = 1.0
    assert describe_top_tie(score, wrong, 0.05, "team").startswith("25 of 100 answers to 'team'")


def test_any_risk_allows_every_answer() -> None:
    found = guaranteed_cases([[0.9, 0.3], [0.8, 0.2]], np.zeros((2, 2)), risk=1.0, delta=0.1, partial=True)  # fmt: skip
    assert (found.threshold, found.kept) == (0.2, 4)


# Coverage with clusters.


def test_the_coverage_of_groups_by_hand() -> None:
    """Six groups of ten, three of them accepted whole: the limits are those of Student's t."""
    accept = np.repeat([True, False] * 3, 10)
    found = estimate_coverage(accept, np.repeat(np.arange(6), 10), 0.9)
    # A jackknife: each group stands for the others too.
    squares = 6 * (10 * 0.5 / (1 - 1 / 6)) ** 2 * (5 / 6)
    wider = (stdtrit(5, 0.95) / -ndtri(0.05)) ** 2
    size = 0.25 / (squares / 60**2 * wider)
    low = betaincinv(size / 2, size / 2 + 1, 0.05)
    high = betaincinv(size / 2 + 1, size / 2, 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, low, high))


# Guarantees beside new labels.


def test_a_guarantee_at_its_limits() -> None:
    check = GuaranteeCheck("all", "answers", n=9, wrong=1, low=0.05, high=0.05, risk=0.05)
    assert check.supported
    assert check.note == "confirmed by these labels"
    assert not replace(check, low=0.051).supported
    assert "do not confirm" in replace(check, high=0.051).note


@pytest.mark.parametrize("guarantee", [None, Guarantee("coverage at least 0.8")])
def test_a_policy_without_a_risk_cannot_be_checked(guarantee: Guarantee | None) -> None:
    preds = Predictions.from_confidence([0.9], [1])
    with pytest.raises(InputError, match="this policy guarantees no risk"):
        check_guarantees(Policy("max_prob", 0.5, guarantee=guarantee), preds)
    assert derive_bounds(Policy("max_prob", 0.5, guarantee=guarantee)) == []


def test_errors_are_those_of_the_answer_that_the_policy_gives() -> None:
    """A calibrator that turns the answers round, and costs that do."""
    logits, labels = np.tile([2.0, 0.0], (50, 1)), np.zeros(50, int)
    preds = Predictions.from_logits(logits, labels)
    turned = VectorScaling(np.array([-1.0, -1.0]), np.zeros(2))
    assert turned(preds).prediction.tolist() == [1] * 50
    for policy, wrong in (
        (Policy("max_prob", 0.5, guarantee=KEPT), 0),
        (Policy("max_prob", 0.5, turned, guarantee=KEPT), 50),
        (Policy("cost", -inf, costs=((0, 9), (0.1, 0)), guarantee=KEPT), None),
    ):
        (found,) = check_guarantees(policy, preds)
        expected = int((policy.decide(preds).prediction != labels).sum())
        assert (found.n, found.wrong) == (50, expected)
        assert wrong is None or wrong == expected
    (found,) = check_guarantees(
        Policy("max_prob", 0.5, guarantee=KEPT), Predictions.from_confidence([0.9] * 9, [0] * 9)
    )
    assert (found.n, found.wrong) == (9, 9)


def test_segments_are_checked_one_by_one() -> None:
    site = np.repeat(["x", "y", "z"], [30, 20, 10])
    preds = Predictions.from_confidence(
        np.where(site == "z", 0.1, 0.9), site != "y", attributes={"site": site}
    )
    keys = ("x", "y", "z")
    policy = Policy("max_prob", inf, by="site", keys=keys, thresholds=(0.5, 0.5, 0.5),
                    guarantees=(KEPT,) * 3, guarantee=KEPT)  # fmt: skip
    found = {check.name: check for check in check_guarantees(policy, preds)}
    assert {name: (c.n, c.wrong) for name, c in found.items()} == {
        "x": (30, 0), "y": (20, 20), "z": (0, 0),
    }  # fmt: skip
    assert (found["z"].low, found["z"].high) == (0.0, 1.0)
    assert found["z"].supported
    assert found["z"].note == "nothing is accepted"


def test_a_bound_is_derived_from_counts_or_said_not_to_follow() -> None:
    sure = Predictions.from_confidence(np.linspace(0.5, 1, 300), [1] * 300)
    rule = lambda t: policies.guaranteed_threshold(t, risk=0.05, delta=0.05)
    policy = Policy.fit(sure, rule)
    assert policy.guarantee is not None
    assert policy.basis is not None
    # The first row that was tested may hold a single answer.
    tested = ((1.0, policy.threshold), (1.0, 300.0), (0.0, 0.0))
    one = replace(policy, guarantee=replace(policy.guarantee, tested=tested))
    assert derive_bounds(one)[0].bound == pytest.approx(policy.guarantee.bound)
    for bad in (((1.0,), (0.0,), (0.0,)), ((0.5, 0.9), (1.0, 2.0), (0.0, 0.0)), ((1.0,), (2.0,))):
        broken = replace(policy, guarantee=replace(policy.guarantee, tested=bad))
        (found,) = derive_bounds(broken)
        assert not found.follows
        assert found.counts == "what was tested is no list of counts"


# Suggestions.


def test_suggestions_say_how_many_get_none() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 8, 400)
    strength = rng.random(400)[:, None] * 4
    preds = Predictions.from_logits(strength * np.eye(8)[y] + rng.normal(size=(400, 8)), y)
    policy = fit_suggestions(Policy("max_prob", 0.6), preds)
    made = policy.suggestions
    assert made is not None
    listed = policy.decide(preds).suggested
    assert listed is not None
    deferred = ~policy.decide(preds).accept
    length = (listed[deferred] >= 0).sum(axis=1)
    assert 0 < made.none < 1
    assert made.none == (length == 0).mean()
    assert made.short == ((length > 0) & (length <= 3)).mean()
    assert f"{made.none * 100:.0f} % get none, which counts as every class" in made.to_text()


def test_a_small_share_without_suggestions_is_not_said_to_be_zero() -> None:
    made = Suggestions(level=0.95, cut=0.8, n=1000, short=0.998, none=0.002)
    assert "; over 99 % get at most 3, under 1 % get none" in made.to_text()


def test_suggestions_of_classes_that_are_none() -> None:
    with pytest.raises(InputError):
        Suggestions(level=0.9, cut=0.5, keys=(-1,), cuts=(0.5,))
    assert Suggestions(level=0.9, cut=0.5).keys == ()


# Segments.


def test_levels_of_segments_that_hold_at_once() -> None:
    assert share_delta([500, 20], 0.05, 0.05, False) == (1, pytest.approx(0.05))
    assert share_delta([500], 0.05, 0.05, True) == (1, 0.05)
    # Two labels without an error are just enough here.
    assert share_delta([2], 0.5, 0.25, False) == (1, 0.25)
    assert share_delta([1], 0.5, 0.25, False) == (0, 0.25)


def by_site(sizes: dict[str, int], **options: object) -> Policy:
    """A policy by site; all answers are right, and of the same confidence."""
    site = np.repeat(list(sizes), list(sizes.values()))
    n = len(site)
    group = options.pop("group", None)
    preds = Predictions.from_confidence(np.full(n, 0.9), np.ones(n), attributes={"site": site}, group=group)  # fmt: skip
    rule = lambda t, delta=0.1: policies.guaranteed_threshold(t, risk=0.1, delta=delta)
    return Policy.fit(preds, rule, by="site", **options)


def test_the_largest_segments_are_asked_at_once() -> None:
    policy = by_site({"b": 400, "a": 25, "c": 300}, together=True, rest="defer")
    accepted = dict(zip(policy.keys, policy.thresholds, strict=True))
    assert accepted == {"a": inf, "b": 0.9, "c": 0.9}
    assert policy.guarantee is not None
    assert "2 segments of site at once" in policy.guarantee.rule


def test_the_guarantee_of_all_segments() -> None:
    found = by_site({"a": 300, "b": 300}, rest="defer").guarantee
    assert found is not None
    assert found.rule.startswith("risk of the accepted at most 0.1 with probability 0.9, each")
    assert (found.feasible, found.why, found.groups) == (True, "", None)
    few = by_site({"a": 9, "b": 8}, rest="defer").guarantee
    assert few is not None
    assert (few.feasible, few.why) == (False, "too few labels")
    grouped = by_site({"a": 300, "b": 300}, rest="defer", group=np.arange(600) // 2).guarantee
    assert grouped is not None
    assert grouped.groups == 300


# Labels.


def test_a_bound_must_lie_below_what_is_promised() -> None:
    risk = bounds.clopper_pearson(0, 20, 0.05)
    assert policies.label_budget(0.0, risk=risk, delta=0.05) == 21
    assert policies.label_budget(0.0, risk=risk + 1e-9, delta=0.05) == 20


def test_few_missed_positives_at_their_limit() -> None:
    p = np.repeat([[0.99, 0.01], [0.02, 0.98]], 300, axis=0)
    preds = Predictions.from_probs(p, [0] * 300 + [1] * 300)
    most = bounds.clopper_pearson(0, 300, 0.025)
    missed = few_missed_policy(preds, risk=0.05, max_missed=most, delta=0.05).guarantee
    assert missed is not None
    assert (missed.feasible, missed.why) == (False, "no share of these answers shows both")
    kept = few_missed_policy(preds, risk=0.05, max_missed=most + 1e-9, delta=0.05).guarantee
    assert kept is not None
    assert (kept.feasible, kept.why) == (True, "")


def test_a_risk_of_1_is_tested_from_the_first_row() -> None:
    counts = count_accepted(hs.tally(np.linspace(1, 0, 100), correct=np.ones(100)))
    test = RiskTest(risk=1.0, delta=0.1, bound="clopper_pearson")
    assert counts.kept[find_sequence(counts, test)[0]] == 2


# Single rows.


def test_one_row_is_known_without_segments() -> None:
    assert Policy("max_prob", 0.5).decide_one(probs=[0.2, 0.8]).known
    found = Policy("max_prob", 0.5).decide_one(score=1.0)
    assert (found.accept, found.confidence) == (True, 1.0)
    with pytest.raises(InputError, match="max_prob lies in"):
        Policy("max_prob", 0.5).decide_one(score=1.1)


def test_one_row_of_probabilities_has_no_energy() -> None:
    preds = Predictions.from_probs([[0.2, 0.3, 0.5]])
    with pytest.raises(InputError) as many:
        Policy("energy", 0.5).decide(preds)
    with pytest.raises(InputError) as one:
        Policy("energy", 0.5).decide_one(probs=[0.2, 0.3, 0.5])
    assert str(one.value) == str(many.value)
    z = [2.0, 0.0, 1.0]
    whole = Policy("energy", 0.5).decide(Predictions.from_logits([z]))
    assert Policy("energy", 0.5).decide_one(logits=z).score == whole.score[0]


def test_several_columns_need_a_mapping() -> None:
    policy = Policy("max_prob", 0.5, by="site,device", keys=("x, 1",), thresholds=(0.4,))
    with pytest.raises(InputError, match=r"give segment=\{'site': ..., 'device': ...\}"):
        policy.decide_one(confidence=0.9, segment="z")


@pytest.mark.parametrize("k", [63, 64, 65])
@pytest.mark.parametrize("score", ["max_prob", "neg_entropy", "log_max_prob"])
def test_one_row_of_many_classes_is_decided_as_among_others(k: int, score: str) -> None:
    z = np.random.default_rng(k).normal(size=(200, k))
    policy = Policy(score, 0.0)
    many = policy.decide(Predictions.from_logits(z))
    one = [policy.decide_one(logits=row) for row in z]
    assert [found.score for found in one] == many.score.tolist()
    assert [found.confidence for found in one] == many.confidence.tolist()


def test_names_are_found_when_they_are_asked_for() -> None:
    assert policies.__getattr__("label_budget") is policies.label_budget
    assert policies.__getattr__("Policy") is Policy
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        policies.__getattr__("nothing")


# What to expect, from counts.


def test_counts_are_expected_to_do_what_their_rows_do() -> None:
    rng = np.random.default_rng(0)
    score = rng.integers(0, 11, 500) / 10
    rows = hs.Outcomes(score, correct=rng.random(500) < score)
    seen: list[float] = []

    def choose(t: hs.Tally):
        seen.append(float(t.n))
        return policies.threshold_at(t, 0.5)

    by_rows = policies.expected_on_new_data(rows, choose)
    seen.clear()
    by_counts = expected_of_counts(rows.tally(), choose, folds=5)
    assert sum(seen) == 4 * 500
    assert (by_counts.kept, by_counts.n) == (by_rows.kept, by_rows.n)
    for mine, theirs in (
        (by_counts.coverage, by_rows.coverage),
        (by_counts.accuracy, by_rows.accuracy),
    ):
        assert (mine.value, mine.low, mine.high) == pytest.approx(
            (theirs.value, theirs.low, theirs.high)
        )
