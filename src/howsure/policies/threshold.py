"""Moved."""

from howsure.policies.thresholds import threshold_for_accuracy as threshold_for_accuracy
from howsure.policies.thresholds import threshold_for_coverage as threshold_for_coverage
