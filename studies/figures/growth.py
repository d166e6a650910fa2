"""Metrics against network size: Ding 2020, figures 4, 5 and 7."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from ..tables.complexity import CALIBRATION, SELECTIVE, size
from ..tables.results import by_network, finished, predictions, tally, temperature_scaled
from ..tables.segmentation import measures
from .binning import binning_figures
from .drawing import name_lines, panels

Measure = Callable[[Run], dict[str, float]]
PAIRS = (("AUPR",), ("AURC",), ("ECE", "AECE"), ("MCE", "AMCE"))
SEGMENTATION = (("1 - Dice",), ("AURC of 1 - Dice",), ("ECE", "AECE"), ("MCE", "AMCE"))


def complexity(store: Store, scale: str) -> dict[str, Figure]:
    runs = finished(store, runs_of(["complexity"], scale))
    found = against_size(
        runs, lambda run: of_classifier(store, run), PAIRS, ("as trained",) * 2 + ("scaled",) * 2
    )
    return {"complexity": found, **binning_figures(store, runs)}


def segmentation(store: Store, scale: str) -> dict[str, Figure]:
    return of_masks("segmentation", store, scale)


def nuclei(store: Store, scale: str) -> dict[str, Figure]:
    return of_masks("nuclei", store, scale)


def of_masks(name: str, store: Store, scale: str) -> dict[str, Figure]:
    runs = finished(store, runs_of([name], scale))
    states = {"": False, "_scaled": True}
    return {
        f"{name}{end}": against_size(
            runs,
            lambda run, scaled=scaled: measures(store, run, scaled=scaled),
            SEGMENTATION,
            ("scaled" if scaled else "as trained",) * len(SEGMENTATION),
        )
        for end, scaled in states.items()
    }


def of_classifier(store: Store, run: Run) -> dict[str, float]:
    """Ranking as trained, calibration after temperature scaling, as in the paper."""
    raw = predictions(store, run)
    scaled = temperature_scaled(store, run)
    ranking = {name: metric(tally(raw)) for name, metric in SELECTIVE.items()}
    return ranking | {name: metric(tally(scaled)) for name, metric in CALIBRATION.items()}


def against_size(
    runs: list[Run], measure: Measure, pairs: tuple[tuple[str, ...], ...], states: tuple[str, ...]
) -> Figure:
    """One panel per pair of metrics, a colour per family, dashed where bins adapt; bands span the
    repeats.
    """
    titles = [f"{' and '.join(pair)}, {state}" for pair, state in zip(pairs, states, strict=True)]
    figure, axes = panels(titles, [("parameters", "per cent")] * len(pairs))
    values = {run.settings.name: measure(run) for run in runs}
    for i, family in enumerate(dict.fromkeys(run.settings.network.split("-")[0] for run in runs)):
        groups = by_network(run for run in runs if run.settings.network.startswith(f"{family}-"))
        repeats = sorted(groups.values(), key=lambda group: size(group[0]))
        for ax, pair in zip(axes, pairs, strict=True):
            for name in pair:
                found = [
                    [100 * values[run.settings.name][name] for run in group] for group in repeats
                ]
                line(ax, repeats, found, f"{family} {name}", f"C{i}")
    for ax in axes:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(axis="x", labelsize=8)
        name_lines(ax, size=7.0)
    return figure


def short_count(value: float) -> str:
    """200k, 1M: powers of ten beside each other would collide."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"


def line(
    ax: Axes, repeats: list[list[Run]], values: list[list[float]], label: str, colour: str
) -> None:
    x = [size(group[0]) for group in repeats]
    dashed = label.endswith((" AECE", " AMCE"))
    ax.plot(
        x,
        [np.mean(v) for v in values],
        "o--" if dashed else "o-",
        color=colour,
        label=label,
        markersize=3,
    )
    ax.fill_between(x, [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.15)
