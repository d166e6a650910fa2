"""Certified bounds of compact tallies: they contain the value of the exact data, whatever these
were.
"""

from __future__ import annotations

from functools import partial
from math import isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from compacted import CLAIMS, COUNTED, RANKING, Metric, squeezed
from conftest import shared_or_skip
from howsure.metrics.certified import bounds_of, certified
from howsure.report import catalogue
from howsure.tallies.grid import grid
from howsure.tallies.rows import as_rows
from real_sets import SETS


def contains(metric: Metric, exact: hs.Tally, small: hs.Tally) -> None:
    value, (low, high) = metric(exact), certified(metric, small)
    assert isnan(value) or low <= value <= high, (metric, low, value, high)


def check(score: Any, correct: Any, metrics: list[Metric], **options: Any) -> None:
    exact = hs.tally(score, correct=correct, **options)
    for metric in metrics:
        contains(metric, exact, squeezed(exact))


@st.composite
def crowded(draw: Any) -> tuple[Any, Any]:
    """Scores crowded into a few buckets: one ulp apart, tied, on edges, with outcomes in extreme
    orders.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 2, 3, 7, 60, 400]))
    edges = grid(400)
    centre = edges[rng.integers(0, len(edges), draw(st.integers(1, 4)))]
    kind = draw(st.sampled_from(["ulps", "spread", "on edges", "two values", "three decimals"]))
    base = rng.choice(centre, n)
    score = {
        "ulps": lambda: base + rng.integers(-9, 10, n) * np.spacing(base),
        "spread": lambda: base + rng.uniform(-2e-3, 2e-3, n),
        "on edges": lambda: base,
        "two values": lambda: np.where(rng.random(n) < 0.5, base, np.nextafter(base, 0)),
        "three decimals": lambda: rng.integers(0, 1001, n) / 1000,
    }[kind]()
    score = np.clip(score, 0.0, 1.0).astype(draw(st.sampled_from([np.float64, np.float32])))
    order = draw(
        st.sampled_from(
            ["right first", "wrong first", "mixed", "all right", "all wrong", "by bucket"]
        )
    )
    bucket = np.searchsorted(edges, score)
    correct = {
        "right first": lambda: score > np.median(score),
        "wrong first": lambda: score < np.median(score),
        "mixed": lambda: rng.random(n) < rng.random(),
        "all right": lambda: np.ones(n, dtype=bool),
        "all wrong": lambda: np.zeros(n, dtype=bool),
        "by bucket": lambda: (
            score - (edges[bucket] + edges[bucket - 1]) / 2 > rng.choice([-1.0, 0.0, 0.0])
        ),
    }[order]()
    return score, correct


@given(crowded())
def test_bounds_of_ranking_metrics_contain_the_exact_value(data: tuple[Any, Any]) -> None:
    check(*data, RANKING)


@given(crowded())
def test_bounds_of_calibration_metrics_contain_the_exact_value(data: tuple[Any, Any]) -> None:
    check(*data, [*CLAIMS, *COUNTED])


@given(crowded(), st.integers(0, 2**32 - 1))
def test_bounds_hold_for_weights(data: tuple[Any, Any], seed: int) -> None:
    weight = np.random.default_rng(seed).choice([0.1, 0.25, 1.0, 3.0, 17.3], len(data[0]))
    check(*data, [*RANKING, *CLAIMS], weight=weight)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.0]))
def test_bounds_hold_for_scores_of_any_sign(seed: int, tied: float) -> None:
    rng = np.random.default_rng(seed)
    score = np.where(
        rng.random(2000) < tied, rng.normal(size=2000).round(3), rng.normal(size=2000) * 9
    )
    exact = hs.tally(score, correct=rng.random(2000) < 1 / (1 + np.exp(-score)))
    for metric in RANKING:
        contains(metric, exact, exact.compact(400))


@pytest.mark.parametrize("name", SETS)
def test_bounds_contain_the_exact_value_of_real_sets(name: str) -> None:
    preds = real(name)
    exact = hs.tally(preds.confidence, correct=preds.correct)
    for score in (preds.confidence, preds.confidence.round(3)):
        exact = hs.tally(score, correct=preds.correct)
        for small in (squeezed(exact), squeezed(exact, 25_000)):
            for metric in [*RANKING, *CLAIMS, *COUNTED]:
                contains(metric, exact, small)


def real(name: str) -> hs.Predictions:
    """The test part of a set, at most 20,000 rows of it."""
    path = shared_or_skip(f"data/{name}.npz")
    preds = hs.read(path, split="test", mc=name == "mc_fashion_cnn")
    return preds[:20_000] if preds.n > 20_000 else preds


def test_the_extremes_are_reached() -> None:
    score = 0.5 + np.arange(1, 601) * np.spacing(0.5)  # one bucket
    low, high = certified(hs.aurc, squeezed(hs.tally(score, correct=np.arange(600) % 3 > 0)))
    best, worst = (
        hs.tally(score, correct=np.arange(600) >= 200),
        hs.tally(score, correct=np.arange(600) < 400),
    )
    assert (low, high) == pytest.approx((hs.aurc(best), hs.aurc(worst)), rel=1e-8)


def test_two_right_and_one_wrong_in_one_bucket_by_hand() -> None:
    t = squeezed(hs.tally([0.50001, 0.50002, 0.50003], correct=[1, 1, 0]))
    assert len(t.score) == 1
    assert certified(hs.aurc, t) == pytest.approx((1 / 9, (1 + 1 / 2 + 1 / 3) / 3), rel=1e-8)
    assert certified(partial(hs.aurc, variant="step"), t) == pytest.approx(
        (1 / 9, 11 / 18), rel=1e-8
    )
    assert certified(hs.auroc, t) == pytest.approx((0.0, 1.0), abs=1e-8)
    assert certified(hs.aupr, t) == pytest.approx((1 / 3, 1.0), rel=1e-8)
    assert certified(partial(hs.coverage_at_risk, risk=0.2), t) == pytest.approx(
        (0.0, 2 / 3), rel=1e-8
    )
    assert certified(partial(hs.risk_at_coverage, coverage=0.5), t) == pytest.approx(
        (0.0, 1 / 2), rel=1e-8
    )


def test_a_bucket_of_one_score_is_a_tie() -> None:
    t = squeezed(hs.tally([1.0, 1.0, 1.0, 0.3], correct=[1, 1, 0, 0]))
    for metric in (hs.aurc, hs.auroc, hs.aupr, partial(hs.aurc, variant="trapezoid")):
        low, high = certified(metric, t)
        assert high - low < 1e-8


def test_an_exact_tally_gives_its_value_twice() -> None:
    t = hs.tally([0.9, 0.8, 0.7], correct=[1, 0, 1])
    assert certified(hs.aurc, t) == (hs.aurc(t), hs.aurc(t))
    assert certified(hs.aece, t) == (hs.aece(t), hs.aece(t))


def test_usual_bins_are_exact() -> None:
    rng = np.random.default_rng(0)
    exact = hs.tally(rng.random(5000), correct=rng.random(5000) < 0.7)
    low, high = certified(hs.ece, exact.compact(400))
    assert high - low < 1e-8


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (hs.aece, "adaptive bins follow single scores"),
        (hs.smooth_ece, "fixed point"),
        (partial(hs.eor, degenerate="merge"), "degenerate='merge' follows single bins"),
        (lambda t: t.n, "is not a metric of howsure"),
    ],
)
def test_no_proof_is_said(metric: Metric, why: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(hs.InputError, match=why):
        certified(metric, squeezed(hs.tally(rng.random(99), correct=rng.random(99) < 0.5)))


def test_losses_have_no_bounds() -> None:
    rng = np.random.default_rng(0)
    t = hs.tally(rng.random(999), loss=rng.random(999)).compact(400)
    with pytest.raises(hs.InputError, match="no longer knows the losses inside a bucket"):
        certified(hs.aurc, t)


def test_a_compact_tally_is_not_compacted_again_to_other_buckets() -> None:
    rng = np.random.default_rng(0)
    t = hs.tally(rng.random(9999), correct=rng.random(9999) < 0.5).compact(5000)
    with pytest.raises(
        hs.InputError, match=r"already compacted to .* fixed buckets; compact the exact tally"
    ):
        t.compact(400)


def test_a_report_gets_bounds_or_the_reason() -> None:
    rng = np.random.default_rng(0)
    t = hs.tally(rng.random(999), correct=rng.random(999) < 0.5)
    assert set(bounds_of(catalogue.ranking(), t)["aurc"]) == set()
    found = bounds_of([*catalogue.ranking(), *catalogue.claims()], t.compact(400))
    low, high = found["aurc"]["bounds"]
    assert low < hs.aurc(t) < high
    assert found["aece"]["bounds"] is None
    assert "adaptive" in found["aece"]["bounds_why"]
    assert as_rows(t).approximate is None
