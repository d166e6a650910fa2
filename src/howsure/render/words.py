"""Moved."""

from howsure.report.render.sentences import ARROWS as ARROWS
from howsure.report.render.sentences import describe_bounds as certain
from howsure.report.render.sentences import explain_metric as note
from howsure.report.render.sentences import get_meaning as meaning
