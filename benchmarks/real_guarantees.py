"""Do guarantees hold on real predictions, and how much does each method accept?

    python -m benchmarks.real_guarantees --runs 1000 > table.md

A world is a set of real predictions, as it is or changed: its scores rounded, its surest answers
made noisy, or every answer wrong with a probability just beyond the risk. A deployment draws n
labels from it with replacement and asks for a threshold; the risk of this threshold in the whole
set is the truth. At the end the chance of a wrong promise is computed exactly, state by state, for
random settings at their least favourable world, a flat risk.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
from scipy.stats import binom, binomtest

import howsure as hs
from howsure.policies.band import compute_band_limits, find_chain_start

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
SETS = (
    "ak_resnet20_c10",
    "cleanlab_imdb",
    "eurosat_rgb",
    "hollance_snacks",
    "in1k_timm_efficientnet_b3a",
    "netcal_densenet_bc_100_c100",
)
METHODS = ("band", "fixed_sequence", "fallback", "sgr")
SIZES = (100, 300, 1_000, 5_000)
DELTA = 0.1


@dataclass(frozen=True)
class World:
    """Scores, descending, and the chance that each answer is wrong."""

    name: str
    score: np.ndarray
    wrong: np.ndarray
    risk: float

    @property
    def truth(self) -> np.ndarray:
        """The risk of accepting down to each row."""
        return np.cumsum(self.wrong) / np.arange(1, len(self.wrong) + 1)


def read_set(name: str) -> hs.Predictions:
    """The test split of a set, or all of it."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.is_file():
        sys.exit(f"{path.name} is not in {path.parent}; set HOWSURE_SHARED to the folder above it")
    try:
        return hs.read(path)
    except hs.InputError:
        return hs.read(path, split="test")


