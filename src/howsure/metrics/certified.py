"""Moved."""

from howsure.metrics.compact_bounds import certified as certified
from howsure.metrics.compact_bounds import report_bounds as bounds_of
