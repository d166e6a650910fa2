"""Moved."""

from howsure.report.report import scalars as scalars
