"""Graded answers: losses in [0, 1] stand for wrong in every calibration number."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Outcomes, Predictions, curves, metrics, tally
from howsure.binning import equal_range

RNG = np.random.default_rng(0)
CLAIM = RNG.beta(4, 1.5, 400)
GRADE = RNG.binomial(5, CLAIM) / 5
GRADED = Outcomes(CLAIM, loss=1 - GRADE)


def test_the_accuracy_of_a_bin_is_one_minus_its_mean_loss() -> None:
    edges = np.ceil(CLAIM * 15).astype(int)
    ece = over = 0.0
    for j in np.unique(edges):
        rows = edges == j
        gap = (CLAIM[rows] - GRADE[rows]).sum() / 400
        ece += abs(gap)
        over += max(0.0, gap)
    t = GRADED.tally()
    assert metrics.ece(t) == pytest.approx(ece)
    assert metrics.over_confidence(t) == pytest.approx(over)
    assert metrics.signed_calibration_error(t) == pytest.approx(CLAIM.mean() - GRADE.mean())
    assert metrics.correctness_brier(t) == pytest.approx(((CLAIM - GRADE) ** 2).mean())
    cross = -(GRADE * np.log(CLAIM) + (1 - GRADE) * np.log1p(-CLAIM)).mean()
    assert metrics.correctness_nll(t) == pytest.approx(cross)
    assert metrics.accuracy(t) == pytest.approx(GRADE.mean())


def test_the_variance_of_a_bin_is_that_of_its_losses() -> None:
    claim = np.array([0.9, 0.92, 0.94, 0.1, 0.12])
    grade = np.array([0.5, 1.0, 0.75, 0.25, 0.25])
    t = tally(claim, loss=1 - grade)
    # The second bin has equal grades: (sum of losses + ½)/(n + 1) as a proportion.
    p = (1.5 + 0.5) / 3
    noise = np.array([np.var([0.5, 1.0, 0.75], ddof=1) / 3, p * (1 - p) / 2])
    gap = np.array([claim[:3].mean() - 0.75, claim[3:].mean() - 0.25])
    square = (np.array([3, 2]) / 5 * (gap**2 - noise)).sum()
    bins = equal_range(2)
    assert metrics.debiased_ece(t, bins) == pytest.approx(np.sqrt(max(0.0, square)))


def test_parts_of_the_brier_score_add_up() -> None:
    c = curves.corp(GRADED.tally())
    assert c.score == pytest.approx(((CLAIM - GRADE) ** 2).mean())
    assert c.miscalibration - c.discrimination + c.uncertainty == pytest.approx(c.score)
    assert c.uncertainty == pytest.approx(GRADE.var())
    # Claims do not say how grades vary.
    assert c.curve.low is None
    assert curves.reliability(GRADED.tally(), consistency=True).low is None


@pytest.mark.parametrize(
    "name",
    ["accuracy", "ece", "aece", "debiased_ece", "signed_calibration_error", "correctness_nll"],
)
def test_whole_grades_are_right_and_wrong(name: str) -> None:
    right = np.random.default_rng(3).random(400) < CLAIM
    f = getattr(metrics, name)
    plain, graded = Outcomes(CLAIM, correct=right), Outcomes(CLAIM, loss=1.0 - right)
    if name == "debiased_ece":
        # Bins of equal answers have a variance there, so the bins here are wide.
        assert f(graded.tally(), equal_range(2)) == pytest.approx(f(plain.tally(), equal_range(2)))
    else:
        assert f(graded.tally()) == pytest.approx(f(plain.tally()))
    low, high = hs.interval(f, graded)
    other = hs.interval(f, plain)
    assert low == pytest.approx(other[0], abs=0.02)
    assert high == pytest.approx(other[1], abs=0.02)


@pytest.mark.parametrize(
    "name",
    ["accuracy", "ece", "debiased_ece", "signed_calibration_error", "correctness_brier"],
)
def test_limits_hold_the_truth(name: str) -> None:
    """A million graded answers are the truth, of which 150 are drawn 200 times."""
    rng = np.random.default_rng(5)
    claim = rng.beta(4, 1.5, 1_000_000)
    grade = rng.beta(7 * claim + 0.1, 8 * (1 - claim) + 0.6)
    f = getattr(metrics, name)
    truth = f(tally(claim, loss=1 - grade))
    held = 0
    for _ in range(200):
        rows = rng.integers(0, len(claim), 150)
        low, high = hs.interval(f, Outcomes(claim[rows], loss=1 - grade[rows]))
        held += low <= truth <= high
    assert held >= 181  # 95 % of 200 is this low once in 1,000


def test_a_grade_that_was_not_seen_is_allowed_for() -> None:
    low, high = hs.interval(metrics.accuracy, Outcomes(CLAIM[:60], loss=np.zeros(60)))
    assert low < 0.96
    assert high == 1


def test_differences_of_graded_answers() -> None:
    worse = Outcomes(CLAIM, loss=np.minimum(1, 1 - GRADE + 0.1 * RNG.random(400)))
    value, low, high = hs.paired_difference(metrics.accuracy, GRADED, worse)
    assert 0 < low < value < high
    value, low, high = hs.paired_difference(metrics.correctness_brier, GRADED, worse)
    assert low < value < high


def test_predictions_with_grades() -> None:
    preds = Predictions.from_confidence(CLAIM, loss=1 - GRADE)
    assert hs.ece(preds) == metrics.ece(GRADED.tally())
    assert hs.accuracy(preds) == pytest.approx(GRADE.mean())


def test_what_is_no_grade_is_refused() -> None:
    with pytest.raises(InputError, match="a loss of 2"):
        metrics.ece(tally([0.9, 0.8], loss=[0.5, 2.0]))
    with pytest.raises(InputError, match="a loss of -1"):
        metrics.accuracy(tally([0.9, 0.8], loss=[0.5, -1.0]))
    with pytest.raises(InputError, match="calibration_test needs right or wrong"):
        hs.calibration_test(GRADED)
    with pytest.raises(InputError, match="auroc needs right or wrong"):
        metrics.auroc(GRADED.tally())
