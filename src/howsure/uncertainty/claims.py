"""Moved."""

from howsure.uncertainty.calibration_testing import CalibrationTest as CalibrationTest
from howsure.uncertainty.calibration_testing import calibration_test as calibration_test
