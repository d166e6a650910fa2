"""Moved."""

from howsure.formats.logs.log_columns import NoConfidence as NoConfidence
from howsure.formats.logs.log_columns import build_contents as contents
from howsure.formats.logs.log_columns import choose_confidence as chosen
from howsure.formats.logs.log_columns import choose_names as wanted_of
from howsure.formats.logs.log_columns import has_options as has_options
