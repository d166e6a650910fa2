"""One score of some predictions, as findings see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array
from howsure._core.exact import from_fixed
from howsure.report.catalogue import is_claim
from howsure.report.findings.evidence import design_effect
from howsure.report.samples import Columns
from howsure.report.summary import Summary
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
        return is_claim(self.tally)


def case_of(s: Summary) -> Case:
    """The case of the first score of a data set.

    >>> from howsure import Predictions
    >>> case_of(Summary.of(Predictions.from_confidence([0.9, 0.8], [1, 0]))).claims
    True
    """
    columns = None if s.details is None or s.shape.alike else s.details.columns
    names = s.shape.names
    if columns is None:
        return Case(s.tally, 1.0, names, _answers(s))
    effect, score = 1.0, columns.value("score", s.first)
    if is_claim(s.tally):
        effect = design_effect((~columns.correct) - (1.0 - score), score, columns.weight, columns.group)
    return Case(s.tally, effect, names, _answers(s), _groups(columns))


def _answers(s: Summary) -> Answers | None:
    """A right answer is an answer of its true class, so hits count by either."""
    c = s.classes
    if c is None or not s.shape.vectors or s.shape.weighted:
        return None
    return Answers(c.given.astype(np.float64), c.given - c.hits, from_fixed(c.scored))


def _groups(c: Columns) -> Groups | None:
    if c.group is None or c.weight is not None:
        return None
    names, where = np.unique(c.group, return_inverse=True)
    where = where.reshape(-1)
    return Groups(names, np.bincount(where), np.bincount(where, weights=~c.correct))


def above(t: Tally, score: float) -> Sums:
    """Sums over the samples that score at least this much, then over the rest."""
    below = np.nextafter(score, -np.inf)  # at least `score` is more than the number before it
    return t.between(np.unique([0, t.above(np.array([below]))[0], t.n]))


def overall(case: Case) -> tuple[float, float]:
    """Mean confidence minus accuracy, and the mean confidence."""
    t = case.tally
    mean = float(t.between(np.array([0, t.n])).claim[0] / t.n)
    return mean - float(1 - t.total / t.n), mean
