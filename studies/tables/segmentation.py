"""Ding 2020, figure 7: U-Net width against selective segmentation and pixel-wise calibration."""

from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .complexity import CALIBRATION, size
from .results import arrays, by_network, finished, progress, tally
from .table import Table, rank_correlation, spread

SURE = 0.99  # "sure" is the share of pixels above it
METRICS = (
    "1 - Dice",
    "AURC of 1 - Dice",
    "without foreground",
    "pixel error",
    "AUPR",
    "sure",
    *CALIBRATION,
)


def segmentation(store: Store, scale: str) -> list[Table]:
    return width_tables("segmentation", store, scale)


def nuclei(store: Store, scale: str) -> list[Table]:
    return width_tables("nuclei", store, scale)


def width_tables(name: str, store: Store, scale: str) -> list[Table]:
    """One row per width; the foreground of Dice is class 1. Not all pixels are kept, see
    `Dataset.keep_every`.
    """
    runs = runs_of([name], scale)
    groups = by_network(finished(store, runs))
    about = (
        "mean of the repeats ± half their range. AUPR is that of finding errors. As long as no accepted pixel is "
        "foreground, 1 - Dice is 1: `without foreground` is the coverage up to which that is so. A network that is "
        "surest of the background has an AURC near that coverage, whatever it makes of the foreground."
    )
    which = (
        "all test pixels"
        if scale == "smoke"
        else "every second pixel in both directions of all test images"
    )
    note = f"{progress(store, runs)} In per cent, {which}; {about}"
    title = "U-Net width (figure 7)"
    return [
        width_table(store, groups, f"{title}, {name}", note, scaled=scaled)
        for name, scaled in (("as trained", False), ("after temperature scaling", True))
    ]


def width_table(
    store: Store, groups: dict[str, list[Run]], title: str, note: str, *, scaled: bool
) -> Table:
    order = sorted(groups, key=lambda network: size(groups[network][0]))
    values = {
        network: [measures(store, run, scaled=scaled) for run in groups[network]]
        for network in order
    }
    sizes = [size(groups[network][0]) for network in order]
    rows = [
        [
            network,
            f"{n:,}",
            str(len(values[network])),
            *(spread([v[m] for v in values[network]]) for m in METRICS),
        ]
        for network, n in zip(order, sizes, strict=True)
    ]
    trend = [
        f"{rank_correlation(sizes, [mean(values[n], m) for n in order]):+.2f}" for m in METRICS
    ]
    header = ["network", "parameters", "repeats", *METRICS]
    return Table(title, header, [*rows, ["rank correlation", "", "", *trend]], note)


def mean(values: list[dict[str, float]], name: str) -> float:
    return float(np.mean([v[name] for v in values]))


@cache
def measures(store: Store, run: Run, *, scaled: bool = False) -> dict[str, float]:
    """All numbers of one network; with the temperature of the validation pixels where asked for."""
    preds = pixels(store, run, "test")
    if scaled:
        preds = hs.calibrators.Temperature.fit(pixels(store, run, "val"))(preds)
    t = tally(preds)
    dice = hs.dice_tally(hs.scores.max_prob(preds), preds.prediction, preds.labels)
    return {
        "1 - Dice": float(dice.risk[-1]),
        "AURC of 1 - Dice": hs.aurc(dice),
        "without foreground": coverage_without_foreground(dice),
        "pixel error": t.total / t.n,
        "AUPR": hs.aupr(t),
        "sure": float((preds.confidence > SURE).mean()),
        **{name: metric(t) for name, metric in CALIBRATION.items()},
    }


def coverage_without_foreground(dice: hs.Tally) -> float:
    """Up to this coverage no accepted pixel is foreground, rightly seen: 1 - Dice is 1 so far."""
    hit = np.flatnonzero(dice.risk < 1)
    return float(dice.count[: hit[0]].sum() / dice.n) if len(hit) else 1.0


def pixels(store: Store, run: Run, split: str) -> hs.Predictions:
    found = arrays(store, run)
    return hs.Predictions.from_logits(
        found[f"{split}_logit_difference"].ravel(), found[f"{split}_labels"].ravel()
    )
