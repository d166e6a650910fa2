"""Influences against leaving single samples out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty import influence
from howsure.uncertainty.influence import Influence, Ranks
from howsure.uncertainty.sample_case import SampleCase

PARTS: list[tuple[Callable[..., float], Callable[[Ranks], Influence], float]] = [
    (hs.aurc, influence.compute_aurc_influence, 0.002),
    (hs.e_aurc, influence.compute_e_aurc_influence, 0.002),
    (hs.augrc, influence.compute_augrc_influence, 0.001),
    (hs.auroc, influence.compute_auroc_influence, 0.005),
    (hs.aupr, influence.compute_aupr_error_influence, 0.06),
    (partial(hs.aupr, positive="success"), influence.compute_aupr_success_influence, 0.02),
]


def made(decimals: int, n: int = 2000) -> hs.Outcomes:
    rng = np.random.default_rng(0)
    score = rng.beta(3, 1, n).round(decimals)
    return hs.Outcomes(score, correct=rng.random(n) < score)


@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize(
    ("metric", "part", "close"), PARTS, ids=lambda x: getattr(x, "__name__", "")
)
def test_it_is_what_leaving_a_sample_out_changes(metric, part, close: float, decimals: int) -> None:  # type: ignore[no-untyped-def]
    o = made(decimals)
    case = SampleCase.of(o, singly=True)
    found = case.spread_over_samples(case.spread_over_rows(part(case.ranks)))
    chosen = np.random.default_rng(1).choice(len(o), 40, replace=False)
    n, rows = len(o), np.arange(len(o))
    left_out = [(n - 1) * (metric(o.tally()) - metric(o[rows != i].tally())) for i in chosen]
    assert found[chosen] == pytest.approx(np.array(left_out), abs=close)


@pytest.mark.parametrize(
    ("metric", "part", "close"), PARTS, ids=lambda x: getattr(x, "__name__", "")
)
def test_sums_over_error_blocks_are_sums_over_samples(metric, part, close: float) -> None:  # type: ignore[no-untyped-def]
    case = SampleCase.of(made(2), singly=True)
    of_blocks = part(case.ranks)
    single = case.spread_over_samples(case.spread_over_rows(of_blocks))
    assert abs(single.mean()) < 1e-12
    assert (single**2).sum() == pytest.approx(of_blocks.sum_squares(case.ranks), rel=1e-12)
    assert case.sum_squares(case.spread_over_rows(of_blocks)) == pytest.approx(
        of_blocks.sum_squares(case.ranks), rel=1e-12
    )
