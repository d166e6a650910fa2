"""What all figures share: one way to open axes, to draw a curve, and to write a file."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import howsure as hs

HEIGHT, WIDTH = 3.0, 3.6
MOST_POINTS = 400
STEP = 0.065  # of the height of the axes, between the names of two lines


def panels(
    titles: list[str], labels: list[tuple[str, str]], *, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A row of axes, or several; made without pyplot, so that no state is left behind."""
    across = min(columns or len(titles), len(titles))
    down = -(-len(titles) // across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(down, across)).flat)
    for ax in axes[len(titles) :]:
        ax.set_visible(False)
    axes = axes[: len(titles)]
    for ax, title, (x, y) in zip(axes, titles, labels, strict=True):
        ax.set(title=title, xlabel=x, ylabel=y)
        ax.grid(alpha=0.3)
    return figure, axes


def draw(ax: Axes, curve: hs.Curve, label: str, **style: object) -> None:
    """A curve with at most MOST_POINTS points, so that a file stays small; both ends are kept."""
    rows = np.unique(
        np.linspace(0, len(curve) - 1, min(len(curve), MOST_POINTS)).round().astype(int)
    )
    ax.plot(curve.x[rows], curve.y[rows], label=label, linewidth=1.2, **style)


def name_lines(ax: Axes, *, size: float = 6.0) -> None:
    """Each line's label at its right end, in its colour, moved apart where they would overlap; no
    legend to look up.
    """
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    ends = [line.get_xydata()[np.isfinite(line.get_xydata()).all(1)] for line in lines]
    chosen = [(line, end[-1]) for line, end in zip(lines, ends, strict=True) if len(end)]
    ax.autoscale_view()
    to_share = ax.transData + ax.transAxes.inverted()
    places = sorted(
        ((float(to_share.transform(end)[1]), line) for line, end in chosen),
        key=lambda pair: pair[0],
    )
    for height, line in zip(
        apart([h for h, _ in places]), [line for _, line in places], strict=True
    ):
        text = {
            "transform": ax.transAxes,
            "color": line.get_color(),
            "fontsize": size,
            "va": "center",
        }
        ax.text(1.02, height, str(line.get_label()), clip_on=False, **text)


def apart(heights: list[float]) -> list[float]:
    """The same order, at least STEP from each other, as near to where they were as one pass up and
    one down allow.
    """
    found = list(np.clip(heights, 0, 1))
    for i in range(1, len(found)):
        found[i] = max(found[i], found[i - 1] + STEP)
    found[-1:] = [min(height, 1.0) for height in found[-1:]]
    for i in range(len(found) - 2, -1, -1):
        found[i] = min(found[i], found[i + 1] - STEP)
    return found


def diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=0.8)


def save(figure: Figure, path: Path) -> None:
    """SVG with text as text, without date and with fixed identifiers: the same numbers give the
    same bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "howsure", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
