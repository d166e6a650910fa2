"""Inputs at the edge: all right, all wrong, one sample, one value, the ends of the range."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest

import howsure as hs

SPREAD = [0.9, 0.7, 0.7, 0.3]
RIGHT = {
    "aurc": 0, "e_aurc": 0, "augrc": 0, "aac": 0, "optimal_aurc": 0, "auroc": nan, "eor": 1,
    "aupr_error": nan, "aupr_success": 1,
}  # fmt: skip
WRONG = {
    "aurc": 1, "e_aurc": 0, "augrc": 0.5, "aac": 1, "optimal_aurc": 1, "auroc": nan, "eor": 1,
    "aupr_error": 1, "aupr_success": nan,
}  # fmt: skip
CONSTANT = {
    "aurc": 0.25,
    "auroc": 0.5,
    "eor": 1,
    "aupr_error": 0.25,
    "aupr_success": 0.75,
    "aac": 0.25,
}


def value(name: str, t: hs.Tally, **options: Any) -> float:
    if name.startswith("aupr_"):
        return hs.aupr(t, name.removeprefix("aupr_"), **options)
    return getattr(hs, name)(t, **options)


@pytest.mark.parametrize(
    "score", [SPREAD, [0.5] * 4, [-1.0, 2.0, inf, -inf], [0.0, 1.0, 0.0, 1.0]], ids=str
)
@pytest.mark.parametrize(
    ("outcome", "table"), [(1, RIGHT), (0, WRONG)], ids=["all right", "all wrong"]
)
def test_one_outcome_only(score: list[float], outcome: int, table: dict[str, float]) -> None:
    t = hs.tally(score, correct=[outcome] * 4)
    for name, expected in table.items():
        assert value(name, t) == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("method", ["step", "trapezoid", "davis_goadrich"])
def test_one_outcome_only_in_every_area(method: str) -> None:
    right, wrong = hs.tally(SPREAD, correct=[1] * 4), hs.tally(SPREAD, correct=[0] * 4)
    assert value("aupr_success", right, method=method) == pytest.approx(1)
    assert value("aupr_error", wrong, method=method) == pytest.approx(1)
    assert np.isnan(value("aupr_error", right, method=method))
    assert np.isnan(value("aupr_success", wrong, method=method))


@pytest.mark.parametrize("treatment", ["inf", "cap", "merge"])
@pytest.mark.parametrize("outcome", [0, 1])
def test_eor_of_one_outcome_is_1(treatment: Any, outcome: int) -> None:
    t = hs.tally(np.arange(500), correct=np.full(500, outcome))
    assert hs.eor(t, treatment, cap=9.0 if treatment == "cap" else None) == pytest.approx(1.0)


@pytest.mark.parametrize("constant", [0.0, 0.4, 1.0, -3.0, inf, -inf])
def test_constant_score(constant: float) -> None:
    t = hs.tally([constant] * 4, correct=[1, 0, 1, 1])
    for name, expected in CONSTANT.items():
        assert value(name, t) == pytest.approx(expected), name
    assert len(hs.risk_coverage(t).x) == 1


@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_sample(score: float, outcome: int) -> None:
    t = hs.tally([score], correct=[outcome])
    wrong, gap = 1 - outcome, abs(score - outcome)
    for variant in ("expected", "step", "trapezoid"):
        assert hs.aurc(t, variant) == wrong
    assert hs.e_aurc(t) == 0
    assert hs.augrc(t) == wrong / 2
    for metric in (hs.ece, hs.mce, hs.aece, hs.amce):
        assert metric(t) == pytest.approx(gap)
    assert hs.smooth_ece(t) == pytest.approx(gap, abs=1e-6)
    assert hs.correctness_brier(t) == pytest.approx(gap**2)
    assert np.isnan(hs.debiased_ece(t))
    assert np.isnan(hs.auroc(t))
    assert hs.eor(t) == 1
    assert hs.coverage_at_risk(t, 0.1) == outcome
    assert hs.risk_at_coverage(t, 1.0) == wrong
    assert hs.bands(t).weight.tolist() == ([1, 0, 0] if outcome else [0, 0, 1])


def test_one_sample_of_predictions() -> None:
    preds = hs.Predictions.from_logits([[2.0, 0.0, 0.0]], [0])
    assert hs.accuracy(preds) == 1
    assert hs.nll(preds) == pytest.approx(np.log1p(2 * np.exp(-2)))
    assert 0 <= hs.uce(preds) == hs.muce(preds) <= 1
    assert 0 <= hs.classwise_ece(preds) <= 1


def test_scores_on_every_edge_are_counted_once() -> None:
    for m in (1, 3, 10, 15, 20, 100):
        score = np.arange(m + 1) / m
        assert (
            hs.bin_table(hs.tally(score, correct=score > 0.5), hs.equal_range(m)).count.sum()
            == m + 1
        )


def test_infinite_scores_reach_every_ranking_metric_without_warning() -> None:
    t = hs.tally([inf, inf, 1.0, -inf, -inf], correct=[1, 0, 1, 0, 0])
    same = hs.tally([2, 2, 1, 0, 0], correct=[1, 0, 1, 0, 0])
    for name in ("aurc", "e_aurc", "augrc", "auroc", "aupr_error", "aupr_success", "eor"):
        assert value(name, t) == value(name, same)
    assert hs.bands(t).weight.tolist() == hs.bands(same).weight.tolist()


def test_negative_zero_and_zero_act_together() -> None:
    t = hs.tally([0.0, -0.0], correct=[1, 0])
    assert hs.auroc(t) == 0.5
    assert hs.ece(t, hs.unique()) == 0.5


def test_ranks_near_the_largest_numbers() -> None:
    top = np.finfo(np.float64).max
    t = hs.tally([top, -top, 5e-324, -5e-324], correct=[1, 0, 1, 0])
    assert hs.auroc(t) == 1
    assert len(t.score) == 4


def test_claims_that_overflow_are_not_read() -> None:
    """Three times the largest score is infinite; a ranking metric must not even warn."""
    low = -np.finfo(np.float64).max
    assert hs.aurc(hs.tally([low] * 3, correct=[1, 0, 1])) == pytest.approx(1 / 3)
    assert hs.aurc(hs.tally([low] * 3, loss=[0, 1, 0], weight=[2, 2, 2])) == pytest.approx(1 / 3)
    assert (
        hs.eor(hs.tally([low, low, 0], correct=[1, 0, 1]) + hs.tally([low], correct=[1])) == np.inf
    )
