"""Moved."""

from howsure.curves.ranking_curves import trace_ideal as ideal_at
