"""Many models at once: equal ones are rarely told apart, different ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty.intervals import all_differences

TABLES = 30


def models(rng: np.random.Generator, many: int, n: int, lift: float = 0.0) -> list[Any]:
    """Equally good models of the same questions; the last is `lift` better."""
    hard = rng.beta(6, 2, n)
    right = rng.random((many, n)) < hard
    right[-1] |= rng.random(n) < lift
    return list(zip(np.clip(hard + rng.normal(0, 0.1, (many, n)), 0.01, 0.99), right, strict=True))


@pytest.mark.parametrize("metric", [hs.accuracy, hs.aurc], ids=lambda m: m.__name__)
def test_ten_equal_models_hardly_ever_show_a_clear_pair(metric: Any) -> None:
    """Limits of single pairs call some pair clear in most tables."""
    rng = np.random.default_rng(0)
    clear = alone = 0
    for _ in range(TABLES):
        pairs = all_differences(metric, models(rng, 10, 200))
        clear += any(p.clear for p in pairs)
        alone += any(p.low > 0 or p.high < 0 for p in pairs)
    assert clear <= 0.06 * TABLES + 4  # two standard errors
    assert alone > 0.3 * TABLES


def test_compare_allows_for_all_pairs() -> None:
    rng = np.random.default_rng(1)
    clear = 0
    for _ in range(TABLES // 3):
        made = {
            str(i): hs.Predictions.from_confidence(*m) for i, m in enumerate(models(rng, 10, 200))
        }
        pairs = hs.compare(made).data["pairs"]
        clear += any(p["accuracy"]["clear"] or p["aurc"]["clear"] for p in pairs)
    assert clear <= 4


def test_a_better_model_is_seen_among_ten() -> None:
    pairs = all_differences(hs.accuracy, models(np.random.default_rng(2), 10, 1000, lift=0.5))
    assert {p.second for p in pairs if p.clear} == {9}
    assert sum(p.clear for p in pairs) == 9
