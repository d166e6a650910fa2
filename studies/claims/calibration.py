"""Vemuri 2020, chapter 6: which correction helps, and can it be chosen beforehand?"""

from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq
from torch.utils.flop_counter import FlopCounterMode

import howsure as hs

from ..kept import is_kept, read_kept, read_logits, read_scaled
from ..networks.published_resnet import PublishedResNet
from ..plans import runs_of
from ..plans.full import is_full
from ..provided import NAMES, here
from ..store import Store
from ..tables.calibration import (
    CALIBRATORS,
    DISTANCES,
    PAPER,
    PAPER_IDEAL,
    PUBLISHED_SETS,
    ByMethod,
    fits,
    name_of,
    on_halves,
    on_learnt,
    on_provided,
    on_provided_halves,
    on_whole,
)
from ..tables.results import finished, predictions
from ..tables.table import percent, rank_correlation
from . import estimates
from .claim import (
    AGREES,
    FULL,
    MIXED,
    NOT,
    OPEN,
    OURS,
    PUBLISHED,
    SMALL,
    Claim,
    Evidence,
    rest_on,
    sided,
)
from .paired import Metric, Pairs, alike_on_average, on_average, paired, value
from .regularisation import is_long

REGRET = 0.005
ALMOST = 0.05  # of the AAC: "almost equal"; the paper prints 6.2 beside 6.1, a sixtieth more
CHOICE = 0.01
ORDER_DRAWS = 100
FAR = 0.05
BETTER = 0.01  # of the AAC; the least gain that the paper prints is from 6.6 to 6.5, a sixtieth
SOFTMAX = DISTANCES["boundary_softmax"]
MANY = "Matrix scaling has many parameters for few validation images; the paper does not say how it kept them in check."
LEARNT = (
    "The paper's images for the fit seem to have been learnt by its network; fitted on such images, histogram binning "
    "does here what the paper says of it."
)
EDGE = "The difference lies near the margin."
LOWER = (
    "Over ten classes one minus the normalised entropy lies a little below the top probability on average, which takes "
    "from an over-confident network what it claims too much. Over 100 it is divided by twice the logarithm and lies "
    "above."
)
SAME_ORDER = "A temperature and the entropy order ten probabilities nearly as their maximum does."
Tests = dict[str, hs.Outcomes]
Sets = tuple[dict[str, Tests], ...]
WHOSE = (
    "of our full-size trainings",
    "of our long trainings",
    "of our short trainings",
    "networks published for CIFAR-10",
    "networks published for CIFAR-100",
)


