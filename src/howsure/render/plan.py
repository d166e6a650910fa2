"""Moved."""

from howsure.report.render.plan_sheet import build_plan_sheet as sheet
