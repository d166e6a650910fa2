"""Moved."""

from howsure._core.check import need as need
