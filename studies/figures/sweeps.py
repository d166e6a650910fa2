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
from .drawing import diagonal, draw, name_lines, panels

COLUMNS = 5
DEFERRED = np.linspace(0, 0.9, 181)  # beyond it few images are left
LOWEST = (
    -3
)  # points below no calibration; what lies lower leaves the frame and is seen whole beside it
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
    return {"regularisation": figure} | {
        name: overfitting(store, run) for run, name in names.items()
    }


def sweep(ax: Axes, store: Store, runs: list[Run], field: str) -> None:
    """Equal steps on the x axis, labelled with the values. The line joins the means of the seeds,
    points are single trainings."""
    groups: dict[float, list[hs.Tally]] = {}
    for run in runs:
        groups.setdefault(getattr(run.settings, field), []).append(tally(predictions(store, run)))
    order = sorted(groups)
    for name, metric in METRICS.items():
        found = [[100 * metric(t) for t in groups[v]] for v in order]
        (line,) = ax.plot(
            range(len(order)), [float(np.mean(values)) for values in found], "-", label=name
        )
        places = [x for x, values in enumerate(found) for _ in values]
        ax.plot(
            places,
            [value for values in found for value in values],
            "o",
            color=line.get_color(),
            markersize=3,
        )
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
    axes[1].plot(
        epochs,
        [100 * hs.ece(at_epoch(found, e).tally()) for e in range(len(epochs))],
        label="test ECE",
    )
    for ax in axes:
        ax.legend(fontsize=7)
    return figure


def calibration(store: Store, scale: str) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for run in finished(store, runs_of(["calibration"], scale)):
        name = f"{run.settings.network}_{run.settings.epochs}" + (
            f"_{run.settings.seed}" if run.settings.seed else ""
        )
        found |= {name: before(store, run), f"{name}_methods": after(on_whole(store, run))}
    return found


def before(store: Store, run: Run) -> Figure:
    """Reliability of training and test images (figure 3.1), and the threshold diagrams of all
    methods (4.1 and 6.2): as they are, where most lie on each other, and less that of no
    calibration, which shows the methods apart."""
    labels = [
        ("confidence", "accuracy"),
        ("deferred", "accuracy of the kept"),
        ("deferred", "points above none"),
    ]
    figure, axes = panels([name_of(run), "threshold diagram", "the same, against none"], labels)
    diagonal(axes[0])
    for split in ("train", "test"):
        draw(
            axes[0],
            hs.reliability(tally(predictions(store, run, split))),
            split,
            marker="o",
            markersize=3,
        )
    curves = {
        name: hs.threshold_diagram(parts[-1].tally())
        for name, parts in on_whole(store, run).items()
    }
    kept = {
        name: np.interp(DEFERRED, curve.x[::-1], curve.y[::-1]) for name, curve in curves.items()
    }
    for i, (name, curve) in enumerate(curves.items()):
        style = {"color": f"C{i % COLOURS}", "linestyle": "-" if i < COLOURS else ":"}
        draw(axes[1], curve, name, **style)
        axes[2].plot(DEFERRED, 100 * (kept[name] - kept["none"]), label=name, linewidth=1, **style)
    ideal = hs.threshold_diagram(tally(predictions(store, run)), ideal=True)
    draw(axes[1], ideal, "ideal", color="grey", linestyle="--")
    axes[1].text(float(ideal.x.max()) + 0.03, 1, "ideal", color="grey", fontsize=7, va="center")
    axes[0].legend(fontsize=7)
    axes[2].set_ylim(bottom=max(LOWEST, axes[2].get_ylim()[0]))
    name_lines(axes[2])
    return figure


def after(found: ByMethod) -> Figure:
    """Figure 6.1: the reliability diagram of each correction on the test images."""
    names = [name for name in found if name not in NOT_A_PROBABILITY]
    figure, axes = panels(names, [("confidence", "accuracy")] * len(names), columns=COLUMNS)
    for ax, name in zip(axes, names, strict=True):
        t = found[name][-1].tally()
        diagonal(ax)
        draw(ax, hs.reliability(t), name, marker="o", markersize=3)
        ax.text(
            0.04,
            0.9,
            f"ECE {100 * hs.ece(t):.1f}, AAC {100 * hs.aac(t):.1f}",
            transform=ax.transAxes,
            fontsize=7,
        )
    return figure
