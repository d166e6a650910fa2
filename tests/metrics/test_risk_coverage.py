"""Areas and points of the risk–coverage curve, against loops over single samples."""

from collections.abc import Callable
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from generators import ANY, Rows, rows
from howsure.tallies.row_tally import as_rows
from reference import selective

SLOW = {
    "expected": selective.aurc_expected,
    "step": selective.aurc_step,
    "trapezoid": selective.aurc_trapezoid,
}
VARIANTS = list(SLOW)
close = {"abs": 1e-12, "rel": 1e-12}


def losses(r: Rows) -> np.ndarray:
    """A loss per sample with ties and negative values."""
    return np.random.default_rng(len(r)).normal(size=len(r)).round(1) * np.where(
        r.correct, 0.5, 3.0
    )


@pytest.mark.parametrize("variant", VARIANTS)
@given(r=rows(ANY, max_rows=80))
def test_aurc_is_the_definition(variant: str, r: Rows) -> None:
    assert hs.aurc(r.tally(), variant) == pytest.approx(
        SLOW[variant](r.score, 1 - r.correct), **close
    )


@pytest.mark.parametrize("variant", VARIANTS)
@given(r=rows(ANY, max_rows=80))
def test_aurc_of_any_loss_is_the_definition(variant: str, r: Rows) -> None:
    loss = losses(r)
    assert hs.aurc(hs.tally(r.score, loss=loss), variant) == pytest.approx(
        SLOW[variant](r.score, loss), **close
    )


@pytest.mark.parametrize("variant", ["step", "trapezoid"])
@given(r=rows(ANY, max_rows=60))
def test_aurc_with_weights_is_the_definition(variant: str, r: Rows) -> None:
    weight = 0.1 + np.random.default_rng(len(r)).random(len(r))
    t = hs.tally(r.score, loss=losses(r), weight=weight)
    assert hs.aurc(t, variant) == pytest.approx(SLOW[variant](r.score, losses(r), weight), **close)


@given(rows(ANY, max_rows=60))
def test_expected_aurc_is_the_mean_over_random_orders_of_ties(r: Rows) -> None:
    """Counts with a general loss: repeated rows."""
    count = r.weight if r.weight.any() else r.weight + 1
    t = hs.tally(r.score, loss=losses(r), count=count)
    slow = selective.aurc_expected(np.repeat(r.score, count), np.repeat(losses(r), count))
    assert hs.aurc(t) == pytest.approx(slow, **close)


def test_expected_aurc_by_trying_all_orders() -> None:
    """Scores (2, 1, 1), outcomes right, wrong, right: half the orders risk (0, 1/2, 1/3), half (0,
    0, 1/3).
    """
    t = hs.tally([2, 1, 1], correct=[1, 0, 1])
    assert hs.aurc(t) == pytest.approx(((0 + 1 / 2 + 1 / 3) + (0 + 0 + 1 / 3)) / 2 / 3)


def test_three_variants_by_hand() -> None:
    """Scores (2, 1, 1): rows (1/3, 0) and (1, 1/3)."""
    t = hs.tally([2, 1, 1], correct=[1, 0, 1])
    assert hs.aurc(t, "step") == pytest.approx(2 / 3 * 1 / 3)
    assert hs.aurc(t, "trapezoid") == pytest.approx(2 / 3 * (0 + 1 / 3) / 2)


def test_without_ties_expected_is_step() -> None:
    score, correct = (
        np.random.default_rng(0).random(500),
        np.random.default_rng(1).random(500) < 0.8,
    )
    t = hs.tally(score, correct=correct)
    assert hs.aurc(t) == pytest.approx(hs.aurc(t, "step"), abs=1e-13)


@given(rows(ANY, max_rows=80))
def test_optimal_aurc_is_the_definition(r: Rows) -> None:
    wrong = 1 - r.correct.astype(int)
    assert hs.optimal_aurc(r.tally()) == pytest.approx(selective.optimal_aurc(wrong), **close)
    assert hs.optimal_aurc(hs.tally(r.score, loss=losses(r))) == pytest.approx(
        selective.optimal_aurc(losses(r)), **close
    )


@given(rows(ANY, max_rows=80))
def test_excess_of_any_loss_is_not_negative(r: Rows) -> None:
    t = hs.tally(r.score, loss=losses(r))
    assert hs.e_aurc(t) >= 0
    assert hs.e_aurc(t) == pytest.approx(hs.aurc(t) - hs.optimal_aurc(t), abs=1e-12)


