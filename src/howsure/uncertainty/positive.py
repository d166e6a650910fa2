"""Moved."""

from howsure.uncertainty.recalibration_limits import build_flexible_curve as smooth_calibration
from howsure.uncertainty.recalibration_limits import compute_line_limits as line_limits
from howsure.uncertainty.recalibration_limits import compute_observed_limits as observed_limits
from howsure.uncertainty.recalibration_limits import flexible_calibration as flexible_calibration
