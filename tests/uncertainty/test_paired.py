"""Differences on the same samples: how they are joined, and what they are sure of."""

from __future__ import annotations

from functools import partial
from math import isnan

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty.intervals import each_interval


def sides(
    n: int = 600, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Two models that find the same samples hard; the second is a little worse."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(2, 1.5, n)
    made = []
    for shift in (0.0, -0.4):
        z = hard + rng.normal(0, 0.5, n) + shift
        made.append((1 / (1 + np.exp(-z)), rng.random(n) < 1 / (1 + np.exp(-z))))
    return made[0], made[1]


@pytest.mark.parametrize(
    "metric", [hs.accuracy, hs.aurc, hs.auroc, hs.ece, partial(hs.coverage_at_risk, risk=0.1)]
)
def test_the_difference_is_exact_and_inside(metric: object) -> None:
    a, b = sides()
    difference, low, high = hs.paired_difference(metric, a, b)  # type: ignore[arg-type]
    assert difference == metric(hs.tally(*a)) - metric(hs.tally(*b))  # type: ignore[operator]
    assert low < difference < high


def test_limits_are_those_of_the_plain_paired_bootstrap() -> None:
    n = 2000
    (s, c), (z, d) = sides(n)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(500):
        rows = rng.integers(0, n, n)
        found.append(
            hs.aurc(hs.tally(s[rows], correct=c[rows]))
            - hs.aurc(hs.tally(z[rows], correct=d[rows]))
        )
    plain_low, plain_high = np.quantile(found, [0.025, 0.975])
    _, low, high = hs.paired_difference(hs.aurc, (s, c), (z, d))
    assert (low, high) == pytest.approx(
        (plain_low, plain_high), abs=0.12 * (plain_high - plain_low)
    )


def test_a_model_does_not_differ_from_itself() -> None:
    a, _ = sides()
    difference, low, high = hs.paired_difference(hs.aurc, a, a)
    assert difference == 0
    assert low < 0 < high  # an error that was not seen might tell the two apart
    assert high - low < 0.7 * np.diff(hs.interval(hs.aurc, hs.tally(*a)))[0]


def test_swapping_the_sides_turns_the_sign() -> None:
    a, b = sides()
    one, two = hs.paired_difference(hs.augrc, a, b), hs.paired_difference(hs.augrc, b, a)
    assert one[0] == -two[0]
    assert one[1:] == pytest.approx((-two[2], -two[1]), abs=0.1 * (one[2] - one[1]))


def test_pairing_is_surer_than_two_intervals() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(2000) < 0.2
    a, b = ~hard, ~(hard ^ (rng.random(2000) < 0.01))
    _, low, high = hs.paired_difference(hs.accuracy, (rng.random(2000), a), (rng.random(2000), b))
    alone = hs.interval(hs.accuracy, hs.tally(rng.random(2000), correct=a))
    assert high - low < 0.5 * (alone[1] - alone[0])


def test_ids_join_the_sides() -> None:
    (s, c), (z, d) = sides()
    ids = np.array([f"q{i}" for i in range(600)])
    mixed = np.random.default_rng(3).permutation(600)
    a = hs.Outcomes(s, correct=c, id=ids)
    b = hs.Outcomes(z[mixed], correct=d[mixed], id=ids[mixed])
    straight = hs.paired_difference(hs.aurc, (s, c), (z, d))
    assert hs.paired_difference(hs.aurc, a, b) == pytest.approx(straight, rel=0.1)
    (_, low, high), (_, apart_low, apart_high) = (
        hs.paired_difference(hs.aurc, a, other)
        for other in (b, hs.Outcomes(z[mixed], correct=d[mixed]))
    )
    assert high - low < apart_high - apart_low  # the wrong partners have less in common


def test_groups_are_drawn_whole_for_both() -> None:
    (s, c), (z, d) = sides(100)
    rows = np.repeat(np.arange(100), 16)
    a, b = hs.Outcomes(s[rows], correct=c[rows], group=rows), hs.Outcomes(z[rows], correct=d[rows])
    free = hs.paired_difference(hs.accuracy, (s[rows], c[rows]), (z[rows], d[rows]))
    for held in (hs.paired_difference(hs.accuracy, a, b), hs.paired_difference(hs.accuracy, b, a)):
        assert held[2] - held[1] == pytest.approx(4 * (free[2] - free[1]), rel=0.2)


def test_predictions_and_their_losses() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    z = rng.normal(0, 1, (500, 3)) + 2.0 * np.eye(3)[y]
    sharp, flat = hs.Predictions.from_logits(z, y), hs.Predictions.from_logits(0.2 * z, y)
    difference, low, high = hs.paired_difference(hs.nll, sharp, flat)
    assert difference == pytest.approx(hs.nll(sharp) - hs.nll(flat), abs=1e-12)
    assert low < difference < high < 0
    loss = hs.losses.nll(sharp) - hs.losses.nll(flat)
    assert high - low == pytest.approx(2 * 1.96 * loss.std() / np.sqrt(500), rel=0.15)


def test_a_metric_that_jumps_has_a_difference_without_limits() -> None:
    a, b = sides()
    difference, low, _ = hs.paired_difference(hs.mce, a, b)
    assert difference == hs.mce(hs.tally(*a)) - hs.mce(hs.tally(*b))
    assert isnan(low)


def test_a_number_without_limits_has_a_difference_without_limits() -> None:
    """Of losses the risk at a coverage has none, and `each_interval` says why."""
    rng = np.random.default_rng(0)
    a, b = (hs.Outcomes(rng.random(60), loss=rng.random(60)) for _ in range(2))
    risk = partial(hs.risk_at_coverage, coverage=0.5)
    difference, low, high = hs.paired_difference(risk, a, b)
    assert difference == risk(a.tally()) - risk(b.tally())
    assert isnan(low)
    assert isnan(high)
    why = each_interval([risk], a)[0].why
    assert why == "this number has limits for right and wrong only, not for other losses"


def test_the_seed_decides_the_draws_of_ones_own_metric() -> None:
    a, b = sides()
    own = lambda t: hs.aurc(t)
    assert hs.paired_difference(own, a, b, seed=1) == hs.paired_difference(own, a, b, seed=1)
    assert hs.paired_difference(own, a, b, seed=1) != hs.paired_difference(own, a, b, seed=2)
    assert hs.paired_difference(hs.aurc, a, b, seed=1) == hs.paired_difference(
        hs.aurc, a, b, seed=2
    )


def test_honest_claims_are_not_worse_than_a_constant() -> None:
    better = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(2, 1.5, 500)))
        c = rng.random(500) < p
        _, low, _ = hs.paired_difference(hs.ece, (p, c), (np.full(500, 0.834), c))
        better += low > 0
    assert better <= 7


