"""Losses, label ranks and the proper scores made of them, against one row at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import predictions
from howsure import Predictions, losses
from reference import answers


def ranked_by(preds: Predictions) -> np.ndarray:
    """What ranks the classes: logits of a single pass, else the (mean) probabilities."""
    return preds.values if preds.values.ndim == 2 else preds.probs


@given(predictions())
def test_losses_are_the_definition(preds: Predictions) -> None:
    p, y = preds.probs, preds.labels
    np.testing.assert_allclose(
        losses.brier(preds), [answers.brier(r, c) for r, c in zip(p, y, strict=True)], atol=1e-12
    )
    nll = losses.nll(preds)
    likely = p[np.arange(len(p)), y] > 1e-300
    expected = np.array([answers.nll(r, c) for r, c in zip(p, y, strict=True)])
    np.testing.assert_allclose(nll[likely], expected[likely], rtol=1e-9, atol=1e-12)
    if preds.kind == "logits":
        assert np.isfinite(nll).all()
    else:
        np.testing.assert_array_equal(nll[p[np.arange(len(p)), y] == 0], np.inf)
    assert hs.nll(preds) == pytest.approx(nll.mean(), rel=1e-12)
    assert hs.brier(preds) == pytest.approx(losses.brier(preds).mean(), rel=1e-12)


@given(predictions(), st.integers(1, 8))
def test_top_k_counts_ranks_with_ties(preds: Predictions, k: int) -> None:
    rank = [answers.label_rank(v, y) for v, y in zip(ranked_by(preds), preds.labels, strict=True)]
    np.testing.assert_array_equal(losses.top_k(k)(preds), [float(r >= k) for r in rank])
    assert hs.top_k_accuracy(preds, k) == pytest.approx(np.mean([r < k for r in rank]))


@given(predictions())
def test_prediction_is_the_smallest_argmax_and_top_1_is_accuracy(preds: Predictions) -> None:
    expected = [answers.argmax(v) for v in ranked_by(preds).tolist()]
    assert preds.prediction.tolist() == expected
    assert hs.accuracy(preds) == pytest.approx(np.mean(preds.prediction == preds.labels))
    assert hs.accuracy(preds) == pytest.approx(hs.top_k_accuracy(preds, 1))
    np.testing.assert_array_equal(losses.zero_one(preds), 1.0 - preds.correct)


def test_ties_between_classes_go_to_the_smaller_number() -> None:
    preds = Predictions.from_probs([[0.4, 0.4, 0.2]] * 3, [0, 1, 2])
    assert [losses.top_k(k)(preds).tolist() for k in (1, 2, 3)] == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_more_than_all_classes_is_always_right() -> None:
    assert hs.top_k_accuracy(Predictions.from_probs([[0.9, 0.1]], [1]), 5) == 1.0


def test_impossible_label_costs_infinity_and_eps_is_asked_for() -> None:
    preds = Predictions.from_probs([[1.0, 0.0]], [1])
    assert hs.nll(preds) == np.inf
    assert hs.nll(preds, eps=1e-15) == pytest.approx(-np.log(1e-15))


def test_losses_go_into_a_tally() -> None:
    preds = Predictions.from_logits([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]], [0, 0, 1])
    t = hs.tally(hs.scores.max_prob(preds), loss=losses.nll(preds))
    assert t.total / t.n == pytest.approx(hs.nll(preds))
    assert hs.risk_coverage(t).y[-1] == pytest.approx(hs.nll(preds))


def test_weights_of_predictions_weigh_means() -> None:
    preds = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0], weight=[3.0, 1.0])
    assert hs.accuracy(preds) == pytest.approx(0.75)
    assert hs.nll(preds) == pytest.approx(-(3 * np.log(0.9) + np.log(0.4)) / 4)


def test_losses_of_ordered_levels() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 50)
    labels = rng.integers(0, 4, 50)
    preds = Predictions.from_probs(probs, labels)
    off = np.abs(probs.argmax(axis=1) - labels)
    assert losses.level_distance(preds) == pytest.approx(off / 3)
    assert losses.off_by_more(1)(preds).tolist() == (off > 1).astype(float).tolist()
    assert losses.off_by_more(0)(preds).tolist() == losses.zero_one(preds).tolist()
    score = [
        sum((p[: k + 1].sum() - (y <= k)) ** 2 for k in range(4)) / 3
        for p, y in zip(probs, labels, strict=True)
    ]
    assert losses.ranked_probability(preds) == pytest.approx(np.array(score))
    two = Predictions.from_probs(probs[:, :2] / probs[:, :2].sum(axis=1, keepdims=True), labels % 2)
    assert hs.ranked_probability_score(two) == pytest.approx(hs.brier(two) / 2)
