"""Bounds of compact tallies against every order and every tie that the buckets allow: contained,
and how close.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from math import inf, isnan

import numpy as np
import pytest

import howsure as hs
from compacted import BINS, COUNTED, RANKING, Metric, squeezed
from howsure.metrics.certified import certified
from howsure.metrics.extremes import Buckets, log_rise, share
from howsure.tallies.grid import grid

Block = tuple[int, int]  # wrong and right answers with one score
CENTRES = (0.853, 0.647, 0.351)  # each well inside a bucket of its own
WORLDS: dict[str, tuple[Block, ...]] = {
    "spread": ((1, 2), (2, 1), (1, 1)),
    "wrong on top": ((2, 1), (0, 2), (1, 2)),
    "right on top": ((0, 3), (1, 2), (2, 0)),
    "singles": ((1, 0), (0, 1), (2, 2)),
    "one bucket": ((2, 3),),
    "no error": ((0, 2), (0, 2)),
    "errors alone": ((2, 0), (1, 0)),
}


@cache
def arrangements(wrong: int, right: int) -> tuple[tuple[Block, ...], ...]:
    """Every way to line up a bucket's samples, most trusted first, with any of them tied."""
    if wrong + right == 0:
        return ((),)
    return tuple(
        ((w, r), *rest)
        for w in range(wrong + 1)
        for r in range(right + 1)
        if w + r
        for rest in arrangements(wrong - w, right - r)
    )


def world(blocks: tuple[tuple[Block, ...], ...]) -> hs.Tally:
    score: list[float] = []
    correct: list[int] = []
    for centre, bucket in zip(CENTRES, blocks, strict=False):
        for i, (wrong, right) in enumerate(bucket):
            score += [centre - i * 2**-40] * (wrong + right)
            correct += [0] * wrong + [1] * right
    return hs.tally(score, correct=correct)


def worlds(buckets: tuple[Block, ...]) -> Iterator[hs.Tally]:
    return (world(blocks) for blocks in product(*(arrangements(*b) for b in buckets)))


def ends(metric: Metric, buckets: tuple[Block, ...]) -> tuple[float, float]:
    values = [v for v in map(metric, worlds(buckets)) if not isnan(v)]
    return (min(values), max(values)) if values else (np.nan, np.nan)


SHARP = [m for m in RANKING if "trapezoid" not in str(m) and "eor" not in str(m)]
JOINED = [m for m in RANKING if "trapezoid" in str(m)]


@pytest.mark.parametrize("name", WORLDS)
def test_bounds_are_the_least_and_the_greatest_of_all_orders_and_ties(name: str) -> None:
    small = squeezed(next(worlds(WORLDS[name])))
    assert len(small.score) == len(WORLDS[name])
    for metric in SHARP:
        assert certified(metric, small) == pytest.approx(
            ends(metric, WORLDS[name]), abs=2e-8, nan_ok=True
        ), metric


@pytest.mark.parametrize("name", WORLDS)
def test_bounds_of_joined_points_are_close(name: str) -> None:
    small = squeezed(next(worlds(WORLDS[name])))
    for metric in JOINED:
        (least, most), (low, high) = ends(metric, WORLDS[name]), certified(metric, small)
        if not isnan(least):
            assert least - 0.006 < low <= least, metric
            assert most <= high < most + 0.006, metric


@pytest.mark.parametrize("cut", [0.01, 0.125, 0.2, 0.375, 0.4, 0.55, 0.75, 0.8, 0.95])
def test_every_coverage_and_risk_is_sharp(cut: float) -> None:
    for name in ("spread", "wrong on top", "singles", "one bucket"):
        small = squeezed(next(worlds(WORLDS[name])))
        for metric in (
            partial(hs.risk_at_coverage, coverage=cut),
            partial(hs.coverage_at_risk, risk=cut),
        ):
            assert certified(metric, small) == pytest.approx(
                ends(metric, WORLDS[name]), abs=2e-8
            ), (name, metric)


APART = (
    "expected",
    "e_aurc",
    "optimal_aurc",
    "eor",
)  # their ranks are those of samples of mean weight 1


@pytest.mark.parametrize(
    "metric", [m for m in RANKING if not any(word in str(m) for word in APART)]
)
def test_bounds_of_weights_are_those_of_counts_in_the_limit(metric: Metric) -> None:
    """Weights are masses on the axis of ranks: 4,000 single samples a bucket are nearly a mass."""
    many = tuple((4000 * w, 4000 * r) for w, r in WORLDS["spread"])
    score = np.concatenate([[c - 2**-40, c] for c in CENTRES]).repeat(2)
    outcome = np.tile([0, 1, 0, 1], len(CENTRES))
    mass = np.concatenate([[w / 2, r / 2, w / 2, r / 2] for w, r in many])
    weighted = squeezed(hs.tally(score, correct=outcome, weight=mass))
    rows = [
        (c - i * 2**-40, ok)
        for c, (w, r) in zip(CENTRES, many, strict=True)
        for i, ok in enumerate([0] * w + [1] * r)
    ]
    counted = squeezed(hs.tally([s for s, _ in rows], correct=[ok for _, ok in rows]))
    assert certified(metric, weighted) == pytest.approx(certified(metric, counted), abs=6e-4)


