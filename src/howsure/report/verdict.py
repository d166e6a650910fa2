"""What findings and verdicts rest on: one score in sums, tails of the binomial, and the guarantees
that the samples allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from howsure import metrics
from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure.policies.guarantee import (
    FEW_GROUPS,
    draw_one_per_group,
    guaranteed_threshold,
    write_few_groups,
)
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import is_claim
from howsure.report.report_types import (
    FindingData,
    GuaranteeData,
    Value,
)
from howsure.report.summary import Summary
from howsure.tallies.row_tally import as_rows, find_score_ends
from howsure.tallies.tally import RangeSums, Tally
from howsure.uncertainty.intervals import each_interval
from howsure.uncertainty.means import (
    Units,
    estimate_freedom,
    student_quantile,
    sum_by_unit,
)

LEAST_SAMPLES = 25  # that a piece, class or group needs to be judged
FALSE_FINDING_RATE = 0.01  # of each finding for itself, where the model is calibrated

VERDICT_RISKS = (0.01, 0.05)  # that a verdict tries, the strictest first
USEFUL_COVERAGE = 0.05  # a smaller share is told only where no larger risk allows a larger one


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
        """As report JSON."""
        return {
            "name": self.name,
            "text": self.text,
            "evidence": dict(self.evidence),
            "paper": self.paper,
        }


class AnswerCounts(NamedTuple):
    """Per class that was answered: how often, how often wrongly, and the summed claim."""

    given: Array
    wrong: Array
    claim: Array


class GroupEvidence(NamedTuple):
    """Samples and wrong answers of each group."""

    names: Array
    samples: Array
    wrong: Array


@frozen(eq=False)
class FindingCase:
    """One score with right and wrong, in sums: findings do not look at single samples.

    `effect` says how many times less the samples tell than as many independent ones. `answers` and
    `groups` are there where classes or groups are known and all samples count alike.
    """

    tally: Tally
    kind: str = "confidence"  # of the predictions
    effect: float = 1.0
    auroc_limits: tuple[float, float] | None = None  # as the report has them
    names: tuple[str, ...] = ()
    answers: AnswerCounts | None = None
    groups: GroupEvidence | None = None

    @property
    def claims(self) -> bool:
        """Whether the score can be read as a probability of being right."""
        return is_claim(self.tally, self.kind)


def build_case(summary: Summary, level: float = 0.95) -> FindingCase:
    """The case of the first score of a data set; `level` is that of the limits in its report.

    >>> from howsure import Predictions
    >>> build_case(Summary.of(Predictions.from_confidence([0.9, 0.8], [1, 0]))).claims
    True
    """
    answers = None
    classes = summary.classes
    if classes is not None and summary.shape.vectors and not summary.shape.weighted:
        answers = AnswerCounts(
            given=classes.given.astype(np.float64),
            # A right answer is an answer of its true class, so hits count by either.
            wrong=classes.given - classes.hits,
            claim=classes.scored,
        )
    effect, groups = 1.0, None
    columns = None if summary.details is None else summary.details.columns
    # Where all samples count alike, sums say everything; else weights and groups are needed.
    if columns is not None and not summary.shape.alike:
        score = columns.value("score", summary.first)
        if is_claim(summary.tally, summary.shape.kind):
            residual = (~columns.correct) - (1.0 - score)
            effect = compute_design_effect(residual, score, columns.weight, columns.group)
        if columns.group is not None and columns.weight is None:
            names, where = np.unique(columns.group, return_inverse=True)
            where = where.reshape(-1)
            wrong = count_values(where, weights=~columns.correct)
            groups = GroupEvidence(names=names, samples=count_values(where), wrong=wrong)
    auroc_limits = None
    source = summary.source("score", summary.first)
    if not isinstance(source, str) and 0 < summary.tally.total < summary.tally.n:
        (auroc,) = each_interval([metrics.auroc], source, level)
        if isfinite(auroc.low) and isfinite(auroc.high):
            auroc_limits = (auroc.low, auroc.high)
    return FindingCase(
        tally=summary.tally,
        kind=summary.shape.kind,
        effect=effect,
        auroc_limits=auroc_limits,
        names=summary.shape.names,
        answers=answers,
        groups=groups,
    )


def compute_design_effect(
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
    # Residuals are centred: being off on average is a finding of its own, not clustering.
    squares = sum_by_unit(residual - units.total(residual) / units.n, units) ** 2
    expected = max(units.total(claim * (1 - claim)), 1e-300)
    effect = max(1.0, float(squares.sum()) / expected)
    if group is None:
        return effect
    degrees = estimate_freedom(squares, units.many - 1)
    wider = student_quantile(degrees, FALSE_FINDING_RATE) / student_quantile(
        inf, FALSE_FINDING_RATE
    )
    return effect * wider**2


def compute_upper_tail(k: ArrayLike, n: ArrayLike, q: ArrayLike) -> Floats:
    """P(at least k of n) when each has chance q.

    Also an upper bound where the chances differ and average q, for k of at least nq + 1 (Hoeffding
    1956).
    """
    k, n, q = _broadcast_floats(k, n, q)
    # The incomplete beta function is the binomial tail, and takes counts that are not whole.
    tail = betainc(np.maximum(k, 1e-300), np.maximum(n - k, 0) + 1, np.clip(q, 0, 1))
    return np.where(k <= 0, 1.0, tail)


def compute_lower_tail(k: ArrayLike, n: ArrayLike, q: ArrayLike) -> Floats:
    """P(at most k of n) when each has chance q."""
    k, n, q = _broadcast_floats(k, n, q)
    # P(at most k) is one minus P(at least k + 1), by symmetry without the subtraction.
    tail = betainc(np.maximum(n - k, 1e-300), np.maximum(k, 0) + 1, 1 - np.clip(q, 0, 1))
    return np.where(k >= n, 1.0, tail)


def _broadcast_floats(*arrays: ArrayLike) -> tuple[Array, ...]:
    return np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))


def find_sure_cut(t: Tally, score: float) -> float:
    """The score itself; of a compact tally the lower end of the lowest bucket that is at least this
    much as a whole, infinite where there is none.
    """
    if t.approximate is None:
        return score
    low = find_score_ends(as_rows(t))[0]
    return float(low[low >= score].min(initial=np.inf))


def sum_above(t: Tally, score: float) -> RangeSums:
    """Sums over the samples that score at least this much, then over the rest."""
    just_below = np.nextafter(score, -np.inf)  # the tally counts what is more than a score
    return t.between(sort_distinct([0, t.above(np.array([just_below]))[0], t.n]))


def compute_overall_gap(case: FindingCase) -> tuple[float, float]:
    """Mean confidence minus accuracy, and the mean confidence."""
    t = case.tally
    mean = float(t.between(np.array([0, t.n])).claim[0] / t.n)
    return mean - float(1 - t.total / t.n), mean


def format_percent(share: float, digits: int = 1) -> str:
    """A share as it is written in a sentence."""
    return f"{share * 100:.{digits}f} %"


def format_expected(count: float) -> str:
    """An expected number of answers: whole from ten on, else to the first digit that is not 0.

    >>> format_expected(3.21), format_expected(0.021), format_expected(1234.6)
    ('3.2', '0.02', '1,235')
    """
    if count >= 10:
        return f"{count:,.0f}"
    decimals = 1
    if 0 < count < 0.1:
        decimals = ceil(-log10(count))
    return f"{count:.{decimals}f}"


def compute_guarantees(source: Tally | Outcomes | str, n: int, level: float) -> list[GuaranteeData]:
    """What the band guarantees of these samples, at each risk that a verdict speaks of, all of
    them at once with probability `level`; `source` is the reason where there is nothing to test.

    >>> from howsure import tally
    >>> found = compute_guarantees(tally([0.9] * 600 + [0.5] * 200, correct=[1] * 600 + [0] * 200), 800, 0.95)
    >>> [(g["risk"], g["coverage"]) for g in found]
    [(0.01, 0.75), (0.05, 0.75)]
    """
    tested, groups = source, None
    if isinstance(source, Outcomes) and source.group is not None:
        # Samples of a group are not independent: the test takes one of each.
        groups = int(source.units.max()) + 1
        tested = draw_one_per_group(source, 0)
    # The data decide which of the risks a verdict tells, so each has its share of delta.
    delta = (1 - level) / len(VERDICT_RISKS)
    guarantees: list[GuaranteeData] = []
    for risk in VERDICT_RISKS:
        data: GuaranteeData = {
            "risk": risk,
            "sure": level,
            "feasible": False,
            "coverage": 0.0,
            "kept": 0,
            "threshold": None,
            "labels_needed": None,
        }
        guarantees.append(data)
        if isinstance(source, str) or isinstance(tested, str):
            data["why"] = str(source)
            continue
        if groups is not None and groups < FEW_GROUPS:
            data["why"] = write_few_groups(groups) + "."
            continue
        try:
            guarantee = guaranteed_threshold(tested, risk=risk, delta=delta)
        except InputError as e:
            data["why"] = str(e)
            continue
        data["labels_needed"] = guarantee.labels_needed
        if guarantee.feasible:
            # The share is that of all samples, also where one of each group was tested.
            t = source.tally() if isinstance(source, Outcomes) else source
            just_below = np.nextafter(guarantee.threshold, -np.inf)
            kept = int(t.above(np.array([just_below]))[0])
            data.update(feasible=True, coverage=kept / n, kept=kept)
            data.update(threshold=guarantee.threshold, labels_needed=None)
        if groups is not None:
            data["groups"] = groups
    return guarantees


def choose_guarantee(guarantees: Sequence[GuaranteeData]) -> GuaranteeData | None:
    """The guarantee that a verdict speaks of: the strictest of a useful share. One that always
    giving the same answer keeps is not offered.
    """
    feasible = [g for g in guarantees if g["feasible"] and "empty" not in g]
    # Risks are listed from the strictest on.
    for g in feasible:
        if g["coverage"] >= USEFUL_COVERAGE:
            return g
    return feasible[-1] if feasible else None
