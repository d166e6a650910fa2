"""What a finding is, and how its evidence is weighed: few or many errors against what the claims promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc

from howsure._core.check import Array, Floats
from howsure.render.model import FindingData, Value

ALPHA = 0.01  # chance that a finding about a calibrated model is false, each finding for itself


@dataclass(frozen=True)
class Finding:
    """Something worth knowing, in words, with the numbers that say so and the argument behind it.

    >>> Finding("saturated", "5 % of the confidences are exactly 1.", {"share": 0.05}, "Ding 2020").json()["name"]
    'saturated'
    """

    name: str
    text: str
    evidence: Mapping[str, Value]
    paper: str

    def json(self) -> FindingData:
        """As it stands in a report."""
        return {"name": self.name, "text": self.text, "evidence": dict(self.evidence), "paper": self.paper}


def more_than(k: Any, n: Any, q: Any) -> Floats:
    """P(at least k of n) when each has chance q.

    Also an upper bound where the chances differ and average q, for k of at least nq + 1 (Hoeffding 1956).
    """
    k, n, q = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, q)))
    return np.where(k <= 0, 1.0, betainc(np.maximum(k, 1e-300), np.maximum(n - k, 0) + 1, np.clip(q, 0, 1)))


def fewer_than(k: Any, n: Any, q: Any) -> Floats:
    """P(at most k of n) when each has chance q."""
    k, n, q = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, q)))
    inside = betainc(np.maximum(n - k, 1e-300), np.maximum(k, 0) + 1, 1 - np.clip(q, 0, 1))
    return np.where(k >= n, 1.0, inside)


def design_effect(residual: Floats, claim: Floats, weight: Floats | None, group: Array | None) -> float:
    """How many times wider sums scatter because samples come in clusters or carry weights; at least 1.

    Counts divided by it may be tested as if samples were independent (Kish 1965).
    """
    if weight is None and group is None:
        return 1.0
    w = np.ones(len(residual)) if weight is None else weight
    rest = w * (residual - np.average(residual, weights=w))
    if group is not None:
        _, where = np.unique(group, return_inverse=True)
        rest = np.bincount(where.reshape(-1), weights=rest)
    return max(1.0, float((rest**2).sum() / max(float((w * claim * (1 - claim)).sum()), 1e-300)))


def percent(share: float, digits: int = 1) -> str:
    """A share as it is written in a sentence."""
    return f"{share * 100:.{digits}f} %"
