"""Figures recomputed from prediction files; curves come from howsure, nothing is computed while
drawing.
"""

from .catalogue import FIGURES, write_figures

__all__ = ["FIGURES", "write_figures"]
