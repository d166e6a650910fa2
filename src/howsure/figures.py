"""Every picture of a page as a figure of matplotlib, with the page's colours, labels and legend
(extra `plot`).

Each function takes what `evaluate` takes, a report, or names with predictions, as `compare` does,
and returns a figure: `hs.figures.reliability(preds).savefig("reliability.pdf")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from howsure.predictions import Predictions
from howsure.report.comparing import Comparison, compare
from howsure.report.evaluation import evaluate
from howsure.report.leaderboard import ModelInput
from howsure.report.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "calibration_of_class",
    "confidence_histogram",
    "decision_curve",
    "loss_scatter",
    "odds_by_quantile",
    "precision_recall",
    "rejection",
    "reliability",
    "risk_coverage",
    "roc",
    "threshold_diagram",
    "uncertainty_reliability",
]


def _draw(data: object, name: str) -> Figure:
    """The picture of this name."""
    if isinstance(data, Report | Comparison):
        return data.figure(name)
    if isinstance(data, Mapping):
        models = cast("Mapping[str, object]", data)
        # A table of columns is a mapping too; its values are no predictions.
        if all(isinstance(value, Predictions | tuple) for value in models.values()):
            return compare(cast("Mapping[str, ModelInput]", models)).figure(name)
    return evaluate(cast("object", data)).figure(name)


def risk_coverage(data: object) -> Figure:
    """Error rate of the accepted against the share that is accepted."""
    return _draw(data, "risk")


def threshold_diagram(data: object) -> Figure:
    """Accuracy of the kept against the share deferred, beside the ideal."""
    return _draw(data, "threshold")


def reliability(
    data: object, *, bins: Literal["equal_range", "equal_size", "adaptive", "none"] = "equal_range"
) -> Figure:
    """Accuracy against confidence; `bins="none"`: the isotonic curve."""
    if bins == "none":
        return _draw(data, "corp")
    models = isinstance(data, Comparison | Mapping)
    return _draw(data, "reliability" if models else f"reliability-{bins}")


def confidence_histogram(data: object) -> Figure:
    """How often each score is given, right and wrong."""
    return _draw(data, "histogram")


def loss_scatter(data: object) -> Figure:
    """Loss against score, sample by sample."""
    return _draw(data, "scatter")


def uncertainty_reliability(data: object) -> Figure:
    """Error rate against normalised entropy (Laves et al. 2019)."""
    return _draw(data, "uncertainty")


def rejection(data: object) -> Figure:
    """Error of the kept against the largest entropy kept (Laves et al. 2019)."""
    return _draw(data, "rejection")


def odds_by_quantile(data: object) -> Figure:
    """Odds ratio of each hundredth of the answers (Finlay & Oberman)."""
    return _draw(data, "odds")


def roc(data: object) -> Figure:
    """ROC of spotting errors."""
    return _draw(data, "roc")


def precision_recall(data: object) -> Figure:
    """Precision and recall of spotting errors."""
    return _draw(data, "precision_recall")


def decision_curve(data: object) -> Figure:
    """Net benefit against the threshold probability, two classes."""
    return _draw(data, "decision")


def calibration_of_class(data: object) -> Figure:
    """Observed frequency of the positive class against its probability, two classes."""
    return _draw(data, "positive")
