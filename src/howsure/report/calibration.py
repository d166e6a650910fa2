"""Moved."""

from howsure.report.calibration_report import (
    CalibrationReport as CalibrationReport,
    build_change_data as change_data,
    calibration_report as calibration_report,
    count_changed_answers as answers_changed,
)
