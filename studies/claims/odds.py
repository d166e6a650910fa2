"""Finlay & Oberman, section 7: the expected odds ratio tells methods apart where the Brier score
hardly does.
"""

import csv
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import numpy as np
from scipy import stats

import howsure as hs

from ..kept import DEPTHS, is_kept, read_logits
from ..plans import runs_of
from ..provided import NAMES, here, provided, weights_folder
from ..store import Store
from ..tables.odds import (
    EVERY,
    HIDDEN,
    HUNDRED,
    hundred_methods,
    in_blocks,
    members_of,
    methods,
)
from ..tables.published_odds import (
    NETWORK,
    pooled_eor,
    published_answers,
    published_methods,
    published_rows,
    published_without_passes,
)
from ..tables.results import finished, predictions
from ..tables.table import percent
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, PUBLISHED, Claim, Evidence, rest_on, sided

METRICS = ("EOR", "Brier", "AUROC")
CROWDED = "EOR is dominated by a few bins that are almost free of errors, which other images fill differently."
DRAWS = 200
AGAIN = 1.5
BEST_RATE = "dropout 0.002"
RULES = {  # for bins without an error
    "pool": "error-free bins pooled",
    "smooth": "smoothed",
    "drop": "without error-free bins",
}
FIRST_BINS, LAST_BINS, TEN = 10, 3, 10.0
SUREST, MAJORITY = 20, 3
OTHER_NETWORKS = "Networks that were trained with dropout, one for each rate, are listed: the paper has one network."
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
    others: dict[str, Draws] = {}
    if published_methods():
        name = f"published ResNet-{NETWORK}, cifar10"
        others[name] = drawn(published_methods(), published_answers())
    if here(HUNDRED):
        others[f"{NAMES[HUNDRED]}, top 5"] = drawn(*hundred_methods(provided(HUNDRED)))
    told = lambda judge: [
        *(judge(case, found) for case, found in own.items()),
        *rest_on([judge(case, found) for case, found in others.items()], PUBLISHED),
    ]
    members = f"The published ensemble has {len(DEPTHS)} networks of unequal depth, ours {len(runs)} alike."
    blocks = {
        rate: drawn(block.scores, block.preds.correct)["EOR"]
        for rate, block in in_blocks(store, scale).items()
    }
    return [
        Claim("EOR ranges more widely over the methods than the Brier score", "1.3 to 16.6 against .033 to .076",
              told(wider)),
        Claim("EOR tells more pairs of methods apart than the Brier score", "EOR is more discriminative",
              told(partial(sharper, other="Brier")), {NOT: CROWDED}),
        Claim("EOR tells more pairs of methods apart than AUROC of finding errors", "EOR is more discriminative",
              told(partial(sharper, other="AUROC")), {NOT: CROWDED}),
        Claim("The ensemble variance is worth more than the entropy", "16.66 against 4.29 on CIFAR-10",
              [*published_worth("ensemble of four", "entropy", 1.0),
               *(replace(worth(f"{case}, {name}", found, name, "entropy"), counts=name != EVERY)
                 for case, found in own.items() for name in ("ensemble", EVERY) if name in found["EOR"])],
              {NOT: members, OPEN: members, MIXED: members}),
        Claim("The best dropout variance is worth half as much again as the entropy, or more",
              "10.39 against 4.29 on CIFAR-10, 2.4 times",
              [*published_worth(BEST_RATE, "entropy", AGAIN), *dropout_against_entropy(blocks)]),
        Claim("The smallest dropout rate is worth half as much again as the largest, or more", "10.39, 4.67, 1.69",
              [*published_worth(BEST_RATE, "dropout 0.05", AGAIN),
               *([replace(smaller_rates(blocks), counts=not published_rates())] if len(blocks) > 1 else [])],
              {OPEN: OTHER_NETWORKS}),
        Claim("Entropy, ensemble and the best dropout together, by mean rank, are worth more than each alone",
              "could be used to combine methods (section 8)", combined_worth(), own=True),
        Claim("In the first ten and the last three of 100 bins by entropy and by U1 the odds are ten times the average",
              "10 times or more (figure 3)", [tenfold(name) for name in ("entropy", "U1") if published_methods()]),
        Claim("The sure and wrong answers are mislabelled or ambiguous: all of the 20 surest", "all (section 7.2)",
              mislabelled()),
    ]  # fmt: skip


def published_rates() -> bool:
    return BEST_RATE in published_methods()


@cache
def published_draws(name: str, rule: str) -> np.ndarray:
    """EOR of a method of the published network by one rule for error-free bins, on its images and
    on draws of them, which are the same for every method."""
    score, correct = published_methods()[name], published_answers()
    return draw_eor(score, correct, rule)


