"""The result pages under docs/studies: every number, figure and verdict comes from the prediction
files.
"""

from .writing import write_pages

__all__ = ["write_pages"]
