"""Records with several questions: values of another hand, what is refused, and simulation."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from howsure import InputError
from howsure.policies import guaranteed_cases

I, J = np.meshgrid(np.arange(100), np.arange(3), indexing="ij")
CONFIDENCE = np.round(0.5 + 0.005 * ((7 * I + 13 * J) % 100), 3)
RIGHT = ~(((I * J + I) % 17 == 0) & (CONFIDENCE < 0.8))


@pytest.mark.parametrize(("risk", "threshold"), [(0.05, 0.76), (0.1, 0.61)])
def test_single_answers_of_another_hand(risk: float, threshold: float) -> None:
    g = guaranteed_cases(CONFIDENCE, RIGHT, risk=risk, delta=0.05, partial=True)
    assert g.threshold == threshold
    assert g.observed <= risk
    assert g.kept == (threshold <= CONFIDENCE).sum()
    assert "of all records" in g.rule


@pytest.mark.parametrize(
    ("risk", "delta", "threshold"),
    [(0.2, 0.1, -1.7261121879922001), (0.1, 0.1, inf), (0.05, 0.05, inf)],
)
def test_whole_records_of_another_hand(risk: float, delta: float, threshold: float) -> None:
    g = guaranteed_cases(CONFIDENCE, RIGHT, risk=risk, delta=delta)
    assert g.threshold == pytest.approx(threshold, abs=1e-12)


def test_the_order_of_questions_does_not_matter() -> None:
    # The probability of a sum in another order differs in the last bit, which would split ties.
    one = guaranteed_cases(CONFIDENCE, RIGHT, risk=0.2, delta=0.1)
    turned = guaranteed_cases(CONFIDENCE[:, ::-1], RIGHT[:, ::-1], risk=0.2, delta=0.1)
    assert one == turned


@pytest.mark.parametrize("partial", [False, True])
def test_what_was_not_asked_counts_as_sure_and_right(partial: bool) -> None:
    asked = (I + J) % 4 != 0
    options: dict[str, Any] = {"risk": 0.2, "delta": 0.1, "partial": partial}
    got = guaranteed_cases(
        np.where(asked, CONFIDENCE, np.nan), np.where(asked, RIGHT, False), asked, **options
    )
    if partial:
        assert got.n == asked.sum()
    else:
        filled = guaranteed_cases(
            np.where(asked, CONFIDENCE, 1.0), np.where(asked, RIGHT, True), **options
        )
        assert got == filled


def test_few_records_promise_nothing() -> None:
    g = guaranteed_cases(CONFIDENCE[:9], np.ones((9, 3)), risk=0.05, delta=0.05, partial=True)
    assert (g.feasible, g.threshold, g.kept) == (False, inf, 0)


def test_everything_may_be_wrong_at_risk_one() -> None:
    g = guaranteed_cases(CONFIDENCE, ~RIGHT, risk=1, delta=0.05, partial=True)
    assert g.threshold == CONFIDENCE.min()


def test_a_confidence_of_zero_has_a_score() -> None:
    zero = np.zeros((400, 1))
    g = guaranteed_cases(zero, np.ones((400, 1)), risk=0.05, delta=0.05)
    assert g.threshold == pytest.approx(log(1e-300))


@pytest.mark.parametrize(
    ("confidence", "correct", "asked", "match"),
    [
        ([0.9, 0.8], [1, 0], None, "one row per record"),
        ([[0.9, 1.8]], [[1, 0]], None, "lies in"),
        ([[0.9, 0.8]], [1, 0], None, "correct has shape"),
        ([[0.9, 0.8]], [[1, 0]], [[0, 0]], "asks nothing"),
    ],
)
def test_bad_records(confidence: Any, correct: Any, asked: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        guaranteed_cases(confidence, correct, asked, risk=0.1, delta=0.1)


def test_promises_about_single_answers_are_broken_in_at_most_delta() -> None:
    rng = np.random.default_rng(3)

    def draw(n: int) -> tuple[Any, Any]:
        c = np.round(rng.beta(5, 1, (n, 4)), 2)
        # The answers of a record are wrong together.
        hard = rng.random((n, 1)) < 0.3
        return c, rng.random((n, 4)) < np.where(hard, c**3, c**0.3)

    world, truth = draw(200_000)
    surest_wrong = np.sort(np.where(truth, -1.0, world).max(axis=1))
    runs, broken = 400, 0
    for _ in range(runs):
        g = guaranteed_cases(*draw(150), risk=0.1, delta=0.1, partial=True)
        share = 1 - np.searchsorted(surest_wrong, g.threshold) / len(world)
        broken += share > 0.1
    assert broken > 0
    assert binom.sf(broken - 1, runs, 0.1) > 1e-3
