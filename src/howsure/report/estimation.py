"""estimate(): the accuracy of data without labels, from labelled data of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf, isfinite, nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values
from howsure.bounds import check_proportion
from howsure.calibrators import Isotonic, Platt
from howsure.calibrators.step_functions import pool_steps
from howsure.policies.deployment import assign_folds
from howsure.policies.policy import Policy
from howsure.predictions import Predictions, needs_predictions
from howsure.report.drift import (
    ClassShares,
    ShareCells,
    estimate_class_shares,
)
from howsure.report.report import save_text
from howsure.report.report_types import EstimateData, Number, PartData
from howsure.report.sums import sum_at
from howsure.tallies.building import count_cells
from howsure.uncertainty.means import student_quantile

if TYPE_CHECKING:
    from howsure.report.render.text_tables import Sheet

CLAIM_FOLDS = 5
SCORE_BINS, ROWS_PER_BIN = 20, 50  # bins of the score, and the reference rows that each should hold
COARSE_BINS = 5  # beside which answers are compared
LEAST_ISOTONIC_ROWS = 1000  # with fewer, claims are calibrated by Platt's curve
LEAST_COUNTED_ROWS = 100_000  # fewer are repeated, and dealt to the folds one by one
LEAST_REFERENCE_ROWS = 30  # or rows of a part of it
CHANCE_OUTSIDE = 5.0  # new rows beyond the reference's scores, per reference row, that are chance
REFUSED_OUTSIDE = 0.5  # share of new rows beyond what the reference has shown: nothing is said
SHRINKING_ROWS = 10.0  # by which the accuracy of an answer in a bin is drawn to that of the bin


@frozen
class Part:
    """The estimate for some of the new data: a class that was answered, a group, what a policy
    accepts.
    """

    name: str
    n: int
    accuracy: float
    low: float
    high: float
    reference: float  # accuracy of the same part of the reference; nan where it has no such rows
    reference_n: int
    # Estimated from all of the reference, which has too few rows of this part.
    borrowed: bool = False
    error: float = nan


@frozen
class Estimate:
    """What to expect of data without labels; `low` and `high` are limits of the accuracy that
    labels would show.

    `coverage` and `risk` are those of the policy: the share that it accepts, and the expected share
    of wrong answers among them (without a policy everything is accepted). `cannot_see` says what no
    number here would show.

    >>> s = np.tile([0.55, 0.95], 500)
    >>> past = Predictions.from_confidence(s, np.arange(1000) % 20 != 0)
    >>> print(estimate(past, Predictions.from_confidence(s)).cannot_see[1])
    changed class shares need labels of the reference and answers of both to be seen.
    """

    accuracy: float
    low: float
    high: float
    coverage: float
    risk: float
    cannot_see: tuple[str, ...]
    risk_low: float
    risk_high: float
    level: float
    n: int
    reference_n: int
    reference_accuracy: float
    reference_coverage: float
    reference_risk: float
    outside: float  # share of new rows beyond what the reference has shown
    effective: float  # reference rows that look like the new data
    shares: dict[str, float]  # by which factor each class became likelier; empty where not known
    classes: tuple[Part, ...] = ()
    groups: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    error: float = nan  # standard error of the accuracy, that of the labels to come included

    def to_dict(self) -> EstimateData:
        """As it stands in a monitor's JSON; nan is null and says why."""
        why = self.notes[0] if self.notes else "nothing is accepted"
        return EstimateData(
            accuracy=build_number(self.accuracy, self.low, self.high, why),
            coverage=self.coverage,
            risk=build_number(self.risk, self.risk_low, self.risk_high, why),
            outside=self.outside,
            effective=self.effective,
            shares=dict(self.shares),
            classes=_list_parts(self.classes),
            groups=_list_parts(self.groups),
            cannot_see=list(self.cannot_see),
            notes=list(self.notes),
        )

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """What is estimated, by class and group, and what cannot be seen."""
        return save_text(self._build_sheet().text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The same as Markdown."""
        return save_text(self._build_sheet().markdown(), path)

    def frame(self, library: str = "pandas") -> Any:
        """All rows, each class and each group as a data frame of pandas or polars."""
        whole = Part(
            name="all",
            n=self.n,
            accuracy=self.accuracy,
            low=self.low,
            high=self.high,
            reference=self.reference_accuracy,
            reference_n=self.reference_n,
            error=self.error,
        )
        rows = [{"part": "all"} | asdict(whole)]
        rows += [{"part": "class"} | asdict(part) for part in self.classes]
        rows += [{"part": "group"} | asdict(part) for part in self.groups]
        return frame(rows, library)

    def _repr_html_(self) -> str:
        from howsure.report.render.page import render_fragment

        return render_fragment(self._build_sheet())

    def _build_sheet(self) -> Sheet:
        from howsure.report.render.monitor_page import build_estimate_sheet

        past = self.reference_accuracy if isfinite(self.reference_accuracy) else None
        return build_estimate_sheet(self.to_dict(), self.n, self.reference_n, past, self.level)


def build_number(value: float, low: float, high: float, why: str) -> Number:
    """A number with its limits, or why there is none."""
    if isfinite(value):
        return Number(value=value, low=low, high=high)
    return Number(value=None, why=why)


def _list_parts(parts: Sequence[Part]) -> list[PartData]:
    """Parts as JSON; those whose accuracy fell most come first."""

    def get_change(part: Part) -> float:
        change = part.accuracy - part.reference
        return change if isfinite(change) else 0.0

    return [
        PartData(
            name=part.name,
            n=part.n,
            accuracy=build_number(part.accuracy, part.low, part.high, "no rows"),
            reference=part.reference if isfinite(part.reference) else None,
            reference_n=part.reference_n,
            borrowed=part.borrowed,
        )
        for part in sorted(parts, key=get_change)
    ]


def estimate(
    reference: Predictions,
    new: Predictions,
    *,
    policy: Policy | None = None,
    by: ArrayLike | None = None,
    reference_by: ArrayLike | None = None,
    count: ArrayLike | None = None,
    reference_count: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    r"""The accuracy of data without labels, with limits that hold both samples' noise.

    Claims f are calibrated on the labelled reference by cross-fitting and averaged over the m new
    rows (CBPE); what the claims miss in each bin b of the confidence is added, with the reference
    weighted by the changed class shares w:

    .. math:: \hat A = \frac1m \sum_j f(s_j) + \sum_b \frac{m_b}{m}
        \frac{\sum_{i \in b} w_{y_i} (c_i - f_{-i}(s_i))}{\sum_{i \in b} w_{y_i}}

    So it is right where class shares, the mix of easy and hard cases, or both have changed, whatever f is. The limits
    are those of a beta distribution whose variance adds the noise of the reference, of w, and of the labels that the
    new rows would get; groups are drawn whole. New rows whose scores or answers the reference never showed count as
    anything between all right and all wrong; where they are more than half, nothing is said (nan, limits 0 and 1). With
    a `policy` (and its calibrator) the risk of what it accepts is estimated too; `by` and `reference_by` are columns to
    estimate by; `count` and `reference_count` say how often each row is there. Errors that became likelier at equal
    confidence cannot be seen. Garg et al. 2022 show that no method without labels can; Saerens et al. 2002 for w;
    NannyML's CBPE is the first term alone.

    >>> rng = np.random.default_rng(0)
    >>> draw = lambda n: np.round(rng.beta(5, 1.2, n), 3)
    >>> s = draw(5000); past = Predictions.from_confidence(s, rng.random(5000) < s)
    >>> found = estimate(past, Predictions.from_confidence(draw(2000)))
    >>> round(found.accuracy, 3), found.low, found.high
    (0.816, 0.7965, 0.834)
    """
    needs_predictions(reference, "estimate")
    check_proportion(level, "level")
    check_comparable(reference, new, reference_count)
    if policy is not None:
        policy.check_classes(reference)
        policy.check_classes(new)
    if count is not None or reference_count is not None:
        for preds in (reference, new):
            if preds.vectors or preds.known_prediction is not None or preds.group is not None:
                what = "classes, answers or groups"
                raise InputError("count", got=f"is for scores alone, and these rows have {what}")
        if reference_by is not None:
            raise InputError("reference_by is a column of single rows; leave out reference_count.")
    times = None if count is None else checks.counts(count, new.n)
    fold, past_times = None, None
    if reference_count is not None:
        # A row of several answers has a part in each fold.
        past_times = checks.counts(reference_count, reference.n)
        if past_times.sum() < LEAST_COUNTED_ROWS:
            cell = repeat_values(np.arange(reference.n), past_times)
            past_times = None
        else:
            shares = np.full(CLAIM_FOLDS, 1 / CLAIM_FOLDS)
            dealt = np.random.default_rng(seed).multinomial(past_times, shares)
            cell, fold = np.nonzero(dealt)
            past_times = dealt[cell, fold]
        reference = reference[cell]
    folds = assign_folds(reference.n, reference.group, CLAIM_FOLDS, seed) if fold is None else fold
    job = EstimationJob.of(
        reference, new, policy, level, fold=folds, times=past_times, new_times=times
    )
    whole = job.estimate_part(
        "all", np.ones(reference.n, dtype=np.bool_), np.ones(new.n, dtype=np.bool_)
    )
    kept, coverage, reference_coverage = whole, 1.0, 1.0
    if policy is not None:
        mine, theirs = policy.decide(reference).accept, policy.decide(new).accept
        kept = job.estimate_part("accepted", mine, theirs)
        coverage = float(np.average(theirs, weights=job.new.mass))
        reference_coverage = float(np.average(mine, weights=job.reference.mass))
    outside = job.new.average(job.outside)
    known = Estimate(
        accuracy=whole.accuracy,
        low=whole.low,
        high=whole.high,
        coverage=coverage,
        risk=1 - kept.accuracy,
        cannot_see=tuple(job.list_blind_spots(whole.accuracy)),
        risk_low=1 - kept.high,
        risk_high=1 - kept.low,
        level=level,
        n=whole.n,
        reference_n=whole.reference_n,
        reference_accuracy=whole.reference,
        reference_coverage=reference_coverage,
        reference_risk=1 - kept.reference,
        outside=outside,
        effective=job.count_effective_rows(),
        shares=job.compute_factors(),
        notes=tuple(job.write_notes()),
        error=whole.error,
    )
    if outside > REFUSED_OUTSIDE:
        return replace(
            known, accuracy=nan, low=0.0, high=1.0, risk=nan, risk_low=0.0, risk_high=1.0, error=nan
        )
    # By answer: how many of the answers of each class are right.
    classes: list[Part] = []
    if job.reference.answer is not None and job.new.answer is not None:
        given = count_values(job.new.answer, minlength=len(job.names)).tolist()
        for i, name in enumerate(job.names):
            if given[i]:
                same = job.reference.answer == i
                classes.append(job.estimate_part(name, same, job.new.answer == i))
    groups: list[Part] = []
    if by is not None:
        column = _check_column(by, new.n, "by")
        past_column = None
        if reference_by is not None:
            past_column = _check_column(reference_by, reference.n, "reference_by")
        for name in np.unique(column).tolist():
            same = np.zeros(reference.n, dtype=np.bool_)
            if past_column is not None:
                same = past_column == name
            groups.append(job.estimate_part(name, same, column == name))
    return replace(known, classes=tuple(classes), groups=tuple(groups))


def check_comparable(
    reference: Predictions, new: Predictions, reference_count: ArrayLike | None = None
) -> None:
    """Refuse data that are not from the same model in the same form."""
    if reference.vectors and reference.known_labels is None:
        raise InputError(
            "reference",
            got="has no labels",
            need="the estimate rests on labelled data of the same model",
        )
    if not reference.vectors and reference.known_correct is None:
        raise InputError(
            "reference", got="does not say which answers are right", need="labelled data are needed"
        )
    if (reference.kind, reference.samples > 1) != (new.kind, new.samples > 1):
        raise InputError(
            f"the reference holds {_name_kind(reference)}, the new data {_name_kind(new)}",
            need="both must come from the same model in the same form",
        )
    if reference.k is not None and new.k is not None and reference.k != new.k:
        raise InputError(
            f"the reference has {reference.k} classes, the new data {new.k}; they must be the same."
        )
    if reference.class_names and new.class_names and reference.class_names != new.class_names:
        for i, (a, b) in enumerate(zip(reference.class_names, new.class_names, strict=True)):
            if a != b:
                raise InputError(
                    f"class {i} is {a!r} in the reference and {b!r} in the new data; they must be the same."
                )
    n = reference.n
    if reference_count is not None:
        n = int(checks.counts(reference_count, n).sum())
    if n < LEAST_REFERENCE_ROWS:
        raise InputError(
            "reference",
            got=f"has {n} rows",
            need=f"at least {LEAST_REFERENCE_ROWS} are needed",
        )


def _name_kind(preds: Predictions) -> str:
    if preds.samples > 1:
        return f"{preds.samples} samples of {preds.kind}"
    return preds.kind


class EstimateRows(NamedTuple):
    """One side: raw and calibrated claim of each row, its answer as a number, weight (mean 1),
    group number, and how often the row is there.
    """

    raw: Floats
    claim: Floats
    answer: Ints | None
    weight: Floats
    group: Ints | None
    times: Floats

    @property
    def mass(self) -> Floats:
        """The weight of all answers of each row."""
        return self.weight * self.times

    def count_answers(self, rows: Bools) -> int:
        """How many answers some rows stand for."""
        return int(self.times[rows].sum())

    def average(self, values: Array, rows: slice | Bools = slice(None)) -> float:
        """The mean over the answers of some rows, whatever their weights."""
        return float(np.average(values[rows], weights=self.times[rows]))


def _build_rows(
    preds: Predictions, claim: Floats, answer: Ints | None, times: Ints | None
) -> EstimateRows:
    weight = np.ones(preds.n)
    if preds.weight is not None:
        weight = preds.weight / preds.weight.mean()
    group = None
    if preds.group is not None:
        group = np.unique(preds.group, return_inverse=True)[1].reshape(-1)
    return EstimateRows(
        raw=preds.confidence,
        claim=claim,
        answer=answer,
        weight=weight,
        group=group,
        times=np.ones(preds.n) if times is None else times.astype(np.float64),
    )


@frozen(eq=False)
class EstimationJob:
    """Both sides, and what the estimates of all parts share."""

    reference: EstimateRows
    new: EstimateRows
    correct: Bools
    names: tuple[str, ...]  # of the answers
    shares: ClassShares | None
    cells: ShareCells | None  # of the new rows
    outside: Bools
    alike: float  # correlation of being right within a group
    level: float

    @classmethod
    def of(
        cls,
        reference: Predictions,
        new: Predictions,
        policy: Policy | None,
        level: float,
        *,
        fold: Ints,
        times: Ints | None,
        new_times: Ints | None,
    ) -> EstimationJob:
        """Calibrated claims, numbered answers and changed class shares of both sides."""
        if policy is not None and policy.calibrator is not None:
            reference, new = policy.calibrator(reference), policy.calibrator(new)
        if reference.kind == "score":
            reference, new = _rank_scores(reference, new, times)
        correct = np.asarray(reference.correct)
        claims, new_claims = _calibrate_claims(reference, correct, new, fold=fold, times=times)
        names, answer, new_answer, label = _number_classes(reference, new)
        mine = _build_rows(reference, claims, answer, times)
        theirs = _build_rows(new, new_claims, new_answer, new_times)
        # Scores or answers that the reference never showed.
        outside = (theirs.raw < mine.raw.min()) | (theirs.raw > mine.raw.max())
        shares, cells = None, None
        if answer is not None and new_answer is not None:
            outside = outside | ~np.isin(new_answer, answer)
            if label is not None:
                edges = find_edges(mine.raw, COARSE_BINS)
                known = ShareCells(
                    label=label,
                    answer=answer,
                    bin=np.searchsorted(edges, mine.raw),
                    weight=mine.weight,
                )
                cells = ShareCells(
                    label=np.zeros_like(new_answer),
                    answer=new_answer,
                    bin=np.searchsorted(edges, theirs.raw),
                    weight=theirs.weight,
                )
                shares = estimate_class_shares(known, cells, len(names))
        return cls(
            reference=mine,
            new=theirs,
            correct=correct,
            names=names,
            shares=shares,
            cells=cells,
            outside=outside,
            alike=_correlate_groups(mine, correct, theirs),
            level=level,
        )

    def estimate_part(self, name: str, mine: Bools, theirs: Bools) -> Part:
        """The estimate for some rows of the new data (`theirs`), from those rows of the reference
        (`mine`); from all of them where they are too few.
        """
        n, m = self.reference.count_answers(mine), self.new.count_answers(theirs)
        known = nan
        if n:
            known = float(np.average(self.correct[mine], weights=self.reference.mass[mine]))
        if m == 0:
            return Part(
                name=name, n=0, accuracy=nan, low=0.0, high=1.0, reference=known, reference_n=n
            )
        borrowed = n < LEAST_REFERENCE_ROWS
        used = np.ones_like(mine) if borrowed else mine
        rows = self.reference.count_answers(used)
        value, variance, units = self._estimate_accuracy(used, theirs)
        low, high = _compute_limits(value, variance, min(rows, m), units, self.level)
        low, high = round(low * m) / m, round(high * m) / m  # of m answers a whole number is right
        beyond = max(0.0, self.new.average(self.outside, theirs) - CHANCE_OUTSIDE / rows)
        if beyond:
            # What the reference never showed may be all right or all wrong.
            claim = self.new.average(self.new.claim, theirs & self.outside)
            low, high = low - beyond * claim, high + beyond * (1 - claim)
        return Part(
            name=name,
            n=m,
            accuracy=value,
            low=max(0.0, low),
            high=min(1.0, high),
            reference=known,
            reference_n=n,
            borrowed=borrowed,
            error=sqrt(variance),
        )

    def _estimate_accuracy(self, mine: Bools, theirs: Bools) -> tuple[float, float, int]:
        """Accuracy, the variance of its distance to the accuracy that labels would show, and
        independent units.
        """
        ref, new = self.reference, self.new
        rows = ref.count_answers(mine)
        edges = find_edges(ref.raw[mine], _choose_bins(rows), ref.times[mine])
        bins = len(edges) + 1
        bin_of_ref, bin_of_new = np.searchsorted(edges, ref.raw), np.searchsorted(edges, new.raw)
        weight = ref.weight
        if self.shares is not None:
            weight = weight * self.shares.factor[self.shares.reference.label]
        w, v = np.where(mine, weight, 0.0), np.where(theirs, new.weight, 0.0)

        # The claims' mean over the new rows, plus what the claims miss in each bin.
        total = sum_at(bin_of_ref, w * ref.times, bins)
        rest = self.correct - ref.claim
        missed = sum_at(bin_of_ref, w * ref.times * rest, bins) / np.maximum(total, 1e-300)
        new_total = float((v * new.times).sum())
        q = sum_at(bin_of_new, v * new.times, bins) / new_total
        value = float(np.dot(v * new.times, new.claim) / new_total + np.dot(q, missed))

        # How much each row of the reference moves the value, by itself and through the class shares;
        # a row that makes up most of its bin explains itself, which the divisor undoes.
        share_of_bin = w / np.maximum(total[bin_of_ref], 1e-300)
        pull = np.where(mine, q[bin_of_ref] * share_of_bin, 0.0)
        moved = pull * (rest - missed[bin_of_ref])
        alone = moved / np.maximum(1 - share_of_bin, 0.5)
        through_ref, through_new, prior = np.zeros(len(w)), np.zeros(len(v)), 0.0
        own = np.zeros(len(v))
        if self.shares is not None and self.cells is not None:
            slope = sum_at(self.shares.reference.label, moved, self.shares.k)[self.shares.free]
            through_ref = self.shares.through_reference(slope)
            through_new = self.shares.through_new(slope, self.cells)
            prior = self.shares.prior_variance(slope)
            # A part of the labels' noise that the answers show: how far answers of one class are
            # expected to be from their bin's accuracy.
            k = self.shares.k
            size = (int(max(bin_of_ref.max(), bin_of_new.max())) + 1) * k
            cell = bin_of_ref * k + self.shares.reference.answer
            cell_total, cell_missed = sum_at(cell, w, size), sum_at(cell, w * rest, size)
            at = bin_of_new * k + self.cells.answer
            gap = cell_missed[at] - cell_total[at] * missed[bin_of_new]
            own = v / new_total * (gap / (cell_total[at] + SHRINKING_ROWS))

        # The labels to come are drawn with these chances, alike within a group.
        chance = np.clip(new.claim + missed[bin_of_new], 0.5 / rows, 1 - 0.5 / rows)
        spread = v / new_total * np.sqrt(chance * (1 - chance))
        labels = float((new.times * spread**2).sum()) + self.alike * _sum_pairs(spread, new.group)
        shown = _sum_variance(through_new - own, new) - _sum_variance(own, new)
        noise = _sum_variance(alone + through_ref, ref) + max(0.0, labels + shown) + prior
        units = rows if ref.group is None else len(np.unique(ref.group[mine]))
        return min(1.0, max(0.0, value)), noise, units

    def count_effective_rows(self) -> float:
        """How many reference rows the estimate rests on: fewer the less the new scores look like
        the reference's.
        """
        ref = self.reference
        edges = find_edges(ref.raw, _choose_bins(int(ref.times.sum())), ref.times)
        bins = len(edges) + 1
        n = sum_at(np.searchsorted(edges, ref.raw), ref.times, bins)
        q = sum_at(np.searchsorted(edges, self.new.raw), self.new.mass, bins)
        q = q / q.sum()
        return float(1 / (q**2 / np.maximum(n, 1)).sum())

    def compute_factors(self) -> dict[str, float]:
        """By which factor each class became likelier, by name; the mean over the reference is 1."""
        if self.shares is None:
            return {}
        factor = self.shares.factor / np.average(self.shares.factor[self.shares.reference.label])
        return {self.names[i]: float(factor[i]) for i in self.shares.free.tolist()}

    def write_notes(self) -> list[str]:
        """What a reader should know of these data."""
        notes: list[str] = []
        share, rows = self.new.average(self.outside), int(self.reference.times.sum())
        if share > REFUSED_OUTSIDE:
            notes.append(
                f"{share:.0%} of the new rows have scores or answers that the reference never showed: no estimate."
            )
        elif share > CHANCE_OUTSIDE / rows:
            notes.append(
                f"{share:.1%} of the new rows have scores or answers that the reference never showed; the limits count "
                "them as anything between all right and all wrong."
            )
        effective = self.count_effective_rows()
        if effective < 0.1 * rows:
            notes.append(
                f"The new scores look like only {effective:,.0f} of the {rows:,} reference rows."
            )
        return notes

    def list_blind_spots(self, accuracy: float) -> list[str]:
        """What an estimate of this accuracy cannot see."""
        wrong = 1 - accuracy
        spots = [
            "if errors became more likely without the confidence changing, only labels can show it. "
            f"Twice as likely, the accuracy would be {100 * max(0.0, 1 - 2 * wrong):.1f} %; three "
            f"times, {100 * max(0.0, 1 - 3 * wrong):.1f} %."
        ]
        if self.shares is None:
            spots.append(
                "changed class shares need labels of the reference and answers of both to be seen."
            )
        elif len(self.shares.free) < len(self.names):
            few = len(self.names) - len(self.shares.free)
            spots.append(f"changed shares of {few} classes with too few labels in the reference.")
        if self.new.group is not None and self.reference.group is None:
            spots.append(
                "rows of the new data that share their fate: the reference has no groups to learn it from."
            )
        return spots


def _rank_scores(
    reference: Predictions, new: Predictions, times: Ints | None
) -> tuple[Predictions, Predictions]:
    """Scores of any scale as their rank among those of the reference, between 0 and 1: only the
    order counts, for claims are made of them by labels.
    """
    order = np.argsort(reference.score)
    known = reference.score[order]
    ends = np.arange(len(known) + 1)
    if times is not None:
        ends = np.concatenate(([0], np.cumsum(times[order])))
    ranked: list[Predictions] = []
    for preds in (reference, new):
        below = ends[np.searchsorted(known, preds.score, "left")]
        up_to = ends[np.searchsorted(known, preds.score, "right")]
        ranks = (below + up_to + 1) / (2 * ends[-1] + 2)
        ranked.append(replace(preds, kind="confidence", values=ranks))
    return ranked[0], ranked[1]


def _calibrate_claims(
    reference: Predictions, correct: Bools, new: Predictions, *, fold: Ints, times: Ints | None
) -> tuple[Floats, Floats]:
    """Calibrated claims: of each reference row by the other folds, of the new rows by the mean of
    all folds' maps.
    """
    # A row's own label must not decide its claim, or the claims would look too good.
    raw, later = reference.confidence, Predictions.from_confidence(new.confidence)
    mine, theirs = np.empty(reference.n), np.zeros(new.n)
    for i in range(CLAIM_FOLDS):
        rest = fold != i
        if times is not None:
            steps = pool_steps(count_cells(raw[rest], correct[rest], times[rest]), 0.5)
            points = steps.list_points()
            mine[~rest] = np.interp(raw[~rest], *points)
            theirs += np.interp(new.confidence, *points) / CLAIM_FOLDS
            continue
        weight = None if reference.weight is None else reference.weight[rest]
        past = Predictions.from_confidence(raw[rest], correct[rest], weight=weight)
        is_large = past.n >= LEAST_ISOTONIC_ROWS
        calibrate = Isotonic.fit(past, floor=0.5) if is_large else Platt.fit(past)
        if not rest.all():
            mine[~rest] = calibrate(Predictions.from_confidence(raw[~rest])).confidence
        theirs += calibrate(later).confidence / CLAIM_FOLDS
    return mine, theirs


def _number_classes(
    reference: Predictions, new: Predictions
) -> tuple[tuple[str, ...], Ints | None, Ints | None, Ints | None]:
    """Names of the classes, answers of both sides and labels of the reference as numbers; None
    where not known.
    """
    if reference.vectors and reference.k is not None:
        names = reference.class_names or new.class_names
        if not names:
            names = tuple(str(i) for i in range(reference.k))
        return names, reference.prediction, new.prediction, reference.labels
    answer, new_answer = reference.known_prediction, new.known_prediction
    if answer is None or new_answer is None:
        return (), None, None, None
    columns = [answer, new_answer]
    if reference.known_labels is not None:
        columns.append(reference.known_labels)
    # Answers as text are numbered together, so that a class has one number on both sides.
    words, number = np.unique(np.concatenate([c.astype(str) for c in columns]), return_inverse=True)
    parts = np.split(number.reshape(-1), np.cumsum([len(c) for c in columns])[:-1])
    label = parts[2] if len(parts) == 3 else None
    return tuple(words.tolist()), parts[0], parts[1], label


def find_edges(score: Floats, bins: int, times: Floats | None = None) -> Floats:
    """Inner edges of bins that hold equally many of these scores; ties stay together."""
    if times is not None and (times == 1).all():
        times = None
    shares = np.arange(1, bins) / bins
    return np.unique(np.quantile(score, shares, method="inverted_cdf", weights=times))


def _choose_bins(rows: int) -> int:
    return min(SCORE_BINS, max(1, rows // ROWS_PER_BIN))


def _sum_variance(influence: Floats, rows: EstimateRows) -> float:
    """The variance of a sum whose terms are independent between groups."""
    if rows.group is None:
        return float((rows.times * influence**2).sum())
    sums = count_values(rows.group, influence)
    return float((sums**2).sum()) * len(sums) / max(1, len(sums) - 1)


def _sum_pairs(x: Floats, group: Ints | None) -> float:
    """The sum of x·x over all ordered pairs of rows of one group."""
    if group is None:
        return 0.0
    return float((count_values(group, x) ** 2).sum() - (x**2).sum())


def _correlate_groups(ref: EstimateRows, correct: Bools, new: EstimateRows) -> float:
    """Correlation of being right between rows of a group, beyond their claims, at scores as common
    as the new ones.
    """
    if ref.group is None or new.group is None:
        return 0.0
    edges = find_edges(ref.raw, _choose_bins(len(correct)))
    bin_of_ref, bins = np.searchsorted(edges, ref.raw), len(edges) + 1
    new_rows = sum_at(np.searchsorted(edges, new.raw), new.weight, bins)
    ratio = new_rows / np.maximum(sum_at(bin_of_ref, ref.weight, bins), 1e-300)
    weight = ratio[bin_of_ref] * ref.weight
    seen = _sum_pairs(weight * (correct - ref.claim), ref.group)
    possible = _sum_pairs(weight * np.sqrt(ref.claim * (1 - ref.claim)), ref.group)
    return min(1.0, max(0.0, seen / max(possible, 1e-300)))


def _compute_limits(
    value: float, variance: float, n: int, units: int, level: float
) -> tuple[float, float]:
    """Quantiles of the beta distribution with this mean and variance, widened by Student's t."""
    from scipy.special import betaincinv

    half = (1 - level) / 2
    # Half an answer from 0 and from 1: a beta distribution has no mean of 0 or 1.
    mean = min(max(value, 0.5 / (n + 1)), 1 - 0.5 / (n + 1))
    least_variance = mean * (1 - mean) / (n + 1)
    wider = (student_quantile(max(1, units - 1), half) / student_quantile(inf, half)) ** 2
    size = mean * (1 - mean) / (max(variance, least_variance) * wider) - 1
    if size <= 0:
        return 0.0, 1.0
    low, high = (float(betaincinv(mean * size, (1 - mean) * size, p)) for p in (half, 1 - half))
    return min(low, value), max(high, value)


def _check_column(values: ArrayLike, n: int, name: str) -> Array:
    column = np.asarray(values).astype(str)
    if column.shape != (n,):
        raise InputError(
            name,
            got=f"has shape {column.shape}",
            need=f"one value for each of the {n:,} rows is needed",
        )
    return column
