"""Moved."""

from howsure.tallies.packed_keys import PackedTally as PackedTally
from howsure.tallies.packed_keys import pack_keys as pack
