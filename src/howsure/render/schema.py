"""Moved."""

from howsure.report.schema import build_schema as schema_of
