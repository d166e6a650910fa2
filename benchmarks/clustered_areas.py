"""Do the limits of AURC, E-AURC and AUGRC hold with clusters, and where the very surest are wrong?

`python -m benchmarks.clustered_areas [--runs 200]` prints a Markdown table: the share of samples
whose 95 % limits hold the truth, in how many it lies above them, and their width over that of the
true spread. Claims are real; an answer is right with a known probability, and luck is shared
within a cluster, so the truth is known. The last worlds have no clusters: of 1,000 answers a
handful of the surest are wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

import howsure as hs
from benchmarks.worlds import C100, IN1K, Floats, real

METRICS = (hs.aurc, hs.e_aurc, hs.augrc)
CLUSTERS = ((20, 25, 0.3), (60, 15, 0.1), (60, 15, 0.5), (200, 5, 0.3))  # how many, size, alike
TRUTH_COPIES = 40  # of the claims, for the number of infinitely many answers


class World(NamedTuple):
    """Claims and how often they are right; clusters of a mean size whose luck is alike."""

    name: str
    claim: Floats
    right: Floats
    clusters: int
    size: int
    alike: float

    def draw(self, rng: np.random.Generator) -> hs.Predictions:
        group = np.arange(self.clusters)
        if self.size > 1:
            group = np.repeat(group, rng.geometric(1 / self.size, self.clusters))
        n = len(group)
        luck = np.sqrt(self.alike) * rng.standard_normal(self.clusters)[group]
        luck += np.sqrt(1 - self.alike) * rng.standard_normal(n)
        i = rng.integers(0, len(self.claim), n)
        known = None
        if self.size > 1:
            known = group
        return hs.Predictions.from_confidence(
            self.claim[i], ndtr(luck) < self.right[i], group=known
        )

    def measure(self) -> list[float]:
        """The numbers of very many answers, as many of each claim right as its probability says."""
        rng = np.random.default_rng(0)
        claim = np.tile(self.claim, TRUTH_COPIES)
        right = np.tile(self.right, TRUTH_COPIES)
        t = hs.tally(claim, correct=rng.random(len(claim)) < right)
        return [metric(t) for metric in METRICS]


def list_worlds() -> Iterator[World]:
    for source in (C100, IN1K):
        claim = np.clip(real(source)[0], 0.01, 0.9999)
        shapes = {
            "calibrated": claim,
            "overconfident": 0.98 * claim**2,
            "few errors": 1 - (1 - claim) / 5,
        }
        for shape, right in shapes.items():
            for many, size, alike in CLUSTERS:
                name = f"{source}, {shape}: {many} of about {size}, alike {alike:g}"
                yield World(name, claim, right, many, size, alike)
    claim = (np.arange(100_000) + 0.5) / 100_000
    for top, wrong in ((0.002, 0.5), (0.004, 0.5), (0.002, 1.0), (0.01, 0.3)):
        right = np.where(claim > 1 - top, 1 - wrong, 0.9 + 0.1 * claim)
        name = f"the surest {top:.1%} wrong in {wrong:.0%}, n = 1,000"
        yield World(name, claim, right, 1000, 1, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    heads = [f"{m.__name__}: held | above | width" for m in METRICS]
    print(f"| world | {' | '.join(heads)} |\n|---|{'---:|' * 9}")
    for world in list_worlds():
        truth = world.measure()
        values, lows, highs = (np.zeros((runs, len(METRICS))) for _ in range(3))
        for i in range(runs):
            preds = world.draw(np.random.default_rng([*world.name.encode(), i]))
            t = hs.tally(preds.confidence, correct=preds.correct)
            for j, found in enumerate(hs.each_interval(METRICS, preds)):
                values[i, j], lows[i, j], highs[i, j] = METRICS[j](t), found.low, found.high
        held = ((lows <= truth) & (truth <= highs)).mean(axis=0)
        above = (highs < truth).mean(axis=0)
        width = (highs - lows).mean(axis=0) / (3.92 * values.std(axis=0))
        cells = [f"{h:.1%} | {a:.1%} | {w:.2f}" for h, a, w in zip(held, above, width, strict=True)]
        print(f"| {world.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
