"""Data sets that the studies train on."""

from .catalogue import load
from .dataset import Dataset, Split, fixed_split
from .files import DataError

__all__ = ["DataError", "Dataset", "Split", "fixed_split", "load"]
