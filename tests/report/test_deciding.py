"""What a page decides by is what the commands decide by."""

from math import inf

import numpy as np
import pytest

from howsure import Predictions, metrics, tally
from howsure.policies import (
    Policy,
    fit_suggestions,
    guaranteed_threshold,
    split_halves,
    threshold_for_cost,
    threshold_for_coverage,
)
from howsure.report.evaluation import evaluate
from howsure.report.summary import Summary
from howsure.report.views import build_deciding


def predictions(n: int, seed: int = 0, *, digits: int = 12) -> Predictions:
    rng = np.random.default_rng(seed)
    claim = rng.beta(5, 1, n).round(digits)
    return Predictions.from_confidence(claim, rng.random(n) < claim)


@pytest.mark.parametrize("digits", [1, 2, 12])
def test_for_any_costs_the_cheapest_corner_is_the_cheapest_threshold(digits: int) -> None:
    preds = predictions(600, digits=digits)
    t, found = (
        tally(preds.confidence, correct=preds.correct),
        build_deciding(Summary.of(preds), 0.95),
    )
    corners, n, rng = found["corners"], found["n"], np.random.default_rng(1)
    for error, deferral, expert in zip(
        10 ** rng.uniform(-2, 4, 300),
        rng.uniform(0, 5, 300),
        rng.random(300) / 5,
        strict=True,
    ):
        best = threshold_for_cost(t, error=error, deferral=deferral, expert_error=expert)
        asked = deferral + error * expert
        cost = [
            (error * w + asked * (n - k)) / n
            for k, w in zip(corners["kept"], corners["wrong"], strict=True)
        ]
        least = min(cost) + 1e-12 * max(1.0, error, asked)
        row = max(i for i, c in enumerate(cost) if c <= least)
        assert (corners["threshold"][row] or inf) == best.threshold
        assert cost[row] == pytest.approx(best.cost, rel=1e-12)


@pytest.mark.parametrize("n", [40, 500, 5000])
def test_each_step_of_the_page_is_the_guaranteed_threshold(n: int) -> None:
    preds = predictions(n, 2)
    t = tally(preds.confidence, correct=preds.correct)
    found = build_deciding(Summary.of(preds), 0.95)["guarantee"]
    feasible = 0
    for step in found["steps"]:
        g = guaranteed_threshold(t, risk=step["risk"], delta=step["delta"])
        assert g.feasible is (step["point"] is not None)
        feasible += g.feasible
        if g.feasible:
            assert found["points"]["threshold"][step["point"]] == g.threshold
            assert step["bound"] == g.bound
    assert len(found["steps"]) > 10
    assert feasible > 0 or n == 40


@pytest.mark.parametrize(("n", "digits"), [(37, 12), (1000, 2), (10_001, 12)])
def test_the_asked_coverage_leads_the_command_to_the_same_threshold(n: int, digits: int) -> None:
    preds = predictions(n, 4, digits=digits)
    o = evaluate(preds).data["views"]["operating"]
    t = tally(preds.confidence, correct=preds.correct)
    assert len(o["asked"]) == len(o["coverage"])
    for asked, kept in zip(o["asked"], o["kept"], strict=True):
        assert threshold_for_coverage(t, float(f"{asked:g}")).kept == kept


def test_groups_and_weights_say_why_there_is_no_guarantee() -> None:
    conf, right = [0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]
    for preds in (
        Predictions.from_confidence(conf, right, group=[0, 0, 1, 1]),
        Predictions.from_confidence(conf, right, weight=[1, 2, 3, 4]),
    ):
        found = build_deciding(Summary.of(preds), 0.95)
        assert found["guarantee"] is None
        assert found["why"]
        assert found["corners"]["low"] is None


def test_the_anchors_of_the_aurc_are_those_of_random_and_perfect_order() -> None:
    preds = predictions(300)
    entry = evaluate(preds).data["metrics"]["aurc"]
    right = preds.correct
    assert entry["anchors"]["random"] == pytest.approx(
        metrics.aurc(tally(np.ones(300), correct=right))
    )
    assert entry["anchors"]["best"] == pytest.approx(
        metrics.aurc(tally(right.astype(float), correct=right)), rel=0.05
    )
    order = np.concatenate(
        (np.linspace(1, 0.6, int(right.sum())), np.linspace(0.4, 0, int((~right).sum())))
    )
    ranked = tally(order, correct=np.sort(right)[::-1])
    assert entry["anchors"]["best"] == pytest.approx(metrics.aurc(ranked), rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_suggestions_are_those_of_the_command(grouped: bool) -> None:
    preds = classes(8000, groups=2000 if grouped else None)
    said = evaluate(preds, ["max_prob"]).data["suggestions"]
    kept, spare = split_halves(preds)
    policy = Policy.fit(kept, lambda t: guaranteed_threshold(t, risk=said["risk"], delta=0.05))
    made = fit_suggestions(policy, spare, 0.95).suggestions
    assert made is not None
    assert 0 < made.n < spare.n
    assert said["text"] == made.to_text()


def test_suggestions_where_they_say_nothing() -> None:
    preds = classes(8000)
    assert "suggestions" in evaluate(preds, ["max_prob"]).data
    weighted = Predictions.from_probs(preds.probs, preds.labels, weight=np.linspace(1, 2, 8000))
    few = preds[:60]  # no guarantee
    three = Predictions.from_probs(
        preds.probs[:, :3] / preds.probs[:, :3].sum(1, keepdims=True), preds.labels % 3
    )
    for given in (weighted, few, three, predictions(8000)):
        assert "suggestions" not in evaluate(given, ["max_prob"]).data


def classes(n: int, groups: int | None = None) -> Predictions:
    """Calibrated probabilities of six classes, many of them sure."""
    rng = np.random.default_rng(n)
    z = 4 * rng.normal(size=(n, 6))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    labels = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=5)
    group = None if groups is None else rng.integers(0, groups, n)
    return Predictions.from_probs(p, labels, group=group)
