"""Do the limits hold? A short version of `python -m benchmarks.coverage`: made-up worlds, few runs,
and it can fail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.coverage import AT_ITS_BINS, CLAIMS, RANKING, Found, count, share, truths
from benchmarks.worlds import Population, Random, World, plain

import howsure as hs
from howsure.report.gate import Limit, check

RUNS = 120
EACH, ALL = 0.87, 0.93  # 0.95 less four standard errors of one cell; of all worlds together


def population(
    a: float, b: float, *, power: float = 1.0, decimals: int = 9
) -> Callable[[], Population]:
    """Answers that are right with probability Beta(a, b), which the claim tells up to a power."""
    p = np.random.default_rng(0).beta(a, b, 20_000).clip(1e-6, 1 - 1e-6)
    made = Population((p**power).round(decimals).clip(1e-6, 1 - 1e-6), p)
    return lambda: made


def grouped(make: Callable[[], Population], many: int) -> World:
    """Groups of 3 to 25 answers that share part of their luck."""

    def draw(rng: Random) -> hs.Outcomes:
        p = make()
        group = np.repeat(np.arange(many), rng.integers(3, 26, many))
        i = rng.integers(0, len(p.score), len(group))
        shared = rng.random(len(group)) < 0.3
        luck = np.where(shared, rng.random(many)[group], rng.random(len(group)))
        return hs.Outcomes(p.score[i], correct=luck < p.right[i], group=group)

    return World("clusters", f"{many}", make, draw)


def weighted(make: Callable[[], Population], n: int) -> World:
    """Sure answers are drawn more often than they should be, and weighted down."""

    def draw(rng: Random) -> hs.Outcomes:
        p = make()
        chance = np.exp(1.5 * p.score) / np.exp(1.5 * p.score).sum()
        i = np.searchsorted(np.cumsum(chance), rng.random(n)).clip(max=len(chance) - 1)
        return hs.Outcomes(p.score[i], correct=rng.random(n) < p.right[i], weight=1 / chance[i])

    return World("weights", f"{n}", make, draw)


WORLDS = [
    plain("overconfident", "half power", 200, population(4, 1.5, power=0.5)),
    plain("few errors", "3 %", 300, population(29, 1, power=0.7)),
    plain("two decimals", "round", 300, population(4, 1, power=0.8, decimals=2)),
    plain("calibrated", "honest", 300, population(4, 1)),
    grouped(population(4, 1, power=0.6), 30),
    weighted(population(4, 1, power=0.6), 400),
]


@pytest.fixture(scope="module")
def found() -> dict[str, Found]:
    """Every world's counts by metric."""
    out: dict[str, Found] = {}
    for world in WORLDS:
        p, here = world.population(), out.setdefault(world.kind, {})
        fixed = p.ranking() | p.claims()
        left_out = AT_ITS_BINS if world.kind == "weights" else {}
        metrics = {name: m for name, m in (RANKING | CLAIMS).items() if name not in left_out}
        for i in range(RUNS):
            o = world.draw(np.random.default_rng([i, len(world.kind)]))
            truth = truths(p, o.tally(), fixed, list(metrics))
            for name, limits in zip(
                metrics, hs.each_interval(list(metrics.values()), o), strict=True
            ):
                count(here, name, limits, truth[name])
    return out


@pytest.mark.parametrize("kind", [w.kind for w in WORLDS])
def test_limits_hold_in_each_world(found: dict[str, Found], kind: str) -> None:
    missed = {
        name: share(of)
        for name, of in found[kind].items()
        if of["none"] < RUNS and share(of) < EACH
    }
    assert not missed


@pytest.mark.parametrize("name", [*RANKING, *CLAIMS])
def test_limits_hold_over_all_worlds(found: dict[str, Found], name: str) -> None:
    cells = [here[name] for here in found.values() if name in here]
    given = sum(of["low"] + of["inside"] + of["high"] for of in cells)
    assert given > RUNS
    assert sum(of["inside"] for of in cells) / given >= ALL


def test_percentiles_would_fail() -> None:
    """The reason for closed forms: draws of a calibrated model's ECE never reach its true value, 0."""
    make, missed = population(4, 1), 0
    for i in range(20):
        rng = np.random.default_rng(i)
        rows = rng.integers(0, 20_000, 300)
        t = hs.tally(make().score[rows], correct=rng.random(300) < make().right[rows])
        low, _ = hs.interval(lambda t: hs.ece(t), t)
        missed += low > 0
    assert missed == 20


@pytest.mark.parametrize("name", ["nll", "brier"])
def test_a_model_that_just_misses_a_limit_on_all_classes_seldom_passes(name: str) -> None:
    """Overconfident answers, few of them wrong: a report keeps two sums of their losses, and no
    skewness.
    """
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 4000)
    whole = hs.Predictions.from_logits(
        9 * np.eye(4)[labels] + 4 * rng.standard_normal((4000, 4)), labels
    )
    limit = Limit(name, "max", {"nll": hs.nll, "brier": hs.brier}[name](whole) - 1e-9)
    passed = [check(whole[rng.integers(0, 4000, 60)], [limit])[0].passed for _ in range(400)]
    assert np.mean(passed) <= 0.025 + 4 * np.sqrt(0.025 * 0.975 / 400)


def test_samples_that_weigh_almost_the_same_have_almost_the_limits_of_equal_ones() -> None:
    rng = np.random.default_rng(2)
    score, right = rng.random(300), rng.random(300) < 0.9
    one = hs.interval(hs.accuracy, hs.Outcomes(score, correct=right))
    other = hs.interval(
        hs.accuracy, hs.Outcomes(score, correct=right, weight=1 + 1e-6 * rng.random(300))
    )
    assert other == pytest.approx(one, abs=1e-5)


def test_a_few_groups_that_hold_the_errors_lower_the_limit_of_an_accuracy() -> None:
    right = np.ones(600, dtype=bool)
    right[:40] = False
    score, together, apart = np.linspace(0, 1, 600), np.arange(600) // 20, np.arange(600) % 30
    low, apart_low = (
        hs.interval(hs.accuracy, hs.Outcomes(score, correct=right, group=g))[0]
        for g in (together, apart)
    )
    assert (
        low < 0.79 < 0.88 < apart_low
    )  # two groups of thirty are all wrong, and a third may not have been seen


@pytest.mark.parametrize(
    ("metric", "most"), [(hs.ece, 0.30), (hs.over_confidence, 0.29), (hs.debiased_ece, 0.65)]
)
def test_a_few_groups_that_hold_the_errors_raise_the_limit_of_a_calibration_error(
    metric: Callable[..., float], most: float
) -> None:
    """Design effects alone end at 0.29, 0.27 and 0.62: a third group as large as the first may not
    have been seen.
    """
    right = np.arange(600) >= 45
    together, apart = np.repeat(np.arange(30), [30, 15, *[20] * 27, 15]), np.arange(600) % 30
    high, apart_high = (
        hs.interval(metric, hs.Outcomes(np.linspace(0.9, 0.99, 600), correct=right, group=g))[1]
        for g in (together, apart)
    )
    assert apart_high < most / 2 < most < high
