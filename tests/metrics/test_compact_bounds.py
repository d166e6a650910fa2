"""Bounds of compact tallies: they contain the value of the exact data, whatever these were."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from math import inf, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs
from compacted import CLAIMS, COUNTED, RANKING, Metric, squeezed
from conftest import shared_or_skip
from howsure.metrics.compact_bounds import BOUNDS, certified, report_bounds
from howsure.metrics.metric_facts import get_arguments, get_options, unwrap_metric
from howsure.report import catalogue
from howsure.tallies.buckets import make_grid
from howsure.tallies.row_tally import as_rows
from real_sets import SETS

BOUNDED = [*RANKING, *CLAIMS, *COUNTED]
ALWAYS_REFUSED = {hs.aece, hs.amce}  # unless they are given other bins


def test_every_metric_with_bounds_is_tested() -> None:
    assert {unwrap_metric(metric) for metric in BOUNDED} == set(BOUNDS) - ALWAYS_REFUSED


def contains(metric: Metric, exact: hs.Tally, small: hs.Tally) -> None:
    value, (low, high) = metric(exact), certified(metric, small)
    assert isnan(value) or low <= value <= high, (metric, low, value, high)


def check(score: Any, correct: Any, metrics: list[Metric], **options: Any) -> None:
    exact = hs.tally(score, correct=correct, **options)
    for metric in metrics:
        contains(metric, exact, squeezed(exact))


@st.composite
def few_per_bucket(draw: Any) -> tuple[Any, Any]:
    """Up to five samples in each of up to four buckets, in any order, with any of them tied."""
    score: list[float] = []
    correct: list[bool] = []
    for centre in draw(st.sets(st.sampled_from(CENTRES), min_size=1)):
        for place, right in draw(
            st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=5)
        ):
            score.append(centre - place * 2**-40 if centre < 1 else 1.0)
            correct.append(right)
    return np.array(score), np.array(correct)


@given(few_per_bucket())
def test_bounds_hold_for_few_samples_in_a_bucket(data: tuple[Any, Any]) -> None:
    check(*data, BOUNDED)


@given(few_per_bucket(), st.integers(0, 2**32 - 1))
def test_bounds_hold_for_few_weights_in_a_bucket(data: tuple[Any, Any], seed: int) -> None:
    weight = np.random.default_rng(seed).choice([0.1, 0.25, 1.0, 3.0, 17.3], len(data[0]))
    check(*data, [*RANKING, *CLAIMS], weight=weight)


@st.composite
def crowded(draw: Any) -> tuple[Any, Any]:
    """Scores crowded into a few buckets: one ulp apart, tied, on edges, with outcomes in extreme
    orders.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 2, 3, 7, 60, 400]))
    edges = make_grid(400)
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


# Every order and every tie that a few buckets allow: the bounds are the extremes.

Block = tuple[int, int]  # wrong and right answers with one score
CENTRES = (0.853, 0.647, 0.351, 1.0)  # each well inside a bucket of its own; 1 is a tie
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


@pytest.mark.parametrize("name", WORLDS)
def test_bounds_are_the_least_and_the_greatest_of_all_orders_and_ties(name: str) -> None:
    small = squeezed(next(worlds(WORLDS[name])))
    assert len(small.score) == len(WORLDS[name])
    for metric in RANKING:
        assert certified(metric, small) == pytest.approx(
            ends(metric, WORLDS[name]), abs=2e-8, nan_ok=True
        ), metric


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
    edges = make_grid(400)
    at = np.searchsorted(edges, score)
    return np.nextafter(edges[at - 1], 1.0), edges[at]


APART = (hs.aurc, hs.aac, hs.e_aurc, hs.optimal_aurc)  # in ranks of samples of mean weight 1


@pytest.mark.parametrize("metric", [m for m in RANKING if m not in APART])
def test_bounds_of_weights_are_those_of_counts_in_the_limit(metric: Metric) -> None:
    """Weights are masses on the axis of ranks: 4,000 single samples a bucket are nearly a mass."""
    many = tuple((4000 * w, 4000 * r) for w, r in WORLDS["spread"])
    score = np.concatenate([[c - 2**-40, c] for c in CENTRES[:3]]).repeat(2)
    outcome = np.tile([0, 1, 0, 1], 3)
    mass = np.concatenate([[w / 2, r / 2, w / 2, r / 2] for w, r in many])
    weighted = squeezed(hs.tally(score, correct=outcome, weight=mass))
    rows = [
        (c - i * 2**-40, ok)
        for c, (w, r) in zip(CENTRES, many, strict=False)
        for i, ok in enumerate([0] * w + [1] * r)
    ]
    counted = squeezed(hs.tally([s for s, _ in rows], correct=[ok for _, ok in rows]))
    assert certified(metric, weighted) == pytest.approx(certified(metric, counted), abs=6e-4)


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
    for metric in (hs.aurc, hs.auroc, hs.aupr):
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


