"""How often `calibration_test` refuses true claims, and how often it finds claims that are not.

`python -m benchmarks.claims_test [--runs 1000]` prints two Markdown tables for docs/intervals.md. Few
samples are redrawn 999 times here instead of 9,999: the level is the same, ten times sooner.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

import howsure as hs
from howsure.uncertainty import calibration_testing

Random = np.random.Generator
Claims = Callable[[int, Random], np.ndarray]
Draw = Callable[[Random], tuple[Any, int | None]]  # outcomes, and the class that is tested

CLAIMS: dict[str, Claims] = {
    "beta(4, 1)": lambda n, rng: rng.beta(4, 1, n),
    "mostly sure": lambda n, rng: expit(rng.normal(3.5, 1.5, n)),
    "very sure": lambda n, rng: 1 - 10 ** -rng.uniform(1, 6, n),
    "uniform": lambda n, rng: rng.random(n),
    "two decimals": lambda n, rng: rng.beta(4, 1, n).round(2),
    "five values": lambda n, rng: rng.choice([0.5, 0.7, 0.8, 0.9, 0.99], n),
    "rare class": lambda n, rng: expit(rng.normal(-3, 1.2, n)),
}
# What is true where p is claimed.
DEFECTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "over-confident": lambda p: expit(0.7 * logit(np.clip(p, 1e-9, 1 - 1e-9))),
    "under-confident": lambda p: expit(1.5 * logit(np.clip(p, 1e-9, 1 - 1e-9))),
    "5 points too high": lambda p: np.clip(p - 0.05, 0, 1),
    "three times fewer errors": lambda p: 1 - (1 - p) / 3,
    "off between 0.8 and 0.85": lambda p: np.where((p > 0.8) & (p < 0.85), p - 0.2, p),
}


def draw_plain(claims: Claims, n: int, positive: int | None = None) -> Draw:
    def draw(rng: Random) -> tuple[Any, int | None]:
        p = claims(n, rng)
        return hs.Outcomes(p, correct=rng.random(n) < p), positive

    return draw


def draw_groups(n: int, groups: int, alike: float) -> Draw:
    """Outcomes that are lucky or unlucky together in groups of unequal size."""

    def draw(rng: Random) -> tuple[Any, int | None]:
        size = rng.lognormal(0, 0.5, groups)
        group = rng.choice(groups, n, p=size / size.sum())
        p = rng.beta(4, 1, n)
        together = np.sqrt(alike) * rng.standard_normal(groups)[group]
        z = together + np.sqrt(1 - alike) * rng.standard_normal(n)
        return hs.Outcomes(p, correct=ndtr(z) < p, group=group), None

    return draw


def draw_defect(defect: str, n: int, positive: int | None = None) -> Draw:
    def draw(rng: Random) -> tuple[Any, int | None]:
        p = rng.random(n) if positive is not None else rng.beta(4, 1, n)
        return hs.Outcomes(p, correct=rng.random(n) < DEFECTS[defect](p)), positive

    return draw


def list_true_worlds() -> dict[str, Draw]:
    worlds = {
        f"{name}, n = {n:,}": draw_plain(CLAIMS[name], n)
        for name, n in (
            ("beta(4, 1)", 30),
            ("beta(4, 1)", 200),
            ("beta(4, 1)", 1000),
            ("beta(4, 1)", 5000),
            ("mostly sure", 200),
            ("mostly sure", 3000),
            ("very sure", 500),
            ("very sure", 5000),
            ("two decimals", 1000),
            ("five values", 300),
        )
    }
    for name, n in (("uniform", 200), ("rare class", 500), ("rare class", 5000)):
        worlds[f"P(positive), {name}, n = {n:,}"] = draw_plain(CLAIMS[name], n, positive=1)
    for n, groups, alike in ((600, 4, 0.0), (600, 15, 0.2), (1000, 40, 0.2), (3000, 100, 0.4)):
        worlds[f"{groups} groups, n = {n:,}"] = draw_groups(n, groups, alike)
    return worlds


def list_false_worlds() -> dict[str, Draw]:
    worlds = {f"{d}, n = {n:,}": draw_defect(d, n) for d in DEFECTS for n in (200, 1000)}
    for defect in ("over-confident", "under-confident"):
        worlds[f"P(positive), {defect}, n = 200"] = draw_defect(defect, 200, positive=1)
    return worlds


def count_refused(draw: Draw, runs: int) -> tuple[float, float]:
    """The share of runs with p <= 0.05: of the test, and of its intervals alone."""
    alone: list[float] = []
    rank = calibration_testing.rank_in_pool

    def keep(statistics: Any) -> Any:
        ranks = rank(statistics)
        alone.append(ranks.of_intervals)
        return ranks

    calibration_testing.rank_in_pool = keep
    calibration_testing.MANY_REDRAWS = 999
    refused = before = 0
    for i in range(runs):
        alone.clear()
        data, positive = draw(np.random.default_rng([7, i]))
        refused += hs.calibration_test(data, i, positive=positive).p <= 0.05
        before += alone[0] <= 0.05
    calibration_testing.rank_in_pool = rank
    return refused / runs, before / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print("| true claims | refused at 5 % |\n|---|---:|")
    for name, draw in list_true_worlds().items():
        print(f"| {name} | {count_refused(draw, runs)[0]:.1%} |", flush=True)
    print("\n| claims that are not true | found | by intervals alone |\n|---|---:|---:|")
    for name, draw in list_false_worlds().items():
        found, before = count_refused(draw, runs)
        print(f"| {name} | {found:.0%} | {before:.0%} |", flush=True)


if __name__ == "__main__":
    main()