def list_worlds(rng: np.random.Generator) -> Iterator[World]:
    """Each set in four forms."""
    for name in SETS:
        preds = read_set(name)
        order = np.argsort(-preds.confidence, kind="stable")
        score, wrong = preds.confidence[order], (~preds.correct[order]).astype(float)
        risk = 0.02 if wrong.mean() < 0.08 else 0.05
        yield World(name, score, wrong, risk)
        yield World(f"{name}, 2 digits", np.round(score, 2), wrong, risk)
        noisy = wrong.copy()
        top = slice(0, len(noisy) // 50)
        noisy[top] = rng.random(len(noisy[top])) < 0.3
        yield World(f"{name}, noisy top", score, noisy, risk)
        yield World(f"{name}, flat", score, np.full(len(wrong), risk * 1.02), risk)


def deploy(world: World, n: int, runs: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Share of broken promises, its p against delta, and the mean true coverage, by method."""
    rng = np.random.default_rng([seed, n])
    truth, size = world.truth, len(world.score)
    broken = dict.fromkeys(METHODS, 0)
    coverage = dict.fromkeys(METHODS, 0.0)
    for _ in range(runs):
        rows = rng.integers(0, size, n)
        t = hs.tally(world.score[rows], correct=rng.random(n) >= world.wrong[rows])
        for method in METHODS:
            g = hs.policies.guaranteed_threshold(t, risk=world.risk, delta=DELTA, method=method)
            if g.feasible:
                kept = int(np.searchsorted(-world.score, -g.threshold, side="right"))
                broken[method] += bool(truth[kept - 1] > world.risk + 1e-12)
                coverage[method] += kept / size
    out: dict[str, tuple[float, float, float]] = {}
    for method in METHODS:
        p = binomtest(broken[method], runs, DELTA, alternative="greater").pvalue
        out[method] = (broken[method] / runs, float(p), coverage[method] / runs)
    return out


def deploy_segments(
    world: World, sizes: Sequence[float], n: int, *, together: bool, runs: int, seed: int
) -> tuple[float, float, float]:
    """Segments of unequal sizes: the largest share in which the guarantee of one is broken, the
    share in which any is, and the mean true coverage.
    """
    rng = np.random.default_rng([seed, n, len(sizes)])
    rule = partial(hs.policies.guaranteed_threshold, risk=world.risk, delta=DELTA)
    truth, size = world.truth, len(world.score)
    broken, any_broken, coverage = Counter[str](), 0, 0.0
    for _ in range(runs):
        rows = rng.integers(0, size, n)
        segment = rng.choice(
            [f"s{i}" for i in range(len(sizes))], n, p=np.divide(sizes, sum(sizes))
        )
        preds = hs.Predictions.from_confidence(
            world.score[rows],
            rng.random(n) >= world.wrong[rows],
            attributes={"segment": segment},
        )
        policy = hs.policies.Policy.fit(preds, rule, by="segment", together=together)
        failed = False
        for name, threshold in zip(policy.keys, policy.thresholds, strict=True):
            kept = int(np.searchsorted(-world.score, -threshold, side="right"))
            if kept and truth[kept - 1] > world.risk + 1e-12:
                broken[name] += 1
                failed = True
            coverage += kept / size * sizes[int(name[1:])] / sum(sizes)
        any_broken += failed
    return max(broken.values(), default=0) / runs, any_broken / runs, coverage / runs


def print_segments(rng: np.random.Generator, runs: int, seed: int) -> None:
    """Six segments of one real set, as it is and at a flat risk just beyond the limit."""
    worlds = [world for world in list_worlds(rng) if world.name.startswith("ak_resnet20_c10")]
    print("\n| world | n | together | one broken, at most | any broken | coverage |")
    print("|---|---|---|---|---|---|")
    for world in (worlds[0], worlds[3]):
        for together in (False, True):
            one, many, coverage = deploy_segments(
                world, (8, 4, 4, 2, 1, 0.3), 3_000, together=together, runs=runs, seed=seed
            )
            print(
                f"| {world.name} | 3,000 | {together} | {one:.3f} | {many:.3f} | {coverage:.3f} |"
            )


def compute_wrong_chance(n: int, risk: float, delta: float) -> float:
    """The chance that the band or the first step of its chain accepts a flat risk, every state
    kept.
    """
    limits = compute_band_limits(n, risk, delta)
    start = find_chain_start(n, risk, delta)
    mass, seen, met, chained = np.ones(1), 0, 0.0, False
    for rank, band, chain in zip(limits.rank, limits.band, limits.chain, strict=True):
        step = int(rank) - seen
        mass = np.convolve(mass, binom.pmf(np.arange(step + 1), step, risk))
        seen, limit = int(rank), int(band)
        if rank >= start and not chained:
            limit, chained = max(limit, int(chain)), True
        met += float(mass[: limit + 1].sum())
        mass[: limit + 1] = 0
    return met


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only worlds whose name contains this")
    parser.add_argument("--segments", action="store_true", help="only what is cut into segments")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    if args.segments:
        print_segments(rng, args.runs, args.seed)
        return
    heads = [*(f"{m} broken" for m in METHODS), *(f"{m} coverage" for m in METHODS)]
    print("| " + " | ".join(["world", "n", "risk", *heads]) + " |")
    print("|---" * (3 + len(heads)) + "|")
    results: list[dict[str, tuple[float, float, float]]] = []
    for world, n in zip(list_worlds(rng), cycle((*SIZES, 300)), strict=False):
        if args.only not in world.name:
            continue
        found = deploy(world, n, args.runs, args.seed)
        results.append(found)
        cells = [world.name, f"{n:,}", f"{world.risk:g}"]
        cells += [f"{found[m][0]:.3f}" for m in METHODS]
        cells += [f"{found[m][2]:.3f}" for m in METHODS]
        print("| " + " | ".join(cells) + " |", flush=True)
    for m in METHODS:
        worst = max(found[m][0] for found in results)
        least = min(found[m][1] for found in results)
        mean = np.mean([found[m][2] for found in results])
        print(
            f"{m}: largest broken share {worst:.3f} (least p {least:.2g}), mean coverage {mean:.3f}"
        )
    chances: list[float] = []
    for _ in range(args.settings):
        n = int(10 ** rng.uniform(1, 3.5))
        risk, delta = rng.uniform(0.01, 0.5), rng.uniform(0.01, 0.3)
        chances.append(compute_wrong_chance(n, risk, delta) / delta)
    print(
        f"exact chance of a wrong promise over delta, {len(chances)} settings: "
        f"largest {max(chances):.9f}, mean {np.mean(chances):.3f}"
    )


if __name__ == "__main__":
    main()
