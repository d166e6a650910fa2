"""Finlay & Oberman, section 7: the expected odds ratio tells methods apart where the Brier score
hardly does.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here, provided
from ..store import Store
from ..tables.odds import (
    EVERY,
    HIDDEN,
    HUNDRED,
    hundred_methods,
    in_blocks,
    members_of,
    methods,
    sizes,
)
from ..tables.results import finished, predictions
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, Claim, Evidence, sided

METRICS = ("EOR", "Brier", "AUROC")
CROWDED = "EOR is dominated by a few bins that are almost free of errors, which other images fill differently."
DRAWS = 200
AGAIN = 1.5
Draws = dict[
    str, dict[str, np.ndarray]
]  # metric, method: the value on all images, then those of the draws
Blocks = dict[str, dict[str, np.ndarray]]  # the same of EOR: rate, method


def odds(store: Store, scale: str) -> list[Claim]:
    runs = members_of(finished(store, runs_of(["odds"], scale)))
    cases: dict[str, Draws] = {}
    if runs:
        title = f"{runs[0].settings.network}, {runs[0].settings.data}"
        cases[title] = drawn(methods(store, runs, scale), predictions(store, runs[0]).correct)
    own = dict(cases)
    if here(HUNDRED):
        cases[f"{NAMES[HUNDRED]}, top 5"] = drawn(*hundred_methods(provided(HUNDRED)))
    members = f"The ensemble has {len(runs)} members; one of {len(sizes(store, scale))} of unequal quality is listed."
    blocks = {
        rate: drawn(block.scores, block.preds.correct)["EOR"]
        for rate, block in in_blocks(store, scale).items()
    }
    return [
        Claim("EOR ranges more widely over the methods than the Brier score", "1.3 to 16.6 against .033 to .076",
              [wider(case, found) for case, found in cases.items()]),
        Claim("EOR tells more pairs of methods apart than the Brier score", "EOR is more discriminative",
              [sharper(case, found, "Brier") for case, found in cases.items()],
              {NOT: CROWDED}),
        Claim("EOR tells more pairs of methods apart than AUROC of finding errors", "EOR is more discriminative",
              [sharper(case, found, "AUROC") for case, found in cases.items()], {NOT: CROWDED}),
        Claim("The ensemble variance is worth more than the entropy", "16.66 against 4.29 on CIFAR-10",
              [replace(worth(f"{case}, {name}", found, name, "entropy"), counts=name != EVERY)
               for case, found in own.items() for name in ("ensemble", EVERY) if name in found["EOR"]],
              {NOT: members, OPEN: members, MIXED: members}),
        Claim("The best dropout variance is worth half as much again as the entropy, or more",
              "10.39 against 4.29 on CIFAR-10, 2.4 times",
              dropout_against_entropy(blocks)),
        Claim("The smallest dropout rate is worth half as much again as the largest, or more", "10.39, 4.67, 1.69",
              [smaller_rates(blocks)] if len(blocks) > 1 else []),
    ]  # fmt: skip


def drawn(scores: dict[str, np.ndarray], correct: np.ndarray) -> Draws:
    """Every metric of every method on all images and on the same bootstrap draws of them."""
    rng = np.random.default_rng(estimates.SEED)
    rows = [
        np.arange(len(correct)),
        *(rng.integers(len(correct), size=len(correct)) for _ in range(DRAWS)),
    ]
    known = {name: score for name, score in scores.items() if name != HIDDEN}
    values = {
        name: np.array([numbers(score[r], correct[r]) for r in rows])
        for name, score in known.items()
    }
    return {
        metric: {name: v[:, i] for name, v in values.items()} for i, metric in enumerate(METRICS)
    }


def numbers(score: np.ndarray, correct: np.ndarray) -> list[float]:
    t = hs.tally(score, correct=correct)
    h = hs.histogram(t, hs.equal_size(100))
    return [hs.eor(h, degenerate="smooth"), hs.histogram_brier(h), hs.auroc(t)]


def limits(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return float(low), float(high)


def wider(case: str, found: Draws) -> Evidence:
    """Largest over smallest value, EOR against Brier."""
    ranges = {
        name: np.array(list(v.values())).max(0) / np.array(list(v.values())).min(0)
        for name, v in found.items()
    }
    low, high = limits(ranges["EOR"] / ranges["Brier"])
    values = f"EOR {ranges['EOR'][0]:.2f}, Brier {ranges['Brier'][0]:.2f}"
    text = f"best over worst method: {values}; the interval is of their ratio"
    return Evidence(case, text, low, high, sided(low - 1, high - 1, "+"), scale=1)


def sharper(case: str, found: Draws, other: str) -> Evidence:
    """Two methods are told apart where the paired interval of their difference excludes zero."""
    apart = {
        name: sum(told_apart(a, b) for a, b in combinations(v.values(), 2))
        for name, v in found.items()
    }
    pairs = len(found["EOR"]) * (len(found["EOR"]) - 1) // 2
    word = AGREES if apart["EOR"] > apart[other] else NOT if apart["EOR"] < apart[other] else OPEN
    text = f"of {pairs} pairs EOR tells {apart['EOR']} apart, {other} {apart[other]}"
    return Evidence(case, text, float("nan"), float("nan"), word)


def told_apart(one: np.ndarray, two: np.ndarray) -> bool:
    low, high = limits(one - two)
    return low > 0 or high < 0


def worth(case: str, found: Draws, first: str, second: str) -> Evidence:
    one, two = found["EOR"][first], found["EOR"][second]
    low, high = limits(one - two)
    text = f"EOR of {first} {one[0]:.2f} against {two[0]:.2f} of {second}"
    return Evidence(case, text, low, high, sided(low, high, "+"), scale=1, edges=(0.0,))


def dropout_against_entropy(blocks: Blocks) -> list[Evidence]:
    """Two scores of the same answers of one network, trained and asked with dropout in every block;
    the rate with the best variance decides."""
    best = max(blocks, key=lambda rate: blocks[rate]["variance"][0], default="")
    return [
        replace(times_entropy(rate, found), counts=rate == best) for rate, found in blocks.items()
    ]


def times_entropy(rate: str, found: dict[str, np.ndarray]) -> Evidence:
    text = f"EOR of variance {found['variance'][0]:.2f}, of entropy {found['entropy'][0]:.2f}"
    return half_again(f"{rate} in every block", text, found["variance"] / found["entropy"])


def smaller_rates(blocks: Blocks) -> Evidence:
    least, most = min(blocks, key=float), max(blocks, key=float)
    values = ", ".join(f"{v['variance'][0]:.2f} at {rate}" for rate, v in blocks.items())
    return half_again(
        f"{least} against {most}",
        f"EOR {values}",
        blocks[least]["variance"] / blocks[most]["variance"],
    )


def half_again(case: str, text: str, ratio: np.ndarray) -> Evidence:
    """The claim is that one is worth half as much again as the other, or more; the paper's are
    twice and more.
    """
    low, high = limits(ratio)
    found, word = f"{text}: {ratio[0]:.2f} times", sided(low, high, "+", AGAIN)
    return Evidence(case, found, low, high, word, scale=1, edges=(AGAIN,))
