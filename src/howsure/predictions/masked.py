"""Moved."""

from howsure.predictions.images import without_masked as without_masked