def draw_eor(score: np.ndarray, correct: np.ndarray, rule: str) -> np.ndarray:
    rng = np.random.default_rng(estimates.SEED)
    rows = [np.arange(len(correct))]
    rows += [rng.integers(len(correct), size=len(correct)) for _ in range(DRAWS)]
    return np.array([eor_by_rule(score[r], correct[r], rule) for r in rows])


def eor_by_rule(score: np.ndarray, correct: np.ndarray, rule: str) -> float:
    if rule == "pool":
        return pooled_eor(score, correct)
    h = hs.histogram(hs.tally(score, correct=correct), hs.equal_size(100))
    return hs.eor(h, degenerate=rule)


def published_worth(first: str, second: str, times: float) -> list[Evidence]:
    """One score against another of the same answers, by each rule for error-free bins: pooled is
    the authors', and other images change it most."""
    if not {first, second} <= set(published_methods()):
        return []
    return [
        compare_draws(
            f"published ResNet-{NETWORK}, {len(published_rows()):,} images, {first} against {second}, {text}",
            published_draws(first, rule),
            published_draws(second, rule),
            times,
        )
        for rule, text in RULES.items()
    ]


def compare_draws(case: str, one: np.ndarray, two: np.ndarray, times: float) -> Evidence:
    low, high = limits(one / two)
    found = f"EOR {one[0]:.2f} against {two[0]:.2f}: {one[0] / two[0]:.2f} times"
    word = sided(low, high, "+", times)
    return Evidence(case, found, low, high, word, scale=1, edges=(times,), regime=PUBLISHED)


def combined_worth() -> list[Evidence]:
    """The mean rank of three scores of the same answers against the best of them, which is chosen
    on all images: a little in its favour."""
    names = ("entropy", "ensemble of four", BEST_RATE)
    scores = published_methods()
    if not set(names) <= set(scores):
        return []
    mean = np.mean([stats.rankdata(scores[name]) for name in names], axis=0)
    found: list[Evidence] = []
    for rule, text in RULES.items():
        best = max(names, key=lambda name: published_draws(name, rule)[0])
        together = draw_eor(mean, published_answers(), rule)
        case = f"published ResNet-{NETWORK}, together against {best}, {text}"
        found.append(compare_draws(case, together, published_draws(best, rule), 1.0))
    return found


def tenfold(name: str) -> Evidence:
    """How many of the thirteen bins have odds ten times the average, or a tenth of it."""
    correct = read_logits(NETWORK).correct
    score = published_without_passes()[name]
    h = hs.histogram(hs.tally(score, correct=correct), hs.equal_size(100))
    ratio = hs.odds_ratio(h.p, h.base)
    first, last = int((ratio[:FIRST_BINS] >= TEN).sum()), int((ratio[-LAST_BINS:] >= TEN).sum())
    found = f"{first} of the first {FIRST_BINS} and {last} of the last {LAST_BINS} bins"
    word = AGREES if (first, last) == (FIRST_BINS, LAST_BINS) else NOT
    nothing = float("nan")
    case = f"published ResNet-{NETWORK}, {name}"
    return Evidence(case, found, nothing, nothing, word, regime=PUBLISHED)


def mislabelled() -> list[Evidence]:
    """Five people voted on test images whose label was doubted. The surest wrong answers of the four
    published networks together, and how many of them a majority of people would not have labelled
    so."""
    votes = doubted_labels()
    if not votes or not is_kept("logits"):
        return []
    mean = np.mean([read_logits(depth).probs for depth in DEPTHS], axis=0)
    labels = read_logits(DEPTHS[0]).labels
    wrong = np.flatnonzero(mean.argmax(1) != labels)
    surest = wrong[np.argsort(-mean[wrong].max(1), kind="stable")[:SUREST]]
    shares = [sum(int(i) in votes for i in rows) / len(rows) for rows in (surest, wrong)]
    count = round(shares[0] * SUREST)
    half = (1 - estimates.LEVEL) / 2
    low = 1 - hs.bounds.clopper_pearson(SUREST - count, SUREST, half)
    high = hs.bounds.clopper_pearson(count, SUREST, half)
    found = (
        f"{count} of the {SUREST} surest wrong answers are doubted by people, of all {len(wrong)} wrong ones "
        f"{percent(shares[1], 1)} %, of all images {percent(len(votes) / len(labels), 1)} %: enriched "
        f"{shares[0] / (len(votes) / len(labels)):.0f} times, not all"
    )
    word = AGREES if count == SUREST else NOT
    return [Evidence("mean of four published ResNets", found, low, high, word, regime=PUBLISHED)]


@cache
def doubted_labels() -> frozenset[int]:
    """Test images of CIFAR-10 for which fewer than three of five people chose the given label
    alone."""
    path = weights_folder() / "cifar10_label_errors.csv"
    if not path.exists():
        return frozenset()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return frozenset(int(row["test_index"]) for row in rows if int(row["votes_given"]) < MAJORITY)


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
        replace(times_entropy(rate, found), counts=rate == best and not published_rates())
        for rate, found in blocks.items()
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
