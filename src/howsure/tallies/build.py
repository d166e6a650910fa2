"""Moved."""

from howsure.tallies.building import tally as tally
