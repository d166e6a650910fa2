"""Moved."""

from howsure.uncertainty.paired import combine_limits as mover
