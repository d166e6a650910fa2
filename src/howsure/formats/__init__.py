"""Files of predictions: read whole, streamed, written, or examined."""

from howsure.formats.catalogue import suffixes
from howsure.formats.contents import Problem
from howsure.formats.inspection import Description, Item, describe, problems
from howsure.formats.logs import read_log
from howsure.formats.reading import read, scan
from howsure.formats.writing import write

__all__ = ["Description", "Item", "Problem", "describe", "problems", "read", "read_log", "scan", "suffixes", "write"]
