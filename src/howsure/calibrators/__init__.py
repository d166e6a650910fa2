"""Predictions → better predictions: `X.fit(preds)` gives a frozen x, `x(preds)` applies it."""

from howsure.calibrators._fitted import Calibrator, Fitted
from howsure.calibrators.histogram import HistogramBinning
from howsure.calibrators.identity import Identity
from howsure.calibrators.isotonic import Isotonic
from howsure.calibrators.labels import PerLabel
from howsure.calibrators.linear import Dirichlet, MatrixScaling, VectorScaling
from howsure.calibrators.logistic import Beta, Platt
from howsure.calibrators.temperature import Temperature

__all__ = [
    "Beta",
    "Calibrator",
    "Dirichlet",
    "Fitted",
    "HistogramBinning",
    "Identity",
    "Isotonic",
    "MatrixScaling",
    "PerLabel",
    "Platt",
    "Temperature",
    "VectorScaling",
]
