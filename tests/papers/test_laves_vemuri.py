"""The claims of Laves et al. 2019 and Vemuri 2020 that a number can settle."""

import numpy as np
import pytest

import howsure as hs


def test_uce_and_ece_are_different_goals() -> None:
    preds = hs.Predictions.from_probs([[0.9, 0.1]] * 10, [0] * 9 + [1])
    t = hs.tally(preds.confidence, correct=preds.correct)
    assert hs.ece(t) == pytest.approx(0, abs=1e-12)
    assert round(hs.uce(preds), 3) == 0.369


def test_entropy_0_counts() -> None:
    """A sure and wrong one-hot answer costs 1; the released code drops it."""
    assert hs.uce(hs.Predictions.from_probs([[1.0, 0.0]], [1])) == 1.0


def test_entropy_of_many_classes_stays_in_the_last_bin() -> None:
    p = np.full((4, 1000), 1 / 1000, dtype=np.float32)
    preds = hs.Predictions.from_probs(p, [0, 1, 2, 3])
    assert hs.uncertainty_reliability(preds).weight.tolist() == [4]


def test_scaling_can_change_the_answer_of_averaged_passes() -> None:
    """ "Scaling does not change the maximum" holds for one pass, not for the mean over passes."""
    z = np.array([[[4.0, 0.0, 0.0]], [[0.0, 1.5, 0.0]], [[0.0, 1.5, 0.0]]])
    hot, cold = (
        hs.Predictions.from_samples(z / temperature).prediction[0] for temperature in (0.2, 10.0)
    )
    assert hot != cold


def test_uncertainty_reliability_shows_the_gaps_of_uce() -> None:
    rng = np.random.default_rng(0)
    preds = hs.Predictions.from_logits(rng.normal(size=(500, 4)) * 2, rng.integers(0, 4, 500))
    c = hs.uncertainty_reliability(preds)
    assert np.dot(c.weight, abs(c.x - c.y)) / 500 == pytest.approx(hs.uce(preds))


def test_ideal_diagram_has_the_optimal_area() -> None:
    """Joining the two thresholds of r = c by a line would give e²/2; the expected variant gives the
    optimum.
    """
    correct = np.arange(100) >= 20
    t = hs.tally(correct.astype(float), correct=correct)
    assert hs.aac(t) == pytest.approx(hs.optimal_aurc(t))
    assert abs(hs.aac(t) - 0.2**2 / 2) > 1e-3


def test_ideal_diagram() -> None:
    c = hs.threshold_diagram(hs.tally([0.1, 0.2, 0.3, 0.4], correct=[1, 1, 1, 0]), ideal=True)
    np.testing.assert_allclose(c.x, [0.25, 0.0], atol=1e-15)
    np.testing.assert_allclose(c.y, [1.0, 0.75])


def test_deferring_is_the_mirror_of_coverage() -> None:
    t = hs.tally([3, 2, 1], correct=[1, 0, 1])
    rc, diagram = hs.risk_coverage(t), hs.threshold_diagram(t)
    np.testing.assert_allclose(diagram.x, 1 - rc.x)
    np.testing.assert_allclose(diagram.y, 1 - rc.y)