# Bounds of exact data are points.

EXACT = {
    "a few": hs.tally([0.9, 0.8, 0.8, 0.6, 0.5], correct=[1, 1, 0, 1, 0]),
    "all right": hs.tally([0.9, 0.8, 0.8], correct=[1, 1, 1]),
    "all wrong": hs.tally([0.9, 0.8, 0.8], correct=[0, 0, 0]),
    "weights": hs.tally([0.9, 0.8, 0.8, 0.6], correct=[1, 0, 1, 1], weight=[0.3, 1.2, 2.0, 0.7]),
}


@pytest.mark.parametrize("name", EXACT)
def test_bounds_of_exact_data_are_the_value(name: str) -> None:
    t = EXACT[name]
    for metric in RANKING if t.weighted else BOUNDED:
        value = metric(t)
        if not isnan(value):
            find = BOUNDS[unwrap_metric(metric)]
            ends = find(metric, t, *get_arguments(metric), **get_options(metric))
            assert ends == pytest.approx((value, value), abs=1e-9, rel=1e-9), metric


@pytest.mark.parametrize("weighted", [True, False])
def test_an_accuracy_that_is_just_reached_counts(weighted: bool) -> None:
    """Three right answers, then one wrong of the second bucket: 3 of 4 again."""
    score = [0.8531, 0.8532, 0.8533, *(0.6471 + 1e-5 * np.arange(9))]
    weight = np.ones(12) if weighted else None
    t = squeezed(hs.tally(score, correct=[1] * 3 + [0] * 9, weight=weight))
    low, high = certified(partial(hs.coverage_at_risk, risk=0.25), t)
    assert (low, high) == pytest.approx((0.25, 4 / 12), abs=1e-8)
    high = certified(partial(hs.coverage_at_risk, risk=0.2), t)[1]
    assert high == pytest.approx((3.75 if weighted else 3) / 12, abs=1e-8)


def test_bounds_of_certain_answers_that_are_right() -> None:
    exact = hs.tally([1.0, 0.5, 0.0], correct=[1, 1, 0])
    low, high = certified(hs.correctness_nll, squeezed(exact))
    assert low <= hs.correctness_nll(exact) <= high < 0.3
    wrong = squeezed(hs.tally([1.0, 0.5, 0.0], correct=[0, 1, 1]))
    assert certified(hs.correctness_nll, wrong)[1] == inf


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (hs.aece, "adaptive bins follow single scores"),
        (hs.debiased_ece, "equal_size bins follow single scores"),
        (hs.rms_calibration_error, "equal_size bins follow single scores"),
        (partial(hs.ece, bins=hs.equal_range(7)), "these bins cut through buckets"),
        (hs.smooth_ece, "smooth_ece has no certified bounds .* looks at single scores"),
        (hs.eor, "eor has no certified bounds"),
        (hs.oracle_accuracy, "oracle_accuracy has no certified bounds"),
        (partial(hs.aurc, variant="step"), "known for variant='expected', not for 'step'"),
        (partial(hs.aupr, method="trapezoid"), "known for method='step', not for 'trapezoid'"),
        (lambda t: t.n, "is not a metric of howsure"),
    ],
)
def test_no_proof_is_said(metric: Metric, why: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(hs.InputError, match=why):
        certified(metric, squeezed(hs.tally(rng.random(999), correct=rng.random(999) < 0.5)))


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
    assert set(report_bounds(catalogue.list_ranking_items(), t)["aurc"]) == set()
    found = report_bounds(
        [*catalogue.list_ranking_items(), *catalogue.list_claim_items()], t.compact(400)
    )
    low, high = found["aurc"]["bounds"]
    assert low < hs.aurc(t) < high
    assert found["aece"]["bounds"] is None
    assert "adaptive" in found["aece"]["bounds_why"]
    assert as_rows(t).approximate is None
