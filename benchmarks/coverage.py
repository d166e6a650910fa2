"""Do the intervals hold what they say? Draw data whose true values are known, many times, and count.

    python -m benchmarks.coverage --runs 2000            # goes on where it stopped
    python -m benchmarks.coverage --table                # writes the table into docs/intervals.md

A setting is a way to draw data and the true value of each metric. Every run draws data, asks for 95 % limits and
notes on which side of them the truth is. Results are kept per setting, so several processes can share the work
(`--part 0/2`, `--part 1/2`).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

import howsure as hs
from howsure.uncertainty.draws import draw_pair
from howsure.uncertainty.intervals import Interval, percentiles, values

ROOT = Path(__file__).parent
RESULTS, PAGE = ROOT / "results" / "coverage", ROOT.parent / "docs" / "intervals.md"
MARKS = ("<!-- coverage: begin -->", "<!-- coverage: end -->")
ACCURACIES, SIZES = (0.7, 0.9, 0.97), (500, 5000)
SPREAD = 3.0  # p(right) is Beta(3 a, 3 (1 - a)) at accuracy a
SHARPER = 1.5  # an over-confident claim multiplies the log odds by this
POINTS = 1_000_000  # quantiles that stand for the population
SAVE = 25  # runs between two saves
RANKING = {"accuracy": hs.accuracy, "auroc": hs.auroc, "aurc": hs.aurc, "augrc": hs.augrc}
CALIBRATION = {"ece": hs.ece, "debiased_ece": hs.debiased_ece}
Metrics = dict[str, Callable[..., float]]
Random = np.random.Generator
Limits = dict[str, Interval]


@dataclass(frozen=True)
class Setting:
    """`limits` draws data and asks for the limits of every metric; `truth` is what they should contain."""

    kind: str
    name: str
    limits: Callable[[Random], Limits]
    truth: Callable[[], dict[str, float]]
    share: float = 1.0  # of the runs that are asked for

    @property
    def path(self) -> Path:
        return RESULTS / (re.sub(r"\W+", "_", f"{self.kind} {self.name}") + ".json")


def claim_of(p: np.ndarray, sharper: float) -> np.ndarray:
    return expit(sharper * logit(p))


def inside(p: np.ndarray) -> np.ndarray:
    """Probabilities of being right kept away from 0 and 1, where claims would round together."""
    return np.clip(p, 1e-9, 1 - 1e-9)


@cache
def population(accuracy: float, sharper: float) -> dict[str, float]:
    """True values by integration over a million quantiles."""
    u = (np.arange(POINTS) + 0.5) / POINTS
    p = inside(beta.ppf(u, SPREAD * accuracy, SPREAD * (1 - accuracy)))
    claim = claim_of(p, sharper)
    t = hs.tally(p, loss=1 - p)
    wrong_below = np.cumsum(1 - p) - (1 - p) / 2  # p ascends
    auroc = float(np.dot(p, wrong_below) / p.sum() / (1 - p).sum())
    gap = claim - p
    ranges = np.minimum(np.ceil(claim * 15).astype(int), 15)
    ece = np.abs(np.bincount(ranges, gap)).sum() / POINTS
    squared = np.mean([part.mean() ** 2 for part in np.array_split(gap, 15)])
    ranking = {"accuracy": p.mean(), "auroc": auroc, "aurc": hs.aurc(t), "augrc": hs.augrc(t)}
    return {**ranking, "ece": float(ece), "debiased_ece": float(np.sqrt(squared))}


def of_each(metrics: Metrics, data: hs.Tally | hs.Outcomes, seed: int) -> Limits:
    return dict(zip(metrics, hs.each_interval(list(metrics.values()), data, 0.95, seed), strict=True))


def single(accuracy: float, n: int, sharper: float, metrics: Metrics) -> Callable[[Random], Limits]:
    def limits(rng: Random) -> Limits:
        p = inside(rng.beta(SPREAD * accuracy, SPREAD * (1 - accuracy), n))
        t = hs.tally(claim_of(p, sharper), correct=rng.random(n) < p)
        return of_each(metrics, t, int(rng.integers(2**31)))

    return limits


def clustered(clusters: int, size: int, rng: Random) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, right or wrong, and cluster; a cluster as a whole is easier or harder than its scores say."""
    group = np.repeat(np.arange(clusters), size)
    claimed = rng.normal(2.0, 1.5, len(group)) + rng.normal(0.0, 1.0, clusters)[group]
    right = rng.random(len(group)) < expit(claimed + rng.normal(0.0, 1.0, clusters)[group])
    return expit(claimed), right, group


@cache
def clustered_truth() -> dict[str, float]:
    score, right, _ = clustered(500_000, 20, np.random.default_rng(1))
    t = hs.tally(score, correct=right)
    return {name: metric(t) for name, metric in RANKING.items()}


