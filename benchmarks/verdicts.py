"""How often is a sentence of the verdict false?

    python -m benchmarks.verdicts                 # goes on where it stopped; writes the tables
    python -m benchmarks.verdicts --runs 20 --only calibrated
    python -m benchmarks.verdicts --table         # only writes the tables

A world is made from real predictions: the claims are theirs, and each answer is right with a known
probability, so the truth of every sentence is known. A run draws n answers, writes the whole verdict
and holds each sentence against the truth. Run i of a world always draws the same data.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

import howsure as hs
from benchmarks.coverage import save
from benchmarks.words import equal_models
from benchmarks.worlds import (
    C10,
    C100,
    DATA,
    IN1K,
    MMLU,
    Floats,
    Random,
    real,
    two_decimals,
    verbal,
)
from howsure.calibrators import Isotonic
from howsure.policies.band import find_band_row
from howsure.report import focus_sections
from howsure.report.comparing import compare
from howsure.report.verdict import VERDICT_RISKS
from howsure.uncertainty import calibration_testing

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "verdicts" / "cells.json"
TABLE, PAGE = ROOT / "results" / "verdicts.md", ROOT.parent / "docs" / "intervals.md"
MARKS = ("<!-- verdicts: begin -->", "<!-- verdicts: end -->")
SIZES = (20, 100, 500, 5000)
NUMBER = r"(-?[\d,]*\.?\d+)"
# What counts as false is written beside each sentence in the table.
SENTENCES = {
    "overconfident": "the true gap is 0 or below",
    "underconfident": "the true gap is 0 or above",
    "too extreme": "moving towards 50 % does not help, or the true slope is 1 or above",
    "too timid": "moving away from 50 % does not help, or the true slope is 1 or below",
    "too high": "the positive class is as frequent as claimed, or more so",
    "too low": "the positive class is as frequent as claimed, or less so",
    "off in places": "every claim is true",
    "a hint": "every claim is true",
    "nothing contradicts": "the true gap is the one that would have shown, or larger",
    "too few answers to tell": "",
    "no answer is wrong": "said to be underconfident where the true gap is 0 or above",
    "a guarantee": "the true risk is larger",
    "about N labels": "N new labels do not carry the guarantee",
    "even the most confident": "some true share has at most this risk",
    "no more than so many": "a larger true share has at most this risk",
    "would be empty": "the constant answer is wrong more often",
    "always answering … clearly more": "it is right as often as the model, or less",
    "always answering … (clearly less)": "it is right as often as the model, or more",
    "a tied pair": "the truth is equal, or the other way round",
}
DEFECTS = tuple(SENTENCES)[:7]


class Truth(NamedTuple):
    """A population: claims, and how often such an answer is right; of two classes P(positive) as
    said and as it is.
    """

    claim: Floats
    right: Floats
    said: Floats | None = None
    real: Floats | None = None

    @property
    def gap(self) -> float:
        return float((self.claim - self.right).mean())

    @property
    def calibrated(self) -> bool:
        return bool(np.allclose(self.claim, self.right, atol=1e-12))

    @property
    def tilt(self) -> float:
        return float(((self.right - self.claim) * (1 - 2 * self.claim)).mean())


class World(NamedTuple):
    """A population, and a draw of n answers from it."""

    name: str
    truth: Truth
    draw: Callable[[int, Random], hs.Predictions]
    sizes: tuple[int, ...] = SIZES


# Worlds


def claims_world(name: str, claim: Floats, right: Floats) -> World:
    """Independent answers."""
    claim, right = np.clip(claim, 1e-9, 1 - 1e-9), np.clip(right, 0, 1)

    def draw(n: int, rng: Random) -> hs.Predictions:
        i = rng.integers(0, len(claim), n)
        return hs.Predictions.from_confidence(claim[i], rng.random(n) < right[i])

    return World(name, Truth(claim, right), draw)


def clusters_world(name: str, claim: Floats, clusters: int, alike: float) -> World:
    """True claims whose answers are lucky or unlucky together."""

    def draw(n: int, rng: Random) -> hs.Predictions:
        group = rng.choice(
            clusters, n, p=np.arange(1, clusters + 1) / np.arange(clusters + 1).sum()
        )
        luck = np.sqrt(alike) * rng.standard_normal(clusters)[group]
        luck += np.sqrt(1 - alike) * rng.standard_normal(n)
        c = rng.choice(claim, n)
        return hs.Predictions.from_confidence(c, ndtr(luck) < c, group=group)

    return World(name, Truth(claim, claim), draw, (500, 2000, 5000))


def class_world(name: str, said: Floats, truth: Floats) -> World:
    """Two classes: P(positive) as it is said and as it is."""
    said = np.clip(said, 1e-9, 1 - 1e-9)
    claim, right = np.maximum(said, 1 - said), np.where(said > 0.5, truth, 1 - truth)

    def draw(n: int, rng: Random) -> hs.Predictions:
        i = rng.integers(0, len(said), n)
        return hs.Predictions.from_probs(said[i], (rng.random(n) < truth[i]).astype(int))

    return World(name, Truth(claim, right, said, truth), draw)


def labels_world(name: str, said: Floats, truth: Floats, many: int) -> World:
    """Cases with several labels each."""
    claim, right = np.maximum(said, 1 - said), np.where(said > 0.5, truth, 1 - truth)

    def draw(n: int, rng: Random) -> hs.Predictions:
        i = rng.integers(0, len(said), (n, many))
        return hs.Predictions.from_multilabel(said[i], (rng.random((n, many)) < truth[i]) * 1)

    return World(name, Truth(claim, right, said, truth), draw, (100, 500, 1000))


@cache
def smooth(
    source: str, change: Callable[[Floats, Random], Floats] | None = None
) -> tuple[Floats, Floats]:
    """The claims of a real set, and how often each is right by isotonic regression."""
    score, right = real(source)
    if change is not None:
        score = change(score, np.random.default_rng(3))
    fitted = Isotonic.fit(hs.Predictions.from_confidence(score, right))
    return score, np.asarray(fitted(hs.Predictions.from_confidence(score, right)).confidence)


@cache
def positive_probs(name: str) -> Floats:
    """P(class 1) of a real set of two classes."""
    preds = hs.read(DATA / f"{name}.npz", split="test")
    return np.clip(np.asarray(preds.probs[:, 1]), 1e-9, 1 - 1e-9)


def list_worlds() -> Iterator[World]:
    """Populations of one answer per case, of two classes and of many labels."""
    for source in (C10, IN1K, MMLU, C100):
        score, right = smooth(source)
        yield claims_world(f"{source}, calibrated", score, score)
        yield claims_world(f"{source}, as it is", score, right)
    score, right = smooth(IN1K, verbal)
    yield claims_world("verbalised, as it is", score, right)
    yield claims_world("verbalised, calibrated", score, score)
    score, right = smooth(C10, two_decimals)
    yield claims_world("two decimals, calibrated", score, score)
    score = real(C10)[0] ** 0.05
    yield claims_world("few errors, calibrated", score, score)
    yield claims_world("few errors, three times fewer", score, 1 - (1 - score) / 3)
    score = real(IN1K)[0]
    for word, slope in (("extreme", 0.6), ("timid", 1.6)):
        yield claims_world(f"{IN1K}, too {word}", score, expit(slope * logit(score)))
    for source in (C10, IN1K):
        claim = real(source)[0]
        for n in SIZES:
            # A little more than the gap that is said to show, so that no draw says a larger one.
            gap = 1.05 * (3.2 * np.sqrt((claim * (1 - claim)).mean() / n) + 2 / n)
            world = claims_world(f"{source}, off by the gap that would show", claim, claim - gap)
            yield world._replace(sizes=(n,))
    yield claims_world(f"{IN1K}, hopeless", score, 0.85 * score)
    yield clusters_world("40 clusters, calibrated", score, 40, 0.2)
    yield clusters_world("15 clusters, calibrated", score, 15, 0.2)
    z = logit(positive_probs("cleanlab_imdb"))
    yield class_world("imdb, calibrated", expit(z), expit(z))
    yield class_world("imdb, too extreme", expit(z), expit(0.7 * z))
    yield class_world("imdb, too high", expit(z), expit(z - 0.4))
    yield class_world("imdb, a rare class, calibrated", expit(0.5 * z - 3), expit(0.5 * z - 3))
    p = positive_probs("f538_mlb")
    yield class_world("f538_mlb, calibrated", p, p)
    # As often right as always answering the commoner class: a claim above ½ is right half the time.
    below = np.where(p > 0.5, 0.5, 0.5 * p)
    yield class_world("f538_mlb, no better than the constant", p, below)
    yield labels_world("6 labels, calibrated", expit(0.5 * z - 2), expit(0.5 * z - 2), 6)


# Sentences


def measure_slope(t: Truth) -> tuple[float, float]:
    """The recalibration line of the population: its slope, and the intercept at slope 1."""
    assert t.said is not None
    assert t.real is not None
    z = logit(np.concatenate((t.said, t.said)))
    y = np.repeat([1.0, 0.0], len(t.said))
    weight = np.concatenate((t.real, 1 - t.real))
    large, line = np.zeros(1), np.array([0.0, 1.0])
    for _ in range(30):
        q = expit(large[0] + z)
        large += (weight * (y - q)).sum() / (weight * q * (1 - q)).sum()
        q = expit(line[0] + line[1] * z)
        x, v = np.stack((np.ones_like(z), z)), weight * q * (1 - q)
        line += np.linalg.solve((x * v) @ x.T, x @ (weight * (y - q)))
    # What rounding leaves of a perfect line is no defect.
    return round(float(line[1]), 6), round(float(large[0]), 6)


def judge_confidence(text: str, t: Truth, slope: float, large: float) -> Iterator[tuple[str, bool]]:
    """Which sentence the last one of a verdict is, and whether it is false."""
    if text.startswith("There is a hint"):
        yield "a hint", t.calibrated
    elif "answer is wrong, where" in text:
        yield "no answer is wrong", text.startswith("It is under") and t.gap >= 0
    elif text.startswith("It is overconfident"):
        yield "overconfident", t.gap <= 1e-12
    elif text.startswith("It is underconfident"):
        yield "underconfident", t.gap >= -1e-12
    elif text.startswith("Nothing contradicts"):
        gap = float(re.search(rf"gap of {NUMBER} points", text).group(1)) / 100  # type: ignore[union-attr]
        off = t.gap if t.said is None or t.real is None else float((t.said - t.real).mean())
        yield "nothing contradicts", abs(off) >= gap
    elif text.startswith("Too few"):
        yield "too few answers to tell", False
    elif "off in places" in text:
        yield "off in places", t.calibrated
    for word, wrong in (
        ("too extreme", t.tilt <= 1e-12 if t.said is None else slope >= 1),
        ("too timid", t.tilt >= -1e-12 if t.said is None else slope <= 1),
        ("too high", large >= 0),
        ("too low", large <= 0),
    ):
        if f" {word}" in text and not text.startswith("There is a hint"):
            yield word, wrong


def find_ends(claim: Floats) -> Any:
    """The last row of every run of equal claims, which are sorted."""
    return np.flatnonzero(np.append(np.diff(claim) != 0, True))


def judge_decisions(
    text: str, report: Any, world: World, rng: Random
) -> Iterator[tuple[str, bool]]:
    """The sentence about what may be automated."""
    t = world.truth
    order = np.argsort(-t.claim, kind="stable")
    risk = np.cumsum(1 - t.right[order]) / np.arange(1, len(order) + 1)
    found = re.search(rf"at most {NUMBER} % wrong among such", text)
    if found:
        asked = float(found.group(1)) / 100
        threshold = next(
            g["threshold"] for g in report["guarantees"] if abs(g["risk"] - asked) < 1e-9
        )
        kept = int(np.searchsorted(-t.claim[order], -threshold, side="right"))
        yield "a guarantee", kept > 0 and bool(risk[kept - 1] > asked + 1e-12)
    elif text.startswith("Even the most"):
        yield "even the most confident", bool((risk[find_ends(t.claim[order])] <= 0.05).any())
    elif found := re.search(rf"No more than {NUMBER} % of such", text):
        good = np.flatnonzero(risk[find_ends(t.claim[order])] <= 0.05)
        share = (find_ends(t.claim[order])[good[-1]] + 1) / len(order) if len(good) else 0.0
        yield "no more than so many", 100 * share > float(found.group(1))
    elif found := re.search(rf"Not enough labels .*about {NUMBER} would", text):
        preds = world.draw(int(found.group(1).replace(",", "")), rng)
        new = hs.tally(preds.confidence, correct=preds.correct)
        kept, errors = np.cumsum(new.count), np.cumsum(new.loss)
        delta = 0.05 / len(VERDICT_RISKS)  # as the verdict has it
        yield "about N labels", find_band_row(kept, errors, risk=0.05, delta=delta) is None
    elif "would be empty" in text and t.real is not None:
        rarer = min(float(t.real.mean()), 1 - float(t.real.mean()))
        yield "would be empty", rarer > report["guarantees"][-1]["risk"]


def judge_constant(text: str, t: Truth) -> Iterator[tuple[str, bool]]:
    """The sentence about always giving the same answer."""
    if t.real is None or "Always answering" not in text:
        return
    positive = 'answering "1"' in text
    constant = float(t.real.mean()) if positive else 1 - float(t.real.mean())
    ahead = float(t.right.mean()) - constant
    if "which is clearly more" in text:
        yield "always answering … clearly more", ahead >= -1e-12
    elif "which is not clearly" not in text:
        yield "always answering … (clearly less)", ahead <= 1e-12


def judge_verdict(world: World, n: int, rng: Random) -> list[tuple[str, bool]]:
    """Every sentence of one verdict, and whether it is false."""
    t = world.truth
    slope, large = 1.0, 0.0
    if t.said is not None:
        slope, large = measure_world(world.name)
    report: Any = hs.evaluate(world.draw(n, rng), ["max_prob"]).data
    out: list[tuple[str, bool]] = []
    for text in report["verdict"]:
        out += judge_constant(text, t)
        out += judge_decisions(text, report, world, rng)
    out += judge_confidence(report["verdict"][-1], t, slope, large)
    return out


@cache
def measure_world(name: str) -> tuple[float, float]:
    return measure_slope(next(w.truth for w in list_worlds() if w.name == name))


# Ties in comparisons


def draw_equal(n: int, rng: Random) -> tuple[hs.Predictions, hs.Predictions]:
    a, b = (hs.Predictions.from_confidence(*model) for model in equal_models(2, n, rng))
    return a, b


@cache
def read_pair() -> tuple[hs.Predictions, hs.Predictions]:
    """Two networks on the same images."""
    a, b = (hs.read(DATA / f"ak_resnet{k}_c10.npz", split="test") for k in (20, 32))
    # Images are drawn more than once, so ids would not name a row.
    return replace(a, ids=None), replace(b, ids=None)


def judge_ties(n: int, real_pair: bool, rng: Random) -> list[tuple[str, bool]]:
    """What a comparison that AURC does not decide says of two models."""
    if real_pair:
        wholes = dict(zip("ab", read_pair(), strict=True))
        rows = rng.integers(0, wholes["a"].n, n)
        models = {name: whole[rows] for name, whole in wholes.items()}
    else:
        wholes, models = {}, dict(zip("ab", draw_equal(n, rng), strict=True))
    said: Any = compare(models, level=0.95).data
    out: list[tuple[str, bool]] = []
    for tie in said["ties"]:
        false = True
        if real_pair:
            ours, theirs = (
                measure_pair()[tie[k]][tie["metric"]]["value"] for k in ("better", "over")
            )
            false = ours <= theirs if tie["metric"] != "augrc" else ours >= theirs
        out.append(("a tied pair", false))
    # A comparison says something false once, however many of its sentences are.
    return [("a tied pair", any(wrong for _, wrong in out))] if out else []


@cache
def measure_pair() -> dict[str, Any]:
    """The true numbers of both."""
    both = zip("ab", read_pair(), strict=True)
    return {name: hs.evaluate(whole, ["max_prob"]).data["metrics"] for name, whole in both}


# Running


class Cell(NamedTuple):
    """One world at one size."""

    name: str
    judge: Callable[[Random], list[tuple[str, bool]]]


def list_cells() -> Iterator[Cell]:
    for world in list_worlds():
        for n in world.sizes:
            yield Cell(
                f"{world.name}, n = {n:,}", lambda rng, w=world, n=n: judge_verdict(w, n, rng)
            )
    for name, real_pair in (("two equal models", False), ("two networks on the same images", True)):
        for n in SIZES:
            yield Cell(f"{name}, n = {n:,}", lambda rng, n=n, r=real_pair: judge_ties(n, r, rng))


def read_results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def run_cell(cell: Cell, done: dict[str, Any], runs: int) -> None:
    said, wrong = Counter(done.get("said", {})), Counter(done.get("wrong", {}))
    for i in range(done.get("runs", 0), runs):
        # A sentence counts once per verdict.
        found: dict[str, bool] = {}
        for kind, false in cell.judge(np.random.default_rng([*cell.name.encode(), i])):
            found[kind] = found.get(kind, False) or false
        said.update(list(found))
        wrong.update(kind for kind, false in found.items() if false)
        done["runs"] = i + 1
    done["said"], done["wrong"] = dict(said), dict(wrong)


def describe_calibrated(results: dict[str, Any]) -> str:
    """How often a calibrated confidence is called off, or a hint of it is given."""
    off: dict[str, float] = {}
    runs = hints = false = 0
    for name, d in results.items():
        if ", calibrated," in name:
            wrong = sum(d["wrong"].get(kind, 0) for kind in DEFECTS)
            off[name] = wrong / d["runs"]
            runs, hints, false = (
                runs + d["runs"],
                hints + d["wrong"].get("a hint", 0),
                false + wrong,
            )
    worst = max(off, key=lambda name: off[name])
    return (
        f"A calibrated confidence is called off in {100 * false / runs:.1f} % of {runs:,} verdicts (at most "
        f"{100 * off[worst]:.1f} %: {worst}), and a hint is given in "
        f"{100 * hints / runs:.1f} %; a verdict with two defects counts twice.\n"
    )


def write_tables(results: dict[str, Any]) -> None:
    lines = ["| sentence | false where | worlds × n | said | false | at most | where |"]
    lines.append("|---|---|---:|---:|---:|---:|---|")
    each = ["| world | runs | sentences said, and how many of them false |", "|---|---:|---|"]
    for kind, meaning in SENTENCES.items():
        cells = {name: d for name, d in results.items() if d["said"].get(kind)}
        if not cells:
            continue
        said = sum(d["said"][kind] for d in cells.values())
        wrong = sum(d["wrong"].get(kind, 0) for d in cells.values())
        worst = max(cells, key=lambda name: cells[name]["wrong"].get(kind, 0) / cells[name]["runs"])
        share = cells[worst]["wrong"].get(kind, 0) / cells[worst]["runs"]
        where = worst if share else "–"
        lines.append(
            f"| {kind} | {meaning or '–'} | {len(cells)} | {said:,} | {wrong:,} | {100 * share:.1f} % | {where} |"
        )
    for name, d in results.items():
        told = ", ".join(f"{k} {v} ({d['wrong'].get(k, 0)})" for k, v in sorted(d["said"].items()))
        each.append(f"| {name} | {d['runs']} | {told} |")
    TABLE.write_text("\n".join(each) + "\n")
    runs = sum(d["runs"] for d in results.values())
    head = f"{len(results)} worlds and sizes, {runs:,} verdicts, {time.strftime('%Y-%m-%d')}.\n\n"
    text = PAGE.read_text()
    start, end = (text.index(mark) for mark in MARKS)
    PAGE.write_text(
        text[: start + len(MARKS[0])]
        + "\n"
        + head
        + "\n".join(lines)
        + "\n\n"
        + describe_calibrated(results)
        + text[end:]
    )


def main() -> None:
    """Run what is missing and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="only worlds whose name contains this")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    args = parser.parse_args()
    results = read_results()
    # As many redraws for few samples as for many: 9,999 of them would not change what is counted.
    calibration_testing.MANY_REDRAWS = calibration_testing.FEW_REDRAWS
    # The floor of the smooth curve's distance is slow, and no sentence reads it.
    focus_sections.measure_distance = lambda *_: {}
    if not args.table:
        for cell in list_cells():
            if args.only in cell.name:
                done = results.setdefault(cell.name, {})
                start = time.monotonic()
                run_cell(cell, done, args.runs)
                save(RESULTS, results)
                print(f"{cell.name}: {done} {time.monotonic() - start:.0f} s", flush=True)
    write_tables(results)


if __name__ == "__main__":
    main()
