"""Files of predictions: read whole, streamed, or written."""

from howsure.formats._catalogue import suffixes
from howsure.formats._contents import Problem
from howsure.formats.reading import read, scan
from howsure.formats.writing import write

__all__ = ["Problem", "read", "scan", "suffixes", "write"]