def test_scores_at_the_ends_of_their_buckets_reach_the_bounds_of_brier_and_nll() -> None:
    rng = np.random.default_rng(3)
    score = rng.uniform(0.02, 0.97, 500)
    right = rng.random(500) < score
    low, high = ends_of_buckets(score)
    small = squeezed(hs.tally(score, correct=right))
    for metric in (hs.correctness_brier, hs.correctness_nll):
        best = metric(hs.tally(np.where(right, high, low), correct=right))
        worst = metric(hs.tally(np.where(right, low, high), correct=right))
        assert certified(metric, small) == pytest.approx((best, worst), abs=2e-8)
        assert best < metric(hs.tally(score, correct=right)) < worst


def ends_of_buckets(
    score: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest double of the bucket of each score."""
    edges = grid(400)
    at = np.searchsorted(edges, score)
    return np.nextafter(edges[at - 1], 1.0), edges[at]


@pytest.mark.parametrize(
    ("options", "room"), [({}, 0.2), ({"degenerate": "smooth"}, 0.2), ({"base": 0.7}, 0.2)]
)
def test_bounds_of_the_odds_are_close_where_buckets_are_many(
    options: dict[str, float | str], room: float
) -> None:
    rng = np.random.default_rng(5)
    score = rng.uniform(0.3, 0.99, 40_000)
    exact = hs.tally(score, correct=rng.random(40_000) < score)
    metric = partial(hs.eor, **options)
    low, high = certified(metric, exact.compact(25_000))
    assert metric(exact) * (1 - room) < low < metric(exact) < high < metric(exact) * (1 + room)


@pytest.mark.parametrize("metric", COUNTED, ids=[str(b) for b in BINS])
def test_bounds_of_the_debiased_error_are_close(metric: Metric) -> None:
    rng = np.random.default_rng(6)
    score = rng.uniform(0.3, 0.99, 40_000)
    exact = hs.tally(score, correct=rng.random(40_000) < score - 0.1)
    low, high = certified(metric, exact.compact(25_000))
    assert low <= metric(exact) <= high < low + (0.05 if "400" in str(metric) else 0.004)


def test_cap_and_base_of_the_odds() -> None:
    t = squeezed(hs.tally([0.9] * 6 + [0.2] * 4, correct=[1] * 6 + [0] * 4))
    assert certified(partial(hs.eor, degenerate="cap", cap=20.0), t)[1] <= 20.0 * (1 + 1e-8)
    assert certified(hs.eor, squeezed(hs.tally([0.9, 0.2], correct=[1, 1]))) == pytest.approx(
        (1, 1)
    )
    assert (
        certified(partial(hs.eor, base=0.5), squeezed(hs.tally([0.9, 0.2], correct=[1, 1])))[1]
        == inf
    )


def test_the_helpers_by_hand() -> None:
    rise = log_rise(np.array([0.0, 0.5, 1.0, 2.0]), np.array([3.0, 2.0, 1.0, 8.0]))
    assert rise == pytest.approx([0, np.log(4), 0, np.log(4)])
    assert share(np.array([1.0, 1.0, 0.1]), np.array([4.0, 0.0, 0.4]), 0.5).tolist() == [
        0.25,
        0.5,
        0.25,
    ]
    assert share(np.array([1.0]), np.array([0.0])).tolist() == [0.0]
    b = Buckets(np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([False, True]), True)
    assert (b.end.tolist(), b.before.tolist(), b.found.tolist()) == ([4, 7], [0, 4], [0, 1])
    assert (b.late.tolist(), b.early.tolist()) == ([3, 5], [1, 6])
    assert b.rise(np.array([1.0]), np.array([3.0])) == pytest.approx(1 / 2 + 1 / 3)


NEVER_WIDER: list[tuple[Metric, int, float]] = [
    (partial(hs.ece, bins=hs.equal_range(7)), 400, 0.0162),
    (partial(hs.mce, bins=hs.equal_range(7)), 400, 0.0249),
    (partial(hs.mce, bins=hs.equal_size(15)), 400, 0.0847),
    (partial(hs.mce, bins=hs.equal_size(7)), 25_000, 0.00093),
    (partial(hs.under_confidence, bins=hs.equal_size(400)), 25_000, 0.00062),
    (partial(hs.debiased_ece, bins=hs.equal_range(7)), 400, 0.0182),
    (partial(hs.debiased_ece, bins=hs.equal_size(15)), 400, 0.0652),
    (partial(hs.debiased_ece, bins=hs.equal_size(400)), 25_000, 0.0432),
]


@pytest.mark.parametrize(("metric", "buckets", "width"), NEVER_WIDER)
def test_bounds_of_cut_buckets_stay_as_narrow_as_they_were(
    metric: Metric, buckets: int, width: float
) -> None:
    rng = np.random.default_rng(6)
    score = rng.uniform(0.3, 0.99, 40_000)
    exact = hs.tally(score, correct=rng.random(40_000) < score - 0.1)
    low, high = certified(metric, exact.compact(buckets))
    assert low <= metric(exact) <= high < low + width


def test_a_bin_without_sure_samples_may_have_any_gap() -> None:
    exact = hs.tally(
        0.6 + np.arange(6) * 2**-40, correct=[1, 0, 0, 1, 1, 1]
    )  # one bucket, cut by three bins
    low, high = certified(partial(hs.mce, bins=hs.equal_size(3)), squeezed(exact))
    assert (low, high) == pytest.approx((0.0, 1.0), abs=1e-8)