def clusters(known: bool) -> Callable[[Random], Limits]:
    def limits(rng: Random) -> Limits:
        score, right, group = clustered(250, 20, rng)
        o = hs.Outcomes(score, correct=right, group=group if known else None)
        return of_each(RANKING, o, int(rng.integers(2**31)))

    return limits


def twins(n: int) -> Callable[[Random], Limits]:
    """Two models that are equally good: each sees the difficulty of a sample with its own noise."""

    def side(difficulty: np.ndarray, rng: Random) -> hs.Outcomes:
        claimed = difficulty + rng.normal(0.0, 1.0, n)
        return hs.Outcomes(expit(claimed), correct=rng.random(n) < expit(claimed))

    def limits(rng: Random) -> Limits:
        difficulty = rng.normal(2.5, 1.5, n)
        a, b = draw_pair(side(difficulty, rng), side(difficulty, rng), int(rng.integers(2**31)))
        return {name: percentiles(values(m, a) - values(m, b), 0.95) for name, m in RANKING.items()}

    return limits


def settings() -> list[Setting]:
    name: Callable[[float, int], str] = lambda a, n: f"accuracy {a:g}, n = {n:,}"
    out = [
        Setting(
            "over-confident", name(a, n), single(a, n, SHARPER, RANKING | CALIBRATION), partial(population, a, SHARPER)
        )
        for n in SIZES
        for a in ACCURACIES
    ]
    out += [Setting("paired", f"n = {n:,}", twins(n), lambda: dict.fromkeys(RANKING, 0.0)) for n in SIZES]
    for known in ("with", "without"):
        out.append(Setting("clusters", f"250 of 20, {known} group", clusters(known == "with"), clustered_truth, 0.5))
    return out + [
        Setting("calibrated", name(a, n), single(a, n, 1.0, CALIBRATION), partial(population, a, 1.0), 0.25)
        for n in SIZES
        for a in ACCURACIES
    ]


def run(setting: Setting, runs: int, index: int) -> None:
    """Go on from what is stored up to `runs` runs; run i of a setting always draws the same data."""
    done = json.loads(setting.path.read_text()) if setting.path.exists() else {"runs": 0, "seconds": 0.0, "found": {}}
    truth = setting.truth()
    started = time.process_time()
    for i in range(done["runs"], runs):
        for name, limits in setting.limits(np.random.default_rng([index, i])).items():
            count(done["found"].setdefault(name, {"low": 0, "inside": 0, "high": 0, "none": 0}), limits, truth[name])
        done["runs"] = i + 1
        if done["runs"] % SAVE == 0 or done["runs"] == runs:
            done["seconds"] += time.process_time() - started
            started = time.process_time()
            save(setting.path, done)


def count(found: dict[str, int], limits: Interval, truth: float) -> None:
    """Where the truth is: below the limits, inside, above them; or there were none."""
    side = "none" if limits.why else "low" if truth < limits.low else "high" if truth > limits.high else "inside"
    found[side] += 1


def save(path: Path, done: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(done) + "\n")
    beside.replace(path)


def table() -> str:
    lines = []
    for kind in ("over-confident", "calibrated", "clusters", "paired"):
        stored = [(s, json.loads(s.path.read_text())) for s in settings() if s.kind == kind and s.path.exists()]
        if not stored:
            continue
        names = list(stored[0][1]["found"])
        title = "rejects no difference" if kind == "paired" else "contains the truth"
        lines += ["", f"| {kind}: {title} | runs | " + " | ".join(names) + " |", "|---|---:|" + "---:|" * len(names)]
        for setting, done in stored:
            cells = [cell(done["found"][name], kind == "paired") for name in names]
            lines.append(f"| {setting.name} | {done['runs']:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines).strip() + "\n"


def cell(found: dict[str, int], rejects: bool) -> str:
    given = found["low"] + found["inside"] + found["high"]
    if not given:
        return "none"
    share = (given - found["inside"] if rejects else found["inside"]) / given
    missing = f" (no limits in {found['none'] / (given + found['none']):.1%})" if found["none"] else ""
    return f"{share:.1%}{missing}"


def write_page() -> None:
    text = PAGE.read_text()
    start, end = (text.index(mark) for mark in MARKS)
    PAGE.write_text(text[: start + len(MARKS[0])] + "\n" + table() + text[end:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--part", default="0/1", help="which share of the settings, as 0/2")
    parser.add_argument("--table", action="store_true", help="only write the table into the page")
    chosen = parser.parse_args()
    if not chosen.table:
        part, parts = map(int, chosen.part.split("/"))
        for index, setting in enumerate(settings()):
            if index % parts == part:
                run(setting, int(chosen.runs * setting.share), index)
                print(setting.kind, setting.name, json.loads(setting.path.read_text()), flush=True)
    if PAGE.exists():
        write_page()


if __name__ == "__main__":
    main()
