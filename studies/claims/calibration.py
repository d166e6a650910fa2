"""Vemuri 2020, chapter 6: which correction helps, and can it be chosen beforehand?"""

import numpy as np
from scipy.optimize import brentq

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here
from ..store import Store
from ..tables.calibration import (
    CALIBRATORS,
    DISTANCES,
    PAPER,
    PAPER_IDEAL,
    PUBLISHED,
    ByMethod,
    fits,
    name_of,
    on_halves,
    on_learnt,
    on_provided,
    on_provided_halves,
    on_whole,
)
from ..tables.results import finished
from ..tables.table import percent, rank_correlation
from . import estimates
from .claim import MIXED, NOT, OPEN, Claim, Evidence, sided
from .paired import Metric, Pairs, alike_on_average, on_average
from .regularisation import is_long

REGRET = 0.005
QUARTER = 0.0025
CHOICE = 0.01
ORDER_DRAWS = 100
FAR = 0.05
BETTER = 0.001  # the least gain that the paper prints
SOFTMAX = DISTANCES["boundary_softmax"]
MANY = "Matrix scaling has many parameters for few validation images; the paper does not say how it kept them in check."
LEARNT = (
    "The paper's images for the fit seem to have been learnt by its network; fitted on such images, histogram binning "
    "does here what the paper says of it."
)
EDGE = "The difference lies near the margin."
SAME_ORDER = "A temperature and the entropy order ten probabilities nearly as their maximum does."
Tests = dict[str, hs.Outcomes]
Sets = tuple[dict[str, Tests], ...]
WHOSE = (
    "of our long trainings",
    "of our short trainings",
    "networks published for CIFAR-10",
    "networks published for CIFAR-100",
)


def calibration(store: Store, scale: str) -> list[Claim]:
    runs = finished(store, runs_of(["calibration"], scale))
    parts = ([run for run in runs if is_long(run)], [run for run in runs if not is_long(run)])
    own = [{name_of(run): last(on_whole(store, run)) for run in some} for some in parts]
    sets = (
        *own,
        *({NAMES[n]: last(on_provided(n)) for n in names if here(n)} for names in PUBLISHED),
    )
    judged = {name_of(run): on_halves(store, run) for run in runs}
    learnt = {name_of(run): last(on_learnt(store, run)) for run in runs if fits(store, run)}
    others = [{NAMES[n]: on_provided_halves(n) for n in names if here(n)} for names in PUBLISHED]
    return [
        Claim("Temperature and matrix scaling lower the test ECE", "16.8 to 13.9 and 11.6",
              against_none(sets, hs.ece, ("temperature", "matrix scaling"), "-")),
        Claim("Matrix scaling reaches a lower ECE than temperature scaling (by half a point or more)",
              "11.6 against 13.9", against(sets, hs.ece, "matrix scaling", "temperature", "-", REGRET),
              {NOT: MANY, OPEN: MANY}),
        Claim("Histogram binning does not lower the test ECE", "17.1 against 16.8",
              against_none(sets, hs.ece, ("histogram binning",), "+"),
              {NOT: LEARNT}),
        Claim("Histogram binning ranks worse than no calibration (AAC rises)", "22.4 against 6.6",
              against_none(sets, hs.aac, ("histogram binning",), "+")),
        Claim("Histogram binning ranks far worse than no calibration (AAC rises by five points or more)",
              "22.4 against 6.6", against_none(sets, hs.aac, ("histogram binning",), "+", FAR),
              {NOT: LEARNT, MIXED: LEARNT}),
        Claim("The images on which the paper fits and chooses were held out from training (their error is as on the "
              "test)", "not said", [held_out()],
              {NOT: "The areas that the paper prints for them are those of a network that has learnt them."}),
        Claim("Fitted on images that the network has learnt, histogram binning does not lower the test ECE",
              "17.1 against 16.8", binned(learnt, hs.ece)),
        Claim("Fitted on images that the network has learnt, histogram binning ranks far worse than no calibration "
              "(AAC rises by five points or more)", "22.4 against 6.6", binned(learnt, hs.aac, FAR)),
        Claim("Entropy, read as a probability, is worse than the top one (ECE rises)", "19.7 against 16.8",
              against_none(sets, hs.ece, ("entropy",), "+")),
        Claim("Temperature, matrix scaling, entropy and boundary distance rank better than no calibration (AAC falls "
              "by a tenth of a point or more)", "6.1, 6.5, 6.4, 6.2 against 6.6",
              against_none(sets, hs.aac, ("temperature", "matrix scaling", "entropy", SOFTMAX), "-", BETTER),
              {NOT: SAME_ORDER, OPEN: SAME_ORDER, MIXED: SAME_ORDER}),
        Claim("Boundary distance on the softmax ranks as well as temperature scaling (AAC within a quarter of a point)",
              "6.2 against 6.1", as_well(own, SOFTMAX, "temperature"), {OPEN: EDGE}),
        Claim("The ECE on held-out validation images ranks the methods as that on the test does (correlation above 0)",
              "gives a good indication (figure 6.3)",
              [indicates(name, found) for some in (judged, *others) for name, found in some.items()]),
        Claim("The calibrator chosen on held-out validation images is as good as the best on the test "
              "(ECE within a point)", "gives a good indication (figure 6.3)",
              [*chosen(judged, "of our trainings"), *chosen(others[0] | others[1], "published networks")]),
    ]  # fmt: skip


