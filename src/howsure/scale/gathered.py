"""Moved."""

from howsure.scale.store import PartResult as Gathered
