"""Moved."""

from howsure.calibrators.linear import list_operators as steps
