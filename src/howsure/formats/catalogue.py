"""Moved."""

from howsure.formats.files import load_reader as format_of
from howsure.formats.files import locate_file as found
