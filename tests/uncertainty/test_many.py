"""Many models at once: equal ones are rarely told apart, different ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty.intervals import all_differences, join_sides, measure_spread

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


@pytest.mark.parametrize("broken", [0, 1, 3])
def test_a_model_without_right_answers_is_no_obstacle(broken: int) -> None:
    """Its AUROC is undefined: its pairs are unclear, those of the others are what they are alone."""
    sane = models(np.random.default_rng(3), 3, 400, lift=0.9)
    score, right = sane[0]
    many = [*sane[:broken], (score, np.zeros_like(right)), *sane[broken:]]
    pairs = all_differences(hs.auroc, many)
    undefined = [p for p in pairs if broken in (p.first, p.second)]
    assert len(undefined) == 3
    for p in undefined:
        assert np.isnan([p.difference, p.low, p.high]).all()
        assert not p.clear
    others = [p[2:] for p in pairs if broken not in (p.first, p.second)]
    assert others == [p[2:] for p in all_differences(hs.auroc, sane)]


def test_nothing_is_clear_where_no_number_is_known() -> None:
    never = [
        (score, np.zeros_like(right)) for score, right in models(np.random.default_rng(4), 3, 50)
    ]
    assert [p.clear for p in all_differences(hs.auroc, never)] == [False] * 3


def test_an_infinite_number_differs_from_none_clearly() -> None:
    sane = models(np.random.default_rng(5), 3, 200)
    sure = np.ones(200), np.arange(200) > 0
    pairs = all_differences(hs.correctness_nll, [*sane, sure])
    assert [p.difference for p in pairs if p.second == 3] == [-np.inf] * 3
    assert not any(p.clear for p in pairs if p.second == 3)


def test_models_are_joined_by_ids_whatever_their_order() -> None:
    rng = np.random.default_rng(6)
    ids = rng.permutation(300)
    made = [hs.Outcomes(s, correct=r, id=ids) for s, r in models(rng, 3, 300)]
    other = [*made[:2], made[2][rng.permutation(300)]]
    wanted, turned = (
        measure_spread(hs.accuracy, join_sides(hs.accuracy, given, 0.95)) for given in (made, other)
    )
    assert wanted is not None
    assert turned is not None
    assert turned.covariance == pytest.approx(wanted.covariance, rel=1e-12)
