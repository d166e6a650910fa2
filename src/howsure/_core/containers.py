"""Moved."""

from howsure._core.check import is_dict as is_dict
from howsure._core.check import is_mapping as is_mapping
from howsure._core.check import is_row as is_row
