"""Predictions → better predictions: `X.fit(preds)` gives a frozen x, `x(preds)` applies it."""

from howsure.calibrators._fitted import Calibrator, Fitted
from howsure.calibrators.identity import Identity
from howsure.calibrators.temperature import Temperature

__all__ = ["Calibrator", "Fitted", "Identity", "Temperature"]
