"""Files of predictions: read whole, streamed, written, or examined."""

from howsure.formats.catalogue import suffixes
from howsure.formats.contents import Problem
from howsure.formats.doctor import Description, Item, describe, problems
from howsure.formats.files import read, read_column, scan, write
from howsure.formats.logs import read_log

__all__ = [
    "Description",
    "Item",
    "Problem",
    "describe",
    "problems",
    "read",
    "read_column",
    "read_log",
    "scan",
    "suffixes",
    "write",
]
