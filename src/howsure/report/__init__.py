"""Summaries of data sets come in; reports, comparisons, findings and verdicts go out."""

from howsure.report.evaluation import evaluate
from howsure.report.report import Report

__all__ = ["Report", "evaluate"]
