"""Does the guarantee of a whole case hold, and what is automatic beside the plain minimum?

    python -m benchmarks.cases --runs 1000 > table.md

A world is a population of records with several questions. A deployment draws n labelled records
from it and asks for thresholds; their risk in the whole population is the truth. `whole` is the
product of the confidences, `minimum` the least confidence of a record with the same method, and
`partial` single answers. A guarantee is broken where the true risk is above the target; of segments
the one that breaks more often is shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

import howsure as hs

POPULATION = 100_000
RISK, DELTA = 0.05, 0.1
SIZES = (300, 1_000)


@dataclass(frozen=True)
class World:
    """Confidence, right or wrong and asked or not, each (records, questions)."""

    name: str
    confidence: np.ndarray
    correct: np.ndarray
    asked: np.ndarray
    segment: np.ndarray


def make_world(
    name: str,
    rng: np.random.Generator,
    questions: int,
    *,
    ease: float = 4.0,
    dependence: float = 0.0,
    digits: int | None = None,
    hard: bool = False,
    segments: int = 1,
    asked: float = 1.0,
    overconfidence: float = 1.0,
) -> World:
    """Answers whose logits share a part within a record, and so do their errors."""
    shape = (POPULATION, questions)
    share = np.sqrt(dependence)
    rest = np.sqrt(1 - dependence)
    segment = rng.integers(0, segments, POPULATION)
    z = share * rng.normal(size=(POPULATION, 1)) + rest * rng.normal(size=shape)
    z = ease + 2.5 * z - 1.5 * segment[:, None]
    if hard:
        z[:, 0] -= 3.0
    luck = ndtr(share * rng.normal(size=(POPULATION, 1)) + rest * rng.normal(size=shape))
    correct = luck < expit(z)
    confidence = expit(overconfidence * z)
    if digits is not None:
        confidence = np.round(confidence, digits)
    there = rng.random(shape) < asked
    there[:, 0] |= ~there.any(axis=1)
    return World(name, confidence, correct, there, segment)


def list_worlds(rng: np.random.Generator) -> Iterator[World]:
    """From one question to ten."""
    yield make_world("1 question", rng, 1)
    yield make_world("3 questions", rng, 3, ease=5.0)
    yield make_world("10 questions, dependent errors", rng, 10, ease=6.0, dependence=0.6)
    yield make_world("5 questions, two decimals", rng, 5, ease=7.0, digits=2, overconfidence=0.5)
    yield make_world("5 questions, one of them hard", rng, 5, ease=7.5, hard=True)
    yield make_world("4 questions, two segments", rng, 4, ease=7.0, segments=2, dependence=0.3)
    yield make_world("8 questions, half of them asked", rng, 8, ease=6.0, asked=0.5, dependence=0.3)
    flat = make_world("3 questions, flat just beyond the risk", rng, 3)
    wrong = rng.random(POPULATION) < RISK * 1.02
    correct = np.ones_like(flat.correct)
    correct[:, 0] = ~wrong
    yield World(flat.name, flat.confidence, correct, flat.asked, flat.segment)


@dataclass
class Truth:
    """The scores of the units of a population, descending, and the risk of accepting down to each."""

    score: np.ndarray
    risk: np.ndarray

    @classmethod
    def of(cls, score: np.ndarray, wrong: np.ndarray, every: bool) -> Truth:
        """Of the accepted units, or with `every` of all of them."""
        order = np.argsort(-score, kind="stable")
        errors = np.cumsum(wrong[order])
        among = np.full(len(order), len(order)) if every else np.arange(1, len(order) + 1)
        return cls(score[order], errors / among)

    def look_up(self, threshold: float) -> tuple[float, float]:
        """Share accepted, and its risk."""
        kept = int(np.searchsorted(-self.score, -threshold, side="right"))
        return kept / len(self.score), float(self.risk[kept - 1]) if kept else 0.0


def score_cases(world: World, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Both scores of each record."""
    c = np.where(world.asked, world.confidence, 1.0)[rows]
    logs = np.sort(np.log(np.maximum(c, 1e-300)), axis=1)
    product = np.zeros(len(c))
    for column in logs.T:  # the least first, as howsure adds them
        product += column
    return {"whole": product, "minimum": c.min(axis=1)}


def deploy(world: World, n: int, runs: int, seed: int) -> dict[str, tuple[float, float]]:
    """Share of broken guarantees and mean true coverage of each rule."""
    rng = np.random.default_rng([seed, n])
    found: dict[str, list[tuple[float, float]]] = {"whole": [], "minimum": [], "partial": []}
    for number in np.unique(world.segment):
        pool = np.flatnonzero(world.segment == number)
        right, asked, c = (
            getattr(world, name)[pool] for name in ("correct", "asked", "confidence")
        )
        broken_case = (asked & ~right).any(axis=1)
        scores = score_cases(world, pool)
        truths = {name: Truth.of(scores[name], broken_case, every=False) for name in scores}
        surest_wrong = np.sort(np.where(asked & ~right, c, -1.0).max(axis=1))
        answers = np.sort(c[asked])
        broken, coverage = dict.fromkeys(found, 0), dict.fromkeys(found, 0.0)
        for _ in range(runs):
            rows = rng.integers(0, len(pool), n)
            made = hs.policies.guaranteed_cases(
                c[rows], right[rows], asked[rows], risk=RISK, delta=DELTA
            )
            t = hs.tally(scores["minimum"][rows], correct=~broken_case[rows])
            least = hs.policies.guaranteed_threshold(t, risk=RISK, delta=DELTA)
            for name, threshold in (("whole", made.threshold), ("minimum", least.threshold)):
                kept, risk = truths[name].look_up(threshold)
                broken[name] += risk > RISK + 1e-12
                coverage[name] += kept
            single = hs.policies.guaranteed_cases(
                c[rows], right[rows], asked[rows], risk=RISK, delta=DELTA, partial=True
            ).threshold
            risk = 1 - np.searchsorted(surest_wrong, single) / len(pool)
            broken["partial"] += risk > RISK + 1e-12
            coverage["partial"] += 1 - np.searchsorted(answers, single) / len(answers)
        for name in found:
            found[name].append((broken[name] / runs, coverage[name] / runs))
    out: dict[str, tuple[float, float]] = {}
    for name, pairs in found.items():
        out[name] = (max(pair[0] for pair in pairs), float(np.mean([pair[1] for pair in pairs])))
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    names = ("whole", "minimum", "partial")
    heads = [*(f"{name} broken" for name in names), *(f"{name} automatic" for name in names)]
    print("| " + " | ".join(["world", "records", *heads]) + " |")
    print("|---" * (2 + len(heads)) + "|")
    for world in list_worlds(rng):
        for n in SIZES:
            found = deploy(world, n, args.runs, args.seed)
            cells = [f"{found[name][0]:.3f}" for name in names]
            cells += [f"{found[name][1]:.3f}" for name in names]
            print("| " + " | ".join([world.name, f"{n:,}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
