"""Models, scores and calibrators on the same samples: what may be compared, and what comes out."""

from howsure.report.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]
