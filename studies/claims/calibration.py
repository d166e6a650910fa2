"""Vemuri 2020, chapter 6: which correction helps, and can it be chosen beforehand?"""

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here
from ..runs import Run
from ..store import Store
from ..tables.calibration import CALIBRATORS, FULLY_TRAINED, ByMethod, on_halves, on_provided, on_whole
from ..tables.results import finished
from .claim import MIXED, NOT, OPEN, Claim, Evidence
from .paired import Metric, alike, paired

REGRET = 0.005
MANY = "Matrix scaling has many parameters for few validation images; the paper does not say how it kept them in check."
SAME_ORDER = "A temperature and the entropy order ten probabilities nearly as their maximum does."
Tests = dict[str, hs.Outcomes]


def calibration(store: Store, scale: str) -> list[Claim]:
    runs = finished(store, runs_of(["calibration"], scale))
    own = {run.settings.network: last(on_whole(store, run)) for run in runs}
    found = own | {NAMES[name]: last(on_provided(name)) for name in FULLY_TRAINED if here(name)}
    return [
        Claim("Temperature and matrix scaling lower the test ECE", "16.8 to 13.9 and 11.6",
              against_none(found, hs.ece, ("temperature", "matrix scaling"), "-")),
        Claim("Matrix scaling reaches a lower ECE than temperature scaling", "11.6 against 13.9",
              [against(n, t, hs.ece, "matrix scaling", "temperature", "-") for n, t in found.items()
               if "matrix scaling" in t], {NOT: MANY}),
        Claim("Histogram binning does not lower the test ECE", "17.1 against 16.8",
              against_none(found, hs.ece, ("histogram binning",), "+"),
              {NOT: "The paper's own result is odd: a correction fitted on held-out images should help a little."}),
        Claim("Histogram binning ranks far worse than no calibration (AAC rises)", "22.4 against 6.6",
              against_none(found, hs.aac, ("histogram binning",), "+")),
        Claim("Entropy, read as a probability, is worse than the top one (ECE rises)", "19.7 against 16.8",
              against_none(found, hs.ece, ("entropy",), "+")),
        Claim("Temperature, matrix scaling, entropy and boundary distance rank better than no calibration (AAC falls)",
              "6.1, 6.5, 6.4, 6.2 against 6.6",
              against_none(found, hs.aac, ("temperature", "matrix scaling", "entropy", "boundary distance"), "-"),
              {NOT: SAME_ORDER, OPEN: SAME_ORDER, MIXED: SAME_ORDER}),
        Claim("Boundary distance ranks as well as temperature scaling (AAC within half a point)", "6.2 against 6.1",
              [alike(name, hs.aac, t["boundary distance"], t["temperature"], REGRET) for name, t in own.items()]),
        Claim("The calibrator chosen on held-out validation images is as good as the best on the test "
              "(ECE within half a point)", "gives a good indication (figure 6.3)", [chosen(store, r) for r in runs]),
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


def chosen(store: Store, run: Run) -> Evidence:
    """The least ECE on the other half of validation, against the least ECE on the test images."""
    found = {name: parts for name, parts in on_halves(store, run).items() if name in CALIBRATORS}
    pick, best = (min(found, key=lambda name: hs.ece(found[name][part].tally())) for part in (1, 2))
    case = f"{run.settings.network}: {pick} was chosen, {best} is best"
    return alike(case, hs.ece, found[pick][-1], found[best][-1], REGRET)
