"""Tallies and predictions come in, Curves go out: numbers to look at, never pictures."""

from howsure.curves.curve import (
    Curve,
    odds_by_quantile,
    odds_ratio,
    precision_recall,
    rejection,
    risk_coverage,
    roc,
    threshold_diagram,
)
from howsure.curves.reliability import (
    BinTable,
    Corp,
    bin_table,
    corp,
    reliability,
    uncertainty_reliability,
)

__all__ = [
    "BinTable",
    "Corp",
    "Curve",
    "bin_table",
    "corp",
    "odds_by_quantile",
    "odds_ratio",
    "precision_recall",
    "rejection",
    "reliability",
    "risk_coverage",
    "roc",
    "threshold_diagram",
    "uncertainty_reliability",
]
