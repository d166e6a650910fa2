"""Moved."""

from howsure.calibrators.calibrator import SMALLEST_PROBABILITY as SMALLEST
