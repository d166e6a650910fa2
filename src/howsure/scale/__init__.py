"""Evaluation of files that do not fit into memory: parts map to small summaries, summaries merge."""

from howsure.scale.many_files import Progress, evaluate_files

__all__ = ["Progress", "evaluate_files"]
