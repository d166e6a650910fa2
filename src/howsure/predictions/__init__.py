"""What a classifier said comes in; Predictions, and their outcomes sample by sample, go out."""

from howsure.predictions.layout import Layout
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import ROW_SUM_TOLERANCE, Predictions
from howsure.predictions.unanswered import Unanswered

__all__ = ["ROW_SUM_TOLERANCE", "Layout", "Outcomes", "Predictions", "Unanswered"]
