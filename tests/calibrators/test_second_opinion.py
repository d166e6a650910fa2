"""A second opinion: its curve by another hand, when it is used, what it needs and refuses."""

from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import SecondOpinion, attach_opinion
from howsure.calibrators.second_opinion import solve_opinion

# Made by another implementation of the same text.
OWN = [0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.55, 0.85]
SECOND = [0.4, 0.8, 0.7, 0.95, 0.2, 0.99, 0.3, 0.9]
CORRECT = [0, 1, 1, 1, 0, 1, 0, 1]
B = [-0.40880805558698197, 0.4550680956193879, 1.256172934170914]
SCORE_OF_FIRST = 0.3243990679233186


def models(n=800, k=3, seed=0, copy=False):
    """Two models that see the truth through noise of their own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    own, other = (rng.normal(size=(n, k)) + 1.8 * np.eye(k)[y] for _ in range(2))
    if copy:
        other = own
    return Predictions.from_logits(own, y), Predictions.from_logits(other)


def test_the_curve_of_another_hand():
    p = np.array([OWN, SECOND]).T
    x = np.column_stack((np.ones(8), np.log(p) - np.log1p(-p)))
    assert solve_opinion(x, np.array(CORRECT), np.ones(8)) == pytest.approx(B, abs=1e-9)
    made = SecondOpinion(*B, used=True, gain=-0.1, gain_low=-0.2, gain_high=-0.05)
    own = Predictions.from_confidence(OWN, CORRECT, attributes={"second_opinion": SECOND})
    assert made(own).confidence[0] == pytest.approx(SCORE_OF_FIRST, abs=1e-9)


def test_a_second_model_is_used_where_it_helps():
    own, other = models()
    made = SecondOpinion.fit(own, other)
    assert made.used
    assert made.gain_low < made.gain < made.gain_high < 0
    new, said = models(3000, seed=1)
    after = made(new, said)
    assert (after.prediction == new.prediction).all()
    assert (after.correct == new.correct).all()
    assert hs.aurc(after) < hs.aurc(new)


def test_what_says_nothing_new_is_not_used():
    own, other = models(copy=True)
    made = SecondOpinion.fit(own, other)
    assert (made.used, made.columns, made.fitted.status) == (False, (), "not used")
    assert (made(own).confidence == own.confidence).all()  # and needs no other model
    rng = np.random.default_rng(3)
    noise = Predictions.from_logits(rng.normal(size=own.values.shape))
    assert not SecondOpinion.fit(own, noise).used


def test_chance_seldom_looks_like_a_second_opinion():
    used = 0
    for seed in range(40):
        own, _ = models(300, seed=seed)
        noise = np.random.default_rng(1000 + seed).normal(size=own.values.shape)
        used += SecondOpinion.fit(own, Predictions.from_logits(noise)).used
    assert used <= 3


def test_agreement_counts_where_only_the_top_label_is_known():
    own = Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]], class_names=["cat", "dog"])
    said = attach_opinion(own, Predictions.from_confidence([0.9, 0.8], prediction=[0, 0]))
    assert said.attributes["second_opinion"] == pytest.approx([0.9, 0.2])
    said = attach_opinion(own, Predictions.from_confidence([0.9, 0.8], prediction=["cat", "dog"]))
    assert said.attributes["second_opinion"] == pytest.approx([0.9, 0.8])
    nameless = Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]])
    with pytest.raises(InputError, match="are numbers and those of the other are names"):
        attach_opinion(nameless, Predictions.from_confidence([0.9, 0.8], prediction=["cat", "dog"]))


def test_groups_stay_together_and_weights_count():
    own, other = models()
    twice = np.repeat(np.arange(800), 2)
    single = SecondOpinion.fit(own, other)
    weighted = SecondOpinion.fit(
        Predictions.from_logits(own.values, own.labels, weight=np.full(800, 5.0)), other
    )
    assert weighted.second == pytest.approx(single.second)
    grouped = SecondOpinion.fit(
        Predictions.from_logits(own.values[twice], own.labels[twice], group=twice), other[twice]
    )
    assert grouped.gain_high - grouped.gain_low > 0.8 * (single.gain_high - single.gain_low)


def test_saved_and_loaded(tmp_path: Path):
    own, other = models()
    made = SecondOpinion.fit(own, other)
    hs.save(made, tmp_path / "opinion.json")
    assert hs.load(tmp_path / "opinion.json") == made


def test_a_threshold_comes_from_other_rows():
    own, other = models(2000)
    both = attach_opinion(own, other)
    made = SecondOpinion.fit(both[:1000])
    rule = lambda t: hs.policies.guaranteed_threshold(t, risk=0.1, delta=0.05)
    with pytest.raises(InputError, match="was fitted on these rows"):
        hs.policies.Policy.fit(both[:1000], rule, calibrator=made)
    policy = hs.policies.Policy.fit(both[1000:], rule, calibrator=made)
    assert 0 < policy.decide(both).coverage < 1
    with pytest.raises(InputError, match="as the column 'second_opinion'"):
        policy.decide(own)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda own, other: (own[:90], other[:90]), "needs 100 labelled rows"),
        (lambda own, other: (own[own.correct], other[own.correct]), "rows with 0 wrong"),
        (lambda own, other: (own, other[:-1]), "answers 799 samples, these are 800"),
        (lambda own, other: (own, None), "as the column 'second_opinion'"),
        (
            lambda own, other: (own, Predictions.from_logits(np.zeros((800, 4)))),
            "which of them each answer is cannot be told",
        ),
        (
            lambda own, other: (
                Predictions.from_logits(
                    own.values, own.labels, attributes={"second_opinion": np.full(800, 1.5)}
                ),
                None,
            ),
            r"second_opinion\[0\] is 1.5; a probability in \[0, 1\] is needed",
        ),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        SecondOpinion.fit(*change(*models()))


def test_other_samples_are_refused():
    own, other = models(200)
    a = Predictions.from_logits(own.values, own.labels, ids=np.arange(200))
    b = Predictions.from_logits(other.values, ids=np.arange(200)[::-1])
    with pytest.raises(InputError, match="is 0, and 199 of the other model"):
        SecondOpinion.fit(a, b)
