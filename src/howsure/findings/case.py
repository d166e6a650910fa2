"""One score of some predictions, as findings see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from howsure._check import Floats
from howsure._tally import Sums, Tally
from howsure.findings._evidence import design_effect
from howsure.predictions import Predictions

LEAST = 25  # samples that a piece, class or group needs to be judged


@dataclass(frozen=True, eq=False)
class Case:
    """One score of some predictions, as findings see it."""

    preds: Predictions
    score: Floats
    tally: Tally

    @cached_property
    def claims(self) -> bool:
        """Whether the score can be read as a probability of being right."""
        low, high = self.tally.score_range()
        return low >= 0 and high <= 1

    @cached_property
    def effect(self) -> float:
        """How much less the samples say than as many independent ones."""
        p = self.preds
        if not self.claims:
            return 1.0
        return design_effect((~p.correct) - (1.0 - self.score), self.score, p.weight, p.group)

    @cached_property
    def names(self) -> list[str]:
        """Class names, or numbers."""
        return list(self.preds.class_names or (str(c) for c in range(self.preds.k or 0)))


def above(t: Tally, score: float) -> Sums:
    """Sums over the samples that score at least this much, then over the rest."""
    kept = int(np.searchsorted(-t.score, -score, side="right"))
    ends = np.concatenate(([0], np.cumsum(t.count)))
    return t.between(np.unique([0, ends[kept], t.n]))


def overall(case: Case) -> tuple[float, float]:
    """Mean confidence minus accuracy, and the mean confidence."""
    t = case.tally
    mean = float(t.between(np.array([0, t.n])).claim[0] / t.n)
    return mean - float(1 - t.total / t.n), mean
