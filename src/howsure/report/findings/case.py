"""One score of some predictions, as findings see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Floats
from howsure.predictions import Predictions
from howsure.report.findings.evidence import design_effect
from howsure.tallies.tally import Sums, Tally

LEAST = 25  # samples that a piece, class or group needs to be judged


class Answers(NamedTuple):
    """Per class that was answered: how often, how often wrongly, and the summed claim."""

    given: Array
    wrong: Array
    claim: Array


class Groups(NamedTuple):
    """Samples and wrong answers of each group."""

    names: Array
    samples: Array
    wrong: Array


@dataclass(frozen=True, eq=False)
class Case:
    """One score with right and wrong, in sums: findings do not look at single samples.

    `effect` says how many times less the samples tell than as many independent ones. `answers` and `groups` are
    there where classes or groups are known and all samples count alike.
    """

    tally: Tally
    effect: float = 1.0
    names: tuple[str, ...] = ()
    answers: Answers | None = None
    groups: Groups | None = None

    @property
    def claims(self) -> bool:
        """Whether the score can be read as a probability of being right."""
        return claims(self.tally)


def case_of(preds: Predictions, score: Floats, t: Tally) -> Case:
    """The case of a score of predictions that are in memory.

    >>> from howsure import tally
    >>> p = Predictions.from_confidence([0.9, 0.8], [1, 0])
    >>> case_of(p, p.confidence, tally(p.confidence, p.correct)).claims
    True
    """
    effect = 1.0
    if claims(t):
        effect = design_effect((~preds.correct) - (1.0 - score), score, preds.weight, preds.group)
    names = tuple(preds.class_names or (str(c) for c in range(preds.k or 0)))
    return Case(t, effect, names, _answers(preds, score), _groups(preds))


def _answers(p: Predictions, score: Floats) -> Answers | None:
    if p.kind == "confidence" or p.k is None or p.weight is not None:
        return None
    given, wrong = (np.bincount(said, minlength=p.k) for said in (p.prediction, p.prediction[~p.correct]))
    return Answers(given.astype(np.float64), wrong, np.bincount(p.prediction, score, minlength=p.k))


def _groups(p: Predictions) -> Groups | None:
    if p.group is None or p.weight is not None:
        return None
    names, where = np.unique(p.group, return_inverse=True)
    where = where.reshape(-1)
    return Groups(names, np.bincount(where), np.bincount(where, weights=~p.correct))


def claims(t: Tally) -> bool:
    """Whether all scores lie in [0, 1]."""
    low, high = t.score_range()
    return low >= 0 and high <= 1


def above(t: Tally, score: float) -> Sums:
    """Sums over the samples that score at least this much, then over the rest."""
    below = np.nextafter(score, -np.inf)  # at least `score` is more than the number before it
    return t.between(np.unique([0, t.above(np.array([below]))[0], t.n]))


def overall(case: Case) -> tuple[float, float]:
    """Mean confidence minus accuracy, and the mean confidence."""
    t = case.tally
    mean = float(t.between(np.array([0, t.n])).claim[0] / t.n)
    return mean - float(1 - t.total / t.n), mean
