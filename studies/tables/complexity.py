"""Ding 2020, figures 4 and 5: what becomes of each metric as networks grow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

import howsure as hs

from ..data.sizes import SIZES
from ..networks import build, parameters
from ..plans import runs_of
from ..provided import IMAGENET, NAMES, here, imagenet_sets, provided
from ..provided import TEN as TEN_SETS
from ..runs import Run
from ..store import Store
from .results import by_network, finished, predictions, progress, tally, temperature_scaled
from .table import Table, percent, rank_correlation, spread

TEN = hs.equal_range(10)
SELECTIVE: dict[str, Callable[[hs.Tally], float]] = {
    "error": lambda t: t.total / t.n,
    "AUPR": hs.aupr,
    "AURC": hs.aurc,
    "AUROC": hs.auroc,
}
ERRORS = "AUPR and AUROC are those of finding errors."
CALIBRATION: dict[str, Callable[[hs.Tally], float]] = {
    "ECE": lambda t: hs.ece(t, TEN),
    "AECE": hs.aece,
    "MCE": lambda t: hs.mce(t, TEN),
    "AMCE": hs.amce,
}
AS_PRINTED = hs.adaptive(
    tail=0, margin=0.0
)  # without the rule for the last bin of the released code
HIDDEN, WHOLE = (0.9, 0.96), (0.9, 1.0)  # figure 2
CHANCE_DRAWS = 20
CONFIDENCE_LEVELS = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
Tallies = dict[str, list[hs.Tally]]


def complexity(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["complexity"], scale)
    groups = by_network(finished(store, runs))
    note = progress(store, runs) + " In per cent; mean of the repeats ± half their range."
    raw = tallies(groups, lambda run: predictions(store, run))
    tables = [
        metric_table("Selective prediction (figure 4)", groups, raw, SELECTIVE, f"{note} {ERRORS}"),
        metric_table("Calibration as trained", groups, raw, CALIBRATION, note),
    ]
    scaled = tallies(groups, lambda run: temperature_scaled(store, run))
    title = "Calibration after temperature scaling (figure 5)"
    scaled_table = metric_table(title, groups, scaled, CALIBRATION, note)
    return [
        *tables,
        scaled_table,
        chance_table(store, groups),
        sensitivity("Adaptive bins", scaled),
        hidden_table(),
        *imagenet_table(),
    ]


def tallies(groups: dict[str, list[Run]], read: Callable[[Run], hs.Predictions]) -> Tallies:
    return {network: [tally(read(run)) for run in runs] for network, runs in groups.items()}


@cache
def size(run: Run) -> int:
    """Parameters, counted on the meta device."""
    of = SIZES[run.settings.data]
    with torch.device("meta"):
        return parameters(build(run.settings.network, classes=of.classes, channels=of.channels))


def metric_table(
    title: str,
    groups: dict[str, list[Run]],
    found: Tallies,
    metrics: dict[str, Callable],
    note: str,
) -> Table:
    """One row per network, by size, and the rank correlation of each metric with the size."""
    order = sorted(found, key=lambda network: size(groups[network][0]))
    sizes = [size(groups[network][0]) for network in order]
    columns = {
        name: [[f(t) for t in found[network]] for network in order] for name, f in metrics.items()
    }
    rows = [
        [
            network,
            f"{n:,}",
            str(len(found[network])),
            *(spread(columns[name][i]) for name in metrics),
        ]
        for i, (network, n) in enumerate(zip(order, sizes, strict=True))
    ]
    trend = [
        f"{rank_correlation(sizes, [np.mean(v) for v in columns[name]]):+.2f}" for name in metrics
    ]
    return Table(
        title,
        ["network", "parameters", "repeats", *metrics],
        [*rows, ["rank correlation", "", "", *trend]],
        note,
    )


@dataclass(frozen=True)
class Part:
    """The images whose confidence lies in one stretch."""

    count: int
    accuracy: float
    gap: float


def inside(
    preds: hs.Predictions, part: tuple[float, float], rows: np.ndarray | None = None
) -> Part:
    """Confidence above the lower and up to the upper end; the gap is confidence minus accuracy."""
    chosen = np.arange(preds.n) if rows is None else rows
    confidence, correct = preds.confidence[chosen], preds.correct[chosen]
    some = (confidence > part[0]) & (confidence <= part[1])
    if not some.any():
        return Part(0, float("nan"), float("nan"))
    accuracy = float(correct[some].mean())
    return Part(int(some.sum()), accuracy, float(confidence[some].mean()) - accuracy)


def imagenet_table() -> list[Table]:
    """Ranking by many kinds of published networks, by size; none where they are not at hand."""
    sets = imagenet_sets()
    if not sets:
        return []
    order = sorted(sets, key=IMAGENET.__getitem__)
    tallies = {name: hs.tally(sets[name].confidence, correct=sets[name].correct) for name in order}
    metrics = {**SELECTIVE, "E-AURC": hs.e_aurc, "ECE": hs.ece}
    values = {name: [metric(t) for metric in metrics.values()] for name, t in tallies.items()}
    rows = [
        [name.removeprefix("in1k_"), f"{IMAGENET[name]:g}", *(percent(v) for v in values[name])]
        for name in order
    ]
    sizes = [IMAGENET[name] for name in order]
    columns = zip(*values.values(), strict=True)
    trend = [f"{rank_correlation(sizes, column):+.2f}" for column in columns]
    note = (
        f"In per cent, 50,000 images of ImageNet each, as published. {ERRORS} These networks differ in kind more than in "
        "size. As in `densenet_m`, AUPR falls where there are fewer errors to find, and AURC follows the error."
    )
    header = ["network", "parameters, millions", *metrics]
    rows.append(["rank correlation", "", *trend])
    return [Table("Published ImageNet networks", header, rows, note)]


def hidden_table() -> Table:
    """Figure 2 in numbers, for the networks that others trained to the end."""
    rows = [hidden_row(NAMES[name], provided(name)) for name in TEN_SETS if here(name)]
    header = ["network", "images in (0.9, 0.96]", "accuracy there", "gap there", "gap in (0.9, 1]"]
    note = (
        "As published. The paper: gap 0.0215 on [0.9, 1] and an accuracy below 73 % on [0.9, 0.96]."
    )
    return Table("What the last of ten bins hides (figure 2)", header, rows, note)


def hidden_row(name: str, preds: hs.Predictions) -> list[str]:
    part, whole = inside(preds, HIDDEN), inside(preds, WHOLE)
    return [name, str(part.count), percent(part.accuracy, 1), f"{part.gap:.3f}", f"{whole.gap:.3f}"]


def bin_count(t: hs.Tally, level: float = 0.8) -> float:
    return float(len(hs.reliability(t, hs.adaptive(level=level)).x))


def by_chance(preds: hs.Predictions) -> tuple[dict[str, float], dict[str, float]]:
    """The four calibration errors as seen, and their mean were every stated probability true:
    answers are drawn right with the probability that the network states."""
    rng = np.random.default_rng(0)
    score, t = preds.confidence, tally(preds)
    draws = [hs.tally(score, correct=rng.random(len(score)) < score) for _ in range(CHANCE_DRAWS)]
    seen = {name: metric(t) for name, metric in CALIBRATION.items()}
    return seen, {
        name: float(np.mean([metric(d) for d in draws])) for name, metric in CALIBRATION.items()
    }


def chance_table(store: Store, groups: dict[str, list[Run]]) -> Table:
    """How much of each error is there without any miscalibration."""
    order = sorted(groups, key=lambda network: size(groups[network][0]))
    rows = [[n, *chance_cells([chance_of(store, run) for run in groups[n]])] for n in order]
    header = [
        "network",
        *(f"{name} {what}" for name in CALIBRATION for what in ("seen", "by chance")),
    ]
    note = (
        f"In per cent, after temperature scaling. By chance: the mean over {CHANCE_DRAWS} draws in which each answer "
        "is right with exactly the probability that the network states."
    )
    return Table("What finite samples add to the calibration errors", header, rows, note)


@cache
def chance_of(store: Store, run: Run) -> tuple[dict[str, float], dict[str, float]]:
    return by_chance(temperature_scaled(store, run))


def chance_cells(found: list[tuple[dict[str, float], dict[str, float]]]) -> list[str]:
    return [
        percent(float(np.mean([pair[i][name] for pair in found])))
        for name in CALIBRATION
        for i in (0, 1)
    ]


def sensitivity(title: str, found: Tallies) -> Table:
    """How AECE, AMCE and the number of bins depend on the level; the other parameter, the error
    margin in units of the bin width, enters only through z / margin, so that changing the level
    covers it."""
    everything = [t for group in found.values() for t in group]
    rows = [sensitivity_row(level, everything) for level in CONFIDENCE_LEVELS] if everything else []
    note = "Mean over all networks; the paper uses 80 % and reports 12.6 bins on CIFAR-10, 21.2 on CIFAR-100."
    return Table(
        f"{title}: sensitivity to the parameters", ["level", "bins", "AECE", "AMCE"], rows, note
    )


def sensitivity_row(level: float, found: list[hs.Tally]) -> list[str]:
    bins = hs.adaptive(level=level)
    count = np.mean([bin_count(t, level) for t in found])
    errors = [np.mean([f(t, bins) for t in found]) for f in (hs.aece, hs.amce)]
    return [f"{level:.0%}", f"{count:.1f}", *(percent(float(e)) for e in errors)]
