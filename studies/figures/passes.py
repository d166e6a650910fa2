"""Laves 2019, figures 1 to 5: reliability of confidence and uncertainty, and rejection."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from ..tables.mc_temperature import name_of, one_pass, one_pass_scaled, passes, scaled, swept
from ..tables.results import finished, tally
from .drawing import diagonal, draw, panels

TITLES = ["one pass", "MC dropout", "MC uncertainty", "rejection"]
LABELS = [("confidence", "accuracy")] * 2 + [
    ("normalised entropy", "error"),
    ("largest entropy kept", "error"),
]


def mc_temperature(store: Store, scale: str) -> dict[str, Figure]:
    """One figure per network; as trained and after temperature scaling."""
    done = finished(store, runs_of(["mc_temperature"], scale))
    runs = [run for run in done if run.settings.seed == 0 and not swept(run)]
    return {name_of(run).replace(" ", "_"): reliability(store, run) for run in runs}


def reliability(store: Store, run: Run) -> Figure:
    figure, axes = panels(TITLES, LABELS)
    column(axes, one_pass(store, run), passes(store, run), "as trained")
    column(axes, one_pass_scaled(store, run), scaled(store, run), "scaled")
    for ax in axes[:3]:
        diagonal(ax)
    axes[0].legend(fontsize=7)
    return figure


def column(axes: list[Axes], single: hs.Predictions, many: hs.Predictions, label: str) -> None:
    curves = (
        hs.reliability(tally(single)),
        hs.reliability(tally(many)),
        hs.uncertainty_reliability(many),
    )
    for ax, curve in zip(axes, curves, strict=False):
        draw(ax, curve, label, marker="o", markersize=3)
    draw(axes[3], hs.rejection(many), label)
