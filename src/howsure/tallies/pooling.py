"""Moved."""

from howsure.tallies.building import find_steps as steps
from howsure.tallies.building import pool_adjacent_violators as pooled
