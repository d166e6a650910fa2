"""Ding 2020, sections 4.2 and 5.2: what bins hide, how many adaptive ones there are, what chance
adds to errors.
"""

from dataclasses import replace

import numpy as np

import howsure as hs

from ..kept import DEPTHS, is_kept, read_logits
from ..provided import HUNDRED, NAMES, TEN, calibrated, here, provided
from ..runs import Run
from ..store import Store
from ..tables.complexity import CONFIDENCE_LEVELS, HIDDEN, WHOLE, bin_count, chance_of, inside
from ..tables.results import tally, temperature_scaled
from ..tables.table import percent
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, PUBLISHED, Claim, Evidence, sided
from .growth import Grown
from .paired import Metric

BIN_NUMBERS = (5, 10, 15, 20, 30, 50)
PAPER_BINS = {"CIFAR-10": 12.6, "CIFAR-100": 21.2}
FEW_BINS = 2.0
RELEASED_Z = 1.645
ALL_TEST = 10_000
CHANCE_MARGIN = 0.001
TENTH = 0.1
IMAGE_DRAWS = 100
EQUAL_SIZES = (50, 100)
TOP, HALF = 0.9, 0.5


def number_of_bins() -> list[Claim]:
    """The paper's networks are fully trained; ours are not, and more errors make more bins. Its
    text says 80 %, its released code takes the z of 90 %."""
    printed = (
        "With the z = 1.645 of the released code, which stands for 90 %, the numbers are the paper's: it seems that "
        "they were made with the code, not with the text."
    )
    return [
        Claim(
            "Adaptive binning at 80 % makes about 12.6 bins on CIFAR-10 and 21.2 on CIFAR-100 (± 2)",
            "12.6 and 21.2, fully trained, after scaling", bins_of(hs.adaptive()), {NOT: printed},
        ),
        Claim(
            "With the z = 1.645 of its released code it makes those numbers (± 2)",
            "not said", bins_of(hs.adaptive(z=RELEASED_Z)), own=True,
        ),
    ]  # fmt: skip


def bins_of(bins: hs.adaptive) -> list[Evidence]:
    groups = {"CIFAR-10": TEN, "CIFAR-100": [name for name in HUNDRED if "top" not in name]}
    found = {data: [name for name in names if here(name)] for data, names in groups.items()}
    return [mean_bins(data, names, bins) for data, names in found.items() if names]


def mean_bins(data: str, names: list[str], bins: hs.adaptive) -> Evidence:
    """A count of given predictions, so without interval; all 10,000 test images, as in the paper."""
    counts = [len(hs.reliability(test_images(name), bins).x) for name in names]
    text = f"{', '.join(map(str, counts))} bins: {np.mean(counts):.1f} on average, paper {PAPER_BINS[data]}"
    word = AGREES if abs(np.mean(counts) - PAPER_BINS[data]) <= FEW_BINS else NOT
    case = f"{data}, {len(names)} published network{'s' * (len(names) > 1)}"
    return Evidence(case, text, float("nan"), float("nan"), word, regime=PUBLISHED)


def test_images(name: str) -> hs.Tally:
    """All official test images with the temperature of the validation part, which most sources cut
    from them.
    """
    val, test = provided(name, "val"), provided(name)
    scaling = hs.calibrators.Temperature.fit(val)
    whole = tally(scaling(test))
    return whole if test.n == ALL_TEST else whole + tally(scaling(val))


def hidden_gap() -> Claim:
    """Figure 2: the last of ten bins averages over a stretch that is much worse than the bin shows."""
    return Claim(
        "The bin (0.9, 1] hides a gap on (0.9, 0.96] that is larger by a tenth or more",
        "gap 0.02 on [0.9, 1], accuracy below 73 % on [0.9, 0.96] (figure 2)",
        [hidden_in(name) for name in TEN if here(name)],
    )


def hidden_in(name: str) -> Evidence:
    preds = provided(name)
    value, low, high = estimates.resampled(preds.n, lambda rows: more_inside(preds, rows))
    hidden, whole = (inside(preds, part) for part in (HIDDEN, WHOLE))
    found = (
        f"accuracy {percent(hidden.accuracy, 1)} % of {hidden.count} images on (0.9, 0.96], gap {hidden.gap:.3f}; "
        f"gap of the whole bin {whole.gap:.3f}: {value:+.3f}"
    )
    word = AGREES if low > TENTH else NOT if high < TENTH else OPEN
    return Evidence(NAMES[name], found, low, high, word, scale=1, digits=3, regime=PUBLISHED)


