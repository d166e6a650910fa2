"""Ding 2019 and 2020, section 5: selective prediction improves with size, calibration does not change."""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import HUNDRED, NAMES, calibrated, here, provided
from ..runs import Run
from ..store import Store
from ..tables.complexity import CALIBRATION, CONFIDENCE_LEVELS, SELECTIVE, size
from ..tables.results import by_network, finished, predictions, tally, temperature_scaled
from ..tables.table import percent
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, Claim, Evidence, sided, within
from .growth import Grown, above, flat, trend, unsteady
from .paired import Metric, paired

FLAT = {"AECE": 0.01, "AMCE": 0.05}
FEW_BINS = 2.0
TENTH = 0.1
BIN_NUMBERS = (5, 10, 15, 20, 30, 50)
IMAGE_DRAWS = 100
FEW = "There are few networks, so that the interval is wide."


def complexity(store: Store, scale: str) -> list[Claim]:
    groups = by_network(finished(store, runs_of(["complexity"], scale)))
    raw = Grown.of(groups, lambda run: measures(predictions(store, run)))
    scaled = Grown.of(groups, lambda run: measures(temperature_scaled(store, run)))
    return [
        Claim("AUPR falls as networks grow", "falls (figures 4a, 4b)",
              [trend(raw, "AUPR", "-"), *extremes(store, groups, hs.aupr), *larger(hs.aupr)],
              {OPEN: f"{unlike(raw, 'AUPR')} {FEW}"}),
        Claim("AURC falls as networks grow", "falls (figures 4c, 4d)",
              [trend(raw, "AURC", "-"), *extremes(store, groups, hs.aurc), *larger(hs.aurc)]),
        Claim("Calibration after temperature scaling does not depend on size", "almost flat (figures 5a to 5d)",
              [flat(scaled, name, margin) for name, margin in FLAT.items()], {OPEN: FEW}),
        Claim("AECE is a little above ECE", "by a small margin", [above(scaled, "AECE", "ECE")]),
        Claim("MCE is unstable, AMCE is not", "MCE unstable and higher on CIFAR-10 (figure 5d)",
              instability(raw, scaled), {OPEN: FEW}),
        number_of_bins(scaled),
        Claim("CIFAR-100 gets more adaptive bins than CIFAR-10", "21.2 against 12.6", hundred_against_ten()),
        insensitive(store, groups, "AECE"),
        insensitive(store, groups, "AMCE"),
    ]  # fmt: skip


def unlike(grown: Grown, name: str) -> str:
    spread = estimates.pooled_spread(grown.values.get(name, []))
    return f"Between trainings of one network {name} has a standard deviation of {percent(spread)} points."


def measures(preds: hs.Predictions) -> dict[str, float]:
    t = tally(preds)
    found = {name: metric(t) for name, metric in {**SELECTIVE, **CALIBRATION}.items()}
    return found | {"bins": bin_count(t), "choice of MCE": over_bins(t), "choice of AMCE": over_levels(t)}


def bin_count(t: hs.Tally, level: float = 0.8) -> float:
    return float(len(hs.adaptive(level=level).cuts(t)) - 1)


def over_bins(t: hs.Tally) -> float:
    """How much MCE depends on the number of bins, which nothing fixes."""
    return float(np.std([hs.mce(t, hs.equal_range(m)) for m in BIN_NUMBERS]))


def over_levels(t: hs.Tally) -> float:
    """How much AMCE depends on the level, its own free parameter."""
    return float(np.std([hs.amce(t, hs.adaptive(level=level)) for level in CONFIDENCE_LEVELS]))


def extremes(store: Store, groups: dict[str, list[Run]], metric: Metric) -> list[Evidence]:
    """The largest against the smallest network of each family, training by training."""
    found: list[Evidence] = []
    for small, large in pairs_of_families(groups):
        case = f"{large.settings.network} against {small.settings.network}, seed {small.settings.seed}"
        found.append(paired(case, metric, predictions(store, large), predictions(store, small), "-"))
    return found


def pairs_of_families(groups: dict[str, list[Run]]) -> list[tuple[Run, Run]]:
    by_size = sorted(groups.values(), key=lambda runs: size(runs[0]))
    names = sorted({runs[0].settings.network.split("-")[0] for runs in by_size})
    families = [[runs for runs in by_size if runs[0].settings.network.startswith(f"{name}-")] for name in names]
    return [pair for family in families if len(family) > 1 for pair in zip(family[0], family[-1], strict=False)]


def larger(metric: Metric) -> list[Evidence]:
    """Fully trained ResNet-32 against ResNet-20."""
    pair = ("ak_resnet32_c10", "ak_resnet20_c10")
    if not here(*pair):
        return []
    case = f"ResNet-32 against ResNet-20, fully trained, {provided(pair[0]).n:,} images"
    return [paired(case, metric, provided(pair[0]), provided(pair[1]), "-")]


def instability(raw: Grown, scaled: Grown) -> list[Evidence]:
    return [
        unsteady(raw, "MCE", "AMCE", "as trained"),
        unsteady(scaled, "MCE", "AMCE", "after temperature scaling"),
        choice_of_bins(scaled),
        *(choice_of_bins_hundred(name) for name in HUNDRED if here(name)),
    ]


