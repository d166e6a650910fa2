"""Moved."""

from howsure._core.check import build_frame as frame
from howsure._core.check import wrap_preformatted as preformatted
