"""Moved."""

from howsure.scale.many_files import gather as gather
