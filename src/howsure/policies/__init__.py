"""Policies: from a tally to a threshold with a promise, and from predictions to accept or defer."""

from howsure.policies.cascade import Cascade, CascadeDecisions, CascadeResult
from howsure.policies.costs import cost_outcomes
from howsure.policies.deployment import (
    Deferral,
    Expected,
    Share,
    deferral_table,
    expected_on_new_data,
)
from howsure.policies.guarantee import Guaranteed, guaranteed_threshold, label_budget
from howsure.policies.labels import label_policy, label_thresholds
from howsure.policies.online import OnlinePolicy
from howsure.policies.policy import DONT_KNOW, Basis, Decisions, Policy, Promise
from howsure.policies.threshold import (
    Rejection,
    Threshold,
    reject_uncertain,
    threshold_at,
    threshold_for_accuracy,
    threshold_for_cost,
    threshold_for_coverage,
)
from howsure.policies.watch import Evidence, Watch

__all__ = [
    "DONT_KNOW",
    "Basis",
    "Cascade",
    "CascadeDecisions",
    "CascadeResult",
    "Decisions",
    "Deferral",
    "Evidence",
    "Expected",
    "Guaranteed",
    "OnlinePolicy",
    "Policy",
    "Promise",
    "Rejection",
    "Share",
    "Threshold",
    "Watch",
    "cost_outcomes",
    "deferral_table",
    "expected_on_new_data",
    "guaranteed_threshold",
    "label_budget",
    "label_policy",
    "label_thresholds",
    "reject_uncertain",
    "threshold_at",
    "threshold_for_accuracy",
    "threshold_for_cost",
    "threshold_for_coverage",
]
