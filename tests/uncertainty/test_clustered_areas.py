"""Limits of areas under risk curves where answers come in clusters."""

from __future__ import annotations

import numpy as np
import pytest

import howsure as hs
from howsure import Outcomes, metrics
from howsure.uncertainty.ranking_limits import (
    AREA_ERROR,
    NumberSample,
    compute_gamma_limits,
    gamma_quantile,
)


def draw(rng: np.random.Generator, groups: int) -> Outcomes:
    group = np.repeat(np.arange(groups), rng.poisson(19, groups) + 1)
    effect = rng.normal(0, 1.5, groups)[group]
    logit = rng.normal(2.5, 1.2, len(group)) + 0.5 * effect
    right = rng.random(len(group)) < 1 / (1 + np.exp(-0.9 * logit - effect))
    return Outcomes(1 / (1 + np.exp(-logit)), correct=right, group=group)


def test_the_design_effect_widens_variance_and_what_was_not_seen() -> None:
    y, n, k, squares, d = 0.05, 1000.0, 80.0, 300.0, 4.0
    number = NumberSample(value=y, n=n, k=k, squares=squares, design=d)
    low, high = compute_gamma_limits(number, AREA_ERROR, 0.025)
    first = (2 * n * y + 2 * k + 1) / (k + 1)
    second = (2 * squares + 6 * k + 2) / (k + 1)
    assert low == pytest.approx(gamma_quantile(y, squares * d / n**2, 0.025))
    variance = (squares * d + second * d**1.5) / n**2
    assert high == pytest.approx(gamma_quantile(y + first * np.sqrt(d) / n, variance, 0.975))


@pytest.mark.parametrize("name", ["aurc", "e_aurc", "augrc"])
def test_they_hold_and_are_not_wide(name: str) -> None:
    rng = np.random.default_rng(11)
    metric = getattr(metrics, name)
    truth = metric(draw(rng, 20_000).tally())
    held, widths, values = 0, [], []
    for _ in range(100):
        o = draw(rng, 40)
        low, high = hs.interval(metric, o)
        held += low <= truth <= high
        widths.append(high - low)
        values.append(metric(o.tally()))
    assert held >= 89  # 95 of 100 are this few once in 100
    assert np.mean(widths) < 1.8 * 3.92 * np.std(values)
