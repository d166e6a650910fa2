"""Moved."""

from howsure.uncertainty.paired import PAIRED as PAIRED
