"""Moved."""

from howsure.tallies.building import pool_adjacent_violators as pooled
from howsure.tallies.building import find_steps as steps
