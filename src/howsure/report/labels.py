"""Moved."""

from howsure.report.label_sections import LabelSums as LabelSums
