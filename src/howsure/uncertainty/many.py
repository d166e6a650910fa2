"""Moved."""

from howsure.uncertainty.model_pairs import PairDifference as PairDifference
from howsure.uncertainty.model_pairs import compare_all_pairs as all_differences
