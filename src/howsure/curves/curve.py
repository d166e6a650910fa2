"""The one value that all curves are: points, and what belongs to them."""

from __future__ import annotations

from howsure._core.check import Floats
from howsure._core.frozen import frozen

__all__ = ["Curve"]


@frozen(eq=False)
class Curve:
    """Points (x, y) with what belongs to them: sample counts, thresholds, and a band (low, high)
    around y.

    >>> from howsure import risk_coverage, tally
    >>> c = risk_coverage(tally([0.9, 0.8], correct=[1, 0]))
    >>> len(c), c.labels
    (2, ('coverage', 'risk'))
    """

    x: Floats
    y: Floats
    weight: Floats | None = None
    threshold: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, str] = ("x", "y")

    def __len__(self) -> int:
        return len(self.x)
