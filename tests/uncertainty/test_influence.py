"""Influences against leaving single samples out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty import influence
from howsure.uncertainty.case import Case
from howsure.uncertainty.influence import Influence, Ranks

PARTS: list[tuple[Callable[..., float], Callable[[Ranks], Influence], float]] = [
    (hs.aurc, influence.aurc, 0.002),
    (hs.e_aurc, influence.e_aurc, 0.002),
    (hs.augrc, influence.augrc, 0.001),
    (hs.auroc, influence.auroc, 0.005),
    (hs.aupr, influence.aupr_error, 0.06),
    (partial(hs.aupr, positive="success"), influence.aupr_success, 0.02),
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
    case = Case.of(o, singly=True)
    found = case.single(case.spread(part(case.ranks)))
    chosen = np.random.default_rng(1).choice(len(o), 40, replace=False)
    n, rows = len(o), np.arange(len(o))
    left_out = [(n - 1) * (metric(o.tally()) - metric(o[rows != i].tally())) for i in chosen]
    assert found[chosen] == pytest.approx(np.array(left_out), abs=close)


@pytest.mark.parametrize(
    ("metric", "part", "close"), PARTS, ids=lambda x: getattr(x, "__name__", "")
)
def test_sums_over_error_blocks_are_sums_over_samples(metric, part, close: float) -> None:  # type: ignore[no-untyped-def]
    case = Case.of(made(2), singly=True)
    of_blocks = part(case.ranks)
    single = case.single(case.spread(of_blocks))
    assert abs(single.mean()) < 1e-12
    assert (single**2).sum() == pytest.approx(of_blocks.squares(case.ranks), rel=1e-12)
    assert case.squares(case.spread(of_blocks)) == pytest.approx(
        of_blocks.squares(case.ranks), rel=1e-12
    )
