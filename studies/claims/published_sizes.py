"""Ding 2020, section 5.2, on networks that others trained to the end: four ResNets for CIFAR-10 and
eight networks for ImageNet.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import howsure as hs

from ..kept import DEPTHS, PARAMETERS, is_kept, read_logits, read_scaled
from ..provided import HUNDRED, IMAGENET, NAMES, TEN, calibrated, here, imagenet_sets, provided
from ..tables.complexity import CALIBRATION, HIDDEN, WHOLE, bin_count, inside
from ..tables.results import tally
from ..tables.table import percent, rank_correlation
from . import estimates
from .claim import OURS, PUBLISHED, Claim, Evidence, rest_on, sided, within
from .growth import Grown, flat, trend
from .paired import Metric, paired

SURE = 0.9
SMALL_SAMPLE = 2_500
SAME_GAP = 0.1
IMAGE_DRAWS = 100


def grow_published(metric: Metric, sign: str) -> list[Evidence]:
    """The deepest against the shallowest ResNet, whose kind and training are one; networks of many
    kinds are listed and do not vote, for size is not what tells them apart."""
    found: list[Evidence] = []
    if is_kept("logits"):
        large, small = read_logits(DEPTHS[-1]), read_logits(DEPTHS[0])
        case = f"published ResNet-{DEPTHS[-1]} against ResNet-{DEPTHS[0]}, {large.n:,} images"
        found.append(paired(case, metric, large, small, sign))
    sets = imagenet_sets()
    if len(sets) > 2:
        size = np.array([IMAGENET[name] for name in sets])
        values = np.array([metric(tally_of_top(preds)) for preds in sets.values()])
        value, low, high = estimates.resampled(
            len(size), lambda rows: rank_correlation(size[rows], values[rows])
        )
        text = f"rank correlation with the parameters {value:+.2f}; {percent(values.min())} to {percent(values.max())}"
        word = sided(low, high, sign)
        case = f"{len(sets)} ImageNet networks of many kinds"
        found.append(Evidence(case, text, low, high, word, scale=1, counts=False))
    return rest_on(found, PUBLISHED)


def flat_published(margins: Mapping[str, float]) -> list[Evidence]:
    """The four published ResNets, whose kind and training are one, after temperature scaling."""
    if not is_kept("logits"):
        return []
    tallies = [tally(read_scaled(depth)) for depth in DEPTHS]
    values = {name: [[CALIBRATION[name](t)] for t in tallies] for name in margins}
    doublings = [float(np.log2(PARAMETERS[depth])) for depth in DEPTHS]
    grown = Grown(["resnet"] * len(DEPTHS), doublings, values)
    found = [flat(grown, name, margin) for name, margin in margins.items()]
    return [replace(e, case=f"published, {e.case}", regime=PUBLISHED) for e in found]


def published_above(margin: float) -> list[Evidence]:
    """MCE of ten equal bins and AMCE of each published ResNet, after temperature scaling."""
    if not is_kept("logits"):
        return []
    tallies = [tally(read_scaled(depth)) for depth in DEPTHS]
    pairs = [(CALIBRATION["MCE"](t), CALIBRATION["AMCE"](t)) for t in tallies]
    middle, low, high = estimates.mean([one - two for one, two in pairs])
    each = ", ".join(f"{percent(one, 1)} and {percent(two, 1)}" for one, two in pairs)
    found = f"{100 * middle:+.2f} points; MCE and AMCE {each}"
    word = sided(low, high, "+", margin)
    case = f"mean over {len(pairs)} published ResNets: MCE - AMCE"
    return [Evidence(case, found, low, high, word, edges=(margin,), regime=PUBLISHED)]


def concentrated(scaled: Grown) -> Claim:
    """Section 5.2: why MCE of DenseNets is higher. Over all networks: are those whose confidence is
    more concentrated those whose MCE is further above their AMCE?"""
    evidence: list[Evidence] = []
    if len(scaled.family) > 2:
        sure, mce, amce = (np.array(scaled.means(name)) for name in ("sure", "MCE", "AMCE"))
        number = lambda rows: rank_correlation(sure[rows], (mce - amce)[rows])
        value, low, high = estimates.resampled(len(sure), number)
        text = f"rank correlation {value:+.2f} of MCE - AMCE with the share of confidences above {SURE}"
        word = sided(low, high, "+")
        evidence = [Evidence(scaled.text, text, low, high, word, scale=1, edges=(0.0,))]
    return Claim(
        "Where confidences are more concentrated at the top MCE is further above AMCE, as in DenseNets against "
        "WideResNets", "the reason given for figure 5c", evidence,
    )  # fmt: skip


def tally_of_top(preds: hs.Predictions) -> hs.Tally:
    return hs.tally(preds.confidence, correct=preds.correct)


def errors_concentrate(raw: Grown) -> Claim:
    evidence = [trend(raw, "sure errors", "+")] if raw.family else []
    if is_kept("logits"):
        evidence += rest_on([compare_sure_errors()], PUBLISHED)
    return Claim(
        "The errors of larger networks lie more at high confidence (share of them above 0.9)",
        "increasingly concentrated there (section 5.2)", evidence, telling=OURS,
    )  # fmt: skip


def compare_sure_errors() -> Evidence:
    large, small = (read_logits(depth) for depth in (DEPTHS[-1], DEPTHS[0]))
    number = lambda rows: sure_errors(large, rows) - sure_errors(small, rows)
    value, low, high = estimates.resampled(large.n, number)
    every = np.arange(large.n)
    shares = [percent(sure_errors(preds, every), 1) for preds in (large, small)]
    found = f"{shares[0]} % against {shares[1]} %: {100 * value:+.1f} points"
    case = f"published ResNet-{DEPTHS[-1]} against ResNet-{DEPTHS[0]}"
    return Evidence(case, found, low, high, sided(low, high, "+"), edges=(0.0,))


def sure_errors(preds: hs.Predictions, rows: np.ndarray) -> float:
    """Of the wrong answers, the share with a confidence above 0.9."""
    wrong = ~preds.correct[rows].astype(bool)
    return float((preds.confidence[rows][wrong] > SURE).mean())


def scaled_gets_more_bins() -> Claim:
    """Figure 6: for a more difficult data set and a calibrated model more bins are used."""
    names = [name for name in (*TEN, *HUNDRED) if here(name)]
    evidence = [more_bins_scaled(name) for name in names if provided(name).kind != "confidence"]
    return Claim("A calibrated network gets more adaptive bins than the same network before",
                 "more bins are used automatically (figure 6)", rest_on(evidence, PUBLISHED))  # fmt: skip


def more_bins_scaled(name: str) -> Evidence:
    after, before = calibrated(name)[0], provided(name)
    count = lambda preds, rows: bin_count(
        hs.tally(preds.confidence[rows], correct=preds.correct[rows])
    )
    number = lambda rows: count(after, rows) - count(before, rows)
    value, low, high = estimates.resampled(before.n, number, IMAGE_DRAWS)
    counts = [bin_count(tally(preds)) for preds in (after, before)]
    found = f"{counts[0]:.0f} bins against {counts[1]:.0f}: {value:+.0f}"
    return Evidence(NAMES[name], found, low, high, sided(low, high, "+"), scale=1, edges=(0.0,))


def more_samples_do_not_help() -> Claim:
    """The gap on (0.9, 0.96] that the bin (0.9, 1] hides, on all images and on a quarter of them."""
    evidence: list[Evidence] = []
    if is_kept("logits"):
        evidence = rest_on([hidden_in_few(depth) for depth in DEPTHS], PUBLISHED)
    return Claim("More samples do not show the gap that the last of ten bins hides: it hides as much of 10,000 images "
                 "as of 2,500 (within a tenth)", "samples cannot fix the undetectable error (section 4.2)",
                 evidence)  # fmt: skip


def hidden_in_few(depth: int) -> Evidence:
    preds = read_logits(depth)
    excess = lambda rows: inside(preds, HIDDEN, rows).gap - inside(preds, WHOLE, rows).gap
    number = lambda rows: excess(rows) - excess(rows[:SMALL_SAMPLE])
    rng = np.random.default_rng(estimates.SEED)
    draws = [number(rng.integers(preds.n, size=preds.n)) for _ in range(estimates.DRAWS)]
    low, high = (float(v) for v in np.nanquantile(draws, [0.025, 0.975]))
    every = np.arange(preds.n)
    found = f"hidden {excess(every):.3f} on {preds.n:,} images, {excess(every[:SMALL_SAMPLE]):.3f} on {SMALL_SAMPLE:,}"
    word = within(low, high, SAME_GAP)
    case = f"published ResNet-{depth}"
    return replace(
        Evidence(case, found, low, high, word, scale=1, digits=3), edges=(-SAME_GAP, SAME_GAP)
    )
