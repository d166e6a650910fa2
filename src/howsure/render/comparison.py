"""Moved."""

from howsure.report.render.comparison_page import build_comparison_sheet as sheet
from howsure.report.render.comparison_page import render_comparison_page as page
