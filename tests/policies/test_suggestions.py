"""Suggestions for the deferred: which classes, how often they hold the truth, and where none are made."""

from __future__ import annotations

from functools import partial
from math import ceil, inf
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, load, save
from howsure.policies import (
    OnlinePolicy,
    Policy,
    Suggestions,
    fit_suggestions,
    guaranteed_threshold,
    split_halves,
    threshold_at,
)
from howsure.policies.deployment import plan

RULE = partial(guaranteed_threshold, risk=0.05, delta=0.1)


def draw(n: int, seed: int = 0, k: int = 8, sharp: float = 2.0) -> Predictions:
    """Over-confident logits: the truth does not follow the probabilities that they claim."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    logits = 3 * np.eye(k)[labels] + rng.normal(size=(n, k)) * rng.uniform(0.2, 2, (n, 1))
    return Predictions.from_logits(sharp * logits, labels)


def hold_truth(policy: Policy, preds: Predictions) -> tuple[float, float]:
    """The share of the deferred whose list holds the truth, and that without a list."""
    decisions = policy.decide(preds)
    assert decisions.suggested is not None
    rows = ~decisions.accept
    listed = decisions.suggested[rows]
    none = (listed == -1).all(axis=1)
    inside = (listed == preds.labels[rows][:, None]).any(axis=1)
    return float((inside | none).mean()), float(none.mean())


def test_the_cut_is_the_conformal_quantile() -> None:
    preds = draw(400)
    policy = fit_suggestions(Policy("max_prob", 0.9), preds, 0.9)
    deferred = preds.probs.max(axis=1) < 0.9
    distance = np.sort(1 - preds.probs[np.arange(400), preds.labels][deferred])
    assert policy.suggestions is not None
    assert policy.suggestions.keys == ()
    assert policy.suggestions.n == len(distance)
    assert policy.suggestions.cut == distance[ceil((len(distance) + 1) * 0.9) - 1]


def test_frequent_classes_have_cuts_of_their_own() -> None:
    preds = draw(3000)
    policy = fit_suggestions(Policy("max_prob", inf), preds)
    made = policy.suggestions
    assert made is not None
    counts = np.bincount(preds.labels)
    assert made.keys == tuple(np.flatnonzero(counts >= 100).tolist())
    mine = np.sort(1 - preds.probs[preds.labels == 0, 0])
    assert made.cuts[0] == mine[ceil((len(mine) + 1) * 0.95 - 1e-9) - 1]


def test_too_few_deferred_rows_suggest_every_class() -> None:
    preds = draw(18, k=4)
    policy = fit_suggestions(Policy("max_prob", inf), preds)
    assert policy.suggestions is not None
    assert policy.suggestions.cut == inf
    assert policy.decide(preds).suggestions()[0] == np.argsort(-preds.probs[0]).tolist()
    # One row more is the least that 95 % needs.
    assert fit_suggestions(Policy("max_prob", inf), draw(19, k=4)).suggestions.cut < inf  # type: ignore[union-attr]


def test_a_long_list_is_plain_deferral_and_the_answer_is_always_listed() -> None:
    probs = np.array([[0.3, 0.15, 0.15, 0.15, 0.15, 0.1], [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]])
    answer = probs.argmax(axis=1)
    wide = Suggestions(level=0.95, cut=0.9).suggest(probs, answer)
    assert wide.tolist() == [[-1] * 5] * 2
    tight = Suggestions(level=0.95, cut=0.4).suggest(probs, answer)
    assert tight[:, 0].tolist() == [0, 0]
    assert (tight[:, 1:] == -1).all()


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_truth_is_listed_as_often_as_said(level: float) -> None:
    """The mean over calibration sets: neither below the level nor far above it."""
    held = []
    for seed in range(30):
        kept, spare = split_halves(draw(1200, seed=seed), seed=seed)
        policy = fit_suggestions(Policy.fit(kept, RULE), spare, level, seed=seed)
        held.append(hold_truth(policy, draw(4000, seed=1000 + seed))[0])
    spread = np.std(held) / np.sqrt(len(held))
    assert level - 3 * spread < np.mean(held) < level + 0.025 + 3 * spread


def test_groups_give_one_row_each_and_stay_whole() -> None:
    preds = draw(600)
    group = np.arange(600) // 6
    preds = Predictions.from_probs(preds.probs, preds.labels, group=group)
    kept, spare = split_halves(preds)
    assert not set(kept.group.tolist()) & set(spare.group.tolist())  # type: ignore[union-attr]
    policy = fit_suggestions(Policy("max_prob", inf), spare)
    assert policy.suggestions is not None
    assert policy.suggestions.n == 50
    # Where segments are groups, their rows are the units.
    mixed, _ = split_halves(preds, by="group")
    assert len(set(mixed.group.tolist())) > 90  # type: ignore[union-attr]


def test_saved_and_read_back(tmp_path: Path) -> None:
    preds = draw(2500)
    policy = fit_suggestions(Policy.fit(preds[:1000], RULE), preds[1000:])
    save(policy, tmp_path / "p.json")
    again = load(tmp_path / "p.json")
    assert again == policy
    assert "among the suggestions in 95 % of the deferred, on average" in policy.to_text()
    one = again.decide(preds[3:4])
    assert one.suggestions() == policy.decide(preds).suggestions()[3:4]


def test_decisions_are_cut_with_their_suggestions() -> None:
    preds = draw(300)
    names = [f"c{i}" for i in range(8)]
    preds = Predictions.from_probs(preds.probs, preds.labels, class_names=names)
    made = fit_suggestions(Policy("max_prob", 0.99), preds).decide(preds)
    assert made[5:9].suggestions() == made.suggestions()[5:9]
    some = made.suggestions()[int(np.flatnonzero(~made.accept)[0])]
    assert all(name in names for name in some)
    assert all(
        not row for row, accepted in zip(made.suggestions(), made.accept, strict=True) if accepted
    )


def test_a_plan_says_it() -> None:
    preds = draw(800)
    choose = partial(threshold_at, value=0.9)
    policy = fit_suggestions(Policy.fit(preds[:400], choose), preds[400:])
    said = plan(policy, choose, preds[:400])["suggestions"]
    assert said["level"] == 0.95
    assert f"{said['short'] * 100:.0f} % get at most 3" in said["text"]


def test_what_cannot_have_suggestions_is_refused() -> None:
    preds, policy = draw(100), Policy("max_prob", 0.9)
    with pytest.raises(InputError, match="suggestions"):
        fit_suggestions(policy, Predictions.from_confidence([0.9, 0.8], [1, 0]))
    weighted = Predictions.from_probs(preds.probs, preds.labels, weight=np.arange(100) + 1.0)
    with pytest.raises(InputError, match="weights"):
        fit_suggestions(policy, weighted)
    with pytest.raises(InputError, match="between 0 and 1"):
        fit_suggestions(policy, preds, 1.0)
    with pytest.raises(InputError, match="online"):
        OnlinePolicy.start(fit_suggestions(policy, preds), [0.5, 0.6], risk=0.05)
    with pytest.raises(InputError, match="halves"):
        split_halves(preds[:1])
    with pytest.raises(InputError, match="cuts"):
        Suggestions(level=0.95, cut=0.5, keys=(1,), cuts=())