def calibration(store: Store, scale: str) -> list[Claim]:
    runs = finished(store, runs_of(["calibration"], scale))
    full = [run for run in runs if is_full(run.settings)]
    small = [run for run in runs if run not in full]
    parts = (full, [r for r in small if is_long(r)], [r for r in small if not is_long(r)])
    own = [{name_of(run): last(on_whole(store, run)) for run in some} for some in parts]
    sets = (
        *own,
        *({NAMES[n]: last(on_provided(n)) for n in names if here(n)} for names in PUBLISHED_SETS),
    )
    judged = {name_of(run): on_halves(store, run) for run in small}
    judged_full = {name_of(run): on_halves(store, run) for run in full}
    learnt = [
        {name_of(run): last(on_learnt(store, run)) for run in some if fits(store, run)}
        for some in (small, full)
    ]
    others = [
        {NAMES[n]: on_provided_halves(n) for n in names if here(n)} for names in PUBLISHED_SETS
    ]
    shown = [predictions(store, run) for run in parts[1] or small]
    return [
        Claim("Temperature and matrix scaling lower the test ECE", "16.8 to 13.9 and 11.6",
              against_none(sets, hs.ece, ("temperature", "matrix scaling"), "-"), telling=OURS, networks=shown),
        Claim("Matrix scaling reaches a lower ECE than temperature scaling (by half a point or more)",
              "11.6 against 13.9", against(sets, hs.ece, "matrix scaling", "temperature", "-", REGRET),
              {NOT: MANY, OPEN: MANY}, telling=OURS, networks=shown),
        Claim("Histogram binning does not lower the test ECE (fitted on images that the network has learnt, as the "
              "paper's seem to be)", "17.1 against 16.8", binned(learnt, hs.ece),
              {AGREES: LEARNT}, telling=OURS, networks=shown),
        Claim("Histogram binning ranks far worse than no calibration (AAC rises by five points or more; fitted on "
              "images that the network has learnt)", "22.4 against 6.6", binned(learnt, hs.aac, FAR),
              {AGREES: LEARNT}, telling=OURS, networks=shown),
        Claim("The ECE of the entropy, read as a probability, is higher than that of no calibration",
              "19.7 against 16.8", against_none(sets, hs.ece, ("entropy",), "+"),
              {NOT: LOWER, MIXED: LOWER}, telling=OURS, networks=shown),
        *(Claim(f"{name.capitalize()} ranks better than no calibration (AAC falls by a hundredth of its value or more)",
                f"{PAPER[name][3]} against 6.6",
                against_none(sets, hs.aac, (name,), "-", BETTER, relative=True),
                {NOT: SAME_ORDER, MIXED: SAME_ORDER, OPEN: SAME_ORDER}, telling=OURS, networks=shown)
          for name in ("temperature", "matrix scaling", "entropy")),
        Claim("Boundary distance on the softmax ranks better than no calibration (AAC falls by a hundredth of its "
              "value or more)", "6.2 against 6.6",
              [*against_none(sets, hs.aac, (SOFTMAX,), "-", BETTER, relative=True), *published_distance("none")],
              telling=OURS, networks=shown),
        Claim("Boundary distance on the softmax ranks almost as well as temperature scaling (AAC higher by less than "
              "a twentieth of its value)", "6.2 against 6.1",
              [*as_well(own, SOFTMAX, "temperature"), *published_distance("temperature")], {OPEN: EDGE}),
        Claim("Temperature scaling costs less than the distance to the boundary", "lower computational cost (chapter 6)",
              [cost_of_distance()]),
        Claim("The ECE on held-out validation images ranks the methods as that on the test does (correlation above 0)",
              "gives a good indication (figure 6.3)",
              [*indications(judged, SMALL), *indications(judged_full, FULL),
               *indications(others[0] | others[1], PUBLISHED)],
              telling=OURS, networks=shown),
        Claim("The calibrator chosen by ECE on held-out validation images is as good as the best on the test "
              "(ECE within a point)", "gives a good indication (figure 6.3)",
              chosen_everywhere((judged, judged_full), others, hs.ece, CHOICE)),
        Claim("The method chosen by AAC on held-out validation images is as good as the best on the test "
              "(AAC within a point)", "gives a good indication (figure 6.3)",
              chosen_everywhere((judged, judged_full), others, hs.aac, CHOICE)),
        Claim("The images on which the paper fits and chooses were held out from training (their error is as on the "
              "test)", "not said", [held_out()],
              {NOT: "The areas that the paper prints for them are those of a network that has learnt them."}, own=True),
        Claim("Fitted on held-out images, histogram binning does not lower the test ECE", "not said",
              against_none(sets, hs.ece, ("histogram binning",), "+"), own=True, telling=OURS, networks=shown),
        Claim("Fitted on held-out images, histogram binning ranks worse than no calibration (AAC rises)", "not said",
              against_none(sets, hs.aac, ("histogram binning",), "+"), own=True, telling=OURS, networks=shown),
    ]  # fmt: skip


def last(found: ByMethod) -> Tests:
    """The test images."""
    return {name: parts[-1] for name, parts in found.items()}


def pairs_of(found: dict[str, Tests], first: str, second: str) -> Pairs:
    return {name: (tests[first], tests[second]) for name, tests in found.items() if first in tests}


def against(
    sets: Sets,
    metric: Metric,
    first: str,
    second: str,
    sign: str,
    margin: float = 0.0,
    *,
    relative: bool = False,
) -> list[Evidence]:
    """Means over our networks trained for long, as the paper's was, over those trained briefly, and
    over published ones of one data set. Short trainings do not vote where there are long ones: they
    are unlike the paper's. A relative margin is a share of the metric without the method."""
    case = f"{first} against {second}"
    found: list[Evidence] = []
    for whose, some in zip(WHOSE, sets, strict=True):
        pairs = pairs_of(some, first, second)
        limit = margin
        if relative and pairs:
            limit = margin * float(np.mean([value(metric, b) for _, b in pairs.values()]))
        cases = on_average(case, metric, pairs, sign, limit, of=whose)
        regime = FULL if whose == WHOSE[0] else PUBLISHED if "published" in whose else SMALL
        if whose == WHOSE[2] and pairs_of(sets[1], first, second):
            cases = [replace(e, counts=False) for e in cases]
        found += rest_on(cases, regime)
    return found


