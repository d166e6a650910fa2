"""What everybody types: a metric of scores and outcomes, of predictions, of probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs

RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet([1.0, 0.6, 0.4], 300)
LABELS = np.array([RNG.choice(3, p=row) for row in PROBS])
PREDS = hs.Predictions.from_probs(PROBS, LABELS)
CONFIDENCE, CORRECT = PREDS.confidence, PREDS.correct
TALLY = hs.tally(CONFIDENCE, correct=CORRECT)
OF_TALLIES = [
    hs.aurc, hs.e_aurc, hs.augrc, hs.auroc, hs.aupr, hs.ece, hs.mce, hs.aece, hs.smooth_ece,
    hs.correctness_brier, hs.signed_calibration_error, hs.accuracy,
]  # fmt: skip


@pytest.mark.parametrize("metric", OF_TALLIES, ids=lambda m: m.__name__)
def test_scores_and_outcomes_mean_their_tally(metric) -> None:
    value = metric(TALLY)
    assert metric(CONFIDENCE, CORRECT) == value
    assert metric(CONFIDENCE.tolist(), correct=CORRECT.tolist()) == value
    assert metric(PREDS) == pytest.approx(value, abs=1e-15)
    assert metric(hs.Outcomes(CONFIDENCE, correct=CORRECT)) == value


def test_options_follow() -> None:
    assert hs.ece(CONFIDENCE, CORRECT, bins=10) == hs.ece(TALLY, bins=hs.equal_range(10))
    assert hs.coverage_at_risk(CONFIDENCE, CORRECT, 0.2) == hs.coverage_at_risk(TALLY, 0.2)
    assert hs.coverage_at_risk(CONFIDENCE, CORRECT, risk=0.2) == hs.coverage_at_risk(TALLY, 0.2)
    assert hs.risk_at_coverage(PREDS, 0.5) == hs.risk_at_coverage(TALLY, 0.5)


def test_weights_count() -> None:
    weight = RNG.integers(1, 4, len(CONFIDENCE))
    expected = hs.aurc(hs.tally(CONFIDENCE, correct=CORRECT, weight=weight))
    assert hs.aurc(CONFIDENCE, CORRECT, weight=weight) == expected
    weighted = hs.Predictions.from_probs(PROBS, LABELS, weight=weight)
    assert hs.aurc(weighted) == pytest.approx(expected, abs=1e-15)


def test_probabilities_and_logits_by_name() -> None:
    assert hs.nll(probs=PROBS, labels=LABELS) == hs.nll(PREDS)
    logits = np.log(PROBS)
    expected = hs.brier(hs.Predictions.from_logits(logits, LABELS))
    assert hs.brier(logits=logits, labels=LABELS) == expected
    assert hs.aurc(probs=PROBS, labels=LABELS) == pytest.approx(hs.aurc(TALLY), abs=1e-15)


def test_a_bare_matrix_is_refused() -> None:
    for call in (lambda: hs.aurc(PROBS, LABELS), lambda: hs.nll(PROBS, LABELS)):
        with pytest.raises(hs.InputError, match=r"logits or probabilities\?"):
            call()
    with pytest.raises(hs.InputError, match="both probs and logits"):
        hs.nll(probs=PROBS, logits=PROBS, labels=LABELS)
    with pytest.raises(hs.InputError, match="give labels= as well"):
        hs.nll(probs=PROBS)
