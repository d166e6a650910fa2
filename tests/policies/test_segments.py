"""Segments: a threshold and a guarantee for each, clusters inside them, and what is not known."""

from __future__ import annotations

from functools import partial
from math import inf, log, log1p
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Outcomes, Predictions, load, save, tally
from howsure.policies import Policy, guaranteed_threshold, threshold_for_accuracy
from howsure.policies.deployment import plan
from howsure.policies.thresholds import share_delta
from howsure.predictions.segments import fix_edges, name_segments, parse_segments

RULE = partial(guaranteed_threshold, risk=0.05, delta=0.05)
ERRORS = {"A": 0.01, "B": 0.02, "C": 0.4}


def draw(n: int = 2400, **beside: object) -> Predictions:
    """Three hospitals, the last of them bad."""
    rng = np.random.default_rng(0)
    hospital = np.array(["A", "A", "A", "B", "B", "C"])[np.arange(n) % 6]
    wrong = rng.random(n) < np.array([ERRORS[name] for name in hospital])
    age = rng.integers(20, 90, n)
    return Predictions.from_confidence(
        rng.uniform(0.5, 1, n), ~wrong, attributes={"hospital": hospital, "age": age}, **beside
    )


def test_each_segment_is_chosen_on_its_own_rows() -> None:
    preds = draw()
    policy = Policy.fit(preds, RULE, by="hospital")
    assert policy.keys == ("A", "B", "C")
    hospital = preds.attributes["hospital"]
    for name, threshold, guarantee in zip(
        policy.keys, policy.thresholds, policy.guarantees, strict=True
    ):
        mine = hospital == name
        alone = RULE(tally(preds.confidence[mine], correct=preds.correct[mine]))
        assert (threshold, guarantee.bound) == pytest.approx(
            (alone.threshold, alone.bound), nan_ok=True
        )
    assert policy.thresholds[2] == inf
    made = policy.decide(preds)
    assert made.coverage == policy.basis.coverage > 0.7
    assert preds.correct[made.accept].mean() == pytest.approx(policy.basis.accuracy)


def test_a_segment_that_is_not_known_is_deferred_and_named() -> None:
    new = Predictions.from_confidence([0.999, 0.999], attributes={"hospital": ["A", "Z"]})
    made = Policy.fit(draw(), RULE, by="hospital").decide(new)
    assert made.accept.tolist() == [True, False]
    assert (made.segment.tolist(), made.known.tolist()) == (["A", "Z"], [True, False])
    assert made[1:].segment.tolist() == ["Z"]
    rest = Policy.fit(draw(), partial(RULE, risk=0.2), by="hospital", rest="common")
    assert rest.threshold < inf
    assert rest.decide(new).accept.tolist() == [True, True]
    assert rest.thresholds[2] == inf  # bad, not small: never the common threshold


def test_a_small_segment_is_deferred_or_takes_the_common_threshold() -> None:
    preds = draw(60)
    hospital = preds.attributes["hospital"]
    policy = Policy.fit(preds, RULE, by="hospital")
    assert policy.thresholds == (inf, inf, inf)
    assert {g.why for g in policy.guarantees} == {"too few labels"}
    rule = partial(threshold_for_accuracy, accuracy=0.5)
    assert Policy.fit(preds, rule, by="hospital", rest="common").keys == ()
    kept = Policy.fit(preds, rule, by="hospital", minimum=int((hospital == "B").sum()))
    assert [at < inf for at in kept.thresholds] == [True, True, False]


def test_bins_keep_their_edges(tmp_path: Path) -> None:
    preds = draw()
    policy = Policy.fit(preds, RULE, by="age:3")
    edges = parse_segments(policy.by)[0].edges
    assert len(edges) == 2
    save(policy, tmp_path / "p.json")
    again = load(tmp_path / "p.json")
    assert (again.by, again.keys, again.thresholds) == (policy.by, policy.keys, policy.thresholds)
    assert again.guarantees[0].bound == pytest.approx(policy.guarantees[0].bound, nan_ok=True)
    few = Predictions.from_confidence([0.999] * 2, attributes={"age": [edges[0], edges[0] - 1]})
    assert again.decide(few).segment.tolist() == [
        f"{edges[0]:g} to {edges[1]:g}",
        f"below {edges[0]:g}",
    ]


