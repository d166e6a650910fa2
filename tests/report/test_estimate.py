"""estimate(): what it says of data whose labels are hidden, what it refuses, what it admits."""

import numpy as np
import pytest

from howsure import InputError, Predictions, estimate
from howsure.calibrators import Temperature
from howsure.policies import Policy
from two_classes import drawn, harder, without


def test_equal_scores_give_the_reference_accuracy():
    past = Predictions.from_confidence(np.full(400, 0.7), np.arange(400) % 5 > 0)
    found = estimate(past, Predictions.from_confidence(np.full(100, 0.7)))
    assert found.accuracy == pytest.approx(0.8, abs=1e-12)
    # 80 of 100 with the noise of both: sqrt(.16/100 + .16/400) = .0447
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.0447, abs=0.01)


def test_two_scores_are_weighted_by_the_new_shares():
    score = np.repeat([0.6, 0.9], 500)
    right = np.concatenate((np.arange(500) % 2 == 0, np.arange(500) % 10 != 0))  # .5 and .9
    new = Predictions.from_confidence(np.repeat([0.6, 0.9], [300, 100]))
    assert estimate(Predictions.from_confidence(score, right), new).accuracy == pytest.approx(
        0.6, abs=1e-3
    )  # folds differ a little


@pytest.mark.parametrize(
    ("share", "hard"), [((0.5, 0.5), False), ((0.9, 0.1), False), ((0.5, 0.5), True)]
)
def test_the_truth_lies_within_the_limits(share, hard):
    held = 0
    for seed in range(40):
        past, later = drawn(2000, seed), drawn(1000, seed + 1000, share=share)
        later = harder(later, seed) if hard else later
        found = estimate(past, without(later))
        held += found.low <= later.correct.mean() <= found.high
    assert held >= 35  # 5 misses of 40 have probability .05 at 95 %


def test_changed_class_shares_are_found():
    found = estimate(drawn(4000, 1), without(drawn(2000, 2, share=(0.8, 0.2))))
    assert found.shares["0"] / found.shares["1"] == pytest.approx(4.0, rel=0.25)


def test_a_row_that_occurs_in_groups_counts_once():
    past = drawn(300, 3)
    many = Predictions.from_logits(
        np.repeat(past.values, 10, axis=0),
        np.repeat(past.labels, 10),
        group=np.repeat(np.arange(300), 10),
    )
    later = without(drawn(5000, 4))
    alone, grouped = (estimate(p, later) for p in (past, many))
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.25)
    naive = estimate(Predictions.from_logits(many.values, many.labels), later)
    assert grouped.high - grouped.low > 1.5 * (naive.high - naive.low)


def test_equal_weights_are_no_weights():
    past, later = drawn(500, 5), without(drawn(400, 6))
    weighted = Predictions.from_logits(past.values, past.labels, weight=np.full(500, 7.0))
    a, b = estimate(past, later), estimate(weighted, later)
    assert a.accuracy == pytest.approx(b.accuracy, abs=1e-12)
    assert (a.low, a.high) == (b.low, b.high)


def test_scores_beyond_the_reference_widen_then_refuse():
    past = Predictions.from_confidence(np.linspace(0.5, 0.9, 1000), np.arange(1000) % 10 > 0)
    inside = np.linspace(0.5, 0.9, 800)
    some = estimate(past, Predictions.from_confidence(np.concatenate((inside, np.full(200, 0.1)))))
    none = estimate(past, Predictions.from_confidence(inside))
    assert some.outside == pytest.approx(0.2)
    assert some.high - some.low > none.high - none.low + 0.15
    assert "never showed" in some.notes[0]
    refused = estimate(past, Predictions.from_confidence(np.full(100, 0.1)))
    assert np.isnan(refused.accuracy)
    assert (refused.low, refused.high) == (0.0, 1.0)
    assert "no estimate" in refused.notes[0]


def test_an_answer_that_the_reference_never_gave_is_outside():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([5, 1, 0.01], 500)
    past = Predictions.from_probs(
        p[p.argmax(1) < 2], np.zeros(int((p.argmax(1) < 2).sum()), dtype=int)
    )
    new = Predictions.from_probs(np.tile([0.1, 0.2, 0.7], (50, 1)))
    assert estimate(past, new).outside == 1.0


