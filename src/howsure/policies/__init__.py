"""Policies: from a tally to a threshold with a guarantee, and from predictions to accept or defer.

Names are resolved when they are first used: whoever loads a policy and decides by it imports
`policies.policy` alone, not what chooses thresholds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from howsure.policies.cascades import Cascade, CascadeDecisions, CascadeResult
    from howsure.policies.cases import guaranteed_cases
    from howsure.policies.deployment import (
        Deferral,
        Expected,
        Share,
        deferral_table,
        expected_on_new_data,
    )
    from howsure.policies.drift_monitor import DriftMonitor, Evidence
    from howsure.policies.guarantee import Guaranteed, guaranteed_threshold, label_budget
    from howsure.policies.one_decision import OneDecision
    from howsure.policies.online import OnlinePolicy
    from howsure.policies.policy import DONT_KNOW, Basis, Decisions, Guarantee, Policy
    from howsure.policies.suggestions import Suggestions, fit_suggestions, split_halves
    from howsure.policies.thresholds import (
        Rejection,
        Threshold,
        cost_outcomes,
        few_missed_policy,
        label_policy,
        label_thresholds,
        reject_uncertain,
        threshold_at,
        threshold_for_accuracy,
        threshold_for_cost,
        threshold_for_coverage,
    )

__all__ = [
    "DONT_KNOW",
    "Basis",
    "Cascade",
    "CascadeDecisions",
    "CascadeResult",
    "Decisions",
    "Deferral",
    "DriftMonitor",
    "Evidence",
    "Expected",
    "Guarantee",
    "Guaranteed",
    "OneDecision",
    "OnlinePolicy",
    "Policy",
    "Rejection",
    "Share",
    "Suggestions",
    "Threshold",
    "cost_outcomes",
    "deferral_table",
    "expected_on_new_data",
    "few_missed_policy",
    "fit_suggestions",
    "guaranteed_cases",
    "guaranteed_threshold",
    "label_budget",
    "label_policy",
    "label_thresholds",
    "reject_uncertain",
    "split_halves",
    "threshold_at",
    "threshold_for_accuracy",
    "threshold_for_cost",
    "threshold_for_coverage",
]
_CHAPTERS = {
    "cascades": "Cascade CascadeDecisions CascadeResult",
    "cases": "guaranteed_cases",
    "deployment": "Deferral Expected Share deferral_table expected_on_new_data",
    "drift_monitor": "DriftMonitor Evidence",
    "guarantee": "Guaranteed guaranteed_threshold label_budget",
    "one_decision": "OneDecision",
    "online": "OnlinePolicy",
    "policy": "DONT_KNOW Basis Decisions Guarantee Policy",
    "suggestions": "Suggestions fit_suggestions split_halves",
    "thresholds": "Rejection Threshold cost_outcomes few_missed_policy label_policy label_thresholds "
    "reject_uncertain threshold_at threshold_for_accuracy threshold_for_cost threshold_for_coverage",
}


def __getattr__(name: str) -> Any:
    for chapter, names in _CHAPTERS.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{chapter}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
