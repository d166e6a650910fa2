"""Scores against one row of probabilities at a time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import howsure as hs
from generators import predictions
from howsure import Predictions, scores
from howsure.predictions import columns
from reference import answers

close = {"rtol": 1e-10, "atol": 1e-10}
KS = [1, 2, 5, 9]
OF_SAMPLES = (
    "disagreement",
    "expected_entropy",
    "mutual_information",
    "predictive_entropy",
    "variance",
    "variation_ratio",
)


@given(predictions())
def test_scores_of_the_probabilities(preds: Predictions) -> None:
    p = preds.probs
    np.testing.assert_allclose(scores.max_prob(preds), [max(row) for row in p], **close)
    np.testing.assert_allclose(
        scores.neg_entropy(preds), [-answers.entropy(row) for row in p], **close
    )
    np.testing.assert_allclose(
        scores.entropy(preds), [1 - answers.normalised_entropy(row) for row in p], **close
    )
    np.testing.assert_allclose(scores.margin(preds), [answers.margin(row) for row in p], **close)
    for k in KS:
        np.testing.assert_allclose(
            scores.top_k_mass(preds, k), [answers.top_mass(row, k) for row in p], **close
        )


@given(predictions())
def test_probabilities_are_the_softmax_or_the_mean(preds: Predictions) -> None:
    members = preds.values if preds.values.ndim == 3 else preds.values[None]
    rows = [
        [answers.softmax(z) if preds.kind == "logits" else z for z in m]
        for m in members.astype(np.float64)
    ]
    expected = [answers.mean([m[i] for m in rows]) for i in range(preds.n)]
    np.testing.assert_allclose(preds.probs, expected, rtol=1e-12, atol=1e-14)


@given(predictions())
def test_scores_of_samples(preds: Predictions) -> None:
    if preds.values.ndim < 3:
        return
    members = [
        [
            answers.softmax(z) if preds.kind == "logits" else z
            for z in preds.values[:, i].astype(np.float64)
        ]
        for i in range(preds.n)
    ]
    total = [answers.entropy(answers.mean(m)) for m in members]
    inside = [sum(answers.entropy(q) for q in m) / len(m) for m in members]
    spread = [answers.variances(m) for m in members]
    np.testing.assert_allclose(scores.predictive_entropy(preds), np.negative(total), **close)
    np.testing.assert_allclose(scores.expected_entropy(preds), np.negative(inside), **close)
    information = np.maximum(0, np.subtract(total, inside))
    np.testing.assert_allclose(scores.mutual_information(preds), -information, **close)
    np.testing.assert_allclose(scores.variance(preds), -np.sum(spread, axis=1), **close)
    np.testing.assert_allclose(
        scores.variance(preds, over="mean"), -np.mean(spread, axis=1), **close
    )
    predicted = [s[j] for s, j in zip(spread, preds.prediction, strict=True)]
    np.testing.assert_allclose(
        scores.variance(preds, over="predicted"), np.negative(predicted), **close
    )


@given(predictions())
def test_scores_of_logits(preds: Predictions) -> None:
    if preds.kind != "logits" or preds.values.ndim != 2:
        return
    z = preds.values.astype(np.float64)
    np.testing.assert_allclose(scores.max_logit(preds), [max(row) for row in z], **close)
    np.testing.assert_allclose(
        scores.energy(preds), [answers.log_sum_exp(row) for row in z], **close
    )
    log_top = [max(row) - answers.log_sum_exp(row) for row in z]
    np.testing.assert_allclose(scores.log_max_prob(preds), log_top, atol=1e-9)


class TestHugeLogits:
    """Logits of ±1e4: finite, and nothing warns."""

    preds = Predictions.from_logits(
        [[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, -1e4]], [1, 0, 1]
    )

    @pytest.mark.parametrize(
        "name",
        ["max_prob", "log_max_prob", "entropy", "neg_entropy", "margin", "energy", "max_logit"],
    )
    def test_score_is_finite(self, name: str) -> None:
        assert np.isfinite(getattr(scores, name)(self.preds)).all()

    def test_values(self) -> None:
        np.testing.assert_allclose(scores.max_prob(self.preds), [1, 1 / 3, 1 / 2])
        np.testing.assert_allclose(
            scores.entropy(self.preds), [1, 0, 1 - np.log(2) / np.log(3)], atol=1e-15
        )
        np.testing.assert_allclose(hs.losses.nll(self.preds), [2e4, np.log(3), np.log(2)])
        np.testing.assert_allclose(hs.losses.brier(self.preds), [2, 2 / 3, 1 / 2])

    def test_samples(self) -> None:
        z = np.array([[[1e4, -1e4]], [[-1e4, 1e4]]])
        preds = Predictions.from_samples(z, [0])
        assert hs.nll(preds) == pytest.approx(np.log(2))
        assert scores.mutual_information(preds) == pytest.approx(-np.log(2))
        assert hs.nll(Predictions.from_samples(z[:1], [1])) == pytest.approx(2e4)


def test_log_of_the_top_probability_keeps_apart_what_rounds_to_1() -> None:
    preds = Predictions.from_logits([[50.0, 0.0], [60.0, 0.0]])
    assert scores.max_prob(preds).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(scores.log_max_prob(preds), [-np.exp(-50), -np.exp(-60)], rtol=1e-12)


def test_entropy_is_never_negative_and_normalised_never_above_1() -> None:
    k = 1000
    uniform = Predictions.from_probs(np.full((3, k), np.float32(1 / k)))
    assert (scores.entropy(uniform) >= 0).all()
    assert scores.entropy(uniform) == pytest.approx(0, abs=1e-6)
    one_hot = Predictions.from_probs(np.eye(4))
    assert scores.neg_entropy(one_hot).tolist() == [0.0] * 4
    assert not np.signbit(scores.neg_entropy(one_hot)).any()


def test_one_pass_has_no_spread() -> None:
    preds = Predictions.from_samples(np.random.default_rng(0).normal(size=(1, 5, 3)))
    for name in ("variance", "mutual_information", "variation_ratio", "disagreement"):
        np.testing.assert_allclose(getattr(scores, name)(preds), 0, atol=1e-15)


@pytest.mark.parametrize("name", scores.__all__)
def test_higher_means_trust_more(name: str) -> None:
    """A sure row (all members agree) against an unsure one (members disagree)."""
    z = np.array([[[9.0, 0.0, 0.0], [1.0, 0.9, 0.8]], [[9.0, 0.0, 0.0], [0.8, 0.9, 1.0]]])
    preds = Predictions.from_samples(z) if name in OF_SAMPLES else Predictions.from_logits(z[0])
    sure, unsure = getattr(scores, name)(preds, **({"k": 1} if name == "top_k_mass" else {}))
    assert sure > unsure


def test_chunks_do_not_matter(monkeypatch: Any) -> None:
    z, y = np.random.default_rng(0).normal(size=(257, 7)), np.arange(257) % 7
    whole = {
        name: getattr(scores, name)(Predictions.from_logits(z, y))
        for name in ("max_prob", "entropy", "top_k_mass")
    }
    chunks = columns.iterate_chunks
    monkeypatch.setattr(columns, "iterate_chunks", lambda n, width, *_: chunks(n, width, 50))
    for name, expected in whole.items():
        np.testing.assert_array_equal(
            getattr(scores, name)(Predictions.from_logits(z, y)), expected
        )
