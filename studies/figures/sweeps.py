"""Vemuri 2020, figures 3.1, 3.2, 4.1, 5.1, 6.1 and 6.2."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

from ..plans import STUDIES, runs_of
from ..plans.regularisation import MAIN, SWEPT
from ..runs import Run
from ..store import Store
from ..tables.calibration import NOT_A_PROBABILITY, ByMethod, name_of, on_whole
from ..tables.regularisation import at_epoch, course_of
from ..tables.results import finished, predictions, tally
from .drawing import diagonal, draw, panels

COLUMNS = 5
COLOURS = 10  # of matplotlib; a line beyond them is dotted
METRICS = {"error": lambda t: t.total / t.n, "ECE": hs.ece, "AAC": hs.aac}


def regularisation(store: Store, scale: str) -> dict[str, Figure]:
    """The sweeps of the main network, and the course of every standard run."""
    everything = finished(store, dict.fromkeys(STUDIES["regularisation"](scale)))
    done = [run for run in everything if run.settings.network == MAIN[scale]]
    standard = [run for run in done if run.label == "standard"]
    figure, axes = panels(list(SWEPT), [(name, "per cent") for name in SWEPT])
    for ax, (name, field) in zip(axes, SWEPT.items(), strict=True):
        sweep(ax, store, [*standard, *(run for run in done if run.label.startswith(name))], field)
    courses = [run for run in everything if {"course", "long_course"} & set(run.extras)]
    names = {run: f"overfitting_{run.settings.network}_{run.settings.epochs}" for run in courses}
    return {"regularisation": figure} | {name: overfitting(store, run) for run, name in names.items()}


def sweep(ax: Axes, store: Store, runs: list[Run], field: str) -> None:
    """Equal steps on the x axis, labelled with the values. The line joins the means of the seeds, points are single
    trainings."""
    groups: dict[float, list[hs.Tally]] = {}
    for run in runs:
        groups.setdefault(getattr(run.settings, field), []).append(tally(predictions(store, run)))
    order = sorted(groups)
    for name, metric in METRICS.items():
        found = [[100 * metric(t) for t in groups[v]] for v in order]
        (line,) = ax.plot(range(len(order)), [float(np.mean(values)) for values in found], "-", label=name)
        places = [x for x, values in enumerate(found) for _ in values]
        ax.plot(places, [value for values in found for value in values], "o", color=line.get_color(), markersize=3)
    ax.set_xticks(range(len(order)), [f"{v:g}" for v in order], fontsize=7)
    if order:
        ax.legend(fontsize=7)


def overfitting(store: Store, run: Run) -> Figure:
    """Figure 3.2 and the early stopping panel of figure 5.1."""
    found = course_of(store, run)
    titles = [f"{run.settings.network}: NLL", "error and ECE"]
    figure, axes = panels(titles, [("epoch", "NLL"), ("epoch", "per cent")])
    epochs = found["epochs"]
    for split in ("train", "test"):
        axes[0].plot(epochs, found[f"{split}_nll"].astype(float).mean(1), label=split)
        axes[1].plot(epochs, 100 * (1 - found[f"{split}_correct"].mean(1)), label=f"{split} error")
    axes[1].plot(epochs, [100 * hs.ece(at_epoch(found, e).tally()) for e in range(len(epochs))], label="test ECE")
    for ax in axes:
        ax.legend(fontsize=7)
    return figure


def calibration(store: Store, scale: str) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for run in finished(store, runs_of(["calibration"], scale)):
        name = f"{run.settings.network}_{run.settings.epochs}" + (f"_{run.settings.seed}" if run.settings.seed else "")
        found |= {name: before(store, run), f"{name}_methods": after(on_whole(store, run))}
    return found


def before(store: Store, run: Run) -> Figure:
    """Reliability of training and test images (figure 3.1), and the threshold diagrams of all methods (4.1 and 6.2)."""
    labels = [("confidence", "accuracy"), ("deferred", "accuracy of the kept")]
    figure, axes = panels([f"{name_of(run)}: reliability", "threshold diagram"], labels)
    diagonal(axes[0])
    for split in ("train", "test"):
        draw(axes[0], hs.reliability(tally(predictions(store, run, split))), split, marker="o", markersize=3)
    for i, (name, parts) in enumerate(on_whole(store, run).items()):
        style = "-" if i < COLOURS else ":"
        draw(axes[1], hs.threshold_diagram(parts[-1].tally()), name, linestyle=style)
    draw(
        axes[1], hs.threshold_diagram(tally(predictions(store, run)), ideal=True), "ideal", color="grey", linestyle="--"
    )
    axes[0].legend(fontsize=7)
    axes[1].legend(fontsize=5, loc="lower right")
    return figure


def after(found: ByMethod) -> Figure:
    """Figure 6.1: the reliability diagram of each correction on the test images."""
    names = [name for name in found if name not in NOT_A_PROBABILITY]
    figure, axes = panels(names, [("confidence", "accuracy")] * len(names), columns=COLUMNS)
    for ax, name in zip(axes, names, strict=True):
        t = found[name][-1].tally()
        diagonal(ax)
        draw(ax, hs.reliability(t), name, marker="o", markersize=3)
        ax.text(0.04, 0.9, f"ECE {100 * hs.ece(t):.1f}, AAC {100 * hs.aac(t):.1f}", transform=ax.transAxes, fontsize=7)
    return figure