def more_inside(preds: hs.Predictions, rows: np.ndarray) -> float:
    return inside(preds, HIDDEN, rows).gap - inside(preds, WHOLE, rows).gap


def above_chance(store: Store, groups: dict[str, list[Run]]) -> Claim:
    """AECE has more bins than ECE, and every bin adds what chance makes of a true gap of zero."""
    found = [[excess(store, run) for run in runs] for runs in groups.values()]
    middle, low, high = estimates.mean([float(np.mean(repeats)) for repeats in found])
    text = f"AECE - ECE, minus what chance makes of it in a calibrated network: {100 * middle:+.2f} points"
    word = AGREES if low > CHANCE_MARGIN else NOT if high < CHANCE_MARGIN else OPEN
    evidence = (
        [Evidence(f"after scaling, {len(found)} networks", text, low, high, word)] if found else []
    )
    reason = (
        "Were every stated probability true, AECE would still be above ECE, because it has more bins with fewer "
        "images in each: most of the margin is that, and little is left for the paper's internal compensation."
    )
    return Claim("Gaps that cancel inside the wider bins make AECE larger than ECE (a tenth of a point above chance)",
                 "different levels of internal compensation", evidence, {NOT: reason, OPEN: reason})  # fmt: skip


def excess(store: Store, run: Run) -> float:
    seen, chance = chance_of(store, run)
    return (seen["AECE"] - seen["ECE"]) - (chance["AECE"] - chance["ECE"])


def steady_as_printed(raw: Grown) -> Claim:
    """The rule for the last bin is not in the paper, only in its released code."""
    names = {"with the tail rule": "AMCE", "as printed": "AMCE as printed"}
    spreads = {
        how: estimates.pooled_spread(raw.values.get(name, [])) for how, name in names.items()
    }
    worst = max(
        (v for group in raw.values.get("AMCE as printed", []) for v in group), default=float("nan")
    )
    count = sum(v > 0.5 for group in raw.values.get("AMCE as printed", []) for v in group)
    ratio, low, high = estimates.spread_ratio(
        raw.values.get("AMCE as printed", []), raw.values.get("AMCE", [])
    )
    text = (
        f"between repeats AMCE varies by {percent(spreads['with the tail rule'])} points with the tail rule and by "
        f"{percent(spreads['as printed'])} as printed ({ratio:.1f} times); as printed it is above 50 % on {count} "
        f"networks, at most {percent(worst, 0)} %"
    )
    word = NOT if low > 1 else AGREES if high < 1 else OPEN
    reason = (
        "A last bin of a few images has any gap. The released code adds images to it, which the paper does not say; "
        "`hs.amce` follows the code."
    )
    evidence = (
        [Evidence(f"as trained, {raw.text}", text, low, high, word, scale=1)] if raw.family else []
    )
    return Claim("AMCE as printed, without the released code's rule for the last bin, is as steady as with it",
                 "the rule is not mentioned", evidence, {NOT: reason, OPEN: reason}, own=True)  # fmt: skip


def over_bins(t: hs.Tally) -> float:
    """How much MCE depends on the number of bins, which nothing fixes."""
    return float(np.std([hs.mce(t, hs.equal_range(m)) for m in BIN_NUMBERS]))


def over_levels(t: hs.Tally) -> float:
    """How much AMCE depends on the level, its own free parameter."""
    return float(np.std([hs.amce(t, hs.adaptive(level=level)) for level in CONFIDENCE_LEVELS]))


def choice_of_bins(grown: Grown) -> Evidence:
    """MCE over 5 to 50 bins against AMCE over levels from 60 to 99 %; networks are drawn again."""
    one, two = (np.array(grown.means(f"choice of {name}")) for name in ("MCE", "AMCE"))
    ratio, low, high = estimates.resampled(
        len(one), lambda rows: float(one[rows].mean() / two[rows].mean())
    )
    return choice_evidence("5 to 50 bins against 60 to 99 %", ratio, low, high)


def choice_of_bins_hundred(name: str) -> Evidence:
    """The same for one network; images are drawn again."""
    preds, how = calibrated(name)
    number = lambda rows: of_rows(preds, rows, lambda t: over_bins(t) / max(over_levels(t), 1e-12))
    ratio, low, high = estimates.resampled(preds.n, number, IMAGE_DRAWS)
    found = choice_evidence(f"the same, {NAMES[name]}, {how}", ratio, low, high)
    return replace(found, regime=PUBLISHED)


def of_rows(preds: hs.Predictions, rows: np.ndarray, number: Metric) -> float:
    return number(hs.tally(preds.confidence[rows], correct=preds.correct[rows]))


