"""Once is enough: no tally is built twice of the same data, and no loss is computed twice."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.predictions import columns
from howsure.tallies.build import tally
from howsure.tallies.counted import counted

BUILDERS = {f.__code__: f.__name__ for f in (tally, counted)}
LOSSES = {columns.label_rank.__code__: "label_rank", columns.columns.__code__: "columns"}


def calls(of: dict[CodeType, str], job: Callable[[], Any]) -> Counter[str]:
    """How often the functions were entered while the job ran."""
    found: Counter[str] = Counter()

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in of:
            found[of[frame.f_code]] += 1

    sys.setprofile(see)
    try:
        job()
    finally:
        sys.setprofile(None)
    return found


def logits(seed: int, n: int = 120, k: int = 24, **more: Any) -> hs.Predictions:
    labels = np.random.default_rng(0).integers(0, k, n)
    noise = np.random.default_rng(seed).standard_normal((n, k))
    return hs.Predictions.from_logits(3 * np.eye(k)[labels] + 2 * noise, labels, **more)


SCORES = ["max_prob", "entropy", "margin", "max_logit", "energy"]


def test_evaluate_builds_one_tally_per_score_and_one_of_the_entropy() -> None:
    preds = logits(0)
    assert calls(BUILDERS, lambda: hs.evaluate(preds, SCORES)) == {"tally": len(SCORES) + 1}


@pytest.mark.parametrize(("column", "more"), [("group", 4), ("weight", 3)])
def test_groups_and_weights_add_one_per_loss_and_groups_one_for_the_promise(
    column: str, more: int
) -> None:
    preds = logits(0, **{column: np.arange(120) % 7 + 1})
    assert calls(BUILDERS, lambda: hs.evaluate(preds, SCORES)) == {"tally": len(SCORES) + 1 + more}


def test_two_classes_add_one_of_the_positive_class() -> None:
    preds = logits(0, k=2)
    assert calls(BUILDERS, lambda: hs.evaluate(preds)) == {
        "tally": 5
    }  # three scores, entropy, positive class


def test_compare_builds_one_tally_per_model() -> None:
    models = {f"model {i}": logits(i, ids=np.arange(120)) for i in range(4)}
    assert calls(BUILDERS, lambda: hs.compare(models)) == {"tally": len(models)}


def test_the_same_predictions_with_four_scores_build_four() -> None:
    preds = logits(0)
    models = {score: (preds, score) for score in SCORES[:4]}
    assert calls(BUILDERS, lambda: hs.compare(models)) == {"tally": 4}


def test_evaluate_passes_over_the_values_once_for_all_losses() -> None:
    preds = logits(0)
    assert calls(LOSSES, lambda: hs.evaluate(preds)) == {"columns": 1, "label_rank": 1}
