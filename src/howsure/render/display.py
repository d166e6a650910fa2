"""Displays in the manner of scikit-learn: `from_predictions`, `from_estimator`, and `.plot(ax=)`.

>>> d = RiskCoverageDisplay.from_predictions([1, 0], [[0.2, 0.8], [0.6, 0.4]])
>>> d.curve["y"]
[0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from howsure import curves
from howsure._core.check import InputError
from howsure.curves import Curve
from howsure.predictions import Predictions
from howsure.render import figure
from howsure.render.model import CurveData, curve_json
from howsure.tallies.build import tally

__all__ = ["Display", "Displays", "ReliabilityDisplay", "RiskCoverageDisplay", "RocDisplay", "ThresholdDisplay"]


@dataclass
class Display:
    """A curve that draws itself; after `.plot()` it has `.ax_` and `.figure_`."""

    curve: CurveData
    draw: Callable[..., Any] = field(repr=False)
    name: str | None = None

    def plot(self, ax: Any = None, **style: Any) -> Display:
        """Draw on `ax`, or on the current axes; `style` goes to matplotlib."""
        label = {"label": self.name} if self.name else {}
        self.ax_: Any = self.draw(self.curve, ax, **{**label, **style})
        self.figure_: Any = self.ax_.figure
        return self


@dataclass(frozen=True)
class Displays:
    """One kind of display: how its curve is made, and how it is drawn."""

    curve: Callable[..., Curve]
    draw: Callable[..., Any]

    def from_predictions(self, y_true: Any, y_prob: Any, *, name: str | None = None, **options: Any) -> Display:
        """From labels and class probabilities of shape (n, k), or P(y = 1) of shape (n,).

        Options go to the curve: `bins=` and `consistency=` of a reliability diagram, `positive=` of a ROC.
        """
        preds = Predictions.from_probs(np.asarray(y_prob), np.asarray(y_true))
        t = tally(preds.confidence, correct=preds.correct)
        return Display(curve_json(self.curve(t, **options)), self.draw, name)

    def from_estimator(self, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any) -> Display:
        """From a fitted classifier with `predict_proba` and `classes_`; labels may be of any type."""
        kind = type(estimator).__name__
        if not hasattr(estimator, "predict_proba"):
            raise InputError(f"{kind} has no predict_proba; a classifier with probabilities is needed.")
        classes = np.asarray(estimator.classes_)
        known = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        if (classes[known] != np.asarray(y)).any():
            raise InputError("y holds a label that the classifier has never seen; remove these samples.")
        return self.from_predictions(known, estimator.predict_proba(X), name=name or kind, **options)


ReliabilityDisplay = Displays(curves.reliability, figure.reliability)
RiskCoverageDisplay = Displays(curves.risk_coverage, figure.risk_coverage)
RocDisplay = Displays(curves.roc, figure.roc)
ThresholdDisplay = Displays(curves.threshold_diagram, figure.threshold_diagram)
