"""Numbers that people of the clinic and of operations ask for, worked by hand."""

import math

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions

# P(ill) of six patients; the ill ones have 0.9, 0.6 and 0.2.
PREDS = Predictions.from_probs(
    [0.9, 0.7, 0.6, 0.4, 0.2, 0.1], [1, 0, 1, 0, 1, 0], class_names=["well", "ill"]
)


def test_auc_of_the_class_counts_pairs() -> None:
    assert hs.class_auroc(PREDS) == pytest.approx(
        6 / 9
    )  # 3 + 2 + 1 of nine pairs are in the right order
    assert hs.class_auroc(PREDS, positive="well") == pytest.approx(6 / 9)


def test_calls_at_a_threshold_include_the_threshold() -> None:
    found = [getattr(hs, name)(PREDS, 0.6) for name in ("sensitivity", "specificity", "ppv", "npv")]
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert hs.sensitivity(PREDS, 0.6000001) == pytest.approx(1 / 3)


def test_the_other_class_swaps_the_roles() -> None:
    assert hs.sensitivity(PREDS, 0.5, positive="well") == hs.specificity(PREDS, 0.5 + 1e-9)


@pytest.mark.parametrize(("name", "threshold"), [("ppv", 1.0), ("npv", 0.0)])
def test_an_empty_denominator_is_undefined(name: str, threshold: float) -> None:
    assert math.isnan(getattr(hs, name)(PREDS, threshold))


def test_weights_count_cases() -> None:
    twice = Predictions.from_probs([0.9, 0.2], [1, 1], weight=[3.0, 1.0])
    assert hs.sensitivity(twice, 0.5) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: hs.class_auroc(PREDS, positive="sick"),
            "no class is called 'sick'; they are well, ill",
        ),
        (
            lambda: hs.class_auroc(PREDS, positive=2),
            "there is no class 2; classes are numbered 0 to 1",
        ),
        (lambda: hs.sensitivity(PREDS, 1.5), "threshold is 1.5"),
        (
            lambda: hs.class_auroc(Predictions.from_probs([[0.2, 0.3, 0.5]], [0])),
            "3 classes; say which",
        ),
        (
            lambda: hs.class_auroc(Predictions.from_confidence([0.9], [1])),
            "only the top label is known",
        ),
        (lambda: hs.fpr_at_tpr(hs.tally([0.9], correct=[1]), 2), "tpr is 2"),
        (lambda: hs.oracle_accuracy(hs.tally([0.9], correct=[1]), -1), "budget is -1"),
    ],
)
def test_mistakes_are_named(call, words) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_named_class_of_three_stands_against_the_rest() -> None:
    p = Predictions.from_probs(
        [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [0, 1, 2], class_names=list("abc")
    )
    assert hs.class_auroc(p, positive="c") == 1.0


def test_false_positives_are_counted_at_tie_closed_thresholds() -> None:
    t = hs.tally([0.9, 0.8, 0.8, 0.7], correct=[1, 1, 0, 0])
    assert hs.fpr_at_tpr(t, 0.95) == 0.5
    assert math.isnan(hs.fpr_at_tpr(hs.tally([0.9], correct=[1])))


def test_the_expert_takes_ties_in_expectation() -> None:
    t = hs.tally([0.5, 0.5, 0.9, 0.9], correct=[0, 1, 1, 1])
    assert hs.oracle_accuracy(t, 0.25) == pytest.approx(0.75 + 0.5 / 4)


def test_brier_parts_of_three_classes_add_up_to_the_brier_score() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 400)
    preds = Predictions.from_probs(p, rng.integers(0, 3, 400))
    reliability, resolution, uncertainty, within = hs.brier_decomposition(preds)
    assert reliability - resolution + uncertainty + within == pytest.approx(hs.brier(preds))


def test_skill_of_the_shares_is_zero() -> None:
    y = np.array([0, 0, 1, 2])
    shares = Predictions.from_probs(np.tile([0.5, 0.25, 0.25], (4, 1)), y)
    assert hs.skill(hs.nll, shares) == pytest.approx(0.0)
    assert math.isnan(hs.skill(hs.nll, Predictions.from_probs([[1.0, 0.0]], [0])))


def test_gaps_count_by_their_square() -> None:
    t = hs.tally([0.9, 0.9, 0.6, 0.6], correct=[1, 1, 1, 0])
    assert hs.rms_calibration_error(t, bins=hs.unique()) == pytest.approx(0.1)
