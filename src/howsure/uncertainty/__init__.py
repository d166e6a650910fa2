"""A metric and its data come in; how sure the number is goes out: limits, differences, tests."""

from howsure.uncertainty.calibration_testing import CalibrationTest, calibration_test
from howsure.uncertainty.intervals import Interval, each_interval, interval, paired_difference

__all__ = [
    "CalibrationTest",
    "Interval",
    "calibration_test",
    "each_interval",
    "interval",
    "paired_difference",
]