def choice_evidence(case: str, ratio: float, low: float, high: float) -> Evidence:
    found = f"MCE depends {ratio:.1f} times as much on its bins as AMCE on its level"
    return Evidence(case, found, low, high, sided(low - 1, high - 1, "+"), scale=1)


def hundred_against_ten() -> list[Evidence]:
    """Of the provided sets, those with the same number of images; both as published."""
    return [more_bins(a, b) for a, b in zip(HUNDRED, TEN, strict=False) if here(a, b)]


def more_bins(first: str, second: str) -> Evidence:
    n = min(provided(first).n, provided(second).n)
    sets = [provided(name)[np.arange(n)] for name in (first, second)]
    number = lambda rows: of_rows(sets[0], rows, bin_count) - of_rows(sets[1], rows, bin_count)
    difference, low, high = estimates.resampled(n, number, IMAGE_DRAWS)
    counts = [bin_count(tally(preds)) for preds in sets]
    found = f"{counts[0]:.0f} against {counts[1]:.0f} bins: {difference:+.0f}"
    return Evidence(
        f"{NAMES[first]} against {NAMES[second]}",
        found,
        low,
        high,
        sided(low, high, "+"),
        scale=1,
        regime=PUBLISHED,
    )


def insensitive(store: Store, groups: dict[str, list[Run]], name: str) -> Claim:
    """The second parameter, the error margin in units of the width, enters only as z / margin:
    levels cover both.
    """
    metric = {"AECE": hs.aece, "AMCE": hs.amce}[name]
    changes = [
        float(
            np.mean([largest_change(tally(temperature_scaled(store, run)), metric) for run in runs])
        )
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
    found = change_evidence(
        f"{NAMES[name]}, {how}", *estimates.resampled(preds.n, number, IMAGE_DRAWS)
    )
    # Of some sets only the top label is published: not scaled, they are no case of the claim.
    return replace(found, regime=PUBLISHED, counts=how == "after scaling")


def largest_change(t: hs.Tally, metric: Metric) -> float:
    """Relative to the value at the paper's 80 %."""
    usual = metric(t, hs.adaptive(level=0.8))
    return max(abs(metric(t, hs.adaptive(level=level)) / usual - 1) for level in CONFIDENCE_LEVELS)


def change_evidence(case: str, middle: float, low: float, high: float) -> Evidence:
    found = f"levels from 60 to 99 % change it by up to {percent(middle, 0)} % of its value"
    word = AGREES if high < TENTH else NOT if low > TENTH else OPEN
    return Evidence(case, found, low, high, word)


def equal_size_defects() -> list[Claim]:
    """Section 4.2 and figure 3: where samples are sparse a bin of equal size is too wide, and where
    they are dense there are too many bins."""
    cases = {
        f"published ResNet-{depth}": read_logits(depth) for depth in DEPTHS if is_kept("logits")
    }
    cases |= {NAMES[name]: provided(name) for name in TEN[:2] if here(name)}
    found = {
        (name, bins): np.quantile(preds.confidence, np.linspace(0, 1, bins + 1))
        for name, preds in cases.items()
        for bins in EQUAL_SIZES
    }
    wide = [widest_bin(f"{name}, {bins} bins", edges) for (name, bins), edges in found.items()]
    dense = [bins_on_top(f"{name}, {bins} bins", edges) for (name, bins), edges in found.items()]
    return [
        Claim("Of 50 or 100 bins of equal size one at low confidence is very wide (wider than one of ten equal ones)",
              "a very wide bin exists (figures 3b, 3c)", wide),
        Claim("Most of 50 or 100 bins of equal size lie at high confidence (more than half above 0.9)",
              "an excessive number of bins (figures 3b, 3c)", dense),
    ]  # fmt: skip


def widest_bin(case: str, edges: np.ndarray) -> Evidence:
    """The quantiles of given confidences, so without interval."""
    widths = np.diff(edges)
    row = int(widths.argmax())
    found = f"the widest reaches from {edges[row]:.2f} to {edges[row + 1]:.2f}"
    word = AGREES if widths[row] > TENTH and edges[row + 1] < TOP else NOT
    return Evidence(case, found, float("nan"), float("nan"), word, regime=PUBLISHED)


def bins_on_top(case: str, edges: np.ndarray) -> Evidence:
    share = float((edges[:-1] >= TOP).mean())
    found = f"{percent(share, 0)} % of the bins lie above {TOP}"
    word = AGREES if share > HALF else NOT
    return Evidence(case, found, float("nan"), float("nan"), word, regime=PUBLISHED)
