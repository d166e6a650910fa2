"""Summaries of data sets come in; reports, comparisons, findings and verdicts go out."""

from howsure.report.calibration import CalibrationReport, calibration_report
from howsure.report.comparison import Comparison, compare
from howsure.report.evaluation import evaluate
from howsure.report.report import Report

__all__ = ["CalibrationReport", "Comparison", "Report", "calibration_report", "compare", "evaluate"]
