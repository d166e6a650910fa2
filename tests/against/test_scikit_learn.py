"""The same numbers as scikit-learn, to 1e-10, and why where they differ."""

from typing import Any

import numpy as np
import pytest

import howsure as hs

sklearn = pytest.importorskip("sklearn.metrics")
close = {"rel": 1e-10, "abs": 1e-10}
KINDS = ["continuous", "three decimals", "five values", "signed"]


def data(kind: str, n: int = 3000) -> tuple[Any, Any]:
    rng = np.random.default_rng(KINDS.index(kind))
    score = {
        "continuous": lambda: rng.random(n),
        "three decimals": lambda: rng.random(n).round(3),
        "five values": lambda: rng.integers(0, 5, n) / 4,
        "signed": lambda: rng.normal(size=n).round(2),
    }[kind]()
    return score, rng.random(n) < 1 / (1 + np.exp(-2 * score))


@pytest.mark.parametrize("kind", KINDS)
def test_auroc(kind: str) -> None:
    score, correct = data(kind)
    t = hs.tally(score, correct=correct)
    assert hs.auroc(t) == pytest.approx(sklearn.roc_auc_score(correct, score), **close)
    assert hs.auroc(t) == pytest.approx(sklearn.roc_auc_score(~correct, -score), **close)


@pytest.mark.parametrize("kind", KINDS)
def test_average_precision(kind: str) -> None:
    score, correct = data(kind)
    t = hs.tally(score, correct=correct)
    assert hs.aupr(t, "success") == pytest.approx(
        sklearn.average_precision_score(correct, score), **close
    )
    assert hs.aupr(t, "error") == pytest.approx(
        sklearn.average_precision_score(~correct, -score), **close
    )


@pytest.mark.parametrize("kind", KINDS)
def test_trapezoid_of_the_precision_recall_curve(kind: str) -> None:
    score, correct = data(kind)
    for positive, hit, rank in (("success", correct, score), ("error", ~correct, -score)):
        precision, recall, _ = sklearn.precision_recall_curve(hit, rank)
        expected = sklearn.auc(recall, precision)
        assert hs.aupr(hs.tally(score, correct=correct), positive, "trapezoid") == pytest.approx(
            expected, **close
        )


@pytest.mark.parametrize("kind", KINDS)
def test_weights(kind: str) -> None:
    score, correct = data(kind)
    weight = np.random.default_rng(9).random(len(score))
    t = hs.tally(score, correct=correct, weight=weight)
    assert hs.auroc(t) == pytest.approx(
        sklearn.roc_auc_score(correct, score, sample_weight=weight), **close
    )
    expected = sklearn.average_precision_score(correct, score, sample_weight=weight)
    assert hs.aupr(t, "success") == pytest.approx(expected, **close)


def test_roc_points() -> None:
    score, correct = data("five values")
    fpr, tpr, _ = sklearn.roc_curve(correct, score, drop_intermediate=False)
    c = hs.roc(hs.tally(score, correct=correct), "success")
    np.testing.assert_allclose(c.x, fpr, atol=1e-12)
    np.testing.assert_allclose(c.y, tpr, atol=1e-12)


def test_proper_scores_of_the_confidence() -> None:
    score, correct = data("three decimals")
    score = score.clip(0.001, 0.999)
    t = hs.tally(score, correct=correct)
    assert hs.correctness_brier(t) == pytest.approx(
        sklearn.brier_score_loss(correct, score), **close
    )
    assert hs.correctness_nll(t) == pytest.approx(sklearn.log_loss(correct, score), **close)


def test_log_loss_and_brier_of_many_classes() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(500, 7)) * 3, rng.integers(0, 7, 500)
    preds = hs.Predictions.from_logits(z, y)
    assert hs.nll(preds) == pytest.approx(
        sklearn.log_loss(y, preds.probs, labels=range(7)), **close
    )
    one_hot = np.eye(7)[y]
    expected = np.mean(np.sum((preds.probs - one_hot) ** 2, axis=1))
    assert hs.brier(preds) == pytest.approx(expected, **close)


def test_top_k() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(500, 7)), rng.integers(0, 7, 500)
    expected = sklearn.top_k_accuracy_score(y, z, k=3, labels=range(7))
    assert hs.top_k_accuracy(hs.Predictions.from_logits(z, y), 3) == pytest.approx(expected)


def test_top_k_differs_on_ties_between_classes() -> None:
    """scikit-learn gives ties to the larger class number; argmax, and so we, give them to the
    smaller.
    """
    z, y = np.zeros((3, 3)), np.array([0, 1, 2])
    ours = hs.losses.top_k(1)(hs.Predictions.from_logits(z, y))
    theirs = [sklearn.top_k_accuracy_score([c], z[:1], k=1, labels=range(3)) for c in y]
    assert ours.tolist() == [0, 1, 1]
    assert theirs == [0, 0, 1]


def test_log_loss_differs_where_p_is_0() -> None:
    """scikit-learn clips at the resolution of the floats; we say that the answer was impossible."""
    p, y = np.array([[1.0, 0.0], [0.5, 0.5]]), [1, 0]
    assert hs.nll(hs.Predictions.from_probs(p, y)) == np.inf
    assert np.isfinite(sklearn.log_loss(y, p))


def test_calibration_curve() -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    score, correct = data("continuous")
    accuracy, confidence = calibration.calibration_curve(correct, score, n_bins=15)
    c = hs.reliability(hs.tally(score, correct=correct), hs.equal_range(15))
    np.testing.assert_allclose(c.x, confidence)
    np.testing.assert_allclose(c.y, accuracy)
