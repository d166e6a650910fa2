"""Ding 2020, figures 4 and 5: what becomes of each metric as networks grow."""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch

import howsure as hs

from ..data.sizes import SIZES
from ..networks import build, parameters
from ..plans import runs_of
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
CALIBRATION: dict[str, Callable[[hs.Tally], float]] = {
    "ECE": lambda t: hs.ece(t, TEN),
    "AECE": hs.aece,
    "MCE": lambda t: hs.mce(t, TEN),
    "AMCE": hs.amce,
}
CONFIDENCE_LEVELS = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
Tallies = dict[str, list[hs.Tally]]


def complexity(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["complexity"], scale)
    groups = by_network(finished(store, runs))
    note = progress(store, runs) + " In per cent; mean of the repeats ± half their range."
    raw = tallies(groups, lambda run: predictions(store, run))
    tables = [
        metric_table("Selective prediction (figure 4)", groups, raw, SELECTIVE, note),
        metric_table("Calibration as trained", groups, raw, CALIBRATION, note),
    ]
    scaled = tallies(groups, lambda run: temperature_scaled(store, run))
    title = "Calibration after temperature scaling (figure 5)"
    scaled_table = metric_table(title, groups, scaled, CALIBRATION, note)
    return [*tables, scaled_table, sensitivity("Adaptive bins", scaled)]


def tallies(groups: dict[str, list[Run]], read: Callable[[Run], hs.Predictions]) -> Tallies:
    return {network: [tally(read(run)) for run in runs] for network, runs in groups.items()}


@cache
def size(run: Run) -> int:
    """Parameters, counted on the meta device."""
    of = SIZES[run.settings.data]
    with torch.device("meta"):
        return parameters(build(run.settings.network, classes=of.classes, channels=of.channels))


def metric_table(
    title: str, groups: dict[str, list[Run]], found: Tallies, metrics: dict[str, Callable], note: str
) -> Table:
    """One row per network, by size, and the rank correlation of each metric with the size."""
    order = sorted(found, key=lambda network: size(groups[network][0]))
    sizes = [size(groups[network][0]) for network in order]
    columns = {name: [[f(t) for t in found[network]] for network in order] for name, f in metrics.items()}
    rows = [
        [network, f"{n:,}", str(len(found[network])), *(spread(columns[name][i]) for name in metrics)]
        for i, (network, n) in enumerate(zip(order, sizes, strict=True))
    ]
    trend = [f"{rank_correlation(sizes, [np.mean(v) for v in columns[name]]):+.2f}" for name in metrics]
    return Table(
        title, ["network", "parameters", "repeats", *metrics], [*rows, ["rank correlation", "", "", *trend]], note
    )


def sensitivity(title: str, found: Tallies) -> Table:
    """How AECE, AMCE and the number of bins depend on the level; the other parameter, the error margin in units
    of the bin width, enters only through z / margin, so that changing the level covers it."""
    everything = [t for group in found.values() for t in group]
    rows = [sensitivity_row(level, everything) for level in CONFIDENCE_LEVELS] if everything else []
    note = "Mean over all networks; the paper uses 80 % and reports 12.6 bins on CIFAR-10, 21.2 on CIFAR-100."
    return Table(f"{title}: sensitivity to the parameters", ["level", "bins", "AECE", "AMCE"], rows, note)


def sensitivity_row(level: float, found: list[hs.Tally]) -> list[str]:
    bins = hs.adaptive(level=level)
    count = np.mean([len(bins.cuts(t)) - 1 for t in found])
    errors = [np.mean([f(t, bins) for t in found]) for f in (hs.aece, hs.amce)]
    return [f"{level:.0%}", f"{count:.1f}", *(percent(float(e)) for e in errors)]
