"""Moved."""

from howsure.tallies.buckets import make_grid as grid
from howsure.tallies.buckets import space_ranks as even_ranks
