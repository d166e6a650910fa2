"""What a reader is told first: a verdict of three sentences with the guarantees behind it, and what
a calibrator changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from howsure import losses
from howsure import metrics as all_metrics
from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure._core.text import format_rounded_up
from howsure.policies.guarantee import (
    FEW_GROUPS,
    draw_one_per_group,
    guaranteed_threshold,
    write_few_groups,
)
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import is_claim
from howsure.report.report_types import (
    ClaimsTest,
    FindingData,
    GuaranteeData,
    Metrics,
    Value,
)
from howsure.report.summary import Summary
from howsure.tallies.tally import RangeSums, Tally
from howsure.uncertainty.intervals import paired_difference
from howsure.uncertainty.means import (
    Units,
    estimate_freedom,
    standard_error,
    student_quantile,
    sum_by_unit,
)

LEAST_SAMPLES = 25  # that a piece, class or group needs to be judged
FALSE_FINDING_RATE = 0.01  # of each finding for itself, where the model is calibrated

ONE_DIRECTION = ("over_confident_above_0.9", "over_confident", "under_confident")
MISCALIBRATIONS = (*ONE_DIRECTION, "hidden_error", "internal_compensation")
RISK_WORDS = {0.01: "1 in 100 of these is", 0.05: "5 in 100 of these are"}
USEFUL_COVERAGE = 0.05  # a smaller share is told only where no larger risk allows a larger one
CLEAR_P = 0.01  # below it claims are off, although no single finding says where
DOUBTFUL_P = 0.05  # below it they may be
WORSE_Z = 2.326  # one side of 99 %
LOSS_WORDS = {
    "nll": "NLL",
    "brier": "the Brier score",
    "correctness_brier": "the Brier score of the confidence",
}


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
    effect: float = 1.0
    names: tuple[str, ...] = ()
    answers: AnswerCounts | None = None
    groups: GroupEvidence | None = None

    @property
    def claims(self) -> bool:
        """Whether the score can be read as a probability of being right."""
        return is_claim(self.tally)


def build_case(summary: Summary) -> FindingCase:
    """The case of the first score of a data set.

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
        if is_claim(summary.tally):
            residual = (~columns.correct) - (1.0 - score)
            effect = compute_design_effect(residual, score, columns.weight, columns.group)
        if columns.group is not None and columns.weight is None:
            names, where = np.unique(columns.group, return_inverse=True)
            where = where.reshape(-1)
            wrong = count_values(where, weights=~columns.correct)
            groups = GroupEvidence(names=names, samples=count_values(where), wrong=wrong)
    return FindingCase(
        tally=summary.tally,
        effect=effect,
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


def sum_above(t: Tally, score: float) -> RangeSums:
    """Sums over the samples that score at least this much, then over the rest."""
    just_below = np.nextafter(score, -np.inf)  # the tally counts what is more than a score
    return t.between(np.unique([0, t.above(np.array([just_below]))[0], t.n]))


def compute_overall_gap(case: FindingCase) -> tuple[float, float]:
    """Mean confidence minus accuracy, and the mean confidence."""
    t = case.tally
    mean = float(t.between(np.array([0, t.n])).claim[0] / t.n)
    return mean - float(1 - t.total / t.n), mean


def format_percent(share: float, digits: int = 1) -> str:
    """A share as it is written in a sentence."""
    return f"{share * 100:.{digits}f} %"


def compute_guarantees(source: Tally | Outcomes | str, n: int, level: float) -> list[GuaranteeData]:
    """What the band guarantees of these samples, at each risk that a verdict speaks of;
    `source` is the reason where there is nothing to test.

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
    guarantees: list[GuaranteeData] = []
    for risk in RISK_WORDS:
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
            guarantee = guaranteed_threshold(tested, risk=risk, delta=1 - level)
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
    """The guarantee that a verdict speaks of: the strictest of a useful share."""
    feasible = [g for g in guarantees if g["feasible"]]
    # Risks are listed from the strictest on.
    for g in feasible:
        if g["coverage"] >= USEFUL_COVERAGE:
            return g
    return feasible[-1] if feasible else None


def write_verdict(
    metrics: Metrics,
    findings: Sequence[FindingData],
    guarantees: Sequence[GuaranteeData] = (),
    test: ClaimsTest | None = None,
    n: int | None = None,
    *,
    calibrated: bool = False,
) -> list[str]:
    """Three sentences, for those who read nothing else; `n` where answers may be counted.

    >>> entry = {"value": 0.9, "low": 0.88, "high": 0.92}
    >>> write_verdict({"accuracy": entry}, [], n=1000)[0]
    'It was right 900 times of 1,000: 90.0 % (88.0 to 92.0).'
    """
    accuracy = metrics["accuracy"]
    low, high, value = accuracy.get("low"), accuracy.get("high"), accuracy["value"] or 0.0
    limits = "" if low is None or high is None else f" ({low * 100:.1f} to {high * 100:.1f})"
    worth = f"It was right {format_percent(value)} of the time{limits}."
    if n is not None:
        right = round(value * n)
        times = "time" if right == 1 else "times"
        worth = f"It was right {right:,} {times} of {n:,}: {format_percent(value)}{limits}."
    return [
        worth,
        _describe_decisions(guarantees, findings),
        _describe_confidence(metrics, findings, test, calibrated),
    ]


def _describe_decisions(
    guarantees: Sequence[GuaranteeData], findings: Sequence[FindingData]
) -> str:
    """What it may decide alone, as a promise; or what such a promise would take."""
    g = choose_guarantee(guarantees)
    if g is not None:
        which = "It may decide them all"
        if g["coverage"] != 1:
            share = format_percent(g["coverage"])
            which = f"Let it decide only the surest {share} ({g['kept']:,})"
        return f"{which}: at most {RISK_WORDS[g['risk']]} wrong, {g['sure'] * 100:g} % sure."
    # Where the score does not rank, more labels would not help.
    if any(f["name"] == "does_not_rank" for f in findings):
        return "Nothing here shows that its score tells right answers from wrong ones, or that deferring would help."
    if not guarantees:
        return "How much it may decide alone was not looked at."
    last = guarantees[-1]
    if "why" in last:
        return f"How much it may decide alone cannot be promised: {last['why']}"
    words = RISK_WORDS[last["risk"]].removesuffix(" are")
    wish = f"at most {words.replace('of these', 'accepted answers')} wrong"
    if last["labels_needed"] is None:
        return (
            f"No share of its answers can be promised to be right: whether {wish} is possible, "
            "these labels cannot tell."
        )
    unit = "groups" if "groups" in last else "labels"
    return (
        f"Too few {unit} to guarantee {wish}; about "
        f"{format_rounded_up(last['labels_needed'])} {unit} would usually be enough."
    )


def _describe_confidence(
    metrics: Metrics, findings: Sequence[FindingData], test: ClaimsTest | None, calibrated: bool
) -> str:
    """Whether its confidence can be read as a probability of being right."""
    entry = metrics.get("ece")
    if entry is None or entry["value"] is None:
        return "Its score is not a probability, so it can rank but not promise."
    ece = f"ECE {entry['value']:.3f}"
    if "floor" in entry:
        ece = f"{ece}, {entry['floor']:.3f} by chance alone"
    named = [f["name"] for f in findings if f["name"] in MISCALIBRATIONS]
    if not named:
        if test is None:
            return (
                f"Nothing here contradicts its confidence as a probability of being right ({ece})."
            )
        p = test["p"]
        if p < CLEAR_P:
            return f"Its confidence is not a probability of being right (p = {p:.3g}; {ece}), without a plain pattern."
        if p < DOUBTFUL_P:
            doubt = (
                f"Its confidence may be off as a probability of being right ({ece}; p = {p:.2g})"
            )
            return f"{doubt}; more labels would tell."
        return f"Nothing here contradicts its confidence as a probability of being right ({ece}; p = {p:.2g})."
    signed = 0.0
    if "signed_calibration_error" in metrics:
        signed = metrics["signed_calibration_error"]["value"] or 0.0
    if named[0] in ONE_DIRECTION and abs(signed) > 0.002:
        direction = "more" if signed > 0 else "less"
        advice = "calibrate it before reading it as a probability"
        if calibrated:
            advice = "still so after calibration"
        return (
            f"Its confidence claims {abs(signed) * 100:.1f} points {direction} than it delivers on average "
            f"({ece}); {advice}."
        )
    return f"Its confidence is about right on average and off in places ({ece}); see the findings."


def find_changes(before: Predictions, after: Predictions) -> list[FindingData]:
    """What a calibrator did, as report JSON; both hold the same samples in the same order.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    >>> [f["name"] for f in find_changes(p, p)]
    ['ranking_unchanged']
    """
    found = (
        _find_higher_loss(before, after),
        _find_ranking_change(before, after),
        _find_changed_answers(before, after),
    )
    return [finding.json() for finding in found if finding is not None]


def _find_higher_loss(before: Predictions, after: Predictions) -> Finding | None:
    """The loss of the corrected predictions is higher, beyond chance."""
    if before.kind == "confidence" or after.kind == "confidence":
        name = "correctness_brier"
        old = (before.confidence - before.correct) ** 2
        new = (after.confidence - after.correct) ** 2
    else:
        name, old, new = "nll", losses.nll(before), losses.nll(after)
        # A probability of 0 for the true class makes the NLL infinite.
        if not (np.isfinite(old).all() and np.isfinite(new).all()):
            name, old, new = "brier", losses.brier(before), losses.brier(after)
    rise = new - old
    spread = standard_error(rise, before.group)
    # Written so that nan counts as chance.
    is_chance = not rise.mean() > WORSE_Z * spread
    if is_chance or rise.mean() < 1e-3 * max(float(old.mean()), 1e-9):
        return None
    return Finding(
        name="calibration_made_it_worse",
        text=(
            f"Calibration made it worse: {LOSS_WORDS[name]} rose from {old.mean():.4g} to {new.mean():.4g} on "
            "these data."
        ),
        evidence={
            "loss": name,
            "before": float(old.mean()),
            "after": float(new.mean()),
            "standard_error": spread,
        },
        paper="Vemuri 2020, chapter 5",
    )


def _find_ranking_change(before: Predictions, after: Predictions) -> Finding | None:
    """Whether the order of the samples is another one, and what that does to AURC."""
    old, new = (
        Outcomes(p.confidence, correct=p.correct, weight=p.weight, group=p.group)
        for p in (before, after)
    )
    old_aurc = all_metrics.aurc(old.tally())
    # Ranks, not scores, are compared, so that ties must be the same ties.
    old_rank = np.unique(before.confidence, return_inverse=True)[1].reshape(-1)
    new_rank = np.unique(after.confidence, return_inverse=True)[1].reshape(-1)
    if (old_rank == new_rank).all() and (before.correct == after.correct).all():
        return Finding(
            name="ranking_unchanged",
            text=f"The ranking is unchanged by calibration: AURC stays {old_aurc:.4g}.",
            evidence={"aurc": old_aurc},
            paper="Ding et al. 2020, section 4.3",
        )
    difference, low, high = paired_difference(all_metrics.aurc, new, old, level=0.99)
    if low <= 0 <= high:
        return None
    better_or_worse = "better" if difference < 0 else "worse"
    new_aurc = all_metrics.aurc(new.tally())
    return Finding(
        name="ranking_changed",
        text=(
            f"Calibration changed the ranking for the {better_or_worse}: AURC {old_aurc:.4g} became {new_aurc:.4g} "
            f"(difference {difference:+.2g}, 99 % interval {low:+.2g} to {high:+.2g})."
        ),
        evidence={"difference": difference, "low": low, "high": high},
        paper="Ding et al. 2020, section 4.3",
    )


def _find_changed_answers(before: Predictions, after: Predictions) -> Finding | None:
    """Answers that changed, as those of averaged samples do when they are scaled."""
    if before.kind == "confidence" or after.kind == "confidence":
        return None
    n = int((before.prediction != after.prediction).sum())
    if n == 0:
        return None
    old, new = float(before.correct.mean()), float(after.correct.mean())
    text = (
        f"{n:,} of {before.n:,} answers changed; accuracy went from {format_percent(old, 2)} to "
        f"{format_percent(new, 2)}."
    )
    paper = "Guo et al. 2017, section 4.2: a temperature of single passes changes no answer, other maps may"
    if before.samples > 1:
        text += " Scaling each pass before the mean is taken may change the largest mean."
        paper = "Laves et al. 2019, section 3 (whose claim does not hold for means)"
    evidence = {"flips": n, "n": before.n, "accuracy_before": old, "accuracy_after": new}
    return Finding(name="predictions_flip", text=text, evidence=evidence, paper=paper)
