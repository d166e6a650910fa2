"""Moved."""

from howsure.calibrators.per_label import apply_per_label as per_label
