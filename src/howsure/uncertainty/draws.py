"""Moved."""

from howsure.uncertainty.bootstrap import draw_rows as draw_rows
from howsure.uncertainty.bootstrap import draw_units as draw_units
