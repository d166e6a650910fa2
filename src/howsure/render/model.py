"""What a report is made of, as renderers see it."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from howsure.curves import Curve

POINTS = 300  # a drawn curve needs no more


def curve_json(curve: Curve) -> dict[str, Any]:
    """A curve as lists, thinned to rows that are evenly spread; not a number and infinity become null."""
    pick = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), POINTS)).round().astype(int))
    columns = {name: getattr(curve, name) for name in ("x", "y", "weight", "threshold", "low", "high")}
    given = {name: _numbers(c[pick]) for name, c in columns.items() if c is not None}
    return {"labels": list(curve.labels), "points": len(curve), **given}


def _numbers(a: Any) -> list[float | None]:
    return [float(f"{v:.12g}") if isfinite(v) else None for v in a.tolist()]
