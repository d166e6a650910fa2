"""Moved."""

from howsure.cli.in_browser import run_command as call
