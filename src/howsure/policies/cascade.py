"""Moved."""

from howsure.policies.cascades import join_stages as stages_of
