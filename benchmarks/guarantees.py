"""Does the promise hold? Calibrate, deploy, compare with the true risk, many times.

    python -m benchmarks.guarantees --runs 2000 > table.md

Each setting is a distribution of scores and a probability of being right at each score, so the true
risk of every threshold is known. A run draws n labels, asks for a threshold and looks whether its
true risk is above the target. `p` is the exact binomial probability of at least that many broken
promises if each run broke with probability delta; coverage is the true one, 0 where nothing could
be promised.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binomtest

import howsure as hs

POINTS = 400_000  # quantiles that stand for a score distribution
GRID = (np.arange(POINTS) + 0.5) / POINTS
BETA = beta.ppf(GRID, 5, 1.2)


@dataclass(frozen=True)
class Setting:
    """Scores by their quantile function, and the probability of a right answer at each score."""

    name: str
    quantile: Callable[[np.ndarray], np.ndarray]
    right: Callable[[np.ndarray], np.ndarray]
    risk: float = 0.1
    delta: float = 0.1

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        score = self.quantile(rng.random(n))
        return score, rng.random(n) < self.right(score)

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores ascending, and the true risk of accepting from each one up."""
        score = self.quantile(GRID)
        wrong = np.cumsum((1 - self.right(score))[::-1])[::-1]
        return score, wrong / np.arange(POINTS, 0, -1)


def beta_scores(u: np.ndarray) -> np.ndarray:
    return np.interp(u, GRID, BETA)


def rounded(u: np.ndarray) -> np.ndarray:
    return np.round(beta_scores(u), 2)


def coarse(u: np.ndarray) -> np.ndarray:
    return np.ceil(beta_scores(u) * 5) / 5


def power(exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda s: s**exponent


def dip(s: np.ndarray) -> np.ndarray:
    """Worst where the model is surest."""
    return np.where(s > 0.97, 0.88, 0.95)


SETTINGS = [
    Setting("s^1.5, exact", beta_scores, power(1.5)),
    Setting("s^1.5, 2 decimals", rounded, power(1.5)),
    Setting("s^1.5, 5 levels", coarse, power(1.5)),
    Setting("s^0.5, exact, risk .05", beta_scores, power(0.5), risk=0.05, delta=0.05),
    Setting("s^0.2, 2 decimals, risk .02", rounded, power(0.2), risk=0.02, delta=0.1),
    Setting("s^4, exact, risk .2", beta_scores, power(4.0), risk=0.2),
    Setting("flat .93, exact", beta_scores, lambda s: np.full(len(s), 0.93)),
    Setting("dip at the top, exact", beta_scores, dip),
    Setting("just beyond the limit, exact", beta_scores, lambda s: np.full(len(s), 0.8999)),
    Setting("just beyond the limit, 5 levels", coarse, lambda s: np.full(len(s), 0.8999)),
]


def simulate(setting: Setting, n: int, method: str, runs: int, seed: int) -> dict[str, float]:
    """Share of broken promises, of feasible runs, and the mean true coverage."""
    rng = np.random.default_rng([seed, n])
    score, risk = setting.truth()
    broken, feasible, coverage = 0, 0, 0.0
    for _ in range(runs):
        s, right = setting.draw(n, rng)
        g = hs.policies.guaranteed_threshold(
            hs.tally(s, correct=right), risk=setting.risk, delta=setting.delta, method=method
        )
        if g.feasible:
            i = int(np.searchsorted(score, g.threshold))
            feasible += 1
            coverage += 1 - i / POINTS
            broken += bool(i < POINTS and risk[i] > setting.risk + 1e-12)
    p = binomtest(broken, runs, setting.delta, alternative="greater").pvalue
    return {
        "broken": broken / runs,
        "p": p,
        "feasible": feasible / runs,
        "coverage": coverage / runs,
    }


METHODS = {"fixed_sequence": "fixed", "fallback": "fallback", "sgr": "SGR"}
CLUSTERS = [(40, 25), (40, 5), (200, 10), (400, 3)]  # groups and their mean size
SHARED = (0.0, 0.3, 1.0)  # how much of a sample's fate is that of its group


def clustered(
    groups: int, size: int, shared: float, rng: np.random.Generator
) -> tuple[hs.Outcomes, np.ndarray]:
    """Groups of unequal sizes (at most three times the mean) with a score and an error rate of
    their own.
    """
    sizes = (
        np.minimum(rng.geometric(1 / size, groups), 3 * size) if size > 1 else np.ones(groups, int)
    )
    group = np.repeat(np.arange(groups), sizes)
    hard = rng.beta(1, 5, groups)  # 1/6 of the answers are wrong on average
    score = 0.5 * (1 - hard[group]) + 0.5 * rng.random(len(group))
    rate = np.clip(1.5 * (1 - score) ** 1.5, 0, 1)
    one = rng.random(groups)[group]
    wrong = np.where(rng.random(len(group)) < shared, one, rng.random(len(group))) < rate
    return hs.Outcomes(score, correct=~wrong, group=group), rate


def simulate_clusters(groups: int, size: int, shared: float, runs: int, seed: int) -> list[float]:
    """Share of broken promises and true coverage, with groups and as if rows were independent (risk
    = delta = .1).
    """
    rng = np.random.default_rng([seed, groups, size])
    many, rate = clustered(40_000, size, shared, rng)
    order = np.argsort(-many.score)
    score, risk = -many.score[order], np.cumsum(rate[order]) / np.arange(1, len(order) + 1)
    found = np.zeros((2, 2))
    for _ in range(runs):
        o, _ = clustered(groups, size, shared, rng)
        for i, data in enumerate((o, o.tally())):
            g = hs.policies.guaranteed_threshold(data, risk=0.1, delta=0.1)
            at = int(np.searchsorted(score, -g.threshold, side="right"))
            found[i] += [bool(at and risk[at - 1] > 0.1), at / len(order)]
    return list((found / runs).ravel())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Do the guaranteed thresholds keep their promise?")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 300, 2000, 20_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="settings whose name contains this; 'clusters' for groups alone"
    )
    args = parser.parse_args()
    names = list(METHODS.values())
    columns = [*(f"{name} broken (p)" for name in names), *(f"{name} coverage" for name in names)]
    print("| " + " | ".join(["setting", "risk", "delta", "n", *columns]) + " |")
    print("|---" * (4 + len(columns)) + "|")
    for setting in (s for s in SETTINGS if args.only in s.name):
        for n in args.sizes:
            found = [simulate(setting, n, method, args.runs, args.seed) for method in METHODS]
            cells = [setting.name, f"{setting.risk:g}", f"{setting.delta:g}", f"{n:,}"]
            cells += [f"{r['broken']:.4f} ({r['p']:.2g})" for r in found]
            print(
                "| " + " | ".join([*cells, *(f"{r['coverage']:.3f}" for r in found)]) + " |",
                flush=True,
            )
    if args.only in "clusters":
        print_clusters(args.runs, args.seed)


def print_clusters(runs: int, seed: int) -> None:
    """The same with groups."""
    print(
        "\n| groups | mean size | shared fate | broken | coverage | broken, rows as independent | coverage |"
    )
    print("|---|---|---|---|---|---|---|")
    for groups, size in CLUSTERS:
        for shared in SHARED:
            found = simulate_clusters(groups, size, shared, runs, seed)
            print(
                f"| {groups} | {size} | {shared:g} | "
                + " | ".join(f"{x:.3f}" for x in found)
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
