"""The mean of a column: how far it may be from what it estimates."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Array, Floats


def standard_error(d: Floats, group: Array | None) -> float:
    """Of a mean; samples of a group count as one."""
    rest = d - d.mean()
    if group is not None:
        rest = np.bincount(np.unique(group, return_inverse=True)[1].reshape(-1), weights=rest)
    return float(np.sqrt((rest**2).sum()) / len(d))
