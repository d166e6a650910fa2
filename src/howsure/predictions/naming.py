"""Moved."""

from howsure.predictions.class_labels import CLASS_COLUMN_STARTS as NUMBERED
from howsure.predictions.class_labels import COLUMN_ALIASES as ALIASES
from howsure.predictions.class_labels import LABEL_COLUMN_START as MANY_LABELS
