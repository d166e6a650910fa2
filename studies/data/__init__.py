"""Data sets that the studies train on."""

from .catalogue import load
from .dataset import Dataset, Split, fixed_split
from .files import DataError
from .masks import MaskedImages, masked_images

__all__ = ["DataError", "Dataset", "MaskedImages", "Split", "fixed_split", "load", "masked_images"]
