"""Moved."""

from howsure.formats.logs.read_logs import TOOLS as TOOLS
from howsure.formats.logs.read_logs import is_log as is_log
from howsure.formats.logs.read_logs import read_log as read_log