def as_well(own: list[dict[str, Tests]], first: str, second: str) -> list[Evidence]:
    """The first is worse by less than the margin, a share of the AAC with the second: to be better
    is as good. Full-size, long and short trainings apart."""
    case = f"{first} against {second}"
    found: list[Evidence] = []
    for whose, some in zip(WHOSE, own, strict=False):
        pairs = pairs_of(some, first, second)
        if pairs:
            margin = ALMOST * float(np.mean([value(hs.aac, b) for _, b in pairs.values()]))
            cases = on_average(case, hs.aac, pairs, "-", -margin, of=whose)
            short = whose == WHOSE[2] and bool(pairs_of(own[1], first, second))
            cases = [replace(e, counts=e.counts and not short) for e in cases]
            found += rest_on(cases, FULL if whose == WHOSE[0] else SMALL)
    return found


def published_distance(second: str) -> list[Evidence]:
    """The paper's network, ResNet-44, as published with 93 % right; each half of the images has the
    temperature that was fitted on the other."""
    if not is_kept("distance", "logits"):
        return []
    preds, distance = read_logits(44), read_kept("distance")["softmax"]
    scored = read_scaled(44) if second == "temperature" else preds
    one, two = hs.Outcomes.of(preds, distance), hs.Outcomes.of(scored)
    case = f"published ResNet-44, {preds.n:,} images: {SOFTMAX} against {second}"
    share = -ALMOST if second == "temperature" else BETTER
    found = paired(case, hs.aac, one, two, "-", share * value(hs.aac, two))
    return rest_on([found], PUBLISHED)


def cost_of_distance() -> Evidence:
    """Multiply-adds for one image of the paper's network: a temperature needs the logits, the
    distance also the gradient of the two best."""
    network = PublishedResNet(44).eval()
    images = torch.zeros(1, 3, 32, 32, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        logits = network(images)
    with FlopCounterMode(display=False) as backward:
        two = logits[0].topk(2).values
        torch.autograd.grad(two[0] - two[1], images)
    asked, more = forward.get_total_flops(), backward.get_total_flops()
    times = (asked + more) / asked
    found = f"{times:.1f} times the multiply-adds of the logits alone, which a temperature needs"
    nothing = float("nan")
    word = AGREES if times > 1 else NOT
    return Evidence("ResNet-44, one image", found, nothing, nothing, word, regime=PUBLISHED)


def binned(learnt: list[dict[str, Tests]], metric: Metric, margin: float = 0.0) -> list[Evidence]:
    """Our small networks, then our full-size ones."""
    case = "histogram binning against none"
    pairs = [pairs_of(found, "histogram binning", "none") for found in learnt]
    small, full = (on_average(case, metric, some, "+", margin) for some in pairs)
    return [*small, *rest_on(full, FULL)]


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
    sets: Sets,
    metric: Metric,
    names: tuple[str, ...],
    sign: str,
    margin: float = 0.0,
    *,
    relative: bool = False,
) -> list[Evidence]:
    return [
        e
        for name in names
        for e in against(sets, metric, name, "none", sign, margin, relative=relative)
    ]


def chosen_everywhere(
    judged: tuple[dict[str, ByMethod], ...],
    others: list[dict[str, ByMethod]],
    metric: Metric,
    margin: float,
) -> list[Evidence]:
    """Our small and our full-size networks, then the published ones."""
    small, full = (chosen(found, metric, margin, of="of our trainings") for found in judged)
    published = chosen(others[0] | others[1], metric, margin, of="published networks")
    return [*small, *rest_on(full, FULL), *rest_on(published, PUBLISHED)]


def chosen(
    judged: dict[str, ByMethod], metric: Metric, margin: float, *, of: str
) -> list[Evidence]:
    """The least value on the other half of validation, against the least on the test images."""
    pairs = dict(chosen_and_best(name, found, metric) for name, found in judged.items())
    return alike_on_average("chosen against best", metric, pairs, margin, of=of)


def chosen_and_best(
    name: str, judged: ByMethod, metric: Metric
) -> tuple[str, tuple[hs.Outcomes, hs.Outcomes]]:
    """Scores that are no probability have an AAC and no ECE."""
    only = CALIBRATORS if metric is hs.ece else judged
    found = {method: parts for method, parts in judged.items() if method in only}
    pick, best = (
        min(found, key=lambda method: metric(found[method][part].tally())) for part in (1, 2)
    )
    return f"{name}: {pick} was chosen, {best} is best", (found[pick][-1], found[best][-1])


def indications(judged: dict[str, ByMethod], regime: str) -> list[Evidence]:
    return rest_on([indicates(name, found) for name, found in judged.items()], regime)


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
