"""Policies: accept or defer, own thresholds, what was promised, saved and loaded."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Outcomes, Predictions, load, policies, read, save
from howsure.formats import ReadOptions
from howsure.policies import (
    Policy,
    guaranteed_threshold,
    threshold_for_accuracy,
    threshold_for_cost,
)


def some(n: int = 600, seed: int = 0, **columns: object) -> Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return Predictions.from_logits(
        2 * np.eye(3)[labels] + rng.normal(0, 1, (n, 3)), labels, **columns
    )


def test_accepts_at_the_threshold_itself() -> None:
    made = Policy("max_prob", 0.6).decide(Predictions.from_probs([[0.6, 0.4], [0.59, 0.41]]))
    assert made.accept.tolist() == [True, False]
    assert made.answers() == [0, "I don't know"]
    assert made.answers(None) == [0, None]


def test_fit_decides_its_own_data_as_it_counted() -> None:
    preds = some()
    policy = Policy.fit(preds, partial(threshold_for_accuracy, accuracy=0.95))
    made = policy.decide(preds)
    assert made.coverage == policy.basis.coverage
    assert preds.correct[made.accept].mean() == pytest.approx(policy.basis.accuracy)


def test_own_thresholds_with_a_pooled_fallback() -> None:
    preds = some(600, group=np.array(["big"] * 550 + ["small"] * 50))
    policy = Policy.fit(
        preds, partial(threshold_for_accuracy, accuracy=0.9), by="group", rest="common"
    )
    assert policy.keys == ("big",)
    big = threshold_for_accuracy(Outcomes(preds.confidence, preds.correct)[:550].tally(), 0.9)
    assert policy.thresholds == (big.threshold,)
    new = Predictions.from_probs([[0.5, 0.3, 0.2]] * 2, group=["small", "unseen"])
    assert policy.limits(new, new.prediction).tolist() == [policy.threshold] * 2


def test_own_thresholds_by_predicted_class() -> None:
    policy = Policy("max_prob", 0.5, by="predicted", keys=("1",), thresholds=(0.9,))
    made = policy.decide(Predictions.from_probs([[0.7, 0.3], [0.3, 0.7], [0.05, 0.95]]))
    assert made.accept.tolist() == [True, False, True]


def test_costs_choose_the_cheaper_answer() -> None:
    policy = Policy("cost", -0.5, costs=((0.0, 1.0), (10.0, 0.0)), k=2)
    made = policy.decide(Predictions.from_probs([[0.9, 0.1], [0.99, 0.01]]))
    assert made.prediction.tolist() == [1, 0]  # 0.9 < 1.0: the dear mistake is avoided
    assert made.score.tolist() == pytest.approx([-0.9, -0.1])
    assert made.accept.tolist() == [False, True]


def test_fit_with_costs() -> None:
    preds = some(400)
    costs = [[0, 1, 1], [1, 0, 1], [20, 20, 0]]
    policy = Policy.fit(preds, partial(threshold_for_cost, error=1, deferral=0.4), costs=costs)
    made = policy.decide(preds)
    spent = np.where(made.accept, np.array(costs)[preds.labels, made.prediction], 0.4).mean()
    everything = np.array(costs)[preds.labels, made.prediction].mean()
    assert spent <= min(0.4, everything) + 1e-12


def test_the_promise_is_part_of_the_policy() -> None:
    choose = partial(guaranteed_threshold, risk=0.2, delta=0.1, method="fixed_sequence")
    policy = Policy.fit(some(), choose, source=("val.npz", "ab12"))
    assert (policy.guarantee.risk, policy.guarantee.delta, policy.guarantee.feasible) == (
        0.2,
        0.1,
        True,
    )
    assert policy.guarantee.bound < 0.2
    assert (policy.basis.n, policy.basis.source) == (600, "val.npz")


def test_saved_and_loaded(tmp_path: Path) -> None:
    choose = partial(guaranteed_threshold, risk=0.001, delta=0.01)
    policy = Policy.fit(
        some(group=np.repeat(["class", "b"], 300)), choose, by="group"
    )  # infeasible: inf and nan inside
    save(policy, tmp_path / "p.json")
    again = load(tmp_path / "p.json")
    assert (again.threshold, again.keys, again.thresholds) == (
        policy.threshold,
        policy.keys,
        policy.thresholds,
    )
    assert again.guarantee.labels_needed == policy.guarantee.labels_needed


def test_a_calibrator_goes_with_the_policy(tmp_path: Path) -> None:
    from howsure.calibrators import Temperature

    save(Policy("max_prob", 0.7, Temperature(2.0)), tmp_path / "p.json")
    made = load(tmp_path / "p.json").decide(Predictions.from_logits([[2.0, 0.0]]))
    assert made.confidence[0] == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_other_classes_are_refused() -> None:
    with pytest.raises(InputError, match="made for 3 classes, these predictions have 2"):
        Policy("max_prob", 0.5, k=3).decide(Predictions.from_probs([[0.5, 0.5]]))
    with pytest.raises(InputError, match="class 1 is 'dog' there and 'cow' here"):
        Policy("max_prob", 0.5, class_names=("cat", "dog")).decide(
            Predictions.from_probs([[0.5, 0.5]], class_names=["cat", "cow"])
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("max_prop", 0.5), "'max_prop' is not a score"),
        (("max_prob", float("nan")), "threshold is nan"),
        (("cost", 0.5), "belong together"),
    ],
)
def test_bad_policies(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Policy(*arguments)


def test_groups_are_needed_where_thresholds_are_by_group() -> None:
    with pytest.raises(InputError, match="there is no column 'group'"):
        Policy("max_prob", 0.5, by="group").decide(Predictions.from_probs([[0.5, 0.5]]))


def test_deferral_table_by_hand() -> None:
    rows = policies.deferral_table([1, 1, 0, 0, 1], [1, 0, 1, 0, 1], [0, 0, 1, 1, 1])
    assert [(r.name, r.n) for r in rows] == [("all", 5), ("1", 3), ("0", 2)]
    assert (rows[1].deferred.value, rows[1].accuracy_accepted.value) == (pytest.approx(2 / 3), 1.0)
    assert rows[1].accuracy_deferred.value == 0.5
    assert np.isnan(rows[2].accuracy_deferred.value)


def shared_luck(rng: np.random.Generator, groups: int, size: int) -> Outcomes:
    """Answers of a group are right or wrong together more often than claims say."""
    group = np.repeat(np.arange(groups), size)
    claim = rng.uniform(0.4, 1, len(group))
    return Outcomes(
        claim, rng.random(len(group)) + rng.normal(0, 0.2, groups)[group] < claim, group=group
    )


@pytest.mark.parametrize("groups", [True, False])
def test_expected_intervals_hold_for_a_new_sample(groups: bool) -> None:
    """Limits of the truth alone hold for about two new samples in three, with clusters for fewer."""
    rng = np.random.default_rng(11)
    hits = {"coverage": 0, "accuracy": 0}
    choose = lambda t: threshold_for_accuracy(t, 0.85)
    for _ in range(100):
        old, new = (
            shared_luck(rng, 40, 25) if groups else shared_luck(rng, 500, 1) for _ in range(2)
        )
        expected = policies.expected_on_new_data(old, choose)
        kept = new.score >= choose(old.tally()).threshold
        hits["coverage"] += expected.coverage.low <= kept.mean() <= expected.coverage.high
        seen = new.right[kept].mean() if kept.any() else expected.accuracy.value
        hits["accuracy"] += expected.accuracy.low <= seen <= expected.accuracy.high
    assert min(hits.values()) >= 90, hits


def test_expected_on_new_data_is_honest() -> None:
    """On pure noise the best of many thresholds looks good on its own data and not across folds."""
    rng = np.random.default_rng(5)
    o = Outcomes(rng.random(300), correct=rng.random(300) < 0.5)
    choose = partial(threshold_for_accuracy, accuracy=0.6)
    e = policies.expected_on_new_data(o, choose)
    assert choose(o.tally()).accuracy >= 0.6
    assert e.accuracy.low < 0.5 < e.accuracy.high


def test_clusters_stay_whole_across_folds() -> None:
    o = Outcomes([0.9, 0.9, 0.1, 0.1], correct=[1, 1, 0, 0], group=["a", "a", "b", "b"])
    seen = []
    policies.expected_on_new_data(
        o, lambda t: seen.append(t.n) or threshold_for_accuracy(t, 0.5), folds=2
    )
    assert seen == [2, 2]


def test_promises_hold_on_real_networks(shared: Path) -> None:
    """Thresholds from validation; the promised risk is compatible with the test set."""
    for name in ("nn_resnet110_c10", "in1k_tv_resnext101_32x8d"):
        val, test = (
            read(shared / "data" / f"{name}.npz", split=split) for split in ("val", "test")
        )
        choose = partial(guaranteed_threshold, risk=0.02, delta=0.05, method="fixed_sequence")
        made = Policy.fit(val, choose).decide(test)
        assert made.coverage > 0.25
        assert 1 - test.correct[made.accept].mean() <= 0.02


def test_how_its_file_was_read_is_saved(tmp_path: Path) -> None:
    options = ReadOptions(names={"probs": ["cat", "dog"], "labels": "y"}, percent=True)
    policy = Policy("max_prob", 0.8, read=options)
    save(policy, tmp_path / "p.json")
    assert load(tmp_path / "p.json") == policy
    assert hash(load(tmp_path / "p.json")) == hash(policy)
    stored = (tmp_path / "p.json").read_text()
    assert '"percent": true' in stored


@pytest.mark.parametrize("columns", [3, ["cat", 1]])
def test_names_are_text(columns: object) -> None:
    with pytest.raises(InputError, match=r"names has .* for 'probs'"):
        ReadOptions(names={"probs": columns})
