"""Two guarantees at once: few wrong among the accepted, and few positives passed as negative."""

from __future__ import annotations

import numpy as np
import pytest

from howsure import InputError, Predictions, bounds
from howsure.policies import few_missed_policy


def draw(n: int, rng: np.random.Generator) -> Predictions:
    p = rng.beta(0.5, 2.0, n)
    return Predictions.from_probs(np.stack((1 - p, p), axis=1), (rng.random(n) < p).astype(int))


def test_both_hold_at_once() -> None:
    rng = np.random.default_rng(0)
    world = draw(200_000, rng)
    ill = world.labels == 1
    broken = feasible = 0
    for _ in range(60):
        policy = few_missed_policy(draw(1500, rng), risk=0.1, max_missed=0.15, delta=0.1)
        feasible += policy.threshold < np.inf
        made = policy.decide(world)
        missed = (made.accept & ill & (made.prediction == 0)).sum() / ill.sum()
        wrong = (~world.correct[made.accept]).mean() if made.accept.any() else 0.0
        broken += missed > 0.15 or wrong > 0.1
    assert broken <= 12  # 6 of 60 are this many once in 100
    assert feasible > 30


def test_missed_positives_stop_it_where_the_risk_would_not() -> None:
    rng = np.random.default_rng(1)
    preds = draw(3000, rng)
    loose = few_missed_policy(preds, risk=0.1, max_missed=0.9, delta=0.1)
    strict = few_missed_policy(preds, risk=0.1, max_missed=0.1, delta=0.1)
    assert strict.threshold > loose.threshold
    assert loose.guarantee is not None
    assert "at most 0.9 of the positives passed as negative" in loose.guarantee.rule


def test_what_has_no_positives_is_refused() -> None:
    three = Predictions.from_probs([[0.5, 0.3, 0.2]], [0])
    with pytest.raises(InputError, match="two classes"):
        few_missed_policy(three, risk=0.1, max_missed=0.1, delta=0.1)
    grouped = Predictions.from_probs([[0.5, 0.5]] * 2, [0, 1], group=[1, 2])
    with pytest.raises(InputError, match="groups"):
        few_missed_policy(grouped, risk=0.1, max_missed=0.1, delta=0.1)


def test_the_bound_of_the_risk_has_the_probability_that_is_said() -> None:
    preds = draw(3000, np.random.default_rng(1))
    policy = few_missed_policy(preds, risk=0.1, max_missed=0.2, delta=0.1)
    accept = policy.decide(preds).accept
    wrong, kept = int((~preds.correct[accept]).sum()), int(accept.sum())
    assert policy.guarantee is not None
    assert policy.guarantee.bound == pytest.approx(bounds.clopper_pearson(wrong, kept, 0.1))
