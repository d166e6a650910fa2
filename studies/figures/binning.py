"""Ding 2020, figures 2, 3 and 6: what a reliability diagram shows depends on its bins."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

from ..provided import NAMES, calibrated, here, provided
from ..runs import Run
from ..store import Store
from ..tables.results import predictions, tally, temperature_scaled
from .drawing import diagonal, panels

TEN, HUNDRED = "nn_resnet110_c10", "netcal_densenet_bc_100_c100"
BINNINGS = {
    "50 of equal range": hs.equal_range(50),
    "50 of equal size": hs.equal_size(50),
    "100 of equal size": hs.equal_size(100),
    "adaptive": hs.adaptive(),
}
AXES = ("confidence", "accuracy")


def binning_figures(store: Store, runs: list[Run]) -> dict[str, Figure]:
    """Of fully trained networks where these are at hand, else of the largest of ours."""
    if here(TEN):
        name, raw, pairs = (
            NAMES[TEN],
            provided(TEN),
            {"CIFAR-10": (provided(TEN), calibrated(TEN)[0])},
        )
        pairs |= {"CIFAR-100": (provided(HUNDRED), calibrated(HUNDRED)[0])} if here(HUNDRED) else {}
    elif runs:
        run = runs[-1]
        name, raw = run.settings.network, predictions(store, run)
        pairs = {run.settings.data: (raw, temperature_scaled(store, run))}
    else:
        return {}
    return {"hidden": hidden(name, raw), "binnings": binnings(raw), "adaptive": adaptive(pairs)}


def hidden(name: str, preds: hs.Predictions) -> Figure:
    """Figure 2: ten bins, the same with a hundred above 0.9, and where the images are."""
    titles = ["ten bins", "hundredths above 0.9", "confidences"]
    figure, axes = panels(titles, [AXES, AXES, ("confidence", "images")])
    figure.suptitle(name, fontsize=9)
    bars(axes[0], tally(preds), hs.equal_range(10))
    bars(axes[1], tally(preds), hs.equal_range(100))
    axes[1].set(xlim=(0.9, 1.0), ylim=(0.4, 1.0))
    axes[2].hist(preds.confidence, bins=50, range=(0, 1), color="C0")
    axes[2].set_yscale("log")
    return figure


def binnings(preds: hs.Predictions) -> Figure:
    """Figure 3."""
    figure, axes = panels(list(BINNINGS), [AXES] * len(BINNINGS))
    for ax, bins in zip(axes, BINNINGS.values(), strict=True):
        bars(ax, tally(preds), bins)
    return figure


def adaptive(pairs: dict[str, tuple[hs.Predictions, hs.Predictions]]) -> Figure:
    """Figure 6: before and after temperature scaling."""
    found = {
        f"{data}, {how}": p
        for data, both in pairs.items()
        for how, p in zip(("as trained", "scaled"), both, strict=True)
    }
    figure, axes = panels(list(found), [AXES] * len(found))
    for ax, preds in zip(axes, found.values(), strict=True):
        bars(ax, tally(preds), hs.adaptive())
    return figure


def bars(ax: Axes, t: hs.Tally, bins: hs.equal_range | hs.equal_size | hs.adaptive) -> None:
    """Accuracy of each bin as a step from its lowest score to that of the next; the dot is its mean
    confidence.
    """
    curve = hs.reliability(t, bins)
    edges = np.append(curve.threshold, 1.0)
    diagonal(ax)
    ax.stairs(curve.y, edges, fill=True, color="C0", alpha=0.35)
    ax.plot(curve.x, curve.y, "o", color="C0", markersize=2.5)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.text(
        0.04,
        0.92,
        f"{len(curve.x)} bins, ECE {100 * hs.ece(t, bins):.1f} %",
        transform=ax.transAxes,
        fontsize=7,
    )