def last(found: ByMethod) -> Tests:
    """The test images."""
    return {name: parts[-1] for name, parts in found.items()}


def pairs_of(found: dict[str, Tests], first: str, second: str) -> Pairs:
    return {name: (tests[first], tests[second]) for name, tests in found.items() if first in tests}


def against(
    sets: Sets, metric: Metric, first: str, second: str, sign: str, margin: float = 0.0
) -> list[Evidence]:
    """Means over our networks trained for long, as the paper's was, over those trained briefly, and
    over published ones of one data set, which are fully trained."""
    case = f"{first} against {second}"
    return [
        e
        for whose, found in zip(WHOSE, sets, strict=True)
        for e in on_average(case, metric, pairs_of(found, first, second), sign, margin, of=whose)
    ]


def as_well(own: list[dict[str, Tests]], first: str, second: str) -> list[Evidence]:
    """Long and short trainings apart; distances need the network, so that there are none of
    published ones.
    """
    case = f"{first} against {second}"
    return [
        e
        for whose, found in zip(WHOSE, own, strict=False)
        for e in alike_on_average(case, hs.aac, pairs_of(found, first, second), QUARTER, of=whose)
    ]


def binned(learnt: dict[str, Tests], metric: Metric, margin: float = 0.0) -> list[Evidence]:
    case = "histogram binning against none"
    return on_average(case, metric, pairs_of(learnt, "histogram binning", "none"), "+", margin)


def held_out() -> Evidence:
    """By the paper's own numbers: a network that errs this often has at least the ideal area above
    its diagram. The area of the validation images, rounded up, says how large their error can be,
    that of the ideal how large it is on the test."""
    printed = [float(values[1]) for values in PAPER.values() if values[1]]
    area = (min(printed) + 0.05) / 100
    most, test = error_of(area), error_of(PAPER_IDEAL)
    found = (
        f"an AAC of at most {percent(area)} % allows an error of at most {percent(most, 1)} %; the ideal AAC "
        f"{percent(PAPER_IDEAL, 1)} % of the test means {percent(test, 1)} %"
    )
    return Evidence(
        "figures 4.1 and 6.1", found, float("nan"), float("nan"), NOT if most < test / 2 else OPEN
    )


def error_of(area: float) -> float:
    """The error at which the ideal area above the threshold diagram is this one."""
    return float(brentq(lambda error: hs.optimal_aurc_asymptotic(error) - area, 1e-9, 0.9))


def against_none(
    sets: Sets, metric: Metric, names: tuple[str, ...], sign: str, margin: float = 0.0
) -> list[Evidence]:
    return [e for name in names for e in against(sets, metric, name, "none", sign, margin)]


def chosen(judged: dict[str, ByMethod], whose: str) -> list[Evidence]:
    """The least ECE on the other half of validation, against the least ECE on the test images."""
    pairs = dict(chosen_and_best(name, found) for name, found in judged.items())
    return alike_on_average("chosen against best", hs.ece, pairs, CHOICE, of=whose)


def chosen_and_best(name: str, judged: ByMethod) -> tuple[str, tuple[hs.Outcomes, hs.Outcomes]]:
    found = {method: parts for method, parts in judged.items() if method in CALIBRATORS}
    pick, best = (
        min(found, key=lambda method: hs.ece(found[method][part].tally())) for part in (1, 2)
    )
    return f"{name}: {pick} was chosen, {best} is best", (found[pick][-1], found[best][-1])


def indicates(case: str, judged: ByMethod) -> Evidence:
    """Rank correlation over the methods of the ECE on the two sides, whose images are drawn again
    apart.
    """
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
