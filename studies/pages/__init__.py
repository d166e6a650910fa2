"""The result pages under docs/studies: every number, figure and verdict comes from the prediction
files.
"""

from .findings import report
from .writing import write_pages

__all__ = ["report", "write_pages"]