def test_a_clear_loss_of_calibration_is_seen() -> None:
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(1, 1.5, 3000)))
    c = rng.random(3000) < p
    difference, low, high = hs.paired_difference(hs.ece, (np.sqrt(p), c), (p, c))
    assert 0 < low < difference < high


def test_weights_count_on_both_sides() -> None:
    a, b = sides()
    weight = np.random.default_rng(1).lognormal(0, 1, 600)
    one, two = (hs.Outcomes(s, correct=c, weight=weight) for s, c in (a, b))
    plain, weighted = (
        hs.paired_difference(hs.accuracy, a, b),
        hs.paired_difference(hs.accuracy, one, two),
    )
    assert weighted[2] - weighted[1] > 1.2 * (plain[2] - plain[1])
    scaled = [hs.Outcomes(s, correct=c, weight=1e9 * weight) for s, c in (a, b)]
    for metric in (hs.accuracy, hs.aurc, hs.ece, hs.auroc):
        assert hs.paired_difference(metric, *scaled) == pytest.approx(
            hs.paired_difference(metric, one, two), abs=1e-12
        )


class TestRefused:
    """What cannot be paired, in one sentence each."""

    def test_other_ids(self) -> None:
        a = hs.Outcomes([0.9, 0.8], correct=[1, 0], id=["x", "y"])
        b = hs.Outcomes([0.9, 0.8], correct=[1, 0], id=["x", "z"])
        with pytest.raises(
            hs.InputError, match=r"id y is missing in the second set \(2 ids are in one set only\)"
        ):
            hs.paired_difference(hs.aurc, a, b)

    def test_repeated_ids(self) -> None:
        a = hs.Outcomes([0.9, 0.8, 0.7], correct=[1, 0, 1], id=[4, 5, 4])
        b = hs.Outcomes([0.9, 0.8, 0.7], correct=[1, 0, 1], id=[4, 5, 6])
        with pytest.raises(
            hs.InputError, match=r"id 4 occurs twice in the first set \(rows 0 and 2\)"
        ):
            hs.paired_difference(hs.aurc, a, b)

    def test_other_lengths(self) -> None:
        with pytest.raises(hs.InputError, match=r"2 samples against 3; .* Give ids"):
            hs.paired_difference(hs.aurc, ([0.9, 0.8], [1, 0]), ([0.9, 0.8, 0.7], [1, 0, 1]))

    def test_other_groups(self) -> None:
        a = hs.Outcomes([0.9, 0.8], correct=[1, 0], group=[1, 2])
        b = hs.Outcomes([0.9, 0.8], correct=[1, 0], group=[1, 1])
        with pytest.raises(hs.InputError, match="different groups"):
            hs.paired_difference(hs.aurc, a, b)

    def test_tallies(self) -> None:
        t = hs.tally([0.9, 0.8], correct=[1, 0])
        with pytest.raises(hs.InputError, match="a tally has forgotten which sample is which"):
            hs.paired_difference(hs.aurc, t, t)

    def test_level(self) -> None:
        a, b = sides()
        with pytest.raises(hs.InputError, match="level is 95; a number between 0 and 1 is needed"):
            hs.paired_difference(hs.aurc, a, b, level=95)
