"""Does a judge that a few people checked say the truth? Coverage of `hs.estimate`, many times.

    python -m benchmarks.judges --runs 1000 > table.md

Answers of a system are right or wrong; a judge gives each a score, people label some of them. The
judge alone is its mean score; `estimate` corrects it by the labelled answers; "people alone" are
the labelled answers with the limits of Clopper and Pearson. Truth is the share of right answers
among those that nobody labelled.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

import howsure as hs

UNLABELLED = 3_000


@dataclass(frozen=True)
class Judge:
    """Scores an answer of quality z by its own slope, indulgence and noise, in so many decimals."""

    name: str
    slope: float
    indulgence: float
    noise: float
    decimals: int = 2


JUDGES = (
    Judge("indulgent", 1.1, 1.0, 0.7),
    Judge("strict", 1.1, -1.2, 0.7),
    Judge("always sure of itself", 3.0, 0.5, 2.0),
    Judge("coarse, ten grades", 1.0, 0.8, 1.0, 1),
    Judge("yes or no", 1.2, 0.8, 1.0, 0),
    Judge("hardly better than chance", 0.2, 1.0, 2.0),
)


def measure(judge: Judge, labels: int, rng: np.random.Generator) -> list[float]:
    """Judge alone, estimate, its limits, width of people alone, truth."""
    n = labels + UNLABELLED
    quality = rng.normal(1.9, 3.5, n)
    right = rng.random(n) < expit(quality)
    z = judge.slope * quality + judge.indulgence + judge.noise * rng.normal(size=n)
    score = np.round(expit(z), judge.decimals)
    labelled = hs.Predictions.from_confidence(score[:labels], right[:labels])
    others = hs.Predictions.from_confidence(score[labels:])
    found = hs.estimate(labelled, others)
    people = hs.bounds.clopper_pearson_interval(int(right[:labels].sum()), labels, 0.95)
    truth = float(right[labels:].mean())
    alone = float(score[labels:].mean())
    return [alone, found.accuracy, found.low, found.high, people[1] - people[0], truth]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    heads = ["judge", "labels", "truth", "judge alone", "corrected", "limits hold", "width"]
    print("| " + " | ".join([*heads, "width of people alone"]) + " |")
    print("|---" * 8 + "|")
    for judge in JUDGES:
        for labels in (100, 300):
            rng = np.random.default_rng([args.seed, labels])
            found = np.array([measure(judge, labels, rng) for _ in range(args.runs)])
            alone, corrected, low, high, people, truth = found.T
            held = (low <= truth) & (truth <= high)
            cells = [truth.mean(), alone.mean(), corrected.mean(), held.mean()]
            cells += [(high - low).mean(), people.mean()]
            shown = [f"{cell:.3f}" for cell in cells]
            print("| " + " | ".join([judge.name, f"{labels}", *shown]) + " |", flush=True)


if __name__ == "__main__":
    main()
