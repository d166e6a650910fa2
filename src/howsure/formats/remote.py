"""Moved."""

from howsure.formats.location import Remote as Remote
from howsure.formats.location import is_remote as is_remote
