"""Curves → matplotlib, for papers: each function takes and returns Axes and leaves the style to the
caller.

DisplayKind in the manner of scikit-learn have `from_predictions`, `from_estimator` and `.plot(ax=)`:

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
from howsure._core.checks import Array, InputError, Ints, need
from howsure._core.frozen import frozen
from howsure.curves import Curve
from howsure.predictions import Predictions
from howsure.report.report_types import (
    Column,
    CurveData,
    HistogramData,
    build_curve_data,
)
from howsure.tallies.building import tally

Axes: TypeAlias = Any  # matplotlib is optional, so its types are too
Style: TypeAlias = Any  # whatever matplotlib takes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Gaps(TypedDict):
    """Confidence minus accuracy of bins: their middles, their widths, their gaps."""

    x: Sequence[float]
    width: Sequence[float]
    gap: Sequence[float]


def line(curve: CurveData, ax: Axes = None, **style: Style) -> Axes:
    """A curve as a line with its own labels; `style` goes to `Axes.plot`."""
    ax = _get_axes(ax)
    ax.plot(_fill_missing(curve["x"]), _fill_missing(curve["y"]), **style)
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
    ax = _get_axes(ax)
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.5")
    if "low" in curve and "high" in curve:
        ax.vlines(
            _fill_missing(curve["x"]),
            _fill_missing(curve["low"]),
            _fill_missing(curve["high"]),
            color="0.75",
            linewidth=4,
        )
    line(curve, ax, **{"marker": "o", **style})
    ax.set(xlim=(0, 1), ylim=(0, 1))
    return ax


def gaps(curve: Gaps, ax: Axes = None, **style: Style) -> Axes:
    """Confidence minus accuracy of each bin, as Ding et al. 2020 draw it; positive is
    overconfident.
    """
    ax = _get_axes(ax)
    ax.bar(curve["x"], curve["gap"], width=curve["width"], **style)
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel="confidence", ylabel="confidence − accuracy", xlim=(0, 1))
    return ax


def confidence_histogram(
    histogram: HistogramData, ax: Axes = None, *, label: str = "score"
) -> Axes:
    """Stacked counts of right, top-5 and wrong answers."""
    ax = _get_axes(ax)
    bars = len(histogram["right"])
    width = (histogram["high"] - histogram["low"]) / bars
    left = [histogram["low"] + width * i for i in range(bars)]
    base = [0.0] * bars
    for name in ("wrong", "top_5", "right"):
        counts, text = histogram[name], name.replace("_", "-")
        ax.bar(left, counts, width, bottom=base, align="edge", label=text)
        base = [a + b for a, b in zip(base, counts, strict=True)]
    ax.set(xlabel=label, ylabel="answers")
    return ax


def overlaid(
    named: Mapping[str, CurveData], ax: Axes = None, draw: Callable[..., Axes] = line
) -> Axes:
    """Several curves of one kind, by name, with a legend."""
    ax = _get_axes(ax)
    for name, curve in named.items():
        draw(curve, ax, label=name)
    ax.legend()
    return ax


def _get_axes(ax: Axes) -> Axes:
    """The given axes, or the current ones."""
    if ax is not None:
        return ax
    return need("matplotlib.pyplot", for_="howsure.report.render.figure", extra="plot").gca()


def _fill_missing(values: Column) -> list[float]:
    """A column in which matplotlib draws a gap where a number is missing."""
    return [float("nan") if v is None else v for v in values]


@dataclass
class Display:
    """A curve that draws itself; after `.plot()` it has `.ax_` and `.figure_`."""

    curve: CurveData
    draw: Callable[..., Axes] = field(repr=False)
    name: str | None = None

    def plot(self, ax: Axes = None, **style: Style) -> Display:
        """Draw on `ax`, or on the current axes; `style` goes to matplotlib."""
        if self.name:
            style.setdefault("label", self.name)
        self.ax_: Axes = self.draw(self.curve, ax, **style)
        self.figure_: Figure = self.ax_.figure
        return self


class ProbabilisticClassifier(Protocol):
    """A fitted classifier with probabilities."""

    @property
    def classes_(self) -> ArrayLike: ...

    def predict_proba(self, X: object, /) -> ArrayLike: ...


@frozen
class DisplayKind:
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
        return Display(curve=build_curve_data(self.curve(t, **options)), draw=self.draw, name=name)

    def from_estimator(
        self,
        estimator: ProbabilisticClassifier,
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
        # scikit-learn sorts classes_, so a label's column is its place in it; one above the last
        # class would be beyond the end.
        places: Ints = np.searchsorted(classes, np.asarray(y))
        labels = np.minimum(places, len(classes) - 1)
        if (classes[labels] != np.asarray(y)).any():
            raise InputError(
                "y holds a label that the classifier has never seen; remove these samples."
            )
        probs = estimator.predict_proba(X)
        return self.from_predictions(labels, probs, name=name or kind, **options)


ReliabilityDisplay = DisplayKind(curve=curves.reliability, draw=reliability)
RiskCoverageDisplay = DisplayKind(curve=curves.risk_coverage, draw=risk_coverage)
RocDisplay = DisplayKind(curve=curves.roc, draw=roc)
ThresholdDisplay = DisplayKind(curve=curves.threshold_diagram, draw=threshold_diagram)
