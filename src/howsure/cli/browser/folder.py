"""Moved."""

from howsure.cli.app import write_app as write
