"""Curves → matplotlib, for papers: each function takes and returns Axes and leaves the style to the
caller.

Displays in the manner of scikit-learn have `from_predictions`, `from_estimator` and `.plot(ax=)`:

>>> d = RiskCoverageDisplay.from_predictions([1, 0], [[0.2, 0.8], [0.6, 0.4]])
>>> d.curve["y"]
[0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from howsure import curves
from howsure._core.check import Array, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.optional import need
from howsure.curves import Curve
from howsure.predictions import Predictions
from howsure.render.model import Column, CurveData, HistogramData, ReportData, curve_json
from howsure.tallies.build import tally

Axes: TypeAlias = Any  # matplotlib is optional, so its types are too
Style: TypeAlias = Any  # whatever matplotlib takes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Gaps(TypedDict):
    """Confidence minus accuracy of bins: their middles, their widths, their gaps."""

    x: Sequence[float]
    width: Sequence[float]
    gap: Sequence[float]


def figure(report: ReportData) -> Figure:
    """Risk–coverage, threshold diagram, reliability and histogram of a report side by side."""
    plt = need("matplotlib.pyplot", for_="Report.figure", extra="plot")
    drawn = report["curves"]
    fig, axes = plt.subplots(
        1, 4 if "reliability_adaptive" in drawn else 3, figsize=(14, 3.4), layout="constrained"
    )
    risk_coverage(drawn["risk_coverage"], axes[0])
    threshold_diagram(drawn["threshold_diagram"], axes[1], ideal=drawn["ideal_threshold_diagram"])
    confidence_histogram(report["views"]["histogram"], axes[2], label=report["score"])
    if "reliability_adaptive" in drawn:
        reliability(drawn["reliability_adaptive"], axes[3])
    return fig


def line(curve: CurveData, ax: Axes = None, **style: Style) -> Axes:
    """A curve as a line with its own labels; `style` goes to `Axes.plot`."""
    ax = _axes(ax)
    ax.plot(_known(curve["x"]), _known(curve["y"]), **style)
    ax.set(xlabel=curve["labels"][0], ylabel=curve["labels"][1])
    return ax


def risk_coverage(curve: CurveData, ax: Axes = None, **style: Style) -> Axes:
    """Risk against coverage."""
    ax = line(curve, ax, **style)
    ax.set(xlim=(0, 1), ylim=(0, None))
    return ax


def threshold_diagram(
    curve: CurveData, ax: Axes = None, *, ideal: CurveData | None = None, **style: Style
) -> Axes:
    """Accuracy of the kept against the share deferred, with the ideal where given."""
    ax = line(curve, ax, **style)
    if ideal is not None:
        ax.plot([1.0, *ideal["x"]], [1.0, *ideal["y"]], linestyle="--", color="0.5", label="ideal")
    ax.set(xlim=(0, 1))
    return ax


def roc(curve: CurveData, ax: Axes = None, **style: Style) -> Axes:
    """True against false positive rate, with the diagonal of chance."""
    ax = line(curve, ax, **style)
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.5")
    return ax


def reliability(curve: CurveData, ax: Axes = None, **style: Style) -> Axes:
    """Accuracy against confidence, the diagonal, and consistency bars where the curve has them."""
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.5")
    if "low" in curve and "high" in curve:
        ax.vlines(
            _known(curve["x"]),
            _known(curve["low"]),
            _known(curve["high"]),
            color="0.75",
            linewidth=4,
        )
    line(curve, ax, **{"marker": "o", **style})
    ax.set(xlim=(0, 1), ylim=(0, 1))
    return ax


def gaps(curve: Gaps, ax: Axes = None, **style: Style) -> Axes:
    """Confidence minus accuracy of each bin, as Ding et al. 2020 draw it; positive is
    over-confident.
    """
    ax = _axes(ax)
    ax.bar(curve["x"], curve["gap"], width=curve["width"], **style)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel="confidence", ylabel="confidence − accuracy", xlim=(0, 1))
    return ax


def confidence_histogram(
    histogram: HistogramData, ax: Axes = None, *, label: str = "score"
) -> Axes:
    """Stacked counts of right, top-5 and wrong answers."""
    ax = _axes(ax)
    bars = len(histogram["right"])
    width = (histogram["high"] - histogram["low"]) / bars
    left = [histogram["low"] + width * i for i in range(bars)]
    base = [0.0] * bars
    for name in ("wrong", "top_5", "right"):
        ax.bar(
            left, histogram[name], width, bottom=base, align="edge", label=name.replace("_", "-")
        )
        base = [a + b for a, b in zip(base, histogram[name], strict=True)]
    ax.set(xlabel=label, ylabel="answers")
    return ax


def overlaid(
    named: Mapping[str, CurveData], ax: Axes = None, draw: Callable[..., Axes] = line
) -> Axes:
    """Several curves of one kind, by name, with a legend."""
    ax = _axes(ax)
    for name, curve in named.items():
        draw(curve, ax, label=name)
    ax.legend()
    return ax


def _axes(ax: Axes) -> Axes:
    return (
        need("matplotlib.pyplot", for_="howsure.render.figure", extra="plot").gca()
        if ax is None
        else ax
    )


def _known(values: Column) -> list[float]:
    return [float("nan") if v is None else v for v in values]


@dataclass
class Display:
    """A curve that draws itself; after `.plot()` it has `.ax_` and `.figure_`."""

    curve: CurveData
    draw: Callable[..., Axes] = field(repr=False)
    name: str | None = None

    def plot(self, ax: Axes = None, **style: Style) -> Display:
        """Draw on `ax`, or on the current axes; `style` goes to matplotlib."""
        label = {"label": self.name} if self.name else {}
        self.ax_: Axes = self.draw(self.curve, ax, **{**label, **style})
        self.figure_: Figure = self.ax_.figure
        return self


class Probable(Protocol):
    """A fitted classifier with probabilities."""

    @property
    def classes_(self) -> ArrayLike: ...

    def predict_proba(self, X: object, /) -> ArrayLike: ...


@frozen
class Displays:
    """One kind of display: how its curve is made, and how it is drawn."""

    curve: Callable[..., Curve]
    draw: Callable[..., Axes]

    def from_predictions(
        self, y_true: ArrayLike, y_prob: ArrayLike, *, name: str | None = None, **options: object
    ) -> Display:
        """From labels and class probabilities of shape (n, k), or P(y = 1) of shape (n,).

        Options go to the curve: `bins=` and `consistency=` of a reliability diagram, `positive=` of
        a ROC.
        """
        preds = Predictions.from_probs(np.asarray(y_prob), np.asarray(y_true))
        t = tally(preds.confidence, correct=preds.correct)
        return Display(curve_json(self.curve(t, **options)), self.draw, name)

    def from_estimator(
        self,
        estimator: Probable,
        X: object,
        y: ArrayLike,
        *,
        name: str | None = None,
        **options: object,
    ) -> Display:
        """From a fitted classifier with `predict_proba` and `classes_`; labels may be of any type."""
        kind = type(estimator).__name__
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"{kind} has no predict_proba; a classifier with probabilities is needed."
            )
        classes: Array = np.asarray(estimator.classes_)
        found: Ints = np.searchsorted(classes, np.asarray(y))
        known = np.minimum(found, len(classes) - 1)
        if (classes[known] != np.asarray(y)).any():
            raise InputError(
                "y holds a label that the classifier has never seen; remove these samples."
            )
        return self.from_predictions(
            known, estimator.predict_proba(X), name=name or kind, **options
        )


ReliabilityDisplay = Displays(curves.reliability, reliability)
RiskCoverageDisplay = Displays(curves.risk_coverage, risk_coverage)
RocDisplay = Displays(curves.roc, roc)
ThresholdDisplay = Displays(curves.threshold_diagram, threshold_diagram)
