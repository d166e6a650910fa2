"""What a classifier said comes in; Predictions, and their outcomes sample by sample, go out."""

from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE, InputLayout, Unanswered
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.predictions.predictions import Predictions, needs_predictions

__all__ = [
    "ROW_SUM_TOLERANCE",
    "InputLayout",
    "Outcomes",
    "Predictions",
    "Unanswered",
    "needs_outcomes",
    "needs_predictions",
]
