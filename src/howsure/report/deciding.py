"""Moved."""

from howsure.report.operating_points import build_deciding as deciding
