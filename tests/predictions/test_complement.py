"""Two classes: the probability of class 1 alone decides, so one column and two are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from howsure import Predictions

P = [0.07, 0.93, 1 / 3, 2 / 3, 0.5, 0.35, 1e-10, 3e-16, 1.0, 0.0]
ANSWER = [0, 1, 0, 1, 0, 0, 0, 0, 1, 0]
CONFIDENCE = [
    0.93,
    0.93,
    0.6666666666667,
    0.6666666666667,
    0.5,
    0.65,
    0.9999999999,
    0.9999999999999997,
    1.0,
    1.0,
]
METRICS: list[Callable[[Predictions], float]] = [
    hs.nll,
    hs.brier,
    hs.class_auroc,
    hs.classwise_ece,
    hs.calibration_slope,
    hs.calibration_in_the_large,
    lambda preds: hs.aurc(hs.tally(preds.confidence, correct=preds.correct)),
    lambda preds: hs.ece(hs.tally(preds.confidence, correct=preds.correct)),
    lambda preds: hs.auroc(hs.tally(preds.confidence, correct=preds.correct)),
]


def test_values_of_another_hand() -> None:
    preds = Predictions.from_probs(P, ANSWER)
    assert preds.confidence.tolist() == CONFIDENCE
    assert preds.prediction.tolist() == ANSWER


def test_complements_are_ties() -> None:
    p = np.arange(1, 500) / 1000
    low, high = Predictions.from_probs(p), Predictions.from_probs(1 - p)
    assert (low.confidence == high.confidence).all()


def test_logits_are_not_rounded() -> None:
    z = np.random.default_rng(0).normal(size=(50, 2))
    d = np.abs(z[:, 1] - z[:, 0])
    assert Predictions.from_logits(z).confidence == pytest.approx(1 / (1 + np.exp(-d)), rel=1e-15)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.booleans()),
        min_size=2,
        max_size=30,
    )
)
def test_one_column_is_two_columns(rows: list[tuple[float, bool]]) -> None:
    p = np.array([q for q, _ in rows])
    y = np.array([int(right) for _, right in rows])
    one = Predictions.from_probs(p, y)
    # What stands in the other column may be rounded in another way: it is checked and dropped.
    others = [
        Predictions.from_probs(p[:, None], y),
        Predictions.from_probs(np.stack((1 - p, p), axis=1), y),
        Predictions.from_probs(np.stack((np.round(1 - p, 9), p), axis=1), y),
    ]
    for two in others:
        assert (one.probs == two.probs).all()
        assert (one.confidence == two.confidence).all()
        assert (one.correct == two.correct).all()
        for metric in METRICS:
            with np.errstate(all="ignore"):
                assert metric(one) == pytest.approx(metric(two), rel=0, abs=0, nan_ok=True)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    """Rows that miss 1 stay two numbers; their neighbours are what they are alone."""
    mixed = np.array([[0.3, 0.7], [0.70002, 0.3], [0.07, 0.93]])
    together = Predictions.from_probs(mixed.astype(np.float32), [1, 0, 1])
    for i, row in enumerate(mixed.astype(np.float32)):
        alone = Predictions.from_probs(row[None], [1])
        assert together.confidence[i] == alone.confidence[0]
        assert (together.probs[i] == alone.probs[0]).all()
