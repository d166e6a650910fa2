"""The command line: parse, call, render. Commands are imported when they are named."""

from howsure.cli import threads
from howsure.cli.main import main

__all__ = ["main", "threads"]
