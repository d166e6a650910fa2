"""AUROC and AUPR against all pairs and all thresholds."""

import numpy as np
import pytest
from hypothesis import given

import howsure as hs
from generators import ANY, Rows, rows
from howsure.metrics import discrimination
from reference import selective


@given(rows(ANY, max_rows=60))
def test_auroc_counts_pairs(r: Rows) -> None:
    assert hs.auroc(r.tally()) == pytest.approx(
        selective.auroc(r.score, r.correct), abs=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("positive", ["error", "success"])
@pytest.mark.parametrize(
    ("method", "tolerance"), [("step", 1e-12), ("trapezoid", 1e-12), ("davis_goadrich", 1e-7)]
)
@given(r=rows(ANY, max_rows=40))
def test_aupr_is_the_definition(positive: str, method: str, tolerance: float, r: Rows) -> None:
    slow = selective.aupr(r.score, r.correct, positive, method)
    assert hs.aupr(r.tally(), positive, method) == pytest.approx(slow, abs=tolerance, nan_ok=True)


@pytest.mark.parametrize("n", [1, 2, 3, 30, 1000])
@pytest.mark.parametrize("distinct", [1, 2, 20, 10_000])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.4, 1.0])
def test_aupr_of_right_answers_is_the_same_by_risks_and_by_rows(
    n: int, distinct: int, share: float
) -> None:
    rng = np.random.default_rng([n, distinct])
    t = hs.tally(rng.integers(0, distinct, n), correct=rng.random(n) >= share)
    by_rows = discrimination.sum_success_precision(t)
    assert discrimination.average_success_precision(t) == pytest.approx(
        by_rows, abs=1e-13, nan_ok=True
    )
    assert np.isnan(by_rows) == (t.total == t.n)


def test_aupr_by_hand() -> None:
    """Errors found from the bottom: (tp, fp) = (0, 1), (1, 1), (1, 2)."""
    t = hs.tally([0.9, 0.8, 0.7], correct=[1, 0, 1])
    assert hs.aupr(t) == pytest.approx(1 / 2)
    assert hs.aupr(t, method="trapezoid") == pytest.approx((0 + 1 / 2) / 2)
    assert hs.aupr(t, "success") == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)


def test_davis_goadrich_by_hand() -> None:
    """From (tp, fp) = (0, 1) to (1, 1) fp stays 1: the integral of x / (x + 1) is 1 − log 2."""
    t = hs.tally([0.9, 0.8, 0.7], correct=[1, 0, 1])
    assert hs.aupr(t, method="davis_goadrich") == pytest.approx(1 - np.log(2))


def test_davis_goadrich_of_one_block_is_the_share() -> None:
    t = hs.tally([0.5] * 10, correct=[0] * 3 + [1] * 7)
    for method in ("step", "davis_goadrich"):
        assert hs.aupr(t, method=method) == pytest.approx(0.3)
    assert hs.aupr(t, method="trapezoid") == pytest.approx(0.65)  # why trapezoids flatter


def test_weights_count_as_samples() -> None:
    t = hs.tally([3, 2, 1], correct=[1, 0, 1], weight=[0.5, 2.0, 1.5])
    assert hs.auroc(t) == pytest.approx((0.5 * 2.0) / (2.0 * 2.0))


def test_rounded_weights_of_wrong_answers_alone_leave_no_right_one() -> None:
    score = 0.9 + np.arange(60) * np.spacing(0.9)
    weight = np.random.default_rng(0).choice([0.1, 0.25, 1.0, 3.0, 17.3], 60)
    assert np.isnan(hs.auroc(hs.tally(score, correct=np.zeros(60), weight=weight)))
