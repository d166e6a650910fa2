"""Vemuri 2020, figures 3.1, 3.2, 5.1 and 6.2."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

from ..plans import STUDIES, runs_of
from ..plans.regularisation import MAIN, SWEPT
from ..runs import Run
from ..store import Store
from ..tables.regularisation import at_epoch
from ..tables.results import arrays, finished, predictions, tally
from .drawing import diagonal, draw, panels

METRICS = {"error": lambda t: t.total / t.n, "ECE": hs.ece, "AAC": hs.aac}


def regularisation(store: Store, scale: str) -> dict[str, Figure]:
    """The sweeps of the main network, and the course of every standard run."""
    everything = finished(store, dict.fromkeys(STUDIES["regularisation"](scale)))
    done = [run for run in everything if run.settings.network == MAIN[scale]]
    standard = [run for run in done if run.label == "standard"]
    figure, axes = panels(list(SWEPT), [(name, "per cent") for name in SWEPT])
    for ax, (name, field) in zip(axes, SWEPT.items(), strict=True):
        sweep(ax, store, [*standard, *(run for run in done if run.label.startswith(name))], field)
    courses = [run for run in everything if "course" in run.extras]
    return {"regularisation": figure} | {f"overfitting_{r.settings.network}": overfitting(store, r) for r in courses}


def sweep(ax: Axes, store: Store, runs: list[Run], field: str) -> None:
    """Equal steps on the x axis, labelled with the values."""
    values = {getattr(run.settings, field): tally(predictions(store, run)) for run in runs}
    order = sorted(values)
    for name, metric in METRICS.items():
        ax.plot(range(len(order)), [100 * metric(values[v]) for v in order], "o-", label=name, markersize=3)
    ax.set_xticks(range(len(order)), [f"{v:g}" for v in order])
    if order:
        ax.legend(fontsize=7)


def overfitting(store: Store, run: Run) -> Figure:
    """Figure 3.2 and the early stopping panel of figure 5.1."""
    found = arrays(store, run, "course")
    titles = [f"{run.settings.network}: NLL", "error and ECE"]
    figure, axes = panels(titles, [("epoch", "NLL"), ("epoch", "per cent")])
    epochs = np.arange(1, len(found["test_correct"]) + 1)
    for split in ("train", "test"):
        axes[0].plot(epochs, found[f"{split}_nll"].astype(np.float64).mean(1), label=split)
        axes[1].plot(epochs, 100 * (1 - found[f"{split}_correct"].mean(1)), label=f"{split} error")
    axes[1].plot(epochs, [100 * hs.ece(at_epoch(found, e).tally()) for e in range(len(epochs))], label="test ECE")
    for ax in axes:
        ax.legend(fontsize=7)
    return figure


def calibration(store: Store, scale: str) -> dict[str, Figure]:
    return {run.settings.network: before(store, run) for run in finished(store, runs_of(["calibration"], scale))}


def before(store: Store, run: Run) -> Figure:
    """Reliability of training and test images (figure 3.1), and the threshold diagram (figures 4.1 and 6.2)."""
    labels = [("confidence", "accuracy"), ("deferred", "accuracy of the kept")]
    figure, axes = panels([f"{run.settings.network}: reliability", "threshold diagram"], labels)
    diagonal(axes[0])
    for split in ("train", "test"):
        draw(axes[0], hs.reliability(tally(predictions(store, run, split))), split, marker="o", markersize=3)
    threshold_diagrams(axes[1], store, run)
    for ax in axes:
        ax.legend(fontsize=7)
    return figure


def threshold_diagrams(ax: Axes, store: Store, run: Run) -> None:
    preds = predictions(store, run)
    distance = arrays(store, run, "boundary")["test_boundary_distance"]
    scores = {"top probability": preds.confidence, "entropy": hs.scores.entropy(preds), "boundary distance": distance}
    for name, score in scores.items():
        draw(ax, hs.threshold_diagram(hs.tally(score, correct=preds.correct)), name)
    draw(ax, hs.threshold_diagram(tally(preds), ideal=True), "ideal", color="grey", linestyle="--")
