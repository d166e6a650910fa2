"""Moved."""

from howsure.uncertainty.model_pairs import PairDifference as PairDifference
from howsure.uncertainty.model_pairs import all_differences as all_differences