def test_optimal_aurc_formula() -> None:
    t = hs.tally([1, 2, 3, 4, 5], correct=[1, 0, 1, 0, 1])
    assert hs.optimal_aurc(t) == pytest.approx((1 / 4 + 2 / 5) / 5)


def test_asymptotic_optimum() -> None:
    assert hs.optimal_aurc_asymptotic(0.2) == pytest.approx(0.2 + 0.8 * log(0.8))
    assert hs.optimal_aurc_asymptotic(0) == 0
    assert hs.optimal_aurc_asymptotic(1) == 1
    many = hs.tally(np.zeros(200_000), correct=np.arange(200_000) % 5 > 0)
    assert hs.optimal_aurc(many) == pytest.approx(hs.optimal_aurc_asymptotic(0.2), abs=1e-5)


@given(rows(ANY, max_rows=80))
def test_augrc_is_the_definition(r: Rows) -> None:
    assert hs.augrc(r.tally()) == pytest.approx(selective.augrc(r.score, 1 - r.correct), **close)
    assert hs.augrc(hs.tally(r.score, loss=losses(r))) == pytest.approx(
        selective.augrc(r.score, losses(r)), **close
    )


@given(rows(ANY, max_rows=40), st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 0.9]))
def test_coverage_at_risk_is_the_definition(r: Rows, risk: float) -> None:
    slow = selective.coverage_at_risk(r.score, r.correct, risk)
    assert hs.coverage_at_risk(r.tally(), risk) == pytest.approx(slow, **close)


@given(rows(ANY, max_rows=40), st.sampled_from([0.001, 0.1, 0.5, 2 / 3, 0.8, 1.0]))
def test_risk_at_coverage_is_the_definition(r: Rows, coverage: float) -> None:
    slow = selective.risk_at_coverage(r.score, 1 - r.correct, coverage)
    assert hs.risk_at_coverage(r.tally(), coverage) == pytest.approx(slow, **close)


def test_coverage_at_risk_looks_past_the_first_crossing() -> None:
    """The most trusted answer is wrong, so small coverages fail and larger ones do not."""
    t = hs.tally([9, 8, 7, 6, 5], correct=[0, 1, 1, 1, 0])
    assert hs.coverage_at_risk(t, 0.25) == pytest.approx(4 / 5)
    assert hs.coverage_at_risk(t, 0.1) == 0.0


def test_dominance_is_not_total() -> None:
    """Each has fewer errors somewhere: neither dominates."""
    a, b = (
        hs.tally([4, 3, 2, 1], correct=[1, 0, 0, 1]),
        hs.tally([4, 3, 2, 1], correct=[0, 1, 1, 0]),
    )
    assert not hs.dominates(a, b)
    assert not hs.dominates(b, a)
    assert hs.dominates(a, a)


def test_dominance_interpolates_counts_not_risks() -> None:
    """A block (right, wrong) holds half an error after one sample; risks would be interpolated from
    nothing.
    """
    tied, ordered = hs.tally([1, 1], correct=[1, 0]), hs.tally([2, 1], correct=[1, 0])
    assert hs.dominates(ordered, tied)
    assert not hs.dominates(tied, ordered)


def test_large_blocks_keep_their_digits() -> None:
    """Ten million equal scores: the expected AURC is the error rate, not a sum that has lost it."""
    t = hs.tally(np.zeros(2), correct=[0, 1], weight=[1.0, 9_999_999.0])
    assert hs.aurc(t) == pytest.approx(1e-7, rel=1e-9)


@pytest.mark.parametrize("times", [1, 10**5, 10**9, 10**12])
@pytest.mark.parametrize("metric", [hs.augrc, hs.auroc, hs.aupr, hs.e_aurc, hs.ece, hs.eor])
def test_counts_beyond_what_products_of_integers_hold(
    metric: Callable[[hs.Tally], float], times: int
) -> None:
    rng = np.random.default_rng(0)
    t = as_rows(hs.tally(rng.random(300).round(2), correct=rng.random(300) < 0.8))
    columns = {name: getattr(t, name) * times for name in ("count", "loss", "claim", "square")}
    tolerance = (
        1e-2 if metric is hs.e_aurc else 1e-10
    )  # the optimum has a term of the order of 1 / n
    assert metric(replace(t, **columns)) == pytest.approx(metric(t), rel=tolerance)
