"""Moved."""

from howsure.report.render.report_sheet import build_calibration_sheet as calibrated
from howsure.report.render.report_sheet import build_report_sheet as sheet
