"""Policies: from a tally to a threshold with a promise, and from predictions to accept or defer."""

from howsure.policies.guarantee import Guaranteed, guaranteed_threshold, label_budget
from howsure.policies.threshold import (
    Rejection,
    Threshold,
    reject_uncertain,
    threshold_for_accuracy,
    threshold_for_cost,
    threshold_for_coverage,
)

__all__ = [
    "Guaranteed",
    "Rejection",
    "Threshold",
    "guaranteed_threshold",
    "label_budget",
    "reject_uncertain",
    "threshold_for_accuracy",
    "threshold_for_cost",
    "threshold_for_coverage",
]
