"""Moved."""

from howsure.serving.stream import decide_file as decide_file
