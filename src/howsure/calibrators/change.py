"""Moved."""

from howsure.calibrators.choice import CalibrationChange as Change
from howsure.calibrators.choice import LimitedNumber as Number
from howsure.calibrators.choice import compare_before_after as changes_of
