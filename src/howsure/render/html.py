"""Moved."""

from howsure.report.render.page import render_fragment as fragment
from howsure.report.render.page import render_page as page
from howsure.report.render.page import wrap_in_iframe as frame
