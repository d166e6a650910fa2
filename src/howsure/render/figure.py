"""Curves → matplotlib, for papers: each function takes and returns Axes and leaves the style to the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from howsure._core.optional import need

Axes = Any  # matplotlib is optional, so its types are too
CurveData = dict[str, Any]  # a curve as it stands in a report: labels, x, y, and what belongs to them


def figure(report: dict[str, Any]) -> Any:
    """Risk–coverage, threshold diagram, reliability and histogram of a report side by side."""
    plt = need("matplotlib.pyplot", for_="Report.figure", extra="plot")
    curves = report["curves"]
    fig, axes = plt.subplots(1, 4 if "reliability_adaptive" in curves else 3, figsize=(14, 3.4), layout="constrained")
    risk_coverage(curves["risk_coverage"], axes[0])
    threshold_diagram(curves["threshold_diagram"], axes[1], ideal=curves["ideal_threshold_diagram"])
    confidence_histogram(report["views"]["histogram"], axes[2], label=report["score"])
    if "reliability_adaptive" in curves:
        reliability(curves["reliability_adaptive"], axes[3])
    return fig


def line(curve: CurveData, ax: Axes = None, **style: Any) -> Axes:
    """Any curve as a line with its own labels; `style` goes to `Axes.plot`."""
    ax = _axes(ax)
    ax.plot(_known(curve["x"]), _known(curve["y"]), **style)
    ax.set(xlabel=curve["labels"][0], ylabel=curve["labels"][1])
    return ax


def risk_coverage(curve: CurveData, ax: Axes = None, **style: Any) -> Axes:
    """Risk against coverage."""
    ax = line(curve, ax, **style)
    ax.set(xlim=(0, 1), ylim=(0, None))
    return ax


def threshold_diagram(curve: CurveData, ax: Axes = None, *, ideal: CurveData | None = None, **style: Any) -> Axes:
    """Accuracy of the kept against the share deferred, with the ideal where given."""
    ax = line(curve, ax, **style)
    if ideal is not None:
        ax.plot([1.0, *ideal["x"]], [1.0, *ideal["y"]], linestyle="--", color="0.5", label="ideal")
    ax.set(xlim=(0, 1))
    return ax


def roc(curve: CurveData, ax: Axes = None, **style: Any) -> Axes:
    """True against false positive rate, with the diagonal of chance."""
    ax = line(curve, ax, **style)
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.5")
    return ax


def reliability(curve: CurveData, ax: Axes = None, **style: Any) -> Axes:
    """Accuracy against confidence, the diagonal, and consistency bars where the curve has them."""
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.5")
    if "low" in curve:
        ax.vlines(_known(curve["x"]), _known(curve["low"]), _known(curve["high"]), color="0.75", linewidth=4)
    line(curve, ax, **{"marker": "o", **style})
    ax.set(xlim=(0, 1), ylim=(0, 1))
    return ax


def gaps(curve: CurveData, ax: Axes = None, **style: Any) -> Axes:
    """Confidence minus accuracy of each bin, as Ding et al. 2020 draw it; positive is over-confident."""
    ax = _axes(ax)
    ax.bar(curve["x"], curve["gap"], width=curve["width"], **style)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel="confidence", ylabel="confidence − accuracy", xlim=(0, 1))
    return ax


def confidence_histogram(histogram: dict[str, Any], ax: Axes = None, *, label: str = "score") -> Axes:
    """Stacked counts of right, top-5 and wrong answers."""
    ax = _axes(ax)
    bars = len(histogram["right"])
    width = (histogram["high"] - histogram["low"]) / bars
    left = [histogram["low"] + width * i for i in range(bars)]
    base = [0.0] * bars
    for name in ("wrong", "top_5", "right"):
        ax.bar(left, histogram[name], width, bottom=base, align="edge", label=name.replace("_", "-"))
        base = [a + b for a, b in zip(base, histogram[name], strict=True)]
    ax.set(xlabel=label, ylabel="answers")
    return ax


def overlaid(curves: dict[str, CurveData], ax: Axes = None, draw: Callable[..., Axes] = line) -> Axes:
    """Several curves of one kind, by name, with a legend."""
    ax = _axes(ax)
    for name, curve in curves.items():
        draw(curve, ax, label=name)
    ax.legend()
    return ax


def _axes(ax: Axes) -> Axes:
    return need("matplotlib.pyplot", for_="howsure.render.figure", extra="plot").gca() if ax is None else ax


def _known(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if v is None else v for v in values]
