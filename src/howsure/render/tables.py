"""Moved."""

from howsure.report.render.text_tables import Sheet as Sheet
from howsure.report.render.text_tables import escape_markdown as escape
