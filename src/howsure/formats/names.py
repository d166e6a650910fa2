"""Moved."""

from howsure.formats.column_names import VALUES as VALUES
from howsure.formats.column_names import Plan as Plan
from howsure.formats.column_names import choose_values as kind
from howsure.formats.column_names import plan_parts as plan
from howsure.predictions.naming import ALIASES as ALIASES
from howsure.predictions.read_options import UNLABELLED_PARTS as UNLABELLED
from howsure.predictions.read_options import ReadOptions as Wanted
