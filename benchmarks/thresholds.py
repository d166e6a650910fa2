"""Does the threshold hold? Rules that other tools use, beside howsure's, on the same real predictions.

    python -m benchmarks.thresholds --runs 1000 > table.md

A deployment draws n labelled answers of a real set with replacement and asks each rule for the
least confidence at which at most a share `risk` of the accepted answers is wrong. A threshold is
broken where its error rate in the whole set is above that. Each rule is written here from its
documentation:

- plug-in: the lowest threshold whose accepted labels keep the target;
- plug-in, split: chosen so on one half, given where the other half keeps the target too;
- Wilson: the lowest threshold whose Wilson lower limit of accuracy (z = 1.96) keeps the target;
- MAPIE, Bonferroni and MAPIE, fixed sequence: `BinaryClassificationController` on whether an answer
  is right, precision as risk: Hoeffding-Bentkus p-values at 100 thresholds from 0 to 0.99, level 95 %;
- tuned: scikit-learn's `TunedThresholdClassifierCV`: the mean over five folds of the accepted share
  where the target is kept, else 0, highest among 100 thresholds;
- fixed 0.9: what many guides begin with.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

import howsure as hs
from benchmarks.real_guarantees import SETS, World, read_set

SIZES = (100, 300, 1_000, 5_000)
DELTA = 0.05
FORMS = ("as it is", "two decimals", "shuffled")
GRID = np.linspace(0, 0.99, 100)
Choose = Callable[[np.ndarray, np.ndarray, float], float]


def count_above(
    score: np.ndarray, wrong: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many answers reach each threshold, and how many of them are wrong."""
    order = np.argsort(score, kind="stable")
    kept = len(score) - np.searchsorted(score[order], at, side="left")
    errors = np.concatenate([[0], np.cumsum(wrong[order][::-1])])
    return kept, errors[kept]


def choose_lowest(at: np.ndarray, good: np.ndarray) -> float:
    return float(at[good].min()) if good.any() else np.inf


def plug_in(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    at = np.unique(score)
    kept, errors = count_above(score, wrong, at)
    return choose_lowest(at, errors <= risk * kept)


def plug_in_split(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    half = len(score) // 2
    chosen = plug_in(score[:half], wrong[:half], risk)
    kept, errors = count_above(score[half:], wrong[half:], np.array([chosen]))
    return chosen if kept[0] and errors[0] <= risk * kept[0] else np.inf


def wilson(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    at = np.unique(score)
    kept, errors = count_above(score, wrong, at)
    p, z = 1 - errors / kept, 1.96
    spread = z * np.sqrt(p * (1 - p) / kept + z**2 / (4 * kept**2))
    low = (p + z**2 / (2 * kept) - spread) / (1 + z**2 / kept)
    return choose_lowest(at, low >= 1 - risk)


def test_thresholds(score: np.ndarray, wrong: np.ndarray, risk: float) -> np.ndarray:
    """Hoeffding-Bentkus p-values that the risk at each threshold of the grid is above the target."""
    kept, errors = count_above(score, wrong, GRID)
    rate = np.minimum(errors / np.maximum(kept, 1), risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(rate > 0, rate * np.log(rate / risk), 0.0)
        entropy = first + (1 - rate) * np.log((1 - rate) / (1 - risk))
    hoeffding = np.exp(-kept * entropy)
    bentkus = np.e * binom.cdf(errors, kept, risk)
    return np.where(kept > 0, np.minimum(hoeffding, bentkus), 1.0)


def mapie_bonferroni(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    return choose_lowest(GRID, test_thresholds(score, wrong, risk) <= DELTA / len(GRID))


def mapie_sequence(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    passed = test_thresholds(score, wrong, risk)[::-1] <= DELTA
    many = int(np.logical_and.accumulate(passed).sum())
    return float(GRID[::-1][many - 1]) if many else np.inf


def tuned(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    at = np.linspace(score.min(), score.max(), 100)
    worth = np.zeros(len(at))
    for fold in range(5):
        mine = np.arange(len(score)) % 5 == fold
        kept, errors = count_above(score[mine], wrong[mine], at)
        worth += np.where((kept > 0) & (errors <= risk * kept), kept / mine.sum(), 0.0)
    return float(at[np.argmax(worth)]) if worth.max() > 0 else np.inf


def howsure_band(score: np.ndarray, wrong: np.ndarray, risk: float) -> float:
    t = hs.tally(score, correct=~wrong)
    return hs.policies.guaranteed_threshold(t, risk=risk, delta=DELTA).threshold


RULES: dict[str, Choose] = {
    "plug-in": plug_in,
    "plug-in, split": plug_in_split,
    "Wilson": wilson,
    "tuned": tuned,
    "fixed 0.9": lambda *_: 0.9,
    "MAPIE, Bonferroni": mapie_bonferroni,
    "MAPIE, fixed sequence": mapie_sequence,
    "howsure": howsure_band,
}


def deploy(world: World, n: int, runs: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Share of deployments with a threshold, with a broken one, and the mean true coverage."""
    rng = np.random.default_rng([seed, n])
    truth, size = world.truth, len(world.score)
    sums = {name: np.zeros(3) for name in RULES}
    for _ in range(runs):
        rows = rng.integers(0, size, n)
        score, wrong = world.score[rows], world.wrong[rows] > 0
        for name, choose in RULES.items():
            threshold = choose(score, wrong, world.risk)
            if threshold == np.inf:
                continue
            kept = int(np.searchsorted(-world.score, -threshold, side="right"))
            broken = bool(kept) and truth[kept - 1] > world.risk + 1e-12
            sums[name] += (1, broken, kept / size)
    return {name: tuple((total / runs).tolist()) for name, total in sums.items()}


def list_worlds(form: str) -> list[World]:
    """Each set: its confidence as it is, with two decimals, or shuffled, so that it says nothing and
    the error rate of all, just above the target, is that of every threshold.
    """
    rng = np.random.default_rng(0)
    worlds: list[World] = []
    for name in SETS:
        preds = read_set(name)
        score = preds.confidence.astype(np.float64)
        wrong = ~preds.correct
        risk = 0.02 if wrong.mean() < 0.08 else 0.05
        if form == "two decimals":
            score = np.round(score, 2)
        elif form == "shuffled":
            score, risk = rng.permutation(score), float(wrong.mean()) / 1.02
        order = np.argsort(-score, kind="stable")
        worlds.append(World(name, score[order], wrong[order].astype(float), risk))
    return worlds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        "| confidence | labels | rule | given | broken | broken, of those given | worst set, broken | coverage |"
    )
    print("|---" * 8 + "|")
    for form in FORMS:
        worlds = list_worlds(form)
        for n in SIZES:
            found = [deploy(world, n, args.runs, args.seed) for world in worlds]
            for name in RULES:
                given, broken, coverage = (
                    np.array([one[name][i] for one in found]) for i in range(3)
                )
                of_given = broken.sum() / given.sum() if given.any() else np.nan
                shares = (given.mean(), broken.mean(), of_given, broken.max(), coverage.mean())
                cells = [form, f"{n:,}", name, *(f"{share:.3f}" for share in shares)]
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