def test_crossed_columns_and_the_predicted_class() -> None:
    preds = draw()
    assert fix_edges("hospital,age:40,60", preds) == "hospital,age:40,60"
    assert fix_edges("age:40,,hospital", preds) == "age:40,,hospital"
    names = name_segments("age:40,,hospital", preds, np.zeros(preds.n))
    assert set(names.tolist()) == {
        f"{a} × {h}" for a in ("below 40", "40 and above") for h in "ABC"
    }
    probs = Predictions.from_probs([[0.9, 0.1], [0.1, 0.9]] * 100, [0, 1] * 100)
    assert Policy.fit(probs, RULE, by="predicted").keys == ("0", "1")
    odd = Predictions.from_confidence([0.9], attributes={"a": ["x × y"], "b": ["z"]})
    with pytest.raises(InputError, match="separates crossed columns"):
        name_segments("a,b", odd, np.zeros(1))


def test_a_group_as_segment_has_its_own_guarantee() -> None:
    """A cluster that is a segment too has one cluster: this never accepted."""
    preds = draw()
    grouped = draw(group=preds.attributes["hospital"])
    policy = Policy.fit(grouped, RULE, by="group")
    assert policy.thresholds == Policy.fit(preds, RULE, by="hospital").thresholds
    assert not Policy.fit(
        grouped, RULE
    ).guarantee.feasible  # three groups say nothing about a fourth


def test_clusters_inside_segments_are_the_unit() -> None:
    preds = draw(group=np.arange(2400) // 12)  # 200 clusters, each in all three hospitals
    policy = Policy.fit(preds, RULE, by="hospital")
    assert [g.groups for g in policy.guarantees] == [200, 200, 200]
    mine = preds.attributes["hospital"] == "A"
    o = Outcomes(preds.confidence, preds.correct, group=preds.group)[mine]
    assert policy.thresholds[0] == RULE(o).threshold


@pytest.mark.parametrize("spanned", [False, True])
def test_guarantees_at_once_share_delta_by_size_alone(spanned: bool) -> None:
    sizes = [900, 400, 120, 70, 61]
    many, share = share_delta(sizes, 0.05, 0.05, spanned)
    level = lambda k: 0.05 / k if spanned else 1 - 0.95 ** (1 / k)
    enough = [k for k in range(1, 6) if sizes[k - 1] >= log(level(k)) / log1p(-0.05)]
    assert (many, share) == (max(enough), pytest.approx(level(max(enough))))
    assert share_delta([5], 0.05, 0.05, spanned) == (0, 0.05)


def test_together_gives_the_largest_segments_their_level() -> None:
    preds = draw()
    policy = Policy.fit(preds, RULE, by="hospital", together=True)
    assert [g.delta for g in policy.guarantees] == pytest.approx([1 - 0.95 ** (1 / 3)] * 3)
    assert "3 segments of hospital at once" in policy.guarantee.rule
    with pytest.raises(InputError, match="about guarantees"):
        Policy.fit(
            preds, partial(threshold_for_accuracy, accuracy=0.9), by="hospital", together=True
        )


def test_the_plan_says_what_each_segment_has() -> None:
    preds = draw()
    found = plan(Policy.fit(preds, RULE, by="hospital"), RULE, preds)
    assert [row["name"] for row in found["segments"]] == ["A", "B", "C"]
    assert [row["guarantee"]["feasible"] for row in found["segments"]] == [True, True, False]
    assert {row["name"] for row in found["deferral"]["hospital"]} == {"all", "A", "B", "C"}


def test_the_coverage_of_a_fixed_threshold_is_that_of_the_data() -> None:
    preds = draw()
    rule = partial(threshold_for_accuracy, accuracy=0.95)
    found = plan(Policy.fit(preds, rule), rule, preds)
    assert found["expected"]["coverage"]["value"] == found["coverage"]
    assert found["expected"]["coverage"]["high"] - found["expected"]["coverage"]["low"] < 0.06
    never = partial(guaranteed_threshold, risk=0.0001, delta=0.05)
    assert plan(Policy.fit(preds, never), never, preds)["expected"] is None
