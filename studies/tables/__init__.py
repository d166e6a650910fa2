"""Tables recomputed from prediction files through the public functions of howsure."""

from .catalogue import TABLES
from .table import Table

__all__ = ["TABLES", "Table"]