def test_policy_coverage_and_risk():
    past, later = drawn(4000, 7), drawn(3000, 8)
    policy = Policy("max_prob", 0.9)
    found = estimate(past, without(later), policy=policy)
    made = policy.decide(later)
    assert found.coverage == pytest.approx(made.coverage)
    risk = 1 - later.correct[made.accept].mean()
    assert found.risk_low <= risk <= found.risk_high
    assert found.risk < 1 - found.accuracy


def test_labels_of_a_group_that_share_their_fate_widen_the_limits_of_new_data():
    """Ten rows of a group with one fate are worth one row: ten times the variance."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(300), 10)
    fate = rng.random(300)[group]
    claim = rng.uniform(0.6, 0.95, 3000)
    alike = Predictions.from_confidence(claim, fate < claim, group=group)
    apart = Predictions.from_confidence(claim, rng.random(3000) < claim, group=group)
    later = Predictions.from_confidence(claim[:1000], group=group[:1000])
    shared, own = (estimate(past, later) for past in (alike, apart))
    variance = (claim[:1000] * (1 - claim[:1000])).mean() / 1000  # of independent labels
    assert own.error < 1.3 * np.sqrt(variance + variance / 3)
    assert shared.error**2 == pytest.approx(10 * (variance + variance / 3), rel=0.35)


def test_parts_by_class_and_by_group():
    past, later = drawn(3000, 9), drawn(2000, 10)
    half = np.where(np.arange(2000) < 1990, "a", "b")
    found = estimate(past, without(later), by=half, reference_by=np.full(3000, "a"))
    assert [part.name for part in found.classes] == ["0", "1"]
    assert {part.name: (part.n, part.borrowed) for part in found.groups} == {
        "a": (1990, False),
        "b": (10, True),
    }


def test_it_says_what_it_cannot_see():
    found = estimate(drawn(2000, 11), without(drawn(1000, 12)))
    assert "three times" in found.cannot_see[0]
    assert f"{100 * (1 - 3 * (1 - found.accuracy)):.1f} %" in found.cannot_see[0]


BAD = {
    "no labels": (without(drawn(100, 0)), without(drawn(100, 1)), "has no labels"),
    "no right or wrong": (
        Predictions.from_confidence([0.5] * 50), Predictions.from_confidence([0.5]), "does not say which answers",
    ),
    "other kind": (drawn(100, 0), Predictions.from_confidence([0.5]), "the reference holds logits, the new data conf"),
    "other k": (drawn(100, 0), Predictions.from_logits([[1.0, 0.0, 0.0]]), "has 2 classes, the new data 3"),
    "few": (drawn(10, 0), without(drawn(10, 1)), "at least 30"),
}  # fmt: skip


@pytest.mark.parametrize(("reference", "new", "words"), BAD.values(), ids=BAD.keys())
def test_refused(reference, new, words):
    with pytest.raises(InputError, match=words):
        estimate(reference, new)


def test_other_class_names_are_refused():
    past, later = drawn(100, 0), drawn(100, 1)
    a = Predictions.from_logits(past.values, past.labels, class_names=["cat", "dog"])
    b = Predictions.from_logits(later.values, class_names=["dog", "cat"])
    with pytest.raises(InputError, match="class 0 is 'cat' in the reference and 'dog'"):
        estimate(a, b)


def test_policy_for_other_classes_is_refused():
    with pytest.raises(InputError, match="made for 3 classes"):
        estimate(drawn(100, 0), without(drawn(100, 1)), policy=Policy("max_prob", 0.5, k=3))


def test_policy_calibrator_is_applied_to_both():
    past, later = drawn(2000, 13), drawn(1000, 14)
    found = estimate(past, without(later), policy=Policy("max_prob", 0.8, Temperature(2.0)))
    assert found.coverage == pytest.approx((Temperature(2.0)(later).confidence >= 0.8).mean())
