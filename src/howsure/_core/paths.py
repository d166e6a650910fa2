"""Moved."""

from howsure._core.atomic import check_readable as existing
