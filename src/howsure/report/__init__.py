"""Summaries of data sets come in; reports, comparisons, findings and verdicts go out."""

from howsure.report.calibration import CalibrationReport, calibration_report
from howsure.report.comparison import Comparison, compare
from howsure.report.evaluation import evaluate
from howsure.report.report import Report
from howsure.report.unlabelled.estimation import Estimate, estimate
from howsure.report.unlabelled.monitoring import Monitor, monitor

__all__ = [
    "CalibrationReport",
    "Comparison",
    "Estimate",
    "Monitor",
    "Report",
    "calibration_report",
    "compare",
    "estimate",
    "evaluate",
    "monitor",
]
