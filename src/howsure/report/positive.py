"""Moved."""

from howsure.report.positive_class import THRESHOLDS as THRESHOLDS
