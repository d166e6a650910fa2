"""Moved."""

from howsure.report.render.monitor_page import build_estimate_sheet as estimated
from howsure.report.render.monitor_page import build_monitor_sheet as sheet
from howsure.report.render.monitor_page import render_monitor_page as page
