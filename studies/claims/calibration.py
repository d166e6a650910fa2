"""Vemuri 2020, chapter 6: which correction helps, and can it be chosen beforehand?"""

from dataclasses import replace

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here
from ..store import Store
from ..tables.calibration import (
    CALIBRATORS,
    DISTANCES,
    FULLY_TRAINED,
    ByMethod,
    name_of,
    on_halves,
    on_provided,
    on_provided_halves,
    on_whole,
)
from ..tables.results import finished
from ..tables.table import rank_correlation
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, Claim, Evidence, sided
from .paired import Metric, alike, paired

REGRET = 0.005
CHOICE = 0.01
ORDER_DRAWS = 100
FAR = 0.05
SOFTMAX = DISTANCES["boundary_softmax"]
MANY = "Matrix scaling has many parameters for few validation images; the paper does not say how it kept them in check."
SAME_ORDER = "A temperature and the entropy order ten probabilities nearly as their maximum does."
Tests = dict[str, hs.Outcomes]


def calibration(store: Store, scale: str) -> list[Claim]:
    runs = finished(store, runs_of(["calibration"], scale))
    own = {name_of(run): last(on_whole(store, run)) for run in runs}
    found = own | {NAMES[name]: last(on_provided(name)) for name in FULLY_TRAINED if here(name)}
    judged = {name_of(run): on_halves(store, run) for run in runs}
    judged |= {NAMES[name]: on_provided_halves(name) for name in FULLY_TRAINED if here(name)}
    return [
        Claim("Temperature and matrix scaling lower the test ECE", "16.8 to 13.9 and 11.6",
              against_none(found, hs.ece, ("temperature", "matrix scaling"), "-")),
        Claim("Matrix scaling reaches a lower ECE than temperature scaling", "11.6 against 13.9",
              [against(n, t, hs.ece, "matrix scaling", "temperature", "-") for n, t in found.items()
               if "matrix scaling" in t], {NOT: MANY}),
        Claim("Histogram binning does not lower the test ECE", "17.1 against 16.8",
              against_none(found, hs.ece, ("histogram binning",), "+"),
              {NOT: "The paper's own result is odd: a correction fitted on held-out images should help a little."}),
        Claim("Histogram binning ranks worse than no calibration (AAC rises)", "22.4 against 6.6",
              against_none(found, hs.aac, ("histogram binning",), "+")),
        Claim("Histogram binning ranks far worse than no calibration (AAC rises by five points or more)",
              "22.4 against 6.6", [far_worse(name, tests) for name, tests in found.items()],
              {NOT: "The paper's 22.4 is worse than a constant score could be at its accuracy."}),
        Claim("Entropy, read as a probability, is worse than the top one (ECE rises)", "19.7 against 16.8",
              against_none(found, hs.ece, ("entropy",), "+")),
        Claim("Temperature, matrix scaling, entropy and boundary distance rank better than no calibration (AAC falls)",
              "6.1, 6.5, 6.4, 6.2 against 6.6",
              against_none(found, hs.aac, ("temperature", "matrix scaling", "entropy", SOFTMAX), "-"),
              {NOT: SAME_ORDER, OPEN: SAME_ORDER, MIXED: SAME_ORDER}),
        Claim("Boundary distance on the softmax ranks as well as temperature scaling (AAC within half a point)",
              "6.2 against 6.1",
              [alike(n, hs.aac, t[SOFTMAX], t["temperature"], REGRET) for n, t in own.items() if SOFTMAX in t]),
        Claim("The ECE on held-out validation images ranks the methods as that on the test does (correlation above 0)",
              "gives a good indication (figure 6.3)", [indicates(name, found) for name, found in judged.items()]),
        Claim("The calibrator chosen on held-out validation images is as good as the best on the test "
              "(ECE within a point)", "gives a good indication (figure 6.3)",
              [chosen(name, found) for name, found in judged.items()]),
    ]  # fmt: skip


def last(found: ByMethod) -> Tests:
    """The test images."""
    return {name: parts[-1] for name, parts in found.items()}


def against(case: str, found: Tests, metric: Metric, first: str, second: str, sign: str) -> Evidence:
    return paired(f"{case}: {first} against {second}", metric, found[first], found[second], sign)


def against_none(found: dict[str, Tests], metric: Metric, names: tuple[str, ...], sign: str) -> list[Evidence]:
    return [
        against(case, tests, metric, name, "none", sign)
        for case, tests in found.items()
        for name in names
        if name in tests
    ]


def far_worse(case: str, tests: Tests) -> Evidence:
    """The margin that "far" needs: the whole interval must lie above it."""
    found = against(case, tests, hs.aac, "histogram binning", "none", "+")
    word = AGREES if found.low > FAR else NOT if found.high < FAR else OPEN
    return replace(found, word=word)


def chosen(case: str, judged: ByMethod) -> Evidence:
    """The least ECE on the other half of validation, against the least ECE on the test images."""
    found = {name: parts for name, parts in judged.items() if name in CALIBRATORS}
    pick, best = (min(found, key=lambda name: hs.ece(found[name][part].tally())) for part in (1, 2))
    text = f"{case}: {pick} was chosen, {best} is best"
    return alike(text, hs.ece, found[pick][-1], found[best][-1], CHOICE)


def indicates(case: str, judged: ByMethod) -> Evidence:
    """Rank correlation over the methods of the ECE on the two sides, whose images are drawn again apart."""
    found = [parts[1:] for name, parts in judged.items() if name in CALIBRATORS]
    rng = np.random.default_rng(estimates.SEED)
    draws = [agreement(found, [drawn_rows(o, rng) for o in found[0]]) for _ in range(ORDER_DRAWS)]
    low, high = np.nanquantile(draws, [0.025, 0.975])
    value = agreement(found, [np.arange(len(o.correct)) for o in found[0]])
    text = f"rank correlation {value:+.2f} over {len(found)} methods"
    return Evidence(case, text, float(low), float(high), sided(low, high, "+"), scale=1)


def drawn_rows(o: hs.Outcomes, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(len(o.correct), size=len(o.correct))


def agreement(found: list[tuple[hs.Outcomes, ...]], rows: list[np.ndarray]) -> float:
    sides = [[ece_of(parts[side], rows[side]) for parts in found] for side in (0, 1)]
    return rank_correlation(*sides)


def ece_of(o: hs.Outcomes, rows: np.ndarray) -> float:
    return hs.ece(hs.tally(o.score[rows], correct=o.correct[rows]))
