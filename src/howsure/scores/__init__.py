"""Predictions → one number per sample, higher = trust more."""

from howsure.scores.logits import energy, max_logit
from howsure.scores.samples import (
    disagreement,
    expected_entropy,
    mutual_information,
    predictive_entropy,
    variance,
    variation_ratio,
)
from howsure.scores.softmax import entropy, log_max_prob, margin, max_prob, neg_entropy, top_k_mass

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
