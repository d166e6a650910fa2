"""Compact definitions of the papers' networks, found by name: `build("resnet-20", ...)`."""

from .catalogue import build
from .counts import multiply_adds, parameters

__all__ = ["build", "multiply_adds", "parameters"]
