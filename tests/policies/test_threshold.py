"""Thresholds chosen on data, by hand."""

from math import inf, isnan

import numpy as np
import pytest

from howsure import InputError, Predictions, policies, tally

T = tally([0.9, 0.8, 0.8, 0.7, 0.6], correct=[1, 1, 0, 1, 1])


def test_accuracy_takes_the_widest_not_the_first_crossing() -> None:
    found = policies.threshold_for_accuracy(T, 0.75)  # 1/1, 2/3, 3/4, 4/5
    assert (found.threshold, found.coverage, found.accuracy) == (0.6, 1.0, 0.8)


def test_impossible_accuracy_accepts_nothing() -> None:
    found = policies.threshold_for_accuracy(tally([0.9, 0.8], correct=[0, 1]), 0.9)
    assert (found.threshold, found.coverage, found.feasible) == (inf, 0.0, False)
    assert isnan(found.accuracy)


def test_coverage_closesdraw_ties() -> None:
    found = policies.threshold_for_coverage(T, 0.4)
    assert (found.threshold, found.coverage) == (0.8, 0.6)


def test_cost_by_hand() -> None:
    # kept 1: 0 wrong, 4 deferred; kept 3: 1 wrong, 2 deferred; kept 4: 1 wrong, 1 deferred; kept 5:
    # 1 wrong
    found = policies.threshold_for_cost(T, error=3, deferral=1)
    assert (found.threshold, found.cost) == (0.6, pytest.approx(3 / 5))
    strict = policies.threshold_for_cost(T, error=100, deferral=1)
    assert (strict.threshold, strict.cost) == (0.9, pytest.approx(4 / 5))


def test_equal_costs_take_the_larger_coverage() -> None:
    found = policies.threshold_for_cost(tally([0.9, 0.8], correct=[1, 0]), error=0.3, deferral=0.3)
    assert found.coverage == 1.0


def test_nothing_is_accepted_where_asking_is_cheaper() -> None:
    found = policies.threshold_for_cost(tally([0.9], correct=[0]), error=10, deferral=1)
    assert (found.threshold, found.cost) == (inf, 1.0)


def test_an_expert_who_errs_is_asked_less() -> None:
    t = tally([0.9, 0.6], correct=[1, 0])
    assert policies.threshold_for_cost(t, error=10, deferral=1).coverage == 0.5
    assert policies.threshold_for_cost(t, error=10, deferral=1, expert_error=0.95).coverage == 1.0


def test_weights_count() -> None:
    t = tally([0.9, 0.8], correct=[1, 0], weight=[3.0, 1.0])
    assert policies.threshold_for_accuracy(t, 0.75).coverage == 1.0


def test_a_matrix_of_costs_changes_answer_and_order() -> None:
    preds = Predictions.from_probs([[0.8, 0.2], [0.55, 0.45], [0.05, 0.95]], [0, 1, 1])
    o = policies.cost_outcomes(preds, [[0, 1], [5, 0]])
    assert np.allclose(
        o.score, [-0.8, -0.55, -0.05]
    )  # always 1: answering 0 would cost 1, 2.25, 4.75
    assert np.allclose(o.loss, [1, 0, 0])


def test_a_matrix_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"costs has shape \(3, 3\)"):
        policies.cost_outcomes(Predictions.from_probs([[0.8, 0.2]], [0]), np.ones((3, 3)))


def test_uncertainty_limit_keeps_equal() -> None:
    preds = Predictions.from_probs([[1.0, 0.0], [0.5, 0.5]], [0, 1])
    found = policies.reject_uncertain(preds, 0.0)
    assert (found.coverage, found.error_kept, found.error_rejected) == (0.5, 0.0, 1.0)
    assert isnan(policies.reject_uncertain(preds, 1.0).error_rejected)


@pytest.mark.parametrize("target", [0, 1.2, -0.5, float("nan")])
def test_targets_outside_are_refused(target: float) -> None:
    for choose in (policies.threshold_for_accuracy, policies.threshold_for_coverage):
        with pytest.raises(InputError, match="above 0 and at most 1"):
            choose(T, target)


def test_negative_costs_are_refused() -> None:
    with pytest.raises(InputError, match="deferral is -1"):
        policies.threshold_for_cost(T, error=1, deferral=-1)
