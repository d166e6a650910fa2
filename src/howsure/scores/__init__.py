"""Predictions → one number per sample, higher = trust more."""

from howsure.scores.passes import (
    disagreement,
    expected_entropy,
    mutual_information,
    predictive_entropy,
    variance,
    variation_ratio,
)
from howsure.scores.softmax import (
    energy,
    entropy,
    log_max_prob,
    margin,
    max_logit,
    max_prob,
    neg_entropy,
    top_k_mass,
)

__all__ = [
    "disagreement",
    "energy",
    "entropy",
    "expected_entropy",
    "log_max_prob",
    "margin",
    "max_logit",
    "max_prob",
    "mutual_information",
    "neg_entropy",
    "predictive_entropy",
    "top_k_mass",
    "variance",
    "variation_ratio",
]
