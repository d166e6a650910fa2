"""What a classifier said comes in; Predictions, and their outcomes sample by sample, go out."""

from howsure.predictions.layout import Layout
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.predictions.predictions import ROW_SUM_TOLERANCE, Predictions, needs_predictions
from howsure.predictions.unanswered import Unanswered

__all__ = [
    "ROW_SUM_TOLERANCE",
    "Layout",
    "Outcomes",
    "Predictions",
    "Unanswered",
    "needs_outcomes",
    "needs_predictions",
]
