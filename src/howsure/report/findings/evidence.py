"""What findings see of a data set, what a finding is, and how evidence is weighed against what the
claims promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from howsure._core.check import Array, Floats
from howsure._core.exact import from_fixed
from howsure._core.frozen import frozen
from howsure.render.model import FindingData, Value
from howsure.report.catalogue import is_claim
from howsure.report.samples import Columns
from howsure.report.summary import Summary
from howsure.tallies.tally import Sums, Tally
from howsure.uncertainty.clusters import Units, freedom, unit_sums
from howsure.uncertainty.means import student

LEAST = 25  # samples that a piece, class or group needs to be judged
ALPHA = 0.01  # chance that a finding about a calibrated model is false, each finding for itself


@frozen
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
        return {
            "name": self.name,
            "text": self.text,
            "evidence": dict(self.evidence),
            "paper": self.paper,
        }


def more_than(k: ArrayLike, n: ArrayLike, q: ArrayLike) -> Floats:
    """P(at least k of n) when each has chance q.

    Also an upper bound where the chances differ and average q, for k of at least nq + 1 (Hoeffding
    1956).
    """
    k, n, q = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, q)))
    return np.where(
        k <= 0, 1.0, betainc(np.maximum(k, 1e-300), np.maximum(n - k, 0) + 1, np.clip(q, 0, 1))
    )


def fewer_than(k: ArrayLike, n: ArrayLike, q: ArrayLike) -> Floats:
    """P(at most k of n) when each has chance q."""
    k, n, q = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, q)))
    inside = betainc(np.maximum(n - k, 1e-300), np.maximum(k, 0) + 1, 1 - np.clip(q, 0, 1))
    return np.where(k >= n, 1.0, inside)


def design_effect(
    residual: Floats, claim: Floats, weight: Floats | None, group: Array | None
) -> float:
    """How many times wider sums scatter because samples come in clusters or carry weights; at least
    1.

    Counts divided by it may be tested as if samples were independent (Kish 1965); with clusters it
    is widened by Student's t of as many clusters as count.
    """
    if weight is None and group is None:
        return 1.0
    units = Units.of(len(residual), weight, group)
    squares = unit_sums(residual - units.total(residual) / units.n, units) ** 2
    effect = max(1.0, float(squares.sum()) / max(units.total(claim * (1 - claim)), 1e-300))
    if group is None:
        return effect
    return effect * (student(freedom(squares, units.many - 1), ALPHA) / student(inf, ALPHA)) ** 2


def percent(share: float, digits: int = 1) -> str:
    """A share as it is written in a sentence."""
    return f"{share * 100:.{digits}f} %"


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


@frozen(eq=False)
class Case:
    """One score with right and wrong, in sums: findings do not look at single samples.

    `effect` says how many times less the samples tell than as many independent ones. `answers` and
    `groups` are there where classes or groups are known and all samples count alike.
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
        effect = design_effect(
            (~columns.correct) - (1.0 - score), score, columns.weight, columns.group
        )
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