def choice_of_bins(grown: Grown) -> Evidence:
    """MCE over 5 to 50 bins against AMCE over levels from 60 to 99 %; networks are drawn again."""
    one, two = (np.array(grown.means(f"choice of {name}")) for name in ("MCE", "AMCE"))
    ratio, low, high = estimates.resampled(len(one), lambda rows: float(one[rows].mean() / two[rows].mean()))
    return choice_evidence("5 to 50 bins against 60 to 99 %", ratio, low, high)


def choice_of_bins_hundred(name: str) -> Evidence:
    """The same for one network; images are drawn again."""
    preds, how = calibrated(name)
    number = lambda rows: of_rows(preds, rows, lambda t: over_bins(t) / max(over_levels(t), 1e-12))
    ratio, low, high = estimates.resampled(preds.n, number, IMAGE_DRAWS)
    return choice_evidence(f"the same, {NAMES[name]}, {how}", ratio, low, high)


def of_rows(preds: hs.Predictions, rows: np.ndarray, number: Metric) -> float:
    return number(hs.tally(preds.confidence[rows], correct=preds.correct[rows]))


def choice_evidence(case: str, ratio: float, low: float, high: float) -> Evidence:
    found = f"MCE depends {ratio:.1f} times as much on its bins as AMCE on its level"
    return Evidence(case, found, low, high, sided(low - 1, high - 1, "+"), scale=1)


def number_of_bins(scaled: Grown) -> Claim:
    middle, low, high = estimates.mean(scaled.means("bins"))
    word = within(low - 12.6, high - 12.6, FEW_BINS)
    evidence = Evidence(f"all sizes, {scaled.text}", f"{middle:.1f} bins on average", low, high, word, scale=1)
    wrong = float(np.mean(scaled.means("error"))) if scaled.family else 0.0
    reason = (
        f"Networks of this size and training are wrong in {percent(wrong, 0)} % of the images. Their confidences are "
        "spread out, which makes more bins: the paper's own reason for the difference between CIFAR-10 and CIFAR-100."
    )
    return Claim("Adaptive binning makes about 12.6 bins on CIFAR-10 (± 2)", "12.6", [evidence], {NOT: reason})


def hundred_against_ten() -> list[Evidence]:
    """Of the provided sets, those with the same number of images; both as published."""
    ten = ("nn_resnet110_c10", "netcal_wideresnet_16_4_c10")
    return [more_bins(a, b) for a, b in zip(HUNDRED, ten, strict=True) if here(a, b)]


def more_bins(first: str, second: str) -> Evidence:
    n = min(provided(first).n, provided(second).n)
    sets = [provided(name)[np.arange(n)] for name in (first, second)]
    number = lambda rows: of_rows(sets[0], rows, bin_count) - of_rows(sets[1], rows, bin_count)
    difference, low, high = estimates.resampled(n, number, IMAGE_DRAWS)
    counts = [bin_count(tally(preds)) for preds in sets]
    found = f"{counts[0]:.0f} against {counts[1]:.0f} bins: {difference:+.0f}"
    return Evidence(f"{NAMES[first]} against {NAMES[second]}", found, low, high, sided(low, high, "+"), scale=1)


def insensitive(store: Store, groups: dict[str, list[Run]], name: str) -> Claim:
    """The second parameter, the error margin in units of the width, enters only as z / margin: levels cover both."""
    metric = {"AECE": hs.aece, "AMCE": hs.amce}[name]
    changes = [
        float(np.mean([largest_change(tally(temperature_scaled(store, run)), metric) for run in runs]))
        for runs in groups.values()
    ]
    middle, low, high = estimates.mean(changes)
    evidence = [change_evidence(f"after scaling, {len(changes)} networks", middle, low, high)]
    evidence += [insensitive_hundred(set_name, metric) for set_name in HUNDRED if here(set_name)]
    reason = (
        "The number of bins changes with the level, and with it what chance adds to each gap. Only where all gaps have "
        "one sign, as in a network that is over-confident throughout, do the bins not matter."
    )
    return Claim(f"{name} is not sensitive to the two parameters of adaptive binning (changes by less than a tenth)",
                 "not sensitive in a wide range", evidence, {NOT: reason, MIXED: reason, OPEN: reason})  # fmt: skip


def insensitive_hundred(name: str, metric: Metric) -> Evidence:
    preds, how = calibrated(name)
    number = lambda rows: of_rows(preds, rows, lambda t: largest_change(t, metric))
    return change_evidence(f"{NAMES[name]}, {how}", *estimates.resampled(preds.n, number, IMAGE_DRAWS))


def largest_change(t: hs.Tally, metric: Metric) -> float:
    """Relative to the value at the paper's 80 %."""
    usual = metric(t, hs.adaptive(level=0.8))
    return max(abs(metric(t, hs.adaptive(level=level)) / usual - 1) for level in CONFIDENCE_LEVELS)


def change_evidence(case: str, middle: float, low: float, high: float) -> Evidence:
    found = f"levels from 60 to 99 % change it by up to {percent(middle, 0)} % of its value"
    word = AGREES if high < TENTH else NOT if low > TENTH else OPEN
    return Evidence(case, found, low, high, word)
