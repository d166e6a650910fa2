"""Tallies and predictions come in, Curves go out: numbers to look at, never pictures."""

from howsure.curves.curves import (
    BinTable,
    Curve,
    bin_table,
    odds_by_quantile,
    odds_ratio,
    precision_recall,
    rejection,
    reliability,
    risk_coverage,
    roc,
    threshold_diagram,
    uncertainty_reliability,
)

__all__ = [
    "BinTable",
    "Curve",
    "bin_table",
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
