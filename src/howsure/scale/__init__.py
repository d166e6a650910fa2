"""Evaluation of files that do not fit into memory: parts map to small summaries, summaries add up."""

from howsure.scale.files import Progress, evaluate_files

__all__ = ["Progress", "evaluate_files"]
