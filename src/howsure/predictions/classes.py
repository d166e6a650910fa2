"""Moved."""

from howsure.predictions.class_labels import find_missing as missing
from howsure.predictions.class_labels import read_class_numbers as class_places
