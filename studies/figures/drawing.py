"""What all figures share: one way to open axes, to draw a curve, and to write a file."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

HEIGHT, WIDTH = 3.0, 3.6
MOST_POINTS = 400


def panels(titles: list[str], labels: list[tuple[str, str]]) -> tuple[Figure, list[Axes]]:
    """A row of axes; made without pyplot, so that no state is left behind."""
    figure = Figure(figsize=(WIDTH * len(titles), HEIGHT), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, len(titles))))
    for ax, title, (x, y) in zip(axes, titles, labels, strict=True):
        ax.set(title=title, xlabel=x, ylabel=y)
        ax.grid(alpha=0.3)
    return figure, axes


def draw(ax: Axes, curve: hs.Curve, label: str, **style: object) -> None:
    """A curve with at most MOST_POINTS points, so that a file stays small; both ends are kept."""
    rows = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), MOST_POINTS)).round().astype(int))
    ax.plot(curve.x[rows], curve.y[rows], label=label, linewidth=1.2, **style)


def diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=0.8)


def save(figure: Figure, path: Path) -> None:
    """SVG with text as text, without date and with fixed identifiers: the same numbers give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "howsure", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
