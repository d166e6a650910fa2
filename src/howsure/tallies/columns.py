"""Moved."""

from howsure.tallies.building import from_columns as from_columns
from howsure.tallies.building import to_columns as columns_of
