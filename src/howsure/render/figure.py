"""Moved."""

from howsure.report.render.figure import figure as figure
